"""Whether the Ceph cluster was healthy, and the run's alone, while a trial measured.

Changes of the cluster count, not its state: OSDs that are out from the beginning are a fact. A shared cluster is always
active, so scrubs, snapshot trimming, moving data, slow operations and foreign load are judged by their effect (see
`effect`). For the reasoning see docs/explanation/trust.md. These checks yield nothing if the run watches no cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise

from plimsoll.api.names import Cause, Operation, Verdict
from plimsoll.api.status import OsdsSeen
from plimsoll.ceph.disturbance import clean_after, has_no_effect
from plimsoll.ceph.gate import (
    checks_text,
    is_only_laggy,
    moving_states,
    standing_checks,
    states_text,
    unclean_states,
    upkeep_states,
)
from plimsoll.ceph.pools import inactive_servers, servers_of
from plimsoll.ceph.watch import LAG, ClusterStatus, PoolCounters
from plimsoll.measure.checks.check import CheckedValue, CheckedValues, Evidence, TrialCheck
from plimsoll.measure.checks.effect import (
    HEAVY_PART,
    MOST_SLOWER,
    SLOW_OPS,
    Activity,
    judged,
    moving,
    neighbours_of,
    slow_operations,
    upkeep,
)
from plimsoll.measure.cluster import PoolIo, statuses_of, unwatched_nanoseconds
from plimsoll.measure.text import first_few, number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, Amount, Interval, Share, add

_KIBIBYTE = 1024
_FLOOR = PoolCounters(reads=10, read_bytes=_KIBIBYTE**2)  # per second and OSD, never Invalid: a tenth of a disk's


@TrialCheck(
    reason="ClusterNotWatched",
    what="part of the measured time, or of a disturbance or the recovery from it, without answers from Ceph",
    unit="%",
    suspect=10,
    remedy="see the conductor's log for the reason; the state of the cluster during that time is unknown",
)
def cluster_not_watched(evidence: Evidence) -> CheckedValues:
    watch, span = evidence.facts.cluster, evidence.span
    if watch is None or span is None:
        return
    spans = {"the measured time": span}
    if outage := evidence.facts.outage:
        # However short they are compared with the trial, their ends are known from polls.
        recovery = clean_after(watch.samples, outage) or 0.0
        spans["the disturbance"] = Interval(start=outage.start, end=outage.end)
        spans["the recovery"] = Interval(start=outage.end, end=outage.end + round(recovery * NANOSECONDS))
    answers = sum(sample.status is not None for sample in watch.samples)
    why = next((f": {quote(sample.problem)}" for sample in watch.samples if sample.status is None), "")
    for name, time in spans.items():
        if time.length:
            part = 100 * unwatched_nanoseconds(watch, time) / time.length
            detail = f"Ceph did not answer during {percent_text(part)} of {name} ({answers} answers in all){why}"
            yield CheckedValue(value=part, detail=detail)


@TrialCheck(
    reason="OsdsChanged",
    what="OSDs that were down or out and had not been before, and changes to the set of OSDs that are up and in",
    invalid=0,
    remedy="bring the OSDs up and in, wait until the cluster is clean, and run again",
    concerns_health=True,
)
def osds_changed(evidence: Evidence) -> CheckedValues:
    watch = evidence.facts.cluster
    if watch is None:
        return
    most = reduce(OsdsSeen.most, (status.osds_seen for status in statuses_of(watch.samples)), watch.osds)
    for status in evidence.statuses:
        down, out = max(0, most.up - status.osds_up), max(0, most.members - status.osds_in)
        yield CheckedValue(value=down + out, detail=f"{down} of {most.up} OSDs were down, {out} were out")
    detail = "the set of OSDs that are up and in changed during the trial, although as many were up and in at the end"
    sets = [(status.osds, status.osds_up_since, status.osds_in_since) for status in evidence.statuses]
    yield CheckedValue(value=_part_of_changes(sets), detail=detail)


@TrialCheck(
    reason="MetadataServersChanged",
    what="metadata servers of the measured file system that were not active, and changes to the active ones",
    invalid=0,
    remedy="check the metadata servers with `ceph fs status`, wait until all are active, and run again",
    concerns_health=True,
)
def metadata_servers_changed(evidence: Evidence) -> CheckedValues:
    file_system = evidence.facts.cluster.file_system if evidence.facts.cluster else None
    if file_system is None:
        return
    name, servers = f"file system {file_system.name}", []
    for status in evidence.statuses:
        missing = inactive_servers(status, file_system)
        detail = f"{missing} of {file_system.servers} metadata servers of {name} were not active"
        yield CheckedValue(value=missing, detail=detail)
        servers.append(sorted((server.rank, server.process) for server in servers_of(status, file_system)))
    detail = f"a metadata server of {name} was replaced or restarted during the trial, although all were active again"
    yield CheckedValue(value=_part_of_changes(servers), detail=detail)


def _part_of_changes(states: Sequence[object]) -> float:
    changes = sum(before != after for before, after in pairwise(states))
    return changes / (1 + changes)  # below 1, so that a daemon that is still down is worse


@TrialCheck(
    reason="GroupsNotClean",
    what="placement groups that were neither active+clean nor only moving their data",
    invalid=0,
    remedy="wait until `ceph status` shows only active+clean; restart OSDs whose groups stay laggy without load",
    concerns_health=True,
)
def groups_not_clean(evidence: Evidence) -> CheckedValues:
    for status in evidence.statuses:
        moving = moving_states(status)
        unclean = {state: count for state, count in unclean_states(status).items() if state not in moving}
        if evidence.is_broken:
            # OSDs that cannot keep up with a load that broke acknowledge late: they caused nothing that it did not.
            unclean = {state: count for state, count in unclean.items() if not is_only_laggy(state)}
        yield CheckedValue(value=sum(unclean.values()), detail=_states_detail(unclean, "not active+clean"))


def _states_detail(states: Mapping[str, int], words: str) -> str:
    return f"{sum(states.values())} placement groups were {words}: {states_text(states)}"


def _judged_by_effect(evidence: Evidence, activity: Activity, shown: int, detail: str) -> CheckedValues:
    """Yield the part of the polls that show an activity in percent; 0 if it was harmless."""
    if shown:
        effect = judged(evidence, activity)
        part = 0.0 if effect.is_harmless else 100 * shown / len(evidence.statuses)
        yield CheckedValue(value=part, detail=f"{detail}; {effect.text}")


@TrialCheck(
    reason="RecoveryTraffic",
    what="part by which rate, median or 99th percentile were worse while data moved; 100 % without calm time",
    unit="%",
    suspect=0,
    invalid=100 * MOST_SLOWER,
    remedy="wait until recovery ends, and switch off the balancer while measuring",
    concerns_health=True,
)
def recovery_traffic(evidence: Evidence) -> CheckedValues:
    worst = max(evidence.statuses, key=_moved, default=None)
    if worst is None or not _moved(worst):
        return
    effect, states = judged(evidence, moving(evidence)), moving_states(worst)
    detail = f"the cluster recovered or moved {size_text(worst.recovering_bytes_per_second)}/s"
    detail += f", {_states_detail(states, 'moving')}" if states else ""
    # While data moves all the time, the storage is another one. An effect that chance may hide is not proven.
    hidden = recovery_traffic.limit(Verdict.INVALID) if effect.differences else 100.0
    part = 100 * effect.size if effect.noticed else hidden
    yield CheckedValue(value=0 if effect.is_harmless else part, detail=f"{detail}; {effect.text}")


def _moved(status: ClusterStatus) -> int:
    rate = status.recovering_bytes_per_second if status.is_recovering else 0
    return sum(moving_states(status).values()) + rate


@TrialCheck(
    reason="Scrubbing",
    what="part of the polls with scrubs or snapshot trimming, unless rate, median and 99th percentile were no worse",
    unit="%",
    suspect=0,
    remedy="set gates.pauseScrub: true; for scrubs of other pools, which share the disks, `ceph osd set noscrub`",
)
def scrubbing(evidence: Evidence) -> CheckedValues:
    def shown(status: ClusterStatus) -> int:
        return sum(upkeep_states(status).values())

    worst = max(evidence.statuses, key=shown, default=None)
    if worst is not None:
        detail = _states_detail(upkeep_states(worst), "scrubbed or trimmed")
        yield from _judged_by_effect(evidence, upkeep(evidence), sum(map(bool, map(shown, evidence.statuses))), detail)


@TrialCheck(
    reason="SlowOps",
    what="part of the polls with slow operations, unless rate, median and 99th percentile were no worse meanwhile",
    unit="%",
    load_explains=True,
    suspect=0,
    remedy="see `ceph health detail` for the OSDs and check their devices; the load may be more than they can handle",
)
def slow_ops(evidence: Evidence) -> CheckedValues:
    accepted = evidence.facts.cluster.accepted_checks if evidence.facts.cluster else frozenset[str]()
    slow = sum(SLOW_OPS in standing_checks(it.health, it.checks, accepted) for it in evidence.statuses)
    detail = f"{slow} of {len(evidence.statuses)} polls reported slow operations"
    yield from _judged_by_effect(evidence, slow_operations(evidence), slow, detail)


@TrialCheck(
    reason="ClusterUnhealthy",
    what="health checks of Ceph that are not accepted",
    suspect=0,
    remedy="see `ceph health detail`, and fix the causes or list the checks in gates.acceptedHealthChecks",
)
def cluster_unhealthy(evidence: Evidence) -> CheckedValues:
    watch = evidence.facts.cluster
    if watch is not None:
        for status in evidence.statuses:
            bad = standing_checks(status.health, status.checks, watch.accepted_checks | {SLOW_OPS})
            detail = f"the cluster was {quote(status.health, 40)}: {checks_text(bad)}"
            yield CheckedValue(value=len(bad), detail=detail)


@TrialCheck(
    reason="ForeignLoad",
    # The storage itself raises the part if it collapses; the other attempts show that: see `measure.attempts`.
    cause=None,
    what=(
        "operations or bytes of other pools, as a part of those of the run's pools, or the OSDs' time that they took "
        f"at most, whichever is more; never Invalid by that time alone, nor up to {_FLOOR.reads} operations/s and "
        f"{size_text(_FLOOR.bytes)}/s for each OSD of the run's data, and Suspect only if rate, median or 99th "
        "percentile were worse meanwhile, or if that is unknown"
    ),
    unit="%",
    suspect=100 * HEAVY_PART,
    invalid=20,
    remedy="keep other users off the cluster while measuring",
    concerns_health=True,
)
def foreign_load(evidence: Evidence) -> CheckedValues:
    watch, neighbours = evidence.facts.cluster, neighbours_of(evidence)
    if watch is None or neighbours is None:
        return
    io, ours, part, time = neighbours.io, neighbours.ours, 100 * neighbours.part, 100 * neighbours.osd_time
    effect, most = judged(evidence, neighbours.activity), foreign_load.limit(Verdict.INVALID)
    took = f", and took up to {percent_text(time)} of the OSDs' time" if time > part else ""
    detail = (
        f"other pools had {_io_text(io, io.foreign)}, {percent_text(part)} of this run's {_io_text(io, ours)}{took}; "
        f"{effect.text}"
    )
    # That is an upper bound of the OSDs' time, and proves nothing.
    part = max(part, min(time, most))
    is_below_floor = not io.exceeds(_FLOOR, watch.placement.osds or 0)
    if effect.is_harmless and (part <= most or is_below_floor):
        part = 0
    yield CheckedValue(value=min(part, most) if is_below_floor else part, detail=detail)


def _io_text(io: PoolIo, counters: PoolCounters) -> str:
    rate = number_text(io.per_second(counters.operations))
    return f"{rate} operations/s and {size_text(io.per_second(counters.bytes))}/s"


@TrialCheck(
    reason="PoolCountersDisagree",
    what="bytes that the pools counted, beyond what the clients' own bytes can explain",
    unit="%",
    suspect=10,
    remedy="look for a cache between the tools and the pool, another user of the pool, or reads of unwritten extents",
)
def pool_counters_disagree(evidence: Evidence) -> CheckedValues:
    """Compare the pools' bytes with the least and the most that the counters can show, given their lag."""
    is_synced = any(share.sample.ios for share in evidence.shares.get(Operation.SYNC, ()))
    for operation in (Operation.READ, Operation.WRITE):
        shares, io = evidence.shares.get(operation, []), evidence.pool_io(operation)
        if io is None or not any(share.sample.bytes for share in shares):
            continue
        start, end = io.between.start, io.between.end
        volume = io.ours.read_bytes if operation is Operation.READ else io.ours.written_bytes
        least = _within(shares, Interval(start=start, end=end - LAG)).bytes
        at_most = _within(shares, Interval(start=start - LAG, end=end))
        # Ceph rounds each operation up to whole KiB.
        is_exact = all(share.sample.bytes % (_KIBIBYTE * max(1, share.sample.ios)) == 0 for share in shares)
        most = at_most.bytes if is_exact else at_most.bytes + _KIBIBYTE * at_most.ios
        # A synced file system writes its journal too.
        may_exceed = is_synced and operation is Operation.WRITE
        below = (least - volume) / least if least else 0.0
        above = (volume - most) / most if most and not may_exceed else 0.0
        beyond = 100 * max(0.0, below, above)
        detail = (
            f"{operation}: the clients measured {size_text(io.per_second(_within(shares, io.between).bytes))}/s, the "
            f"pools counted {size_text(io.per_second(volume))}/s over {number_text(io.between.length / NANOSECONDS)} "
            f"s, {percent_text(beyond)} more than the counters' lag of up to {LAG // NANOSECONDS} s explains"
        )
        yield CheckedValue(value=beyond, detail=detail)


def _within(shares: Iterable[Share], interval: Interval) -> Amount:
    return add([share.within(interval) for share in shares])


# The user may ignore the state of the cluster, but not that it was not measured as specified.


@TrialCheck(
    reason="NotDisturbed",
    cause=Cause.HARNESS,
    what="disturbances of the workload that did not happen, did not last, or were not within the measured time",
    invalid=0,
    remedy="see the conductor's log; an OSD that comes up again although it may not has lost its flag noup",
)
def not_disturbed(evidence: Evidence) -> CheckedValues:
    watch, span = evidence.facts.cluster, evidence.span
    if evidence.facts.disturbance is None:
        return
    outage, problem = watch.outage if watch else None, ""
    names = first_few([f"osd.{osd}" for osd in outage.returned or outage.osds]) if outage else ""
    if watch is None or outage is None or outage.problem or not outage.start:
        reason = (outage.problem if outage else "") or "the trial ended before"
        problem = f"no OSD was taken away: {quote(reason)}"
    elif not outage.end:
        problem = f"{names} could not be given back before the trial ended"
    elif span is not None and not outage.is_within(span.start, span.end):
        times = (outage.start - span.start, outage.end - span.start, span.length)
        start, end, length = (number_text(time / NANOSECONDS) for time in times)
        problem = f"{names} was {outage.action.lower()} from second {start} to {end} of {length} measured ones"
    elif has_no_effect(watch.samples, outage):
        problem = f"{names} came {'up' if outage.action == 'Down' else 'in'} again before the disturbance ended"
    yield CheckedValue(value=float(bool(problem)), detail=problem)


@TrialCheck(
    reason="CephOptionsDiffer",
    cause=Cause.HARNESS,
    what="options set for the run that the database or an OSD did not have before or after the trial",
    invalid=0,
    remedy="find out with `ceph config log` and `ceph config show osd.N` who changed or overrides it, and run again",
)
def ceph_options_differ(evidence: Evidence) -> CheckedValues:
    readings = evidence.facts.cluster.options if evidence.facts.cluster else ()
    for reading, time in zip(readings, ("before", "after"), strict=False):
        if reading.differences:
            texts = first_few(reading.differences)
            yield CheckedValue(value=len(reading.differences), detail=f"{time} the trial, {texts}")


@TrialCheck(
    reason="CephOptionsUnread",
    what="times that options set for the run could not be read",
    suspect=0,
    remedy="see whether Ceph's manager responds; the OSDs may have used other values",
)
def ceph_options_unread(evidence: Evidence) -> CheckedValues:
    readings = evidence.facts.cluster.options if evidence.facts.cluster else ()
    problems = [reading.problem for reading in readings if reading.problem]
    detail = f"the options set for the run could not all be read: {quote(''.join(problems[:1]))}"
    yield CheckedValue(value=len(problems), detail=detail)
