"""What one trial shows: whether the offered load was achieved, and whether the objectives hold.

Both are needed. Tools with a bounded number of operations in flight start operations late once that number is reached,
and may count latency only from then on, so that an overloaded storage looks fast. So a load that the storage did not
achieve breaks every objective, whatever the latencies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from plimsoll.api.line import Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import OperationResult, Window
from plimsoll.measure.checking import checks
from plimsoll.measure.latency import MINIMUM_BEYOND
from plimsoll.measure.line.offer import Offer

MOST_DEPTH_FULL = 0.01
"""From this share of submissions that found the depth full, operations started late."""

LEAST_SHORTFALL = 0.01
"""Smallest shortfall of the achieved load, as a part of the offered load, that matters."""

_DEVIATIONS = 3
"""A Poisson process of N expected operations is this many standard deviations sqrt(N) short in 1 of 741 trials."""

_NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one trial measured, in the time in which all clients were measuring.

    Attributes:
        offered: the load that was offered.
        achieved: the load that was achieved: operations completed per second, or for a depth the mean number of
            operations in flight (Little's law: their rate times their mean latency in seconds).
        operations: number of operations completed.
        unavoidable: part of the offered depth that a tool cannot keep in flight: between two operations, and at the
            edges of the measured time.
        depth_full_share: share of submissions that found the depth full; None in a closed loop, where all do, or if the
            tool does not know it.
        latencies: of each objective, its percentile in nanoseconds, of the operation with the highest: infinity if it
            exceeds what the tool can count, None if there are too few operations to know it.

    """

    vary: Vary
    offered: float
    achieved: float
    operations: int
    unavoidable: float = 0.0
    depth_full_share: float | None
    latencies: Sequence[float | None]

    @property
    def is_achieved(self) -> bool:
        """Whether the load was achieved, except for what chance and the tool itself explain."""
        tolerated = tolerated_shortfall(self.operations) + self.unavoidable
        return self.achieved >= self.offered * (1 - tolerated)

    @property
    def is_depth_full(self) -> bool:
        """Whether an open loop had no room for its arrivals; not if that is unknown."""
        return self.vary is Vary.RATE and (self.depth_full_share or 0.0) >= MOST_DEPTH_FULL

    @property
    def is_overloaded(self) -> bool:
        """Whether more arrived in an open loop than the storage completed."""
        is_known = self.depth_full_share is not None
        return self.vary is Vary.RATE and (self.is_depth_full if is_known else not self.is_achieved)


def observed(
    offer: Offer,
    operations: Sequence[OperationResult],
    window: Window | None,
    depth_full_share: float | None,
) -> Observation | None:
    """Return what a trial measured; None if there is no time in which all clients measured, or a mean is unknown."""
    loads = [one for one in operations if one.operation is not Operation.SYNC]
    if window is None or window.seconds <= 0 or not loads:
        return None
    rate = sum(one.rates.iops for one in loads)
    varies_depth = offer.search.vary is Vary.DEPTH
    in_flight = _in_flight(loads)
    if varies_depth and in_flight is None:
        return None
    return Observation(
        vary=offer.search.vary,
        offered=offer.load,
        achieved=in_flight if varies_depth and in_flight is not None else rate,
        operations=round(rate * window.seconds),
        unavoidable=_unavoidable(offer.load, loads, rate, window.seconds) if varies_depth else 0.0,
        depth_full_share=None if varies_depth else depth_full_share,
        latencies=[_worst(loads, objective) for objective in offer.search.objectives],
    )


def outcome_of(observation: Observation, objectives: Sequence[Objective]) -> ProbeOutcome:
    """Judge a trial by the objectives, all of which must hold.

    In an open loop whose share of full depth is unknown, latencies that hold prove nothing.

    Raises:
        ValueError: the latencies do not match the objectives.

    """
    met = [
        None if latency is None else latency <= objective.latency_nanoseconds
        for objective, latency in zip(objectives, observation.latencies, strict=True)
    ]
    if False in met:
        return ProbeOutcome.LATE
    if observation.is_depth_full:
        return ProbeOutcome.DEPTH_FULL
    if observation.depth_full_share is None and not observation.is_achieved:
        return ProbeOutcome.NOT_ACHIEVED
    is_known = observation.vary is Vary.DEPTH or observation.depth_full_share is not None
    return ProbeOutcome.MET if is_known and None not in met else ProbeOutcome.UNKNOWN


def probe_of(offer: Offer, observation: Observation | None = None, verdict: Verdict = Verdict.INVALID) -> Probe:
    """Return the record of a trial's load; without trustworthy numbers its outcome is unknown."""
    if observation is None:
        return Probe(offered=offer.load, outcome=ProbeOutcome.UNKNOWN)
    share = observation.depth_full_share
    judged = outcome_of(observation, offer.search.objectives)
    return Probe(
        offered=offer.load,
        achieved=observation.achieved,
        depth_full_percent=None if share is None else 100 * share,
        outcome=ProbeOutcome.UNKNOWN if verdict is Verdict.INVALID else judged,
    )


def tolerated_shortfall(operations: int) -> float:
    """Return by how large a part of the offered load the achieved one may fall short: max(1 %, 3/sqrt(N))."""
    return max(LEAST_SHORTFALL, _DEVIATIONS / math.sqrt(operations)) if operations else LEAST_SHORTFALL


def _in_flight(loads: Sequence[OperationResult]) -> float | None:
    """Return the mean number of operations in flight by Little's law; None if a mean latency is unknown."""
    means = [one.latency.mean_nanoseconds for one in loads if one.rates.iops]
    known = [mean for mean in means if mean is not None]
    if len(known) < len(means):
        return None
    rates = [one.rates.iops for one in loads if one.rates.iops]
    return sum(rate * mean for rate, mean in zip(rates, known, strict=True)) / _NANOSECONDS


def _unavoidable(depth: float, loads: Sequence[OperationResult], rate: float, seconds: float) -> float:
    """Return the part of a depth that is not in flight although the client is not at fault, as LittlesLaw does."""
    between = min(rate * checks.THINKING_SECONDS / depth, checks.THINKING_SHARE)
    longest = max(one.latency.max_nanoseconds or 0 for one in loads) / _NANOSECONDS
    return between + longest / seconds


def _worst(loads: Sequence[OperationResult], objective: Objective) -> float | None:
    """Return the highest percentile of the operations; None if an unknown one decides whether the objective holds."""
    latencies = [_percentile(one, objective) for one in loads]
    known = [latency for latency in latencies if latency is not None]
    highest = max(known, default=0)
    return highest if len(known) == len(latencies) or highest > objective.latency_nanoseconds else None


def _percentile(operation: OperationResult, objective: Objective) -> float | None:
    """Return a percentile of latency in nanoseconds; infinity beyond the end of the histogram, None if unknown."""
    latency = operation.latency
    if (found := latency.percentiles.get(objective.percentile)) is not None:
        return found
    beyond = math.floor(latency.count * (1 - Fraction(objective.percentile) / 100))
    is_beyond_the_end = latency.kind is LatencyKind.FULL and beyond >= MINIMUM_BEYOND
    return math.inf if is_beyond_the_end else None
