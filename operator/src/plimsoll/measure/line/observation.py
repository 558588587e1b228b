"""What one trial shows: whether the offered load was achieved, and whether the objectives hold.

Both are needed. Tools with a bounded number of operations in flight start operations late once that number is reached,
and may count latency only from then on, so that an overloaded storage looks fast. So a load that the storage did not
achieve breaks every objective, whatever the latencies. A sum hides a client, or the writes of a mix, that fell short;
so each of them must achieve its part.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from plimsoll.api.line import Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import OperationResult, Window
from plimsoll.measure.latency import MINIMUM_BEYOND
from plimsoll.measure.line.load import ClientLoad, PartialLoad, mean_in_flight
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.line.omission import late_operations, omits_arrivals, omitted_arrivals
from plimsoll.measure.window import NANOSECONDS

MOST_DEPTH_FULL = 0.01
"""From this share of a client's submissions that filled the depth, operations started late."""

SURELY_LATE = 2 * MINIMUM_BEYOND
"""So many late operations break an objective that fewer than half as many may exceed: that is no chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one trial measured, in the time in which all clients were measuring.

    Attributes:
        whole: the load that was offered and the one that was achieved: operations completed per second or, for a depth,
            the mean number of operations in flight (Little's law: their rate times their mean latency in seconds).
        parts: those of each client and of each operation, where there are several.
        depth_full_share: share of submissions that filled the depth, of the client with the highest; None in a
            closed loop, where all do, or if the tool does not know it.
        blocks: submissions of a client blocked, and that is why less arrived than was offered.
        unfinished: operations per second that arrived, or were due while the depth was full, and were not completed, at
            most.
        omits_arrivals: the depth was full for so long that the latencies of an open loop say too little.
        latencies: of each objective, its percentile in nanoseconds, of the operation with the highest: infinity if it
            exceeds what the tool can count, None if there are too few operations to know it.

    """

    vary: Vary
    whole: PartialLoad
    parts: Sequence[PartialLoad] = ()
    depth_full_share: float | None
    latencies: Sequence[float | None]
    blocks: bool = False
    unfinished: float = 0.0
    omits_arrivals: bool = False

    @property
    def is_achieved(self) -> bool:
        """Whether the load was achieved, and each part of it, except for what chance and the tool itself explain."""
        return self.whole.is_achieved() and all(part.is_achieved(among=len(self.parts)) for part in self.parts)

    @property
    def is_each_part_mostly_achieved(self) -> bool:
        """Whether half of each part of the load was achieved, or less only by chance."""
        return all(part.is_mostly_achieved(among=len(self.parts)) for part in self.parts)

    @property
    def is_hardly_offered(self) -> bool:
        """Whether clients of an open loop offered less than half of the load, as far as that is known."""
        if self.vary is Vary.DEPTH or self.depth_full_share is None:
            return False
        return not replace(self.whole, achieved=self.whole.achieved + self.unfinished).is_mostly_achieved()

    @property
    def is_depth_full(self) -> bool:
        """Whether an open loop often had no room for a client's arrivals; not if that is unknown."""
        return self.vary is Vary.RATE and (self.depth_full_share or 0.0) >= MOST_DEPTH_FULL

    @property
    def is_blocked(self) -> bool:
        """Whether the storage kept a client of an open loop from submitting what was due."""
        return self.vary is Vary.RATE and self.blocks and not self.is_achieved


def observed(
    offer: Offer, operations: Sequence[OperationResult], window: Window | None, clients: Sequence[ClientLoad] = ()
) -> Observation | None:
    """Return what a trial measured; None if there is no time in which all clients measured, or a mean is unknown."""
    loads = [one for one in operations if one.operation is not Operation.SYNC]
    if window is None or window.seconds <= 0 or not loads:
        return None
    whole = ClientLoad(
        rate=sum(one.rates.iops for one in loads),
        in_flight=_in_flight(loads),
        longest=max(one.latency.max_nanoseconds or 0 for one in loads) / NANOSECONDS,
    )
    varies_depth = offer.search.vary is Vary.DEPTH
    if varies_depth and whole.in_flight is None:
        return None
    total = whole.part_of(offer, offer.load, window.seconds)
    share = None if varies_depth else _highest_share(clients)
    waiting = [
        omitted_arrivals(offer, loads, total, max(1, len(clients)), objective) if share else 0.0
        for objective in offer.search.objectives
    ]
    return Observation(
        vary=offer.search.vary,
        whole=total,
        parts=(*_of_clients(offer, clients, window.seconds), *_of_operations(offer, loads, window.seconds)),
        depth_full_share=share,
        blocks=any(client.is_blocked(offer.load / len(clients)) for client in clients),
        latencies=[_worst(loads, objective) for objective in offer.search.objectives],
        unfinished=(2 * (whole.in_flight or 0.0) + max(waiting, default=0.0)) / window.seconds,
        omits_arrivals=bool(share) and omits_arrivals(offer, loads, total, max(1, len(clients))),
    )


def outcome_of(observation: Observation, objectives: Sequence[Objective]) -> ProbeOutcome:
    """Judge a trial by the objectives, all of which must hold.

    In an open loop whose share of full depth is unknown, latencies that hold prove nothing. Where it is known, only a
    full depth or submissions that block say that the storage fell behind, and then it broke at what was offered,
    however little it completed. Otherwise its clients offered less, and what arrived is the load (see
    `plimsoll.measure.line.probe`). Where they offered less than half of it, the trial says nothing about the load, even
    if operations were late: clients that get so little of a processor notice completions late too.

    Raises:
        ValueError: the latencies do not match the objectives.

    """
    met = [
        None if latency is None else latency <= objective.latency_nanoseconds
        for objective, latency in zip(objectives, observation.latencies, strict=True)
    ]
    if (without_latencies := _outcome_without_latencies(observation)) is not None:
        return without_latencies
    if False in met:
        return ProbeOutcome.LATE
    if observation.depth_full_share is None and not observation.is_achieved:
        return ProbeOutcome.NOT_ACHIEVED
    if observation.vary is Vary.RATE and not observation.is_each_part_mostly_achieved:
        return ProbeOutcome.NOT_OFFERED
    is_known = observation.vary is Vary.DEPTH or observation.depth_full_share is not None
    return ProbeOutcome.MET if is_known and None not in met else ProbeOutcome.UNKNOWN


def _outcome_without_latencies(observation: Observation) -> ProbeOutcome | None:
    """Return the outcome of an open loop whose latencies do not matter: too little arrived; None if they do."""
    if observation.is_depth_full:
        return ProbeOutcome.DEPTH_FULL
    if observation.is_blocked:
        return ProbeOutcome.NOT_ACHIEVED
    if observation.is_hardly_offered:
        return ProbeOutcome.NOT_OFFERED
    return ProbeOutcome.DEPTH_FULL if observation.omits_arrivals else None


def probe_of(offer: Offer, observation: Observation | None = None, verdict: Verdict = Verdict.INVALID) -> Probe:
    """Return the record of a trial's load; without trustworthy numbers its outcome is unknown."""
    if observation is None:
        return Probe(offered=offer.load, outcome=ProbeOutcome.UNKNOWN)
    share = observation.depth_full_share
    judged = outcome_of(observation, offer.search.objectives)
    return Probe(
        offered=offer.load,
        achieved=observation.whole.achieved,
        depth_full_percent=None if share is None else 100 * share,
        outcome=ProbeOutcome.UNKNOWN if verdict is Verdict.INVALID else judged,
    )


def _of_clients(offer: Offer, clients: Sequence[ClientLoad], seconds: float) -> Iterator[PartialLoad]:
    """Yield the part of each of several clients, which share a load evenly."""
    if len(clients) > 1:
        yield from (client.part_of(offer, offer.load / len(clients), seconds) for client in clients)


def _of_operations(offer: Offer, loads: Sequence[OperationResult], seconds: float) -> Iterator[PartialLoad]:
    """Yield the part of each operation of a mix. How many of each are in flight depends on the storage."""
    if offer.search.vary is Vary.RATE and len(offer.shares) > 1:
        rates = {one.operation: one.rates.iops for one in loads}
        for operation, share in offer.shares.items():
            offered = offer.load * share
            yield PartialLoad(offered=offered, achieved=rates.get(operation, 0.0), operations=offered * seconds)


def _highest_share(clients: Sequence[ClientLoad]) -> float | None:
    """Return the share of full depth of the client with the highest; None if an unknown one may be too high."""
    known = [one.depth_full_share for one in clients if one.depth_full_share is not None]
    highest = max(known, default=None)
    is_full = highest is not None and highest >= MOST_DEPTH_FULL
    return highest if is_full or len(known) == len(clients) else None


def _in_flight(loads: Sequence[OperationResult]) -> float | None:
    """Return the mean number of operations in flight; None if a mean latency is unknown."""
    return mean_in_flight([(one.rates.iops, one.latency.mean_nanoseconds) for one in loads])


def _worst(loads: Sequence[OperationResult], objective: Objective) -> float | None:
    """Return the highest percentile of the operations; None if an unknown one decides whether the objective holds."""
    latencies = [_percentile(one, objective) for one in loads]
    known = [latency for latency in latencies if latency is not None]
    highest = max(known, default=0)
    return highest if len(known) == len(latencies) or highest > objective.latency_nanoseconds else None


def _percentile(operation: OperationResult, objective: Objective) -> float | None:
    """Return a percentile of latency in nanoseconds; None if there are too few operations to know it.

    Infinity beyond the end of the histogram, or if too few operations are enough to know that it is too high.
    """
    latency = operation.latency
    if (found := latency.percentiles.get(objective.percentile)) is not None:
        return found
    beyond = math.floor(latency.count * (1 - Fraction(objective.percentile) / 100))
    is_beyond_the_end = latency.kind is LatencyKind.FULL and beyond >= MINIMUM_BEYOND
    is_late = late_operations(latency, objective.latency_nanoseconds) >= SURELY_LATE
    return math.inf if is_beyond_the_end or is_late else None
