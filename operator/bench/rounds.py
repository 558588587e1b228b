"""Measures how often the rounds of suites are judged right: `rounds.py [ROUNDS [TABLE ...]]`; tables of
docs/explanation/suites.md.

It simulates that many rounds under each condition, from the values of runs on. Of 200, a share of 1 % has a standard
error of 0.7 %, and one of 95 % of 1.5 %; they take about ten minutes.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from figures import heading_rows, percent
from plimsoll.api.suite_status import PINNED_ROUNDS, Conclusion, HypothesisVerdict
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.measure.hypotheses.decide import judge as decide_samples
from plimsoll.measure.hypotheses.select import Sample, sample_of, select_all
from plimsoll.suite.judging import judge
from plimsoll.suite.measured import MeasuredRound
from support.results import hypothesis, point, run_of_points
from support.simulated_comparisons import COURSES, Course, Losses, Rounds, drawn, everywhere

_LOSS = 0.1
_DRIFT = 0.01
_DRIFTING = 10
_GAIN = 1 / 9
"""Of which the loss is one of 10 %."""

_GAINED = (3, 5)
_LONG = 10
_NOISY = ((0.03, 3, 3), (0.1, 3, 3), (0.1, 5, 3), (0.1, 5, 5), (0.1, 5, 10))
"""Noise between runs, accepted rounds, and repeat."""

_REPEATS = (3, 5, 10)
_EFFECTS = (0.05, 0.1, 0.2)
_NOISE = 0.01
"""Of runs, on top of what their storage does."""

_SELECTED = {"workload": "rbd", "quantity": "iops"}
_RATIO = hypothesis(left={**_SELECTED, "variant": "a"}, of={**_SELECTED, "variant": "b"}, atLeastPercent=90)

_ROUNDS = 200
_SHARED = (0.0, 0.5, 1.0)
_BETWEEN = (0.01, 0.02, 0.03)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    names = sys.argv[2:] or [*_TABLES]
    if unknown := [name for name in names if name not in _TABLES]:
        sys.exit(f"no table {', '.join(unknown)}; there are {', '.join(_TABLES)}")
    for name in names:
        print(f"\n{name}, of {rounds} each\n")
        for row in _TABLES[name](rounds):
            print(f"| {' | '.join(row)} |", flush=True)


def _errors(rounds: int) -> Iterator[Sequence[str]]:
    """Yield how often a round without a change, and one that lost, ends as it should, after five accepted ones.

    Of two variants one loses.
    """
    yield from heading_rows(
        "points", "variants", "shared", "false Regression", "NoRegression", "10 % at all points", "10 % at one point"
    )
    for suite in _suites():
        yield (str(suite.points), str(suite.variants), f"{suite.shared:g}", *_rates(suite, rounds))


def _between(rounds: int) -> Iterator[Sequence[str]]:
    """Yield the same if rounds differ by more than their runs explain."""
    yield from heading_rows(
        "noise between rounds", "points", "false Regression", "NoRegression", "10 % at all points", "10 % at one point"
    )
    for between in _BETWEEN:
        for points in (1, 20):
            suite = Rounds(points=points, shared=0.5 if points > 1 else 0.0, between=between)
            yield (f"{100 * between:g} %", str(points), *_rates(suite, rounds))


def _courses(rounds: int) -> Iterator[Sequence[str]]:
    """Yield the same if the speed of the storage changes from round to round."""
    yield from heading_rows("speed of the storage", "points", "false Regression", "NoRegression", "10 % at all points")
    for course in COURSES:
        for points in (1, 20):
            suite = Rounds(points=points, shared=0.5 if points > 1 else 0.0)
            nothing, lost = (
                [_after_course(suite, f"{course} {loss} {number}", course, loss) for number in range(rounds)]
                for loss in (0.0, _LOSS)
            )
            yield (
                course,
                str(points),
                percent(nothing.count(Conclusion.REGRESSION) / rounds, 2),
                percent(nothing.count(Conclusion.NO_REGRESSION) / rounds),
                percent(lost.count(Conclusion.REGRESSION) / rounds),
            )


def _after_course(suite: Rounds, seed: str, course: str, loss: float) -> Conclusion:
    chance = drawn(f"{suite} {seed}")
    levels = COURSES[course](chance, PINNED_ROUNDS + 1)
    accepted = [suite.round(chance, minute, level=level) for minute, level in enumerate(levels[:-1])]
    last = suite.round(chance, PINNED_ROUNDS, everywhere(loss, suite.points), levels[-1])
    return _conclusion(suite, accepted, accepted, last)


def _hypotheses(rounds: int) -> Iterator[Sequence[str]]:
    """Yield how often a ratio of two variants is decided, if it is the limit itself, and if it is above it."""
    yield from heading_rows(
        "repeat", "speed of the storage", "decided at the limit", *(f"{100 * effect:g} % above" for effect in _EFFECTS)
    )
    for repeat in _REPEATS:
        for course in COURSES:
            shares = [
                sum(
                    _decides(repeat, course, effect, f"{repeat} {course} {effect} {number}") for number in range(rounds)
                )
                for effect in (0.0, *_EFFECTS)
            ]
            yield str(repeat), course, *(percent(share / rounds) for share in shares)


def _decides(repeat: int, course: str, effect: float, seed: str) -> bool:
    """Whether the hypothesis is decided on so many runs of both variants, in turn, if this is the effect."""
    chance = drawn(seed)
    limit = (_RATIO.at_least_percent or 0) / 100
    samples = []
    for number, level in enumerate(COURSES[course](chance, 2 * repeat)):
        truth = 1.0 if number % 2 else limit * (1 + effect)
        value = truth * math.exp(level + chance.gauss(0, _NOISE))
        samples.append(replace(_template("b" if number % 2 else "a", number // 2), values=(value,)))
    return decide_samples(_RATIO, samples).verdict is not HypothesisVerdict.UNDECIDED


@cache
def _template(variant: str, number: int) -> Sample:
    """Return the sample of a run of that variant, without its value."""
    runs = [run_of_points(point("rbd-0", [100]), variant=each, name=f"{each}{number}") for each in "ab"]
    selected, _ = select_all(_RATIO, runs)
    return sample_of(next(each for each in selected if each.variant == variant))


def _drift(rounds: int) -> Iterator[Sequence[str]]:
    """Yield how often ten rounds are found to drift by 1 % each, and how often ten without a drift alarm at all."""
    yield from heading_rows("points", "variants", "shared", "drift found within ten rounds", "false alarms per round")
    for suite in _suites():
        drifting = sum(any(_course(suite, f"drift {number}", _DRIFT)) for number in range(rounds)) / rounds
        steady = sum(sum(_course(suite, f"steady {number}", 0.0)) for number in range(rounds)) / rounds / _DRIFTING
        yield str(suite.points), str(suite.variants), f"{suite.shared:g}", percent(drifting), percent(steady, 2)


def _gains(rounds: int) -> Iterator[Sequence[str]]:
    """Yield how often the loss of what some accepted rounds had gained is found, and how often steady rounds alarm."""
    yield from heading_rows(
        "points", "variants", "shared", *(f"lost after {number} rounds" for number in _GAINED), "false Regression"
    )
    for suite in _suites():
        found = [
            percent(sum(_after(suite, f"gain {each}", number, _GAIN) for each in range(rounds)) / rounds)
            for number in _GAINED
        ]
        steady = sum(_after(suite, f"long {each}", _LONG, 0.0) for each in range(rounds)) / rounds
        yield str(suite.points), str(suite.variants), f"{suite.shared:g}", *found, percent(steady, 2)


def _after(suite: Rounds, seed: str, number: int, gain: float) -> bool:
    """Whether a round regressed that is like the pinned ones, after as many others as given with a higher rate."""
    chance = drawn(f"{suite} {seed}")
    pinned = [suite.round(chance, minute) for minute in range(PINNED_ROUNDS)]
    gained = everywhere(-gain, suite.points)
    later = [suite.round(chance, minute, gained) for minute in range(PINNED_ROUNDS, PINNED_ROUNDS + number)]
    last = suite.round(chance, PINNED_ROUNDS + number)
    return _conclusion(suite, [*pinned, *later], pinned, last) is Conclusion.REGRESSION


def _noisy(rounds: int) -> Iterator[Sequence[str]]:
    """Yield the same as for errors with more noise, fewer accepted rounds, or more runs."""
    yield from heading_rows(
        "noise", "accepted rounds", "repeat", "points", "false Regression", "NoRegression", "10 % at all", "10 % at one"
    )
    for noise, accepted, repeat in _NOISY:
        for points in (1, 4):
            suite = Rounds(points=points, shared=0.5 if points > 1 else 0.0, noise=noise, repeat=repeat)
            yield f"{100 * noise:g} %", str(accepted), str(repeat), str(points), *_rates(suite, rounds, accepted)


def _suites() -> Iterator[Rounds]:
    """Yield all conditions that differ: a single point shares no noise."""
    for points in (1, 4, 20):
        for variants in (1, 2):
            for shared in _SHARED if points > 1 else _SHARED[:1]:
                yield Rounds(points=points, variants=variants, shared=shared)


def _rates(suite: Rounds, rounds: int, accepted: int = PINNED_ROUNDS) -> Iterator[str]:
    nothing = [_judged(suite, f"nothing {number}", {}, accepted) for number in range(rounds)]
    yield percent(nothing.count(Conclusion.REGRESSION) / rounds, 2)
    yield percent(nothing.count(Conclusion.NO_REGRESSION) / rounds)
    for losses in (everywhere(_LOSS, suite.points), {suite.points // 2: _LOSS}):
        found = [_judged(suite, f"{losses} {number}", losses, accepted) for number in range(rounds)]
        yield percent(found.count(Conclusion.REGRESSION) / rounds)


def _judged(suite: Rounds, seed: str, losses: Losses, number: int) -> Conclusion:
    """Return the conclusion of a round after that many accepted ones, at most as many as are pinned."""
    chance = drawn(f"{suite} {seed}")
    accepted = [suite.round(chance, minute) for minute in range(number)]
    return _conclusion(suite, accepted, accepted, suite.round(chance, number, losses))


def _course(suite: Rounds, seed: str, drift: float) -> Iterator[bool]:
    """Yield whether each of the rounds after the pinned ones regressed, as each loses that part of the rate more."""
    chance = drawn(f"{suite} {seed}")
    course = Course(suite.names)
    course.add(*(suite.round(chance, minute) for minute in range(PINNED_ROUNDS)))
    for number in range(1, _DRIFTING + 1):
        measured = suite.round(chance, PINNED_ROUNDS + number, everywhere(number * drift, suite.points))
        yield course.add(measured).conclusion is Conclusion.REGRESSION


def _conclusion(
    suite: Rounds, accepted: Sequence[MeasuredRound], pinned: Sequence[MeasuredRound], measured: MeasuredRound
) -> Conclusion:
    return judge(accepted, pinned, measured, suite.names, RegressionRule()).conclusion


_TABLES: Mapping[str, Callable[[int], Iterator[Sequence[str]]]] = {
    "errors": _errors,
    "between": _between,
    "courses": _courses,
    "hypotheses": _hypotheses,
    "drift": _drift,
    "gains": _gains,
    "noisy": _noisy,
}

if __name__ == "__main__":
    main()
