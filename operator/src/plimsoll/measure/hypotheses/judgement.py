"""The verdict on a hypothesis: held or refuted if the whole 95 % interval says so.

The trial is the unit of statistics, or the run if every side has at least three of them: only repeated runs show the
noise between runs. A ratio is that of geometric means, scaling the exponent of a power law fitted to all values. Points
of the same runs are compared within each run: what makes a whole run faster or slower changes neither.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.measure.hypotheses.inference import Interval, exponent, geometric_mean, log_ratio, log_ratio_of_pairs
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


_Places = Mapping[tuple[str, int | None], Sequence[Sample]]
"""Field of a selector and value of the axis -> the samples of all runs, in the same order everywhere."""


def judge(hypothesis: Hypothesis, samples: Sequence[Sample]) -> Judgement:
    """Judge by the samples of all selected points; `Undecided` if one of them has a problem."""
    problems = tuple(dict.fromkeys(problem for sample in samples for problem in sample.problems))
    if problems:
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=problems)
    places = _places(samples)
    unit = Unit.RUN if min(map(len, places.values())) >= MINIMUM_REPLICATES else Unit.TRIAL
    if few := tuple(_too_few(hypothesis, unit, places)):
        return Judgement(verdict=HypothesisVerdict.UNDECIDED, reasons=few)
    interval = _exponent(unit, places) if hypothesis.over else _log_ratio(unit, places)
    return Judgement(
        verdict=_verdict(interval, _limits(hypothesis)),
        interval=interval if hypothesis.over else _as_ratio(interval),
        unit=unit,
        replicates=tuple(_replicates(unit, places)),
    )


def _places(samples: Sequence[Sample]) -> _Places:
    places: dict[tuple[str, int | None], list[Sample]] = {}
    for sample in samples:
        places.setdefault((sample.field, sample.selected.axis_value), []).append(sample)
    return places


def _values(unit: Unit, samples: Sequence[Sample]) -> list[float]:
    """Return the value of each run, or of each trial of all runs."""
    if unit is Unit.RUN:
        return [geometric_mean(sample.values) for sample in samples]
    return [value for sample in samples for value in sample.values]


def _too_few(hypothesis: Hypothesis, unit: Unit, places: _Places) -> Iterator[str]:
    for (field, axis_value), samples in places.items():
        count = len(_values(unit, samples))
        if count < MINIMUM_REPLICATES:
            where = f"{field}, {hypothesis.over} {axis_value}" if hypothesis.over else field
            counts = f"only {count} trial{' counts' if count == 1 else 's count'}"
            yield f"{where}: {counts}, but at least {MINIMUM_REPLICATES} are needed; measure with more repetitions"


def _log_ratio(unit: Unit, places: _Places) -> Interval:
    left, of = places["left", None], places["of", None]
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
        math.exp(max(-_MOST, min(_MOST, one))) for one in (interval.estimate, interval.low, interval.high)
    )
    return Interval(estimate=estimate, low=low, high=high)


def _replicates(unit: Unit, places: _Places) -> Iterator[int]:
    """Yield the number of units behind each field; the same runs measured all values of an axis."""
    for field in dict.fromkeys(field for field, _ in places):
        counts = [len(_values(unit, samples)) for (one, _), samples in places.items() if one == field]
        yield counts[0] if unit is Unit.RUN else sum(counts)
