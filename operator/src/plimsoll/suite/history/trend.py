"""How each quantity of a suite developed over its rounds: what a report of a suite draws.

`trends_of(history.rounds)` returns a trend for each variant, point, operation and metric, and each trend has a row for
every round that has numbers of it, in the order of time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.tests import Series
from plimsoll.measure.statistics import CONFIDENCE, t_quantile
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.history.history import JudgedRound
from plimsoll.suite.history.likeness import differences_between, latest_conditions
from plimsoll.suite.history.noise import noise_within
from plimsoll.suite.history.rounds import Condition, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One round of a trend.

    Attributes:
        minute: of the round's start, since the epoch.
        digest: of what the suite measured; rows of different digests are not to be compared.
        estimate: geometric mean over the runs of the round, in the unit of the metric: operations or bytes per second,
            or nanoseconds.
        interval: the 95 % confidence interval of the estimate in the same unit, from the noise of runs within all
            rounds of the trend; it does not contain noise between rounds. None if no round has two runs.
        accepted: whether the round is a part of the baseline.
        pinned: whether drift is tested against it.
        regressed: whether a comparison found a regression in the round, maybe at another point.
        changes: what changed since the round before that has this point: its identity, versions such as
            `ceph.versions` and `kernel`, the hardware, and `nodes` (lists of names). Empty if nothing did.

    """

    minute: int
    digest: str
    estimate: float
    interval: tuple[float, float] | None
    accepted: bool
    pinned: bool
    regressed: bool
    changes: Sequence[Difference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One quantity over the rounds that have numbers of it."""

    quantity: Quantity
    rows: Sequence[TrendRow]


def trends_of(rounds: Sequence[JudgedRound]) -> list[Trend]:
    """Return the trends of all quantities of rounds in the order of time, in the order of their first appearance."""
    quantities = dict.fromkeys(quantity for one in rounds for quantity in one.measured.values)
    changes = _changes(rounds)
    return [Trend(quantity=quantity, rows=_rows(quantity, rounds, changes)) for quantity in quantities]


_Changes = Mapping[tuple[str, str], Sequence[Difference]]
"""Variant and point -> what changed since the round before that has them."""


def _changes(rounds: Sequence[JudgedRound]) -> list[_Changes]:
    """Return the changes of each round."""
    found: list[_Changes] = []
    before: dict[tuple[str, str], Condition] = {}
    for one in rounds:
        after = latest_conditions([one.measured])
        found.append({key: differences_between(before[key], after[key]) for key in after if key in before})
        before.update(after)
    return found


def _rows(quantity: Quantity, rounds: Sequence[JudgedRound], changes: Sequence[_Changes]) -> list[TrendRow]:
    known = [
        (one, series, changed.get((quantity.variant, quantity.point), ()))
        for one, changed in zip(rounds, changes, strict=True)
        if (series := one.measured.values.get(quantity))
    ]
    noise = noise_within([[*series.values()] for _, series, _ in known])
    return [_row(one, series, changed, noise) for one, series, changed in known]


def _row(one: JudgedRound, series: Series, changed: Sequence[Difference], noise: tuple[float, int]) -> TrendRow:
    """Return the row of a round; `noise` is the variance of a run and its degrees of freedom."""
    mean = math.fsum(series.values()) / len(series)
    variance, freedom = noise
    half = t_quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(variance / len(series)) if freedom else None
    return TrendRow(
        minute=one.measured.minute,
        digest=one.measured.digest,
        estimate=math.exp(mean),
        interval=None if half is None else (math.exp(mean - half), math.exp(mean + half)),
        accepted=one.accepted,
        pinned=one.pinned,
        regressed=one.regressed,
        changes=changed,
    )
