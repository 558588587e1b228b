"""Measures how often comparisons are right: `comparing.py [COMPARISONS [TABLE ...]]`; tables of
docs/explanation/comparing.md.

It simulates that many comparisons under each condition, from the values of trials on. Of 2000, which take half an hour,
a share has a standard error of at most 1.1 %, and of 0.2 % where it is 1 %.
"""

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from figures import heading_rows, percent
from plimsoll.api.suite_status import Conclusion
from support.simulated_comparisons import COURSES, SCATTER, Sweep, UnsteadySweep

_POINTS = (1, 4, 20, 100)
_CORRELATIONS = (0.0, 0.5)
_VARIANCES = {"equal": Sweep(points=1), "points": Sweep(points=1, quiet=2 / 3), "sides": Sweep(points=1, calm=2 / 3)}
"""How variances differ: the coefficients of variation by 2 x between points, the variances by 2 x between runs."""

_LOSS = 0.1
_LOSSES = (0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15)
_ENOUGH = 0.9
_MOST_TRIALS = 20
_MANY = 100
_ROUGHLY = 500
"""Comparisons that show from how many repetitions on most of them are right."""

_COMPARISONS = 2000


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else _COMPARISONS
    names = sys.argv[2:] or [*_TABLES]
    if unknown := [name for name in names if name not in _TABLES]:
        sys.exit(f"no table {', '.join(unknown)}; there are {', '.join(_TABLES)}")
    for name in names:
        print(f"\n{name}, of {comparisons} comparisons each\n")
        for row in _TABLES[name](comparisons):
            print(f"| {' | '.join(row)} |", flush=True)


def _errors(comparisons: int) -> Iterator[Sequence[str]]:
    """Yield how often nothing, a loss at all points and a loss at one point end as they should."""
    yield from heading_rows(
        "points",
        "pass correlation",
        "variances",
        "false Regression",
        "NoRegression without a change",
        "10 % at all points found",
        "10 % at one point found",
    )
    for name, sweep in _conditions():
        nothing = _conclusions(sweep, comparisons, 0, 0)
        found = [_conclusions(sweep, comparisons, _LOSS, losing)[Conclusion.REGRESSION] for losing in (sweep.points, 1)]
        yield (
            str(sweep.points),
            f"{sweep.correlation:g}",
            name,
            f"{100 * nothing[Conclusion.REGRESSION] / comparisons:.2f} %",
            percent(nothing[Conclusion.NO_REGRESSION] / comparisons),
            *(percent(number / comparisons) for number in found),
        )


def _courses(comparisons: int) -> Iterator[Sequence[str]]:
    """Yield the same for storage whose speed changes with time, as no test of two runs can know."""
    yield from heading_rows(
        "speed of the storage", "a side is", "points", "false Regression", "NoRegression", "10 % at all points found"
    )
    for course in COURSES:
        for of_runs in (False, True):
            scatter = {metric: value / math.sqrt(5 if of_runs else 1) for metric, value in SCATTER.items()}
            for points in (1, 20):
                sweep = UnsteadySweep(points=points, course=course, of_runs=of_runs, scatter=scatter)
                nothing = _conclusions(sweep, comparisons, 0, 0)
                yield (
                    course,
                    "five runs" if of_runs else "five passes of one run",
                    str(points),
                    f"{100 * nothing[Conclusion.REGRESSION] / comparisons:.2f} %",
                    percent(nothing[Conclusion.NO_REGRESSION] / comparisons),
                    percent(_conclusions(sweep, comparisons, _LOSS, points)[Conclusion.REGRESSION] / comparisons),
                )


def _losses(comparisons: int) -> Iterator[Sequence[str]]:
    """Yield the conclusions from losses at a single point: how much may hide in `NoRegression`."""
    yield from heading_rows("points", "conclusion", *(f"{100 * loss:g} %" for loss in _LOSSES))
    for points in _POINTS:
        found = [_conclusions(Sweep(points=points), comparisons, loss, 1) for loss in _LOSSES]
        for conclusion in Conclusion:
            yield str(points), conclusion, *(percent(one[conclusion] / comparisons) for one in found)


def _repetitions(comparisons: int) -> Iterator[Sequence[str]]:
    """Yield from how many repetitions on 90 % of comparisons without a change have no regression."""
    yield from heading_rows("points", "pass correlation", "repetitions")
    for name, sweep in _conditions():
        if name == "equal" and sweep.points < _MANY:
            yield str(sweep.points), f"{sweep.correlation:g}", _enough(sweep, min(_ROUGHLY, comparisons))


def _enough(sweep: Sweep, comparisons: int) -> str:
    for trials in range(3, _MOST_TRIALS + 1):
        found = _conclusions(replace(sweep, trials=trials), comparisons, 0, 0)[Conclusion.NO_REGRESSION]
        if found >= _ENOUGH * comparisons:
            return str(trials)
    return f"more than {_MOST_TRIALS}"


def _conditions() -> Iterator[tuple[str, Sweep]]:
    """Yield all conditions that differ: a single point has no others to differ from, or to share noise with."""
    for points in _POINTS:
        for correlation in _CORRELATIONS if points > 1 else _CORRELATIONS[:1]:
            for name, sweep in _VARIANCES.items():
                if points > 1 or name != "points":
                    yield name, replace(sweep, points=points, correlation=correlation)


def _conclusions(sweep: Sweep, comparisons: int, loss: float, losing: int) -> Mapping[Conclusion, int]:
    """Count the conclusions if that many points, drawn anew each time, lose this part of their rate."""
    chance = random.Random(f"{sweep} {loss} {losing}")  # noqa: S311 - numbers, not secrets
    drawn = (chance.sample(range(sweep.points), losing) for _ in range(comparisons))
    return Counter(sweep.conclusion(chance, dict.fromkeys(points, -loss)) for points in drawn)


_TABLES: Mapping[str, Callable[[int], Iterator[Sequence[str]]]] = {
    "errors": _errors,
    "courses": _courses,
    "losses": _losses,
    "repetitions": _repetitions,
}

if __name__ == "__main__":
    main()
