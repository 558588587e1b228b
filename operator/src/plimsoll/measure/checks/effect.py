"""Activities during a measurement, and whether they changed the numbers: scrubs, neighbours, a throttled client.

An activity is harmless if rate, median and 99th percentile during it are no worse than without any activity, but for
chance and a stated bound. For the reasoning see docs/explanation/trust.md.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import NormalDist

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.ceph.gate import moving_states, standing_checks, unclean_states, upkeep_states
from plimsoll.ceph.watch import LAG, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.measure.checks.check import Evidence, HostedClient, Slices, slices_of
from plimsoll.measure.cluster import LONGEST_PAUSE, PoolIo, foreign_io, pool_io
from plimsoll.measure.histogram import Histogram, bin_midpoint
from plimsoll.measure.rates import by_operation
from plimsoll.measure.statistics import binomial_p_value, margin_of_difference
from plimsoll.measure.text import percent_text
from plimsoll.measure.timeline import (
    NANOSECONDS,
    Amount,
    Coverage,
    Interval,
    Share,
    add,
    amounts_between,
    both,
    covering,
    joined,
    length_of,
    without,
)

SLOW_OPS = "SLOW_OPS"
HEAVY_PART = 0.05  # part of the run's own operations or bytes from which foreign load is an activity
MOST_SLOWER = 0.05  # part by which the rate may be lower
MOST_LONGER = 0.10  # part by which the median and the 99th percentile of the latency may be longer
NEGLIGIBLE_TIME = 0.005  # part of the time in which an activity adds less than half of the slowest hundredth
_MOST_TOUCHED = 0.005  # part of the operations that one of unknown effect may touch: half of what a p99 leaves out
_MOST_TOUCHED_BRIEFLY = 0.02  # the same if no p99 is published, or if no operation waits longer than one usually takes
_SERIOUSLY_SLOWER = 0.25
_SERIOUSLY_LONGER = 1.0  # an effect is known if one of this size is excluded
_CONFIDENCE = 0.9973  # that an effect is more than chance: three standard deviations on both sides
_DEVIATIONS = 3
_EXCLUSION = 0.99  # that an effect is less than serious, on one side
_EXCLUDING = NormalDist().inv_cdf(_EXCLUSION)
_LEAST_COMPARED = 10 * NANOSECONDS
_LEAST_FOR_P99 = 1000
_MOST_BLOCKS = 3600
_MEBIBYTE = 1024**2
_MILLISECOND = 10**6
_PERIODS_PER_SECOND = 10  # of a CPU quota, unless the kubelet's `cpuCFSQuotaPeriod` was changed
_LEAST_FOREIGN = PoolCounters(reads=1, read_bytes=_MEBIBYTE)  # per second; clusters cause less by themselves
_DISK_BYTES = 100 * _MEBIBYTE  # per second, of a slow disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Something that went on during the measurement."""

    certain: Sequence[Interval]  # when it certainly went on
    possible: Sequence[Interval]  # all the time in which it may have gone on, as far as it was seen
    unknown: Sequence[Interval] = ()  # when it was not observed
    part: float  # part of the operations that it can have touched, 0 to 1; 0 if it was not seen
    is_brief: bool = False  # whether it delays an operation by no more than one usually takes
    clients: tuple[int, ...] = ()  # those that it concerns; empty for all

    @classmethod
    def polled(
        cls, polls: Sequence[tuple[int, float | None]], span: Interval | None, *, touching: int = 1
    ) -> "Activity":
        """Return the activity that polls showed, each at a time and with the part of the OSDs that took part.

        It may have begun just after the poll before and ended just before the next one. A poll without an answer has
        None: it may have been the greatest that was seen. The time around it is unknown, as are longer pauses, and what
        lies in `span` outside of all answers. `touching` is the number of OSDs that an operation takes.
        """
        known = [(number, at, part) for number, (at, part) in enumerate(polls) if part is not None]
        most = max((part for _, _, part in known), default=0.0)
        certain, possible, unknown = list[Interval](), list[Interval](), list[Interval]()
        for (number, at, part), (following, end, next_part) in pairwise(known):
            stretch = Interval(start=at, end=end)
            is_watched = following == number + 1 and stretch.length <= LONGEST_PAUSE
            if not is_watched:
                unknown.append(stretch)
            elif part and next_part:
                certain.append(stretch)
            if part or next_part:
                possible.append(stretch)
        if span is not None:
            first, last = (known[0][1], known[-1][1]) if known else (span.end, span.end)
            unknown += [Interval(start=span.start, end=first)] if first > span.start else []
            unknown += [Interval(start=last, end=span.end)] if last < span.end else []
        touched = math.fsum(min(1.0, touching * (most if part is None else part)) for _, part in polls)
        return cls(certain=certain, possible=possible, unknown=unknown, part=touched / len(polls) if most else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a quantity during an activity differs from the quantity without it."""

    text: str  # such as `the rate was 20 % lower`
    size: float  # part by which it was worse; negative if it was better
    is_noticeable: bool  # worse by more than chance and the bound
    is_known: bool  # a serious effect is excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an activity changed; without differences, that is unknown."""

    activity: Activity
    time: float  # part of the window in which it may have gone on
    most_touched: float = _MOST_TOUCHED  # part of the operations that it may touch if what it changed is unknown
    differences: tuple[Difference, ...] = ()  # of each kind of operation
    together: tuple[Difference, ...] = ()  # of all operations, if there are several kinds
    problem: str = "there was no calm time to compare with"  # why there are no differences

    @property
    def noticed(self) -> list[Difference]:
        """The differences that the numbers would not have had without the activity, of single kinds first."""
        return [each for each in (*self.differences, *self.together) if each.is_noticeable]

    @property
    def size(self) -> float:
        """The largest part by which something was noticeably worse; 0 if nothing was."""
        return max((each.size for each in self.noticed), default=0.0)

    @property
    def is_known(self) -> bool:
        """Whether a serious effect is excluded, be it on all kinds of operations together."""
        parts = (self.differences, self.together)
        return any(part and all(difference.is_known for difference in part) for part in parts)

    @property
    def is_harmless(self) -> bool:
        """Whether the numbers are as good as without the activity."""
        if self.time < NEGLIGIBLE_TIME:
            return True
        return not self.noticed and (self.is_known or self.activity.part < self.most_touched)

    @property
    def text(self) -> str:
        if self.noticed or self.is_known:
            shown = [each for each in self.differences if each.is_noticeable] or self.noticed or self.differences
            return f"meanwhile {', '.join(each.text for each in shown)}"
        why = "too few operations to distinguish it from chance" if self.differences else self.problem
        part, limit = percent_text(100 * self.activity.part), percent_text(100 * self.most_touched)
        touched = f"it may have touched {part} of the operations (harmless: less than {limit})"
        return f"its effect is unknown, because {why}; {touched}"


def judged(evidence: Evidence, activity: Activity) -> Effect:
    """Return the effect of an activity on its clients' numbers, compared with 10 s or more free of all activities.

    It is unknown without such time, or without series of the rates and of published percentiles.
    """
    span = evidence.span
    if span is None or not span.length:
        return Effect(activity=activity, time=1.0)
    measured = [item for item in evidence.measured if not activity.clients or item.client in activity.clients]
    everything = [share for item in measured for share in item.shares if share.sample.ios]
    # No tool keeps a series of its syncs.
    shares = by_operation(share for share in everything if share.sample.operation is not Operation.SYNC)
    has_p99 = any(map(_publishes_p99, shares.values()))

    def most_touched(each: Activity) -> float:
        return _MOST_TOUCHED if has_p99 and not each.is_brief else _MOST_TOUCHED_BRIEFLY

    def time_of(each: Activity) -> int:
        return length_of(both(joined([*each.possible, *each.unknown]), [span]))

    unknown = Effect(activity=activity, time=time_of(activity) / span.length, most_touched=most_touched(activity))
    taken, neighbours = [*activity.possible, *activity.unknown], neighbours_of(evidence)
    others = [moving(evidence), upkeep(evidence), slow_operations(evidence)]
    others += [*filter(None, map(throttling, evidence.observed)), *([neighbours.activity] if neighbours else [])]
    for other in others:
        if not activity.clients or not other.clients or {*activity.clients} & {*other.clients}:
            matters = other.part >= most_touched(other) and time_of(other) >= NEGLIGIBLE_TIME * span.length
            taken += [*other.possible, *other.unknown] if matters else other.unknown
    calm = without([span], joined(taken))
    possible = both(joined(activity.possible), [span])
    if evidence.window is None or not possible or length_of(calm) < _LEAST_COMPARED:
        return unknown
    # The certain time alone, unless it is too short.
    certain = both(joined(activity.certain), [span])
    busy = Coverage(certain if length_of(certain) >= _LEAST_COMPARED else possible)
    quiet = Coverage(calm)
    slices = evidence.slices if not activity.clients else {kind: slices_of(parts) for kind, parts in shares.items()}
    kinds = [[*_differences(f" {kind}", parts, slices[kind], span, busy, quiet)] for kind, parts in shares.items()]
    if not all(kinds):
        return replace(unknown, problem="rates or latencies over time are missing, or too coarse")
    differences = tuple(chain.from_iterable(kinds))
    if len(kinds) == 1:
        return replace(unknown, differences=differences)
    # An OSD's lost time affects all kinds of operations; rare kinds alone rarely exclude an effect.
    slices_of_kinds = [slices[kind] or [] for kind in shares]
    mixed = [
        (covering(time for time, _ in same), Histogram.merge(histogram for _, histogram in same))
        for same in zip(*slices_of_kinds, strict=False)
        if all(slices_of_kinds)
    ]
    all_shares = [*chain.from_iterable(shares.values())]
    together = tuple(_differences("", all_shares, mixed, span, busy, quiet))
    return replace(unknown, differences=differences, together=together)


def _publishes_p99(shares: Sequence[Share]) -> bool:
    is_full = any(share.sample.latency.kind is LatencyKind.FULL for share in shares)
    return is_full and sum(share.sample.ios for share in shares) >= _LEAST_FOR_P99


def _differences(
    kind: str, shares: Sequence[Share], slices: Slices | None, span: Interval, busy: Coverage, quiet: Coverage
) -> Iterator[Difference]:
    """Yield the differences of operations, such as ` write`; nothing if they are unknown."""
    rate = _rate_difference(kind, shares, span, busy, quiet) if slices is not None else None
    if rate is None:
        return
    yield rate
    # A tool without percentiles publishes only the rate, and a mean that follows from it.
    if slices:
        during = [histogram for time, histogram in slices if busy.within(time)]
        otherwise = [histogram for time, histogram in slices if quiet.within(time) == time.length]
        names = {50: "median", 99: "99th percentile"} if _publishes_p99(shares) else {50: "median"}
        for percentile, name in names.items():
            yield _percentile_difference(f"{name}{kind and f' of{kind}'}", percentile, during, otherwise)


def _rate_difference(
    kind: str, shares: Sequence[Share], span: Interval, busy: Coverage, quiet: Coverage
) -> Difference | None:
    width = max(NANOSECONDS, -(-span.length // _MOST_BLOCKS))
    edges = [*range(span.start, span.end, width), span.end]
    amounts = amounts_between(shares, edges)
    if amounts is None:
        return None
    cells = [Interval(start=start, end=end) for start, end in pairwise(edges)]
    rates = [(cell, amount.per_second(cell.length).ios) for cell, amount in zip(cells, amounts, strict=True)]
    with_it = [rate for cell, rate in rates if busy.within(cell)]
    without_it = [rate for cell, rate in rates if quiet.within(cell) == cell.length]
    usual = math.fsum(without_it) / len(without_it) if without_it else 0.0
    if not with_it or not usual:
        return None
    slower = 1 - math.fsum(with_it) / len(with_it) / usual
    chance = margin_of_difference(with_it, without_it, _CONFIDENCE) / usual
    excluded = margin_of_difference(with_it, without_it, 2 * _EXCLUSION - 1) / usual
    return Difference(
        text=f"the{kind} rate was {percent_text(abs(100 * slower))} {'lower' if slower > 0 else 'higher'}",
        size=slower,
        is_noticeable=slower > MOST_SLOWER + chance,
        is_known=slower + excluded <= _SERIOUSLY_SLOWER,
    )


def _percentile_difference(
    name: str, percentile: float, during: Sequence[Histogram], otherwise: Sequence[Histogram]
) -> Difference:
    """Compare a percentile in two times by the part of the operations beyond it.

    The percentile is longer if more than the usual part of the operations took longer than the bound allows. They come
    in clusters, so their part has the error of a ratio (Cochran, "Sampling Techniques", 3rd edition, 1977, section
    3.12), and at least the binomial one. A serious increase is excluded if fewer operations than the usual part took
    twice the lower confidence limit of the usual percentile (by order statistics: Conover, "Practical Nonparametric
    Statistics", section 3.2), by the error of the ratio and an exact binomial test (Clopper and Pearson, 1934).
    """
    calm, disturbed = Histogram.merge(otherwise), Histogram.merge(during)
    usual, expected = calm.percentile(percentile), 1 - percentile / 100
    if not usual or not disturbed.total:
        return Difference(text=f"the {name} is unknown", size=0.0, is_noticeable=False, is_known=False)

    def beyond(limit: float, confidence: float) -> tuple[float, float]:
        """Return the part of the operations beyond a limit, and how much it may differ between the times by chance."""
        (part, residuals), (_, usual_residuals) = _beyond(during, limit), _beyond(otherwise, limit)
        return part, margin_of_difference(residuals, usual_residuals, confidence)

    variance = expected * (1 - expected)
    part, chance = beyond((1 + MOST_LONGER) * usual, _CONFIDENCE)
    chance = max(chance, _DEVIATIONS * math.sqrt(variance * (1 / disturbed.total + 1 / calm.total)))
    rank = percentile - 100 * _EXCLUDING * math.sqrt(variance / calm.total)
    serious = (1 + _SERIOUSLY_LONGER) * ((calm.percentile(rank) if rank > 0 else None) or 0)
    late, excluded = beyond(serious, 2 * _EXCLUSION - 1)
    longer = (disturbed.percentile(percentile) or math.inf) / usual - 1
    return Difference(
        text=f"the {name} was {percent_text(abs(100 * longer))} {'longer' if longer > 0 else 'shorter'}",
        size=longer,
        is_noticeable=part - expected > chance,
        is_known=(
            late + excluded <= expected
            and binomial_p_value(round(late * disturbed.total), disturbed.total, expected) <= 1 - _EXCLUSION
        ),
    )


def _beyond(histograms: Sequence[Histogram], limit: float) -> tuple[float, list[float]]:
    """Return the part of the operations beyond a limit, and by how much it is exceeded in each histogram."""
    totals = [histogram.total for histogram in histograms]
    late = [sum(n for index, n in item.counts.items() if bin_midpoint(index) > limit) for item in histograms]
    part, mean = sum(late) / sum(totals), sum(totals) / len(totals)
    return part, [(number - part * total) / mean for number, total in zip(late, totals, strict=True)]


def _polled(evidence: Evidence, part_of: Callable[[ClusterStatus, ClusterWatch], float]) -> Activity:
    """Return an activity that polls show; `part_of`: the part of the data's OSDs that it may take at a time."""
    if (watch := evidence.facts.cluster) is None:
        return Activity(certain=(), possible=(), part=0.0)
    polls = [(it.at, None if it.status is None else part_of(it.status, watch)) for it in evidence.polls]
    return Activity.polled(polls, evidence.span, touching=_osds_per_operation(evidence))


def _osds_per_operation(evidence: Evidence) -> int:
    if (watch := evidence.facts.cluster) is None:
        return 1
    writes = any(item.does(operation) for item in evidence.measured for operation in {*Operation} - {Operation.READ})
    return max(watch.placement.per_read, watch.placement.per_write) if writes else watch.placement.per_read


def _part_of_groups(groups: int, watch: ClusterWatch) -> float:
    osds = watch.placement.osds
    return min(1.0, groups * watch.widest / osds) if osds else float(groups > 0)


def moving(evidence: Evidence) -> Activity:
    def part(status: ClusterStatus, watch: ClusterWatch) -> float:
        if not (status.is_recovering or moving_states(status)):
            return 0.0
        # Data moves from one set of OSDs to another; if all groups are clean, it is unknown whose data.
        groups = sum(unclean_states(status).values())
        return _part_of_groups(2 * groups, watch) if groups else 1.0

    return _polled(evidence, part)


def upkeep(evidence: Evidence) -> Activity:
    return _polled(evidence, lambda status, watch: _part_of_groups(sum(upkeep_states(status).values()), watch))


def slow_operations(evidence: Evidence) -> Activity:
    """Return the reports of slow operations, unless they are accepted."""
    return _polled(
        evidence, lambda it, watch: float(SLOW_OPS in standing_checks(it.health, it.checks, watch.accepted_checks))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The load of other pools."""

    io: PoolIo
    ours: PoolCounters
    part: float  # their operations or bytes as a part of the run's, whichever is more
    osd_time: float  # upper bound of their part of the OSDs' time, 0 to 1, if their operations cost what the run's do
    activity: Activity


def neighbours_of(evidence: Evidence) -> Neighbours | None:
    """Return the load of other pools; None if it is unknown, or no more than clusters cause by themselves."""
    watch, samples = evidence.facts.cluster, evidence.polls
    # All counters lag alike. Where their time reaches beyond the load, the part is too large, never too small.
    io = pool_io(watch, samples) if watch is not None else None
    if watch is None or io is None or not io.exceeds(_LEAST_FOREIGN):
        return None
    # The larger of the pools' and the clients' counts: measuring OSDs bypasses all pools.
    measured = [sample for item in evidence.measured for sample in item.measurement.operations]
    ours = PoolCounters(
        reads=max(io.ours.operations, sum(sample.ios for sample in measured)),
        read_bytes=max(io.ours.bytes, sum(sample.bytes for sample in measured)),
    )
    if not ours.operations:
        return None
    # How long a usual operation of the run took, of the slowest kind; infinite if that is unknown.
    latencies = [result.latency for result in evidence.operations if result.operation is not Operation.SYNC]
    times = [latency.percentiles.get("50") or latency.mean_nanoseconds or math.inf for latency in latencies]
    usual = max(times, default=math.inf) / NANOSECONDS
    # The operations and bytes per second of the clients on all OSDs together: a write takes several of them.
    own = add(
        [
            Amount(ios=osds * sample.ios, bytes=osds * sample.bytes).per_second(item.interval.length)
            for item in evidence.measured
            for sample in item.measurement.operations
            for osds in [watch.placement.per_read if sample.operation is Operation.READ else watch.placement.per_write]
            if sample.operation is not Operation.SYNC
        ]
    )

    def part_of(foreign: PoolCounters) -> float:
        # Syncs, and operations on metadata, have no bytes.
        return max(foreign.operations / ours.operations, foreign.bytes / ours.bytes if ours.bytes else 0.0)

    def is_heavy(between: Interval, foreign: PoolCounters) -> bool:
        share = part_of(foreign) * io.between.length / between.length
        return max(share, _osd_time(watch, replace(io, between=between, foreign=foreign), own, usual)) > HEAVY_PART

    # The counters of all these polls may lag.
    busy = joined(time for time, foreign in foreign_io(watch, samples) if time.length and is_heavy(time, foreign))
    span = evidence.span or io.between
    # The bytes of a mean foreign operation, of the kind with larger operations.
    kinds = ((io.foreign.reads, io.foreign.read_bytes), (io.foreign.writes, io.foreign.written_bytes))
    longest_transfer = max(volume / max(1, number) for number, volume in kinds) / _DISK_BYTES
    # By the utilisation law, each takes an OSD as long as a usual operation of the run took in all, and for its bytes.
    osds, foreign = watch.placement.osds, _load_of_osds(watch, io)
    taken = (foreign.ios * usual if foreign.ios else 0.0) + foreign.bytes / _DISK_BYTES
    activity = Activity(
        certain=[Interval(start=it.start, end=it.end - LAG) for it in busy if it.length > LAG],
        possible=[Interval(start=it.start - LAG, end=it.end) for it in busy],
        unknown=[Interval(start=span.start, end=io.between.start), Interval(start=io.between.end, end=span.end)],
        part=min(1.0, _osds_per_operation(evidence) * min(1.0, taken / osds if osds else 1.0)),
        is_brief=longest_transfer <= usual,
    )
    osd_time = _osd_time(watch, io, own, usual)
    return Neighbours(io=io, ours=ours, part=part_of(io.foreign), osd_time=osd_time, activity=activity)


def _load_of_osds(watch: ClusterWatch, io: PoolIo) -> Amount:
    """Return the foreign operations and bytes per second; a write takes as many OSDs as the widest group has."""
    return Amount(
        ios=io.per_second(io.foreign.reads) + watch.widest * io.per_second(io.foreign.writes),
        bytes=io.per_second(io.foreign.read_bytes) + watch.widest * io.per_second(io.foreign.written_bytes),
    )


def _osd_time(watch: ClusterWatch, io: PoolIo, own: Amount, usual_seconds: float) -> float:
    """Return the larger part of the OSDs' time that foreign operations, or bytes, took; 0 if unknown.

    An operation of the run, or a byte, took at most the OSDs' time divided by the run's number of them (utilisation
    law), and at most as long as a usual operation, or a byte of a slow disk. A foreign one counts as much.
    """
    if not (osds := watch.placement.osds):
        return 0.0
    foreign = _load_of_osds(watch, io)
    seconds = min(usual_seconds, osds / own.ios if own.ios else math.inf)
    per_byte = min(1 / _DISK_BYTES, osds / own.bytes if own.bytes else math.inf)
    of_operations = foreign.ios * seconds if foreign.ios and math.isfinite(seconds) else 0.0
    return min(1.0, max(of_operations, foreign.bytes * per_byte) / osds)


def throttling(client: HostedClient) -> Activity | None:
    """Return when its CPU quota stopped a client; None if it did not."""
    item, host = client
    if not (seconds := host.cpu.throttled_seconds):
        return None
    part = seconds / host.seconds
    # The kernel sums the stopped time over CPUs, so it can exceed the observed time.
    if periods := host.cpu.throttled_periods:
        part = min(part, periods / (host.seconds * _PERIODS_PER_SECOND))
    start, spans = item.interval.start, host.cpu.throttled or ()
    times = [Interval(start=start + first * _MILLISECOND, end=start + last * _MILLISECOND) for first, last in spans]
    times = times or [item.interval]
    return Activity(certain=times, possible=times, part=part, clients=(item.client,))
