"""The verdict on a hypothesis: held or refuted if the whole 95 % interval says so.

The trial is the unit of statistics, or the run if every side has at least three of them: only repeated runs show the
noise between runs. Lines of fewer runs have intervals of their own, from their probes. A ratio compares geometric
means, scaling fits the exponent of a power law to all values. Points of the same runs are compared within each run:
what makes a whole run faster or slower changes neither.

Runs, or trials, are taken as independent. Three runs that happen to agree prove little of that, and trials of one run
nothing, so the result of fewer than five runs must also be farther from the limit than three times the scatter of the
runs, or of the trials of fewer than three runs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, pvariance, stdev

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.compare.lines import Position, line_change
from plimsoll.measure.compare.significance import LogChange, log_change, mean_and_variance
from plimsoll.measure.hypotheses.select import Sample
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import half_width
from plimsoll.measure.summary import MINIMUM_TRIALS

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

    @classmethod
    def of_change(cls, change: LogChange) -> "Interval":
        low, high = change.interval()
        return cls(estimate=change.estimate, low=low, high=high)


def log_ratio(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the logarithm of the ratio of geometric means. Each side has at least two positive values."""
    return Interval.of_change(log_change(of, left))


def log_ratio_of_pairs(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the same from pairs: at least two of positive values."""
    mean, variance = mean_and_variance(
        [math.log(value) - math.log(other) for value, other in zip(left, of, strict=True)]
    )
    return _interval(mean, math.sqrt(variance / len(left)), len(left) - 1)


def _mean_position(samples: Sequence[Sample]) -> Position:
    """Return the mean of several lines with the error that follows from theirs."""
    lines = _lines(samples)
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
        middle, height = fmean(x for x, _ in logarithms), fmean(y for _, y in logarithms)
        points += [(x - middle, y - height) for x, y in logarithms]
    spread = math.fsum(x * x for x, _ in points)
    slope = math.fsum(x * y for x, y in points) / spread
    freedom = len(points) - len(blocks) - 1
    residuals = math.fsum((y - slope * x) ** 2 for x, y in points)
    return _interval(slope, math.sqrt(residuals / freedom / spread), freedom)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))


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
    replicates = tuple(_replicates(unit, places))
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
    """Return the value of each run, or of each trial of all runs."""
    if unit is Unit.RUN:
        return [geometric_mean(sample.values) for sample in samples]
    return [value for sample in samples for value in sample.values]


def _obstacles(hypothesis: Hypothesis, unit: Unit, places: _Places) -> Iterator[str]:
    for (field, axis_value), samples in places.items():
        count = len(_values(unit, samples))
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
    """Return the logarithm of the ratio, or the exponent, and its standard deviation that single units show.

    A search is one measurement of its line, with an error that is known.
    """
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
        line, other = _mean_position(left), _mean_position(of)
        return Interval.of_change(line_change(other, line)), math.hypot(line.error, other.error)
    values, others = _values(unit, left), _values(unit, of)
    runs_of = [[(sample.selected.variant, sample.selected.run) for sample in side] for side in (left, of)]
    if unit is Unit.RUN and runs_of[0] == runs_of[1]:
        ratios = (math.log(value) - math.log(other) for value, other in zip(values, others, strict=True))
        return log_ratio_of_pairs(values, others), stdev(ratios)
    return log_ratio(values, others), math.hypot(stdev(map(math.log, values)), stdev(map(math.log, others)))


def _verdict(interval: Interval, hypothesis: Hypothesis) -> HypothesisVerdict:
    """Judge an interval of an exponent, or of the logarithm of a ratio."""
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


def _replicates(unit: Unit, places: _Places) -> Iterator[int]:
    """Yield the number of units behind each field; the same runs measured all values of an axis."""
    counts: dict[str, list[int]] = {}
    for (field, _), samples in places.items():
        probes = sum(line.probes for line in _lines(samples))
        counts.setdefault(field, []).append(probes if unit is Unit.PROBE else len(_values(unit, samples)))
    for field_counts in counts.values():
        yield field_counts[0] if unit is Unit.RUN else sum(field_counts)
