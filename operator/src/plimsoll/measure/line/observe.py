"""What one trial shows: whether the offered load was achieved, and whether the objectives hold.

Both are needed. Tools with a bounded number of operations in flight start operations late once that number is reached,
and may count latency only from then on, so that overloaded storage looks fast. So a load that was not achieved breaks
every objective. A sum hides a client, or the writes of a mix, that fell short, so each must achieve its part.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist, fmean

from plimsoll.api.line import Objective, OfferedLoad, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import Latency, OperationResult
from plimsoll.api.result import Window
from plimsoll.measure.histogram import MINIMUM_BEYOND, OPEN_BIN, Histogram, HistogramError, bin_midpoint
from plimsoll.measure.intake import ClientMeasurement, Offer
from plimsoll.measure.timeline import NANOSECONDS, Interval

LEAST_SHORTFALL = 0.01  # smallest shortfall of the achieved load, as a part of the offered load, that matters
LEAST_EXCESS = 0.05
"""Smallest excess of a rate; less may have been due before the window, and caught up, or come of `ALLOWED_SECONDS`."""
THINKING_SECONDS = 10e-6  # the longest time between operations that is not the client's fault; fio takes 2 to 8 µs
ALLOWED_SECONDS = 4e-6
"""Of what each operation of a replay delays all that follow, the part that its trace allows for: about the least that
fio and Linux take, so that hardly more arrives than is offered."""
_POLLING_SECONDS = 2e-6  # of that delay, what is no submission: fio polls in whole microseconds
THINKING_SHARE = 0.25
"""Of the requested operations in flight; a tool that spends more time between operations limits the rate itself."""
EDGE_SHARE = 0.25
"""Of the requested operations in flight: the most that pauses, and operations at the edges of the time, explain."""
MOST_BLOCKED = 0.1
"""From this share of a client's time on, submissions that block may be why less arrived than was offered."""
_EXPLAINED = 0.6
"""Of what is missing, the least part that blocked submissions explain if the storage is the cause, no processor."""
_CHANCE = NormalDist().cdf(-3)  # of a trial: chance alone makes it fall short in 1 of 741
MOST_OMITTED = 0.01  # from this share of all arrivals on, missing ones matter, however many may be late
MOST_DEPTH_FULL = 0.01  # from this share of a client's submissions that filled the depth, operations started late
SURELY_LATE = 2 * MINIMUM_BEYOND  # late operations where fewer than half may be: more than chance
BROKEN = {ProbeOutcome.LATE, ProbeOutcome.NOT_ACHIEVED, ProbeOutcome.DEPTH_FULL}  # the outcomes of a trial that broke


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLoad:
    """A load, or a part of one."""

    client: int | None = None  # None for all clients, as `operation` for all operations
    operation: Operation | None = None
    offered: float  # in operations per second or in flight
    achieved: float
    # Number of operations that the load consists of: of a rate as many as were offered, so that a storage that
    # completes few of them is not excused by their small number.
    operations: float
    unavoidable: float | None = None  # part of an offered depth that a tool cannot keep in flight
    # Of a rate that is due after equal times, the number of operations that may be in flight: no others can be due and
    # not completed. None if chance decides how many are due.
    pending: int | None = None

    def least(self, among: int = 1) -> float:
        """Return the share, 0 to 1, that arrives except for what the tool and chance explain in one of so many."""
        tolerated = tolerated_shortfall(self.operations, among)
        if self.pending is not None:
            tolerated = min(tolerated, max(LEAST_SHORTFALL, self.pending / self.operations))
        if self.unavoidable is not None:
            tolerated = min(tolerated + self.unavoidable, EDGE_SHARE)
        return 1 - tolerated

    def is_achieved(self, among: int = 1) -> bool:
        """Whether it was achieved, except for what the tool and chance explain in one of so many parts."""
        return self.achieved >= self.offered * self.least(among)

    def most(self, among: int = 1) -> float:
        """Return the share, from 1 on, beyond which more arrived than was due, except for chance in one of so many."""
        if self.pending is not None:
            return 1 + max(LEAST_EXCESS, self.pending / self.operations)
        by_chance = (1 + _scatter(self.operations, among)) ** 2 if self.operations else math.inf
        return max(1 + LEAST_EXCESS, by_chance)

    def is_mostly_achieved(self, among: int = 1) -> bool:
        """Whether at least half of it was achieved, or less only by chance in one of so many parts."""
        tolerated = max(1 / 2, tolerated_shortfall(self.operations, among))
        return self.achieved >= self.offered * (1 - tolerated)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLoad:
    """The work of a client, or of all clients, in the window."""

    client: int | None = None  # None for all of them
    rate: float  # operations completed per second, without syncs
    in_flight: float | None  # mean number of operations in flight; None if a mean latency is unknown
    longest: float  # latency of the longest operation, in seconds
    depth_full_share: float | None = None  # share of submissions, 0 to 1, that filled the depth; None if unknown
    blocked: float = 0.0  # share of the time, 0 to 1, in which submissions blocked: the part of them beyond 10 us each
    # Share of the time, 0 to 1, by which the rest of them delayed random arrivals beyond what a trace allows for.
    delayed: float = 0.0

    def is_blocked(self, offered: float) -> bool:
        """Whether submissions that blocked are why it did less than it was offered, in operations per second."""
        missing = 1 - self.rate / offered - self.delayed
        return self.blocked >= max(MOST_BLOCKED, _EXPLAINED * missing)

    def part_of(self, offer: Offer, offered: float, seconds: float, clients: int = 1) -> PartialLoad:
        """Return the part of the offered load that the client, or all of so many clients, achieved."""
        is_rate = offer.vary is Vary.RATE
        # This part of a depth is not in flight without the client's fault, as in LittlesLaw.
        between = min(self.rate * THINKING_SECONDS / offered, THINKING_SHARE)
        return PartialLoad(
            client=self.client,
            offered=offered,
            achieved=self.rate if is_rate else self.in_flight or 0.0,
            operations=(offered if is_rate else self.rate) * seconds,
            unavoidable=None if is_rate else between + self.longest / seconds,
            pending=pending(offer, clients),
        )


def pending(offer: Offer, clients: int) -> int | None:
    """Return how many operations of so many clients may be due and not completed; None if chance decides."""
    return None if offer.is_open_loop or offer.vary is Vary.DEPTH else clients * (offer.depth or 1)


def tolerated_shortfall(operations: float, among: int = 1) -> float:
    """Return by how large a part of itself a load may fall short in one of so many parts, 0 to 1.

    The square root of a Poisson number scatters by 1/2 around the root of its expectation, however large that is.
    """
    least = max(0.0, 1 - _scatter(operations, among)) if operations else 0.0
    return max(LEAST_SHORTFALL, 1 - least**2)


def _scatter(operations: float, among: int) -> float:
    """Return the deviation of the root, as a part of it, that one of so many exceeds as seldom as one trial's three."""
    return -NormalDist().inv_cdf(_CHANCE / max(1, among)) / 2 / math.sqrt(operations)


def mean_in_flight(loads: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the mean number in flight by Little's law, from rates and mean nanoseconds; None if a mean is unknown."""
    pairs = [*loads]
    is_known = all(mean is not None for rate, mean in pairs if rate)
    return sum(rate * (mean or 0.0) for rate, mean in pairs) / NANOSECONDS if is_known else None


def in_flight_of(operations: Iterable[OperationResult]) -> float | None:
    """Return the mean number of these operations in flight; None if a mean latency is unknown."""
    return mean_in_flight((result.rates.iops, result.latency.mean_nanoseconds) for result in operations)


def _omits_arrivals(
    offer: Offer, loads: Sequence[OperationResult], whole: PartialLoad, omitted: Sequence[float]
) -> bool:
    """Return whether so many arrivals are missing that an objective says nothing about those that should have come.

    `omitted` are of each objective those that would have been late. They are too many if with the operations that were
    late they exceed what the objective permits, or are 1 % of all by themselves.
    """
    completed = whole.operations - _missing(whole)
    for objective, missing in zip(offer.objectives, omitted, strict=True):
        if missing and missing >= MOST_OMITTED * (completed + missing):
            return True
        permitted = float(1 - Fraction(objective.percentile) / 100)
        for load in loads if missing else ():
            # Where the share of an operation is unknown, all arrivals may be of it.
            of_load = missing * (offer.shares.get(load.operation, 1.0) if len(loads) > 1 else 1.0)
            late = late_operations(load.latency, objective.latency_nanoseconds)
            if late + of_load >= permitted * (load.latency.count + of_load):
                return True
    return False


def omitted_arrivals(
    offer: Offer,
    loads: Sequence[OperationResult],
    whole: PartialLoad,
    clients: Sequence[ClientLoad],
    objective: Objective,
) -> float:
    """Return how many operations that were not achieved would, at most, have taken longer than an objective permits."""
    if not offer.depth:
        return 0.0
    rate, latencies = offer.load / len(clients), [load.latency for load in loads]
    kept_up = offer.depth / rate
    in_freezes = rate / offer.depth * seconds_beyond(latencies, objective.latency_nanoseconds)
    while_slow = rate / offer.depth * seconds_beyond(latencies, kept_up * NANOSECONDS)
    delayed = fmean(client.delayed for client in clients)
    return max(min(_missing(whole), in_freezes), min(_missing(whole, delayed), while_slow))


def _missing(whole: PartialLoad, explained: float = 0.0) -> float:
    return max(0.0, 1 - whole.achieved / whole.offered - explained) * whole.operations


def seconds_beyond(latencies: Iterable[Latency], nanoseconds: float) -> float:
    """Return by how many seconds all operations together took longer than this, at most; 0 without a histogram."""
    counts = (
        (index, count, latency.max_nanoseconds or 0) for latency in latencies for index, count in _counts(latency)
    )
    longest = ((count, max(bin_midpoint(index), most if index == OPEN_BIN else 0)) for index, count, most in counts)
    return sum(count * max(0.0, value - nanoseconds) for count, value in longest) / NANOSECONDS


def late_operations(latency: Latency, nanoseconds: int) -> int:
    """Return how many operations took longer than this; 0 without a histogram."""
    return sum(count for index, count in _counts(latency) if bin_midpoint(index) > nanoseconds)


def _counts(latency: Latency) -> Iterable[tuple[int, int]]:
    try:
        return Histogram.decode(latency.histogram or "").counts.items()
    except HistogramError:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one trial measured, in the time in which all clients were measuring."""

    vary: Vary
    # The offered and the achieved load: operations completed per second or, for a depth, the mean number of operations
    # in flight (Little's law: their rate times their mean latency in seconds).
    whole: PartialLoad
    parts: Sequence[PartialLoad] = ()  # of each client and each operation, if there are several
    # Share of submissions that filled the depth, of the client with the highest; None in a closed loop, where all may,
    # or if the tool does not know it.
    depth_full_share: float | None
    # Of each objective, its percentile in nanoseconds, of the operation with the highest: infinity if it exceeds what
    # the tool can count, None if there are too few operations to know it.
    latencies: Sequence[float | None]
    blocks: bool = False  # submissions of a client blocked, and that is why less arrived than was offered
    unfinished: float = 0.0  # operations per second, at most, that were due or arrived and were not completed
    omits_arrivals: bool = False  # the depth was full for so long that the latencies of an open loop say too little

    @property
    def is_achieved(self) -> bool:
        """Whether the load was achieved, and each part of it, except for what chance and the tool itself explain."""
        return self.whole.is_achieved() and all(part.is_achieved(among=len(self.parts)) for part in self.parts)


def observed(
    offer: Offer, operations: Sequence[OperationResult], window: Window | None, clients: Sequence[ClientLoad] = ()
) -> Observation | None:
    """Return what a trial measured; None if there is no time in which all clients measured, or a mean is unknown."""
    loads = [result for result in operations if result.operation is not Operation.SYNC]
    if window is None or window.seconds <= 0 or not loads:
        return None
    whole = ClientLoad(
        rate=sum(load.rates.iops for load in loads),
        in_flight=in_flight_of(loads),
        longest=max(load.latency.max_nanoseconds or 0 for load in loads) / NANOSECONDS,
    )
    if offer.vary is Vary.DEPTH and whole.in_flight is None:
        return None
    total = whole.part_of(offer, offer.load, window.seconds, max(1, len(clients)))
    share = _highest_share(clients, takes_one=offer.depth == 1 and not offer.search) if offer.is_open_loop else None
    omitted = [omitted_arrivals(offer, loads, total, clients, it) if share else 0.0 for it in offer.objectives]
    return Observation(
        vary=offer.vary,
        whole=total,
        parts=tuple(_parts(offer, clients, loads, window.seconds)),
        depth_full_share=share,
        blocks=any(client.is_blocked(offer.load / len(clients)) for client in clients),
        latencies=[_worst(loads, objective) for objective in offer.objectives],
        unfinished=(2 * (whole.in_flight or 0.0) + max(omitted, default=0.0)) / window.seconds,
        omits_arrivals=_omits_arrivals(offer, loads, total, omitted),
    )


def outcome_of(observation: Observation, objectives: Sequence[Objective]) -> ProbeOutcome:
    """Judge a trial by the objectives, all of which must hold; ValueError if the latencies do not match them.

    In an open loop whose share of full depth is unknown, latencies that hold prove nothing. If it is known, only a full
    depth or blocked submissions show that the storage fell behind: it broke at the offered load. Otherwise its clients
    offered less, and what arrived is the load (see `arrived_load`). If they offered less than half of it, the trial
    says nothing: clients with so little of a processor also notice completions late.
    """
    met = [
        None if latency is None else latency <= objective.latency_nanoseconds
        for objective, latency in zip(objectives, observation.latencies, strict=True)
    ]
    share, whole, parts = observation.depth_full_share, observation.whole, observation.parts
    is_rate, is_achieved = observation.vary is Vary.RATE, observation.is_achieved
    arrived = replace(whole, achieved=whole.achieved + observation.unfinished)
    outcomes = (
        # There was often no room for a client's arrivals, or the storage blocked submissions that were due.
        (is_rate and share is not None and share >= MOST_DEPTH_FULL, ProbeOutcome.DEPTH_FULL),
        (is_rate and observation.blocks and not is_achieved, ProbeOutcome.NOT_ACHIEVED),
        # Clients offered less than half of the load, as far as that is known.
        (is_rate and share is not None and not arrived.is_mostly_achieved(), ProbeOutcome.NOT_OFFERED),
        (is_rate and observation.omits_arrivals, ProbeOutcome.DEPTH_FULL),
        (False in met, ProbeOutcome.LATE),
        (share is None and not is_achieved, ProbeOutcome.NOT_ACHIEVED),
        (is_rate and not all(part.is_mostly_achieved(len(parts)) for part in parts), ProbeOutcome.NOT_OFFERED),
        (None not in met and (share is not None or not is_rate), ProbeOutcome.MET),
    )
    return next((outcome for holds, outcome in outcomes if holds), ProbeOutcome.UNKNOWN)


def offered_load(offer: Offer, observation: Observation | None = None) -> OfferedLoad:
    """Return the record of the offered load, and of what arrived, as far as known."""
    if observation is None:
        return OfferedLoad(offered=offer.load)
    share, achieved = observation.depth_full_share, observation.whole.achieved
    return OfferedLoad(offered=offer.load, achieved=achieved, depth_full_percent=None if share is None else 100 * share)


def probe_of(
    offer: Offer,
    observation: Observation | None = None,
    verdict: Verdict = Verdict.INVALID,
    *,
    has_recovered: bool = True,
) -> Probe:
    """Return the record of a search's trial; without trustworthy numbers its outcome is unknown.

    A load that broke before the cluster recovered has broken; otherwise nothing is known of the time after the trial.
    """
    outcome = ProbeOutcome.UNKNOWN
    if observation is not None and verdict is not Verdict.INVALID:
        outcome = outcome_of(observation, offer.objectives)
        if not has_recovered and outcome not in BROKEN | {ProbeOutcome.NOT_OFFERED}:
            outcome = ProbeOutcome.NOT_RECOVERED
    return Probe(**dict(offered_load(offer, observation)), outcome=outcome)


def _parts(
    offer: Offer, clients: Sequence[ClientLoad], loads: Sequence[OperationResult], seconds: float
) -> Iterator[PartialLoad]:
    """Yield the part of each of several clients, which share a load evenly, and of each operation of a mixed rate."""
    if len(clients) > 1:
        yield from (client.part_of(offer, offer.load / len(clients), seconds) for client in clients)
    if offer.vary is Vary.RATE and len(offer.shares) > 1:
        rates = {load.operation: load.rates.iops for load in loads}
        for operation, share in offer.shares.items():
            yield PartialLoad(
                operation=operation,
                offered=offer.load * share,
                achieved=rates.get(operation, 0.0),
                operations=offer.load * share * seconds,
                pending=pending(offer, max(1, len(clients))),
            )


def _highest_share(clients: Sequence[ClientLoad], *, takes_one: bool) -> float | None:
    """Return the share of full depth of the client with the highest; None if an unknown one may be too high."""
    # A depth of 1 (`takes_one`) is always full. There, the share of arrivals that find an operation in flight counts.
    # For random arrivals it equals the share of the time (Wolff 1982, "Poisson arrivals see time averages").
    known = [client.in_flight if takes_one else client.depth_full_share for client in clients]
    highest = max((share for share in known if share is not None), default=None)
    is_full = highest is not None and highest >= MOST_DEPTH_FULL
    return highest if is_full or None not in known else None


def _worst(loads: Sequence[OperationResult], objective: Objective) -> float | None:
    """Return the highest percentile of the operations; None if an unknown one decides whether the objective holds."""
    latencies = [_percentile(load, objective) for load in loads]
    highest = max((latency for latency in latencies if latency is not None), default=0)
    return highest if None not in latencies or highest > objective.latency_nanoseconds else None


def _percentile(operation: OperationResult, objective: Objective) -> float | None:
    """Return a percentile in nanoseconds, infinity if it is too high for certain; None for too few operations."""
    latency = operation.latency
    if (value := latency.percentiles.get(objective.percentile)) is not None:
        return value
    beyond = math.floor(latency.count * (1 - Fraction(objective.percentile) / 100))
    is_beyond_the_end = latency.kind is LatencyKind.FULL and beyond >= MINIMUM_BEYOND
    is_late = late_operations(latency, objective.latency_nanoseconds) >= SURELY_LATE
    return math.inf if is_beyond_the_end or is_late else None


def client_load(item: ClientMeasurement, window: Interval) -> ClientLoad:
    """Return the client's work in the window in which all clients measured."""
    measurement = item.measurement
    shares = [share for share in item.shares if share.sample.operation is not Operation.SYNC]
    latencies = [share.sample.latency for share in shares]
    rates = [share.within(window).per_second(window.length).ios for share in shares]
    means = [latency.mean_nanoseconds if latency.kind.has_mean else None for latency in latencies]
    submissions = [
        (operation.ios, (operation.submission_nanoseconds or 0.0) / NANOSECONDS) for operation in measurement.operations
    ]
    # What submissions took beyond their usual cost to a client, and that cost as far as no trace allows for it.
    blocked = sum(ios * max(0.0, seconds - THINKING_SECONDS) for ios, seconds in submissions)
    allowed = ALLOWED_SECONDS - _POLLING_SECONDS
    delayed = sum(ios * max(0.0, min(seconds, THINKING_SECONDS) - allowed) for ios, seconds in submissions)
    thread_seconds = measurement.runtime * measurement.submitters / NANOSECONDS
    return ClientLoad(
        client=item.client,
        rate=sum(rates),
        in_flight=mean_in_flight(zip(rates, means, strict=True)),
        longest=max((latency.max_nanoseconds for latency in latencies), default=0) / NANOSECONDS,
        depth_full_share=measurement.depth_full_share,
        blocked=blocked / thread_seconds,
        delayed=delayed / thread_seconds,
    )
