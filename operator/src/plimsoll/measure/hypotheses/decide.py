"""Decides hypotheses: on which points, with which verdict, in words and in numbers.

A hypothesis is held or refuted if the whole 95 % interval says so. The trial is the unit of statistics, or the run if
every side has at least three of them: only repeated runs show the noise between runs. Lines of fewer runs have
intervals of their own, from their probes. A ratio compares geometric means, scaling fits the exponent of a power law to
all values; points of the same runs are compared within each run.

Runs, or trials, are taken as independent, which few of them cannot show: the result of fewer than five runs must also
be farther from the limit than three times the scatter of the runs, or of the trials of fewer than three runs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, geometric_mean, linear_regression, pvariance, stdev

from plimsoll.api.hypothesis import Hypothesis, Selector
from plimsoll.api.model import Model
from plimsoll.api.names import Verdict
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.attempts import on_first_attempts, repeated_too_often, spoiled_attempts
from plimsoll.measure.compare.lines import Position, line_change
from plimsoll.measure.compare.significance import LogChange, log_change
from plimsoll.measure.compare.values import RepeatsError, check_distinct, first_attempts_text
from plimsoll.measure.hypotheses.select import (
    MeasuredRun,
    Sample,
    axis_text,
    parameter_text,
    sample_of,
    scopes,
    select_all,
)
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import half_width, mean_and_variance
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.measure.text import first_few, listed

ENOUGH_RUNS = 5  # with fewer runs on a side, an effect has to exceed their scatter as well
SCATTERS = 3  # by as many standard deviations of single runs
_ROUNDING = 1e-9  # of logarithms and exponents: a value that differs by less from a limit equals it
_MOST = 100.0  # the largest logarithm; its exponential is still finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95 % confidence interval; one end of it is infinite if only the other one is known."""

    estimate: float
    low: float
    high: float

    @property
    def is_open(self) -> bool:
        """Whether an end is unknown, and so is the estimate."""
        return math.isinf(self.low) or math.isinf(self.high)


def _of_change(change: LogChange) -> Interval:
    low, high = change.interval()
    return Interval(estimate=change.estimate, low=low, high=high)


def log_ratio(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the logarithm of the ratio of geometric means. Each side has at least two positive values."""
    return _of_change(log_change(of, left))


def log_ratio_of_pairs(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the same from pairs: at least two of positive values."""
    mean, variance = mean_and_variance(
        [math.log(value) - math.log(other) for value, other in zip(left, of, strict=True)]
    )
    return _interval(mean, math.sqrt(variance / len(left)), len(left) - 1)


def _mean_position(lines: Sequence[Position]) -> Position:
    return Position(
        value=fmean(line.value for line in lines),
        error=math.hypot(*(line.error for line in lines)) / len(lines),
        probes=min(line.probes for line in lines),
        may_be_lower=any(line.may_be_lower for line in lines),
        may_be_higher=any(line.may_be_higher for line in lines),
    )


def exponent(blocks: Sequence[Sequence[tuple[float, float]]]) -> Interval:
    """Return b of y = a * x^b, with an a for each block; at least two points more than blocks, x and y above 0."""
    points = []
    for block in blocks:
        logarithms = [(math.log(x), math.log(y)) for x, y in block]
        middle, height = map(fmean, zip(*logarithms, strict=True))
        points += [(x - middle, y - height) for x, y in logarithms]
    slope, _ = linear_regression(*zip(*points, strict=True), proportional=True)
    freedom = len(points) - len(blocks) - 1
    residuals = math.fsum((y - slope * x) ** 2 for x, y in points)
    return _interval(slope, math.sqrt(residuals / freedom / math.fsum(x * x for x, _ in points)), freedom)


def _interval(estimate: float, error: float, freedom: float) -> Interval:
    half = half_width(error, freedom)
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half)


class Unit(StrEnum):
    """The unit of replication."""

    TRIAL = "Trial"
    RUN = "Run"
    PROBE = "Probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, and the numbers behind it."""

    verdict: HypothesisVerdict
    interval: Interval | None = None  # of the ratio, as a part of 1, or of the exponent; None if it cannot be computed
    unit: Unit | None = None  # None without an interval
    replicates: tuple[int, ...] = ()  # number of units on each side; a single number for scaling
    reasons: tuple[str, ...] = ()  # why there is no interval
    # Standard deviation of what single runs or trials show, of a logarithm or an exponent, or the error of the ratio of
    # lines, if only that prevents a decision.
    scatter: float | None = None


_Places = Mapping[tuple[str, int | None], Sequence[Sample]]
"""Field of a selector and value of the axis -> the samples of all runs, in the same order everywhere."""


def judge(hypothesis: Hypothesis, samples: Sequence[Sample]) -> Judgement:
    """Judge by the samples of all selected points; `Undecided` if one of them has a problem."""
    problems = tuple(dict.fromkeys(sample.problem for sample in samples if sample.problem))
    places = grouped(samples, lambda sample: (sample.selected.field, sample.selected.axis_value))
    if min(map(len, places.values())) >= MINIMUM_TRIALS:
        unit = Unit.RUN
    else:
        unit = Unit.PROBE if all(map(_lines, places.values())) else Unit.TRIAL
    bounds = tuple(dict.fromkeys(sample.bound for sample in samples if sample.bound))
    obstacles = problems or (() if unit is Unit.PROBE else bounds) or tuple(_obstacles(hypothesis, unit, places))
    if obstacles:
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=obstacles)
    interval, deviation = _estimate(hypothesis, unit, places)
    verdict, scatter = _verdict(interval, hypothesis), None
    if bounds and verdict is HypothesisVerdict.UNDECIDED:
        return Judgement(verdict=verdict, reasons=bounds)
    # The same runs measured all values of an axis.
    counts = grouped([(field, _count(unit, samples)) for (field, _), samples in places.items()], lambda pair: pair[0])
    replicates = tuple(pairs[0][1] if unit is Unit.RUN else sum(n for _, n in pairs) for pairs in counts.values())
    are_few = unit is not Unit.RUN or min(replicates) < ENOUGH_RUNS
    if are_few and verdict is not HypothesisVerdict.UNDECIDED:
        half = SCATTERS * deviation
        low, high = min(interval.low, interval.estimate - half), max(interval.high, interval.estimate + half)
        if _verdict(replace(interval, low=low, high=high), hypothesis) is HypothesisVerdict.UNDECIDED:
            verdict, scatter = HypothesisVerdict.UNDECIDED, deviation
    if not hypothesis.over:
        estimate, low, high = (
            logarithm if math.isinf(logarithm) else math.exp(max(-_MOST, min(_MOST, logarithm)))
            for logarithm in (interval.estimate, interval.low, interval.high)
        )
        interval = Interval(estimate=estimate, low=low, high=high)
    return Judgement(verdict=verdict, interval=interval, unit=unit, replicates=replicates, scatter=scatter)


def _lines(samples: Sequence[Sample]) -> list[Position]:
    return [sample.line for sample in samples if sample.line is not None]


def _values(unit: Unit, samples: Sequence[Sample]) -> list[float]:
    if unit is Unit.RUN:
        return [geometric_mean(sample.values) for sample in samples]
    return [value for sample in samples for value in sample.values]


def _obstacles(hypothesis: Hypothesis, unit: Unit, places: _Places) -> Iterator[str]:
    for (field, axis_value), samples in places.items():
        count = _count(unit, samples)
        if count < MINIMUM_TRIALS and unit is not Unit.PROBE:
            where = f"{field}, {hypothesis.over} {axis_value}" if hypothesis.over else field
            counts = f"only {count} trial{' counts' if count == 1 else 's count'}"
            yield f"{where}: {counts}, but at least {MINIMUM_TRIALS} are needed; measure with more repetitions"
    if unit is Unit.PROBE and hypothesis.over:
        yield f"how lines scale shows only in at least {MINIMUM_TRIALS} runs of each variant (repeat)"
    results = [sample.result for samples in places.values() for sample in samples]
    loads = {result.spec.line.vary for result in results if result.spec.line is not None}
    if len(loads) > 1:
        yield f"the searches vary different loads ({' and '.join(sorted(loads))}), so their lines have no ratio"


def _estimate(hypothesis: Hypothesis, unit: Unit, places: _Places) -> tuple[Interval, float]:
    """Return the logarithm of the ratio, or the exponent, and its standard deviation that single units show."""
    if hypothesis.over:
        rows = [[(x or 1, value) for value in _values(unit, samples)] for (_, x), samples in places.items()]
        if unit is Unit.RUN:
            runs = [*zip(*rows, strict=True)]
            return exponent(runs), stdev(exponent([run]).estimate for run in runs)
        # Of trials at the same value (pure error), without the errors of the fit.
        errors = math.fsum(len(row) * pvariance([math.log(value) for _, value in row]) for row in rows)
        axis = pvariance([math.log(row[0][0]) for row in rows])
        variance = errors / sum(len(row) - 1 for row in rows) / len(rows) / axis
        return exponent([[point for row in rows for point in row]]), math.sqrt(variance)
    left, of = places["left", None], places["of", None]
    if unit is Unit.PROBE:
        line, other = _mean_position(_lines(left)), _mean_position(_lines(of))
        return _of_change(line_change(other, line)), math.hypot(line.error, other.error)
    values, others = _values(unit, left), _values(unit, of)
    runs_of = [[(sample.selected.variant, sample.selected.run) for sample in side] for side in (left, of)]
    if unit is Unit.RUN and runs_of[0] == runs_of[1]:
        ratios = (math.log(value) - math.log(other) for value, other in zip(values, others, strict=True))
        return log_ratio_of_pairs(values, others), stdev(ratios)
    return log_ratio(values, others), math.hypot(stdev(map(math.log, values)), stdev(map(math.log, others)))


def _verdict(interval: Interval, hypothesis: Hypothesis) -> HypothesisVerdict:
    at_least, at_most = hypothesis.bounds
    if not hypothesis.over:
        at_least, at_most = (None if bound is None else math.log(bound) for bound in (at_least, at_most))
    low = -math.inf if at_least is None else at_least - _ROUNDING
    high = math.inf if at_most is None else at_most + _ROUNDING
    if low <= interval.low and interval.high <= high:
        return HypothesisVerdict.HELD
    if interval.high < low or interval.low > high:
        return HypothesisVerdict.REFUTED
    return HypothesisVerdict.UNDECIDED


def _count(unit: Unit, samples: Sequence[Sample]) -> int:
    return sum(line.probes for line in _lines(samples)) if unit is Unit.PROBE else len(_values(unit, samples))


_PERCENT = 100
_MOST_DECIMALS = 6
_BY_UNIT = {
    Unit.RUN: ("runs scatter by", "more runs (repeat) narrow it"),
    Unit.TRIAL: (f"trials of fewer than {MINIMUM_TRIALS} runs scatter by", "more repetitions narrow it"),
    Unit.PROBE: (f"lines of fewer than {MINIMUM_TRIALS} runs have an error of", "a lower precisionPercent narrows it"),
}
"""What scatters too much for a decision, and what narrows an interval."""

Bounds = tuple[float | None, float | None]


def _sentence(
    hypothesis: Hypothesis,
    judgement: Judgement,
    samples: Sequence[Sample],
    variant: str | None,
    reasons: Sequence[str],
) -> str:
    interval = judgement.interval
    if interval is None:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        text = f"{judgement.verdict}{f' in {variant}' if variant else ''}: {reasons[0]}{more}"
        return text if text.endswith("?") else f"{text}."
    if hypothesis.of is not None:
        text = _ratio(hypothesis, interval)
    else:
        estimate, low, high = interval_texts(interval, hypothesis.bounds, is_ratio=False)
        over = hypothesis.over or ""
        first, last = (axis_text(sample.selected.point, over) for sample in (samples[0], samples[-1]))
        text = (
            f"the {_quantity(hypothesis.left)} scales with {over} to the power of {estimate} ({low} to {high}), from "
            f"{first} to {last}"
        )
    expected = f"{expectation_text(hypothesis.bounds, is_ratio=hypothesis.of is not None)} was expected"
    start = f"In {variant}, {text}" if variant else text[:1].upper() + text[1:] if text.startswith("the ") else text
    is_suspect = any(sample.result.status.verdict is Verdict.SUSPECT for sample in samples)
    because = "".join(f", because {reason}" for reason in reasons)
    return f"{start}; {expected}: {judgement.verdict}{', on Suspect points' if is_suspect else ''}{because}."


def _undecided(hypothesis: Hypothesis, judgement: Judgement, interval: Interval) -> str:
    is_ratio = hypothesis.of is not None
    what, remedy = _BY_UNIT[judgement.unit or Unit.TRIAL]
    if judgement.scatter is not None:
        scatter = f"{_PERCENT * judgement.scatter:.2g} %" if is_ratio else f"{judgement.scatter:.2g}"
        effect = f"decide only on an effect of more than {SCATTERS} times that"
        return f"{what} {scatter} and {effect}; measure at least {ENOUGH_RUNS} runs (repeat)"
    inside = (bound for bound in hypothesis.bounds if bound is not None and interval.low <= bound <= interval.high)
    return f"the interval includes {listed([_bound_text(bound, is_ratio=is_ratio) for bound in inside])}; {remedy}"


def expectation_text(bounds: Bounds, *, is_ratio: bool) -> str:
    """Return what was expected: `at least 90 %`, `at most 1.2`, `90 % to 110 %`."""
    low, high = (None if bound is None else _bound_text(bound, is_ratio=is_ratio) for bound in bounds)
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at most {high}" if low is None else f"at least {low}"


def interval_texts(interval: Interval, bounds: Bounds, *, is_ratio: bool) -> tuple[str, str, str]:
    """Return estimate and interval, a ratio as percent, with decimals that show its width and its side of limits."""
    factor = _PERCENT if is_ratio else 1
    numbers = [factor * number for number in (interval.estimate, interval.low, interval.high)]
    limits = [factor * bound for bound in bounds if bound is not None]
    # Decimals that show the width of the interval, and two digits of a small ratio.
    least = _place(numbers[0]) + 1 if is_ratio else 2
    decimals = min(_MOST_DECIMALS, max(0, _place((numbers[2] - numbers[1]) / 2), least))
    # Each end is shown on the side of each limit that it is on.
    apart = [(end, limit) for end in numbers[1:] for limit in limits if not math.isclose(end, limit, rel_tol=1e-6)]
    decimals = next(
        places
        for places in range(decimals, _MOST_DECIMALS + 1)
        if places == _MOST_DECIMALS
        or all((round(end, places) > limit) == (end > limit) and round(end, places) != limit for end, limit in apart)
    )
    estimate, low, high = (f"{number:,.{decimals}f}" if abs(number) < 1e6 else f"{number:.3g}" for number in numbers)  # noqa: PLR2004
    return estimate, low, high


def known_end_text(interval: Interval, bounds: Bounds) -> str:
    """Return the known end of the open interval of a ratio: `at least 108 %`."""
    word, end = ("at least", interval.low) if math.isinf(interval.high) else ("at most", interval.high)
    text, _, _ = interval_texts(Interval(estimate=end, low=end, high=end), bounds, is_ratio=True)
    return f"{word} {text} %"


def expectation(hypothesis: Hypothesis) -> str:
    """Return a hypothesis in words, before anything is measured."""
    what, expected = _quantity(hypothesis.left), expectation_text(hypothesis.bounds, is_ratio=not hypothesis.over)
    if hypothesis.of is not None:
        return f"{what} is {expected} of the {_quantity(hypothesis.of)}"
    return f"{what} scales with {hypothesis.over} to the power of {expected}"


def _ratio(hypothesis: Hypothesis, interval: Interval) -> str:
    left, of = hypothesis.left, hypothesis.of or hypothesis.left
    if interval.is_open:
        ratio = known_end_text(interval, hypothesis.bounds)
    else:
        estimate, low, high = interval_texts(interval, hypothesis.bounds, is_ratio=True)
        ratio = f"{estimate} % ({low} to {high})"
    if left.quantity is of.quantity and left.quantity.is_rate:
        return f"{_selected(left)} reaches {ratio} of the {_quantity(of)}"
    return f"the {_quantity(left)} is {ratio} of the {_quantity(of)}"


def _quantity(selector: Selector) -> str:
    return f"{selector.quantity.words} of {_selected(selector)}"


def _selected(selector: Selector) -> str:
    operation = f" {selector.operation}" if selector.operation else ""
    variant = f" of {selector.variant}" if selector.variant else ""
    where = ", ".join(f"{key} {parameter_text(value)}" for key, value in selector.where.items())
    return f"{selector.workload}{operation}{variant}" + (f" ({where})" if where else "")


def _bound_text(bound: float, *, is_ratio: bool) -> str:
    return f"{round(_PERCENT * bound):,} %" if is_ratio else f"{bound:g}"


def _place(number: float) -> int:  # the decimals that show its first digit
    return math.ceil(-math.log10(number)) if number > 10**-_MOST_DECIMALS else 0


class Form(StrEnum):
    """What a hypothesis is about: the ratio of two points, as a part of 1, or the exponent of a power law."""

    RATIO = "Ratio"
    EXPONENT = "Exponent"


class Basis(Model):
    """One point behind a decision."""

    field: str  # the selector that it belongs to: left or of
    variant: str
    run: str
    point: str
    axis_value: int | None = None  # its value on the axis; absent for a ratio
    trials: int  # number of trials behind the decision; 0 if the point decides nothing
    mean: float | None = None  # geometric mean of rates per second, or of nanoseconds; absent without any
    verdict: Verdict | None = None  # of the point; absent without numbers
    reasons: tuple[str, ...] = ()  # of a verdict that is not Valid


class Decision(Model):
    """A hypothesis, decided."""

    name: str
    variant: str | None = None  # the variant that it is decided in, if it is decided in each variant by itself
    verdict: HypothesisVerdict
    form: Form
    estimate: float | None = None  # the ratio, or the exponent; absent if unknown, as of a line above all loads
    low: float | None = None  # lower end of its 95 % confidence interval; absent if unknown
    high: float | None = None  # upper end of it
    at_least: float | None = None  # smallest expected value; absent without such a limit
    at_most: float | None = None  # largest expected value; absent without such a limit
    unit: Unit | None = None  # what replicates the numbers; absent without any
    replicates: tuple[int, ...] = ()  # number of these units behind left and of; a single number for scaling
    sentence: str  # the decision in words
    reasons: tuple[str, ...] = ()  # why it is Undecided
    notes: tuple[str, ...] = ()  # doubts about the numbers, and what the interval does not cover
    basis: tuple[Basis, ...] = ()  # the points behind it

    @property
    def is_suspect(self) -> bool:
        return any(point.verdict is Verdict.SUSPECT for point in self.basis)


def decide(hypothesis: Hypothesis, runs: Sequence[MeasuredRun]) -> tuple[Decision, ...]:
    """Return the decision; one for each variant if the hypothesis names none and the runs are of several."""
    return tuple(_decision(hypothesis, variant, of_scope) for variant, of_scope in scopes(hypothesis, runs))


def _decision(hypothesis: Hypothesis, variant: str | None, runs: Sequence[MeasuredRun]) -> Decision:
    selected, problems = select_all(hypothesis, runs)
    try:
        check_distinct([[point.result for point in run.points] for run in runs])
    except RepeatsError as error:
        problems = (str(error),)
    samples, note = [*map(sample_of, selected)], ""
    judgement = Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=problems)
    if not problems:
        judgement, samples, note = _judged(hypothesis, samples)
    interval, (at_least, at_most) = judgement.interval, hypothesis.bounds
    basis, reasons = tuple(map(_basis, samples)), judgement.reasons
    if interval is not None and judgement.verdict is HypothesisVerdict.UNDECIDED:
        reasons = (_undecided(hypothesis, judgement, interval),)
    return Decision(
        name=hypothesis.name,
        variant=variant,
        verdict=judgement.verdict,
        form=Form.EXPONENT if hypothesis.over else Form.RATIO,
        estimate=interval.estimate if interval and not interval.is_open else None,
        low=interval.low if interval and math.isfinite(interval.low) else None,
        high=interval.high if interval and math.isfinite(interval.high) else None,
        at_least=at_least,
        at_most=at_most,
        unit=judgement.unit,
        replicates=judgement.replicates,
        sentence=_sentence(hypothesis, judgement, samples, variant, reasons),
        reasons=reasons,
        notes=tuple(filter(None, (note, *_notes(basis, judgement)))),
        basis=basis,
    )


def _judged(hypothesis: Hypothesis, samples: list[Sample]) -> tuple[Judgement, list[Sample], str]:
    judgement, results = judge(hypothesis, samples), [sample.result for sample in samples]
    if judgement.interval is not None and (repeated := tuple(repeated_too_often("the selected points", results))):
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=repeated), samples, ""
    if not (spoiled := spoiled_attempts(results)):
        return judgement, samples, ""
    firsts = [replace(it.selected.point, result=on_first_attempts(it.result)) for it in samples]
    first_samples = [sample_of(replace(it.selected, point=point)) for it, point in zip(samples, firsts, strict=True)]
    of_first = judge(hypothesis, first_samples)
    worst_first = (HypothesisVerdict.REFUTED, HypothesisVerdict.UNDECIDED, HypothesisVerdict.HELD)
    if worst_first.index(of_first.verdict) >= worst_first.index(judgement.verdict):
        return judgement, samples, ""
    note = first_attempts_text("verdict", of_first.verdict, judgement.verdict, spoiled)
    return of_first, first_samples, note


def _basis(sample: Sample) -> Basis:
    status, selected = sample.result.status, sample.selected
    return Basis(
        field=selected.field,
        variant=selected.variant,
        run=selected.run,
        point=selected.point.name,
        axis_value=selected.axis_value,
        trials=len(sample.values),
        mean=geometric_mean(sample.values) if sample.values else None,
        verdict=status.verdict,
        reasons=tuple(dict.fromkeys(finding.reason for finding in status.findings)),
    )


def _notes(basis: Sequence[Basis], judgement: Judgement) -> Iterator[str]:
    suspects = [point for point in basis if point.verdict is Verdict.SUSPECT]
    places = [(reason, f"{point.point} of run {point.run}") for point in suspects for reason in point.reasons]
    for reason, named in grouped(dict.fromkeys(places), lambda place: place[0]).items():
        yield f"{Verdict.SUSPECT} ({reason}): {first_few([name for _, name in named])}"
    if judgement.unit is Unit.RUN and min(judgement.replicates) < ENOUGH_RUNS:
        yield (
            f"runs are assumed to be independent, which fewer than {ENOUGH_RUNS} cannot show: day and night, bursts "
            "or two states of the storage may look like the effect"
        )
    if judgement.unit in (Unit.TRIAL, Unit.PROBE):
        yield f"noise between runs is not counted; it is if each variant has at least {MINIMUM_TRIALS} runs"
