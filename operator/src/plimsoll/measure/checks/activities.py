"""Activities during a measurement: scrubs, moving data, slow operations, neighbours, a throttled client.

Each is judged by its effect (see `effect`), compared with the time free of all of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from plimsoll.api.names import Operation
from plimsoll.ceph.gate import moving_states, standing_checks, unclean_states, upkeep_states
from plimsoll.ceph.watch import LAG, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.measure.checks.check import Evidence, ObservedClient
from plimsoll.measure.checks.effect import NO_ACTIVITY, Activity, Effect, effect_of
from plimsoll.measure.cluster import PoolIo, foreign_io, pool_io
from plimsoll.measure.timeline import NANOSECONDS, Amount, Interval, add, joined

SLOW_OPS = "SLOW_OPS"
HEAVY_PART = 0.05  # part of the run's own operations or bytes from which foreign load is an activity

_MEBIBYTE = 1024**2
_MILLISECOND = 10**6
_PERIODS_PER_SECOND = 10  # of a CPU quota, unless the kubelet's `cpuCFSQuotaPeriod` was changed
_LEAST_FOREIGN = PoolCounters(reads=1, read_bytes=_MEBIBYTE)  # per second; clusters cause less by themselves
_DISK_BYTES = 100 * _MEBIBYTE  # per second, of a slow disk


def judged(evidence: Evidence, activity: Activity) -> Effect:
    """Return the effect of an activity, compared with the time without it and without all others."""
    neighbours = neighbours_of(evidence)
    all_activities = [moving(evidence), upkeep(evidence), slow_operations(evidence)]
    all_activities += [neighbours.activity] if neighbours is not None else []
    all_activities += filter(None, map(throttling, evidence.observed))
    return effect_of(evidence, activity, all_activities)


def _polled(evidence: Evidence, part_of: Callable[[ClusterStatus, ClusterWatch], float]) -> Activity:
    """Return an activity that polls show; `part_of`: the part of the data's OSDs that it may take at a time."""
    watch = evidence.facts.cluster
    if watch is None:
        return NO_ACTIVITY
    polls = [
        (sample.at, part_of(sample.status, watch) if sample.status is not None else None) for sample in evidence.polls
    ]
    return Activity.polled(polls, evidence.span, touching=_osds_per_operation(evidence))


def _osds_per_operation(evidence: Evidence) -> int:
    if (watch := evidence.facts.cluster) is None:
        return 1
    samples = [sample for item in evidence.measured for sample in item.measurement.operations]
    writes = any(sample.ios or sample.bytes for sample in samples if sample.operation is not Operation.READ)
    return max(watch.placement.per_read, watch.placement.per_write) if writes else watch.placement.per_read


def _part_of_groups(groups: int, watch: ClusterWatch) -> float:
    """Return the part of the data's OSDs that may be busy with placement groups of any pool."""
    osds = watch.placement.osds
    return min(1.0, groups * watch.widest / osds) if osds else float(groups > 0)


def moving(evidence: Evidence) -> Activity:
    """Return the recovery and the movement of data."""

    def part(status: ClusterStatus, watch: ClusterWatch) -> float:
        if not (status.recovering_bytes_per_second or moving_states(status)):
            return 0.0
        # Data moves from one set of OSDs to another; if all groups are clean, it is unknown whose data.
        groups = sum(unclean_states(status).values())
        return _part_of_groups(2 * groups, watch) if groups else 1.0

    return _polled(evidence, part)


def upkeep(evidence: Evidence) -> Activity:
    """Return the scrubs and the trimming of snapshots."""
    return _polled(evidence, lambda status, watch: _part_of_groups(sum(upkeep_states(status).values()), watch))


def slow_operations(evidence: Evidence) -> Activity:
    """Return the reports of slow operations, unless they are accepted."""
    return _polled(
        evidence,
        lambda status, watch: float(SLOW_OPS in standing_checks(status.health, status.checks, watch.accepted_checks)),
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
    # All counters lag alike, so both numbers cover the same time. Where that reaches beyond the load, the part is a
    # little too large, never too small.
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
    own = _own_load_of_osds(evidence, watch)

    def part_of(foreign: PoolCounters) -> float:
        # Syncs, and operations on metadata, have no bytes.
        return max(foreign.operations / ours.operations, foreign.bytes / ours.bytes if ours.bytes else 0.0)

    def is_heavy(between: Interval, foreign: PoolCounters) -> bool:
        share = part_of(foreign) * io.between.length / between.length
        return max(share, _osd_time(watch, replace(io, between=between, foreign=foreign), own, usual)) > HEAVY_PART

    # The counters of all these polls may lag.
    busy = joined(
        between for between, foreign in foreign_io(watch, samples) if between.length and is_heavy(between, foreign)
    )
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


def _own_load_of_osds(evidence: Evidence, watch: ClusterWatch) -> Amount:
    """Return the operations and bytes per second of the clients on all OSDs together: a write takes several of them."""
    loads = []
    for item in evidence.measured:
        for sample in (each for each in item.measurement.operations if each.operation is not Operation.SYNC):
            is_read = sample.operation is Operation.READ
            osds = watch.placement.per_read if is_read else watch.placement.per_write
            amount = Amount(ios=osds * sample.ios, bytes=osds * sample.bytes)
            loads.append(amount.per_second(item.interval.length))
    return add(loads)


def _load_of_osds(watch: ClusterWatch, io: PoolIo) -> Amount:
    """Return the foreign operations and bytes per second; a write takes as many OSDs as the widest group has."""
    return Amount(
        ios=io.per_second(io.foreign.reads) + watch.widest * io.per_second(io.foreign.writes),
        bytes=io.per_second(io.foreign.read_bytes) + watch.widest * io.per_second(io.foreign.written_bytes),
    )


def _osd_time(watch: ClusterWatch, io: PoolIo, own: Amount, usual_seconds: float) -> float:
    """Return the larger part of the OSDs' time that foreign operations, or bytes, took; 0 if unknown.

    No OSD is busy for longer than all the time (utilisation law). So an operation of the run, or a byte, took at most
    the OSDs' time divided by the run's number of them, and at most as long as a usual operation, or a byte of a slow
    disk. A foreign one counts as much.
    """
    if not (osds := watch.placement.osds):
        return 0.0
    foreign = _load_of_osds(watch, io)
    seconds = min(usual_seconds, osds / own.ios if own.ios else math.inf)
    per_byte = min(1 / _DISK_BYTES, osds / own.bytes if own.bytes else math.inf)
    of_operations = foreign.ios * seconds if foreign.ios and math.isfinite(seconds) else 0.0
    return min(1.0, max(of_operations, foreign.bytes * per_byte) / osds)


def throttling(client: ObservedClient) -> Activity | None:
    """Return when its CPU quota stopped a client; None if it did not."""
    item, host = client
    if not (seconds := host.cpu.throttled_seconds):
        return None
    part = seconds / host.seconds
    # The kernel sums the stopped time over CPUs, so it can exceed the observed time.
    if periods := host.cpu.throttled_periods:
        part = min(part, periods / (host.seconds * _PERIODS_PER_SECOND))
    start = item.interval.start
    times = [
        Interval(start=start + begin * _MILLISECOND, end=start + end * _MILLISECOND)
        for begin, end in host.cpu.throttled or ()
    ] or [item.interval]
    return Activity(certain=times, possible=times, part=part, clients=(item.client,))
