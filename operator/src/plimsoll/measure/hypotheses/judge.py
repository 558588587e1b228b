"""The verdict on a hypothesis: held or refuted if the whole 95 % interval says so.

The trial is the unit of statistics, or the run if every side has at least three of them: only repeated runs show the
noise between runs. Lines of fewer runs have intervals of their own, from their probes. A ratio is that of geometric
means, scaling the exponent of a power law fitted to all values. Points of the same runs are compared within each run:
what makes a whole run faster or slower changes neither.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.measure.compare.lines import Position, line_change
from plimsoll.measure.compare.tests import log_change, moments
from plimsoll.measure.hypotheses.select import Sample
from plimsoll.measure.statistics import CONFIDENCE, t_quantile

_QUANTILE = (1 + CONFIDENCE) / 2


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


def log_ratio(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the logarithm of the ratio of geometric means. Each side has at least two positive values."""
    change = log_change(of, left)
    low, high = change.interval()
    return Interval(estimate=change.estimate, low=low, high=high)


def log_ratio_of_pairs(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the same from pairs: at least two of positive values."""
    mean, variance = moments([math.log(one) - math.log(other) for one, other in zip(left, of, strict=True)])
    return _interval(mean, math.sqrt(variance / len(left)), len(left) - 1)


def log_ratio_of_lines(left: Sequence[Position], of: Sequence[Position]) -> Interval:
    """Return the same of lines, from their own intervals: at least one on each side."""
    change = line_change(_mean_position(of), _mean_position(left))
    low, high = change.interval()
    return Interval(estimate=change.estimate, low=low, high=high)


def _mean_position(lines: Sequence[Position]) -> Position:
    """Return the mean of several lines with the error that follows from theirs."""
    number = len(lines)
    return Position(
        value=math.fsum(one.value for one in lines) / number,
        error=math.hypot(*(one.error for one in lines)) / number,
        probes=min(one.probes for one in lines),
        may_be_lower=any(one.may_be_lower for one in lines),
        may_be_higher=any(one.may_be_higher for one in lines),
    )


def exponent(blocks: Sequence[Sequence[tuple[float, float]]]) -> Interval:
    """Return the exponent b of y = a * x^b, with an a for each block, from positive x and y.

    There are at least two points more than blocks, and two values of x in a block.
    """
    points = [point for block in blocks for point in _centred(block)]
    spread = math.fsum(x * x for x, _ in points)
    slope = math.fsum(x * y for x, y in points) / spread
    freedom = len(points) - len(blocks) - 1
    residuals = math.fsum((y - slope * x) ** 2 for x, y in points)
    return _interval(slope, math.sqrt(residuals / freedom / spread), freedom)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _centred(block: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the logarithms of x and y, minus their means in the block."""
    logarithms = [(math.log(x), math.log(y)) for x, y in block]
    middle = math.fsum(x for x, _ in logarithms) / len(block)
    height = math.fsum(y for _, y in logarithms) / len(block)
    for x, y in logarithms:
        yield x - middle, y - height


def _interval(estimate: float, error: float, freedom: float) -> Interval:
    half = t_quantile(_QUANTILE, freedom) * error if error else 0.0
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half)


MINIMUM_REPLICATES = 3
"""Trials or runs on each side; the deviation of two is nearly meaningless."""

_ROUNDING = 1e-9
"""Of logarithms and exponents: a value that differs by less from a limit equals it."""

_MOST = 100.0
"""The largest logarithm; its exponential is still finite."""


class HypothesisVerdict(StrEnum):
    """Whether results show what was expected."""

    HELD = "Held"
    REFUTED = "Refuted"
    UNDECIDED = "Undecided"


class Unit(StrEnum):
    """The unit of replication."""

    TRIAL = "Trial"
    RUN = "Run"
    PROBE = "Probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, and the numbers behind it.

    Attributes:
        interval: of the ratio, as a part of 1, or of the exponent; None if it cannot be computed.
        unit: None without an interval.
        replicates: number of units on each side; a single number for scaling.
        reasons: why there is no interval.

    """

    verdict: HypothesisVerdict
    interval: Interval | None = None
    unit: Unit | None = None
    replicates: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()


_Places = Mapping[tuple[str, int | None], Sequence[Sample]]
"""Field of a selector and value of the axis -> the samples of all runs, in the same order everywhere."""


def judge(hypothesis: Hypothesis, samples: Sequence[Sample]) -> Judgement:
    """Judge by the samples of all selected points; `Undecided` if one of them has a problem."""
    problems = tuple(dict.fromkeys(problem for sample in samples for problem in sample.problems))
    if problems:
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=problems)
    places = _places(samples)
    unit = _unit(places)
    bounds = tuple(dict.fromkeys(sample.bound for sample in samples if sample.bound))
    if bounds and unit is not Unit.PROBE:
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=bounds)
    if few := tuple(_too_few(hypothesis, unit, places)):
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=few)
    if unlike := tuple(_unlike(samples)):
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=unlike)
    interval = _exponent(unit, places) if hypothesis.over else _log_ratio(unit, places)
    verdict = _verdict(interval, _limits(hypothesis))
    if bounds and verdict is HypothesisVerdict.UNDECIDED:
        return Judgement(verdict=verdict, reasons=bounds)
    return Judgement(
        verdict=verdict,
        interval=interval if hypothesis.over else _as_ratio(interval),
        unit=unit,
        replicates=tuple(_replicates(unit, places)),
    )


def _places(samples: Sequence[Sample]) -> _Places:
    places: dict[tuple[str, int | None], list[Sample]] = {}
    for sample in samples:
        places.setdefault((sample.field, sample.selected.axis_value), []).append(sample)
    return places


def _unit(places: _Places) -> Unit:
    if min(map(len, places.values())) >= MINIMUM_REPLICATES:
        return Unit.RUN
    return Unit.PROBE if all(_lines(samples) for samples in places.values()) else Unit.TRIAL


def _lines(samples: Sequence[Sample]) -> list[Position]:
    return [sample.line for sample in samples if sample.line is not None]


def _unlike(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield that lines are loads of different kinds."""
    kinds = {sample.result.spec.line.vary for sample in samples if sample.result.spec.line is not None}
    if len(kinds) > 1:
        yield f"the searches vary different loads ({' and '.join(sorted(kinds))}), so their lines have no ratio"


def _values(unit: Unit, samples: Sequence[Sample]) -> list[float]:
    """Return the value of each run, or of each trial of all runs."""
    if unit is Unit.RUN:
        return [geometric_mean(sample.values) for sample in samples]
    return [value for sample in samples for value in sample.values]


def _too_few(hypothesis: Hypothesis, unit: Unit, places: _Places) -> Iterator[str]:
    if unit is Unit.PROBE:
        if hypothesis.over:
            yield f"how lines scale shows only in at least {MINIMUM_REPLICATES} runs of each variant (repeat)"
        return
    for (field, axis_value), samples in places.items():
        count = len(_values(unit, samples))
        if count < MINIMUM_REPLICATES:
            where = f"{field}, {hypothesis.over} {axis_value}" if hypothesis.over else field
            counts = f"only {count} trial{' counts' if count == 1 else 's count'}"
            yield f"{where}: {counts}, but at least {MINIMUM_REPLICATES} are needed; measure with more repetitions"


def _log_ratio(unit: Unit, places: _Places) -> Interval:
    left, of = places["left", None], places["of", None]
    if unit is Unit.PROBE:
        return log_ratio_of_lines(_lines(left), _lines(of))
    runs = [[(sample.selected.variant, sample.selected.run) for sample in side] for side in (left, of)]
    compare = log_ratio_of_pairs if unit is Unit.RUN and runs[0] == runs[1] else log_ratio
    return compare(_values(unit, left), _values(unit, of))


def _exponent(unit: Unit, places: _Places) -> Interval:
    rows = [[(axis_value or 0, one) for one in _values(unit, some)] for (_, axis_value), some in places.items()]
    return exponent([*zip(*rows, strict=True)] if unit is Unit.RUN else [[point for row in rows for point in row]])


def _limits(hypothesis: Hypothesis) -> tuple[float, float]:
    """Return the expected range in the terms of `_interval`."""
    low, high = hypothesis.bounds
    if not hypothesis.over:
        low, high = (None if bound is None else math.log(bound) for bound in (low, high))
    return -math.inf if low is None else low, math.inf if high is None else high


def _verdict(interval: Interval, limits: tuple[float, float]) -> HypothesisVerdict:
    low, high = limits[0] - _ROUNDING, limits[1] + _ROUNDING
    if low <= interval.low and interval.high <= high:
        return HypothesisVerdict.HELD
    if interval.high < low or interval.low > high:
        return HypothesisVerdict.REFUTED
    return HypothesisVerdict.UNDECIDED


def _as_ratio(interval: Interval) -> Interval:
    estimate, low, high = (
        one if math.isinf(one) else math.exp(max(-_MOST, min(_MOST, one)))
        for one in (interval.estimate, interval.low, interval.high)
    )
    return Interval(estimate=estimate, low=low, high=high)


def _replicates(unit: Unit, places: _Places) -> Iterator[int]:
    """Yield the number of units behind each field; the same runs measured all values of an axis."""
    for field in dict.fromkeys(field for field, _ in places):
        counts = [_count(unit, samples) for (one, _), samples in places.items() if one == field]
        yield counts[0] if unit is Unit.RUN else sum(counts)


def _count(unit: Unit, samples: Sequence[Sample]) -> int:
    if unit is Unit.PROBE:
        return sum(line.probes for line in _lines(samples))
    return len(_values(unit, samples))
