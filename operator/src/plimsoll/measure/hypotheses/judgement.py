"""The verdict on a hypothesis: held or refuted if the whole 95 % interval says so.

The trial is the unit of statistics, or the run if every side has at least three of them: only repeated runs show the
noise between runs. A ratio is that of geometric means, scaling the exponent of a power law fitted to all values. If the
same runs are on both sides, what they share makes the interval of the ratio too wide, never too narrow.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.measure.hypotheses.inference import Interval, exponent, geometric_mean, log_ratio
from plimsoll.measure.hypotheses.samples import Sample

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


_Place = tuple[str, int | None]
"""The field of a selector, and a value of the axis."""

_Values = Mapping[_Place, Sequence[float]]


def judge(hypothesis: Hypothesis, samples: Sequence[Sample]) -> Judgement:
    """Judge by the samples of all selected points; `Undecided` if one of them has a problem."""
    problems = tuple(dict.fromkeys(problem for sample in samples for problem in sample.problems))
    if problems:
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=problems)
    unit, values = _replicated(samples)
    if few := tuple(_too_few(hypothesis, values)):
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=few)
    interval = _interval(hypothesis, values)
    return Judgement(
        verdict=_verdict(interval, _limits(hypothesis)),
        interval=interval if hypothesis.over else _as_ratio(interval),
        unit=unit,
        replicates=tuple(_replicates(values)),
    )


def _replicated(samples: Sequence[Sample]) -> tuple[Unit, _Values]:
    """Return the values of each place: of its trials, or of its runs if there are enough everywhere."""
    places: dict[_Place, list[Sample]] = {}
    for sample in samples:
        places.setdefault((sample.field, sample.selected.axis_value), []).append(sample)
    if min(map(len, places.values())) < MINIMUM_REPLICATES:
        return Unit.TRIAL, {place: [one for run in runs for one in run.values] for place, runs in places.items()}
    return Unit.RUN, {place: [geometric_mean(run.values) for run in runs] for place, runs in places.items()}


def _too_few(hypothesis: Hypothesis, values: _Values) -> Iterator[str]:
    for (field, axis_value), of_place in values.items():
        if len(of_place) < MINIMUM_REPLICATES:
            where = f"{field}, {hypothesis.over} {axis_value}" if hypothesis.over else field
            counts = f"only {len(of_place)} trial{' counts' if len(of_place) == 1 else 's count'}"
            yield f"{where}: {counts}, but at least {MINIMUM_REPLICATES} are needed; measure with more repetitions"


def _interval(hypothesis: Hypothesis, values: _Values) -> Interval:
    """Return the interval of the logarithm of the ratio, or of the exponent."""
    if hypothesis.over:
        return exponent([(axis_value or 0, one) for (_, axis_value), some in values.items() for one in some])
    return log_ratio(values["left", None], values["of", None])


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
        math.exp(max(-_MOST, min(_MOST, one))) for one in (interval.estimate, interval.low, interval.high)
    )
    return Interval(estimate=estimate, low=low, high=high)


def _replicates(values: _Values) -> Iterator[int]:
    for field in ("left", "of"):
        count = sum(len(some) for (one, _), some in values.items() if one == field)
        if count:
            yield count
