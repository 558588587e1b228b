"""Whether the Ceph cluster was healthy, and the run's alone, while a trial measured.

The polls within the measured time count, the last one before it and the first one after it. A shared cluster always has
scrubs and a little foreign load, so their effect is judged, if there was time without them (see `Effect`). For the
reasoning see docs/trust.md. None of these checks yields anything if the run watches no cluster.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from plimsoll.api.names import Operation, Verdict
from plimsoll.ceph.gate import checks_text, standing_checks, states_text, unclean_states, upkeep_states
from plimsoll.ceph.options import difference_text
from plimsoll.ceph.pools import inactive_servers, servers_of
from plimsoll.measure.checks.check import CheckedValue, CheckedValues
from plimsoll.measure.checks.evidence import Effect, Evidence, TrialCheck, effect_of
from plimsoll.measure.cluster import LAG, foreign_operations, pool_io, pool_io_within, unwatched_nanoseconds
from plimsoll.measure.text import first_few, number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, Amount, Interval, Share, add

_KIBIBYTE = 1024
_LEAST_FOREIGN = 1.0
"""Operations per second; clusters cause less by themselves."""
_SLOW_OPS = "SLOW_OPS"


@TrialCheck(
    reason="ClusterNotWatched",
    what="part of the measured time without answers from Ceph",
    unit="%",
    suspect=10,
    remedy="see the conductor's log for the reason; the state of the cluster during that time is unknown",
)
def cluster_not_watched(evidence: Evidence) -> CheckedValues:
    watch, span = evidence.facts.cluster, evidence.span
    if watch is not None and span is not None and span.length:
        part = 100 * unwatched_nanoseconds(watch, span) / span.length
        answers = sum(sample.status is not None for sample in watch.samples)
        why = next((f": {quote(sample.problem)}" for sample in watch.samples if sample.status is None), "")
        detail = f"Ceph did not answer during {percent_text(part)} of the measured time ({answers} answers in all){why}"
        yield CheckedValue(value=part, detail=detail)


@TrialCheck(
    reason="OsdsChanged",
    what="OSDs that were down or out, and changes to the set of OSDs that are up and in",
    invalid=0,
    remedy="bring all OSDs up and in, wait until the cluster is clean, and run again",
    concerns_health=True,
)
def osds_changed(evidence: Evidence) -> CheckedValues:
    for status in evidence.statuses:
        down, out = status.osds - status.osds_up, status.osds - status.osds_in
        yield CheckedValue(value=down + out, detail=f"{down} of {status.osds} OSDs were down, {out} were out")
    detail = "the set of OSDs that are up and in changed during the trial, although all were up and in at the end"
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
    for status in evidence.statuses:
        missing = inactive_servers(status, file_system)
        detail = (
            f"{missing} of {file_system.servers} metadata servers of file system {file_system.name} were not active"
        )
        yield CheckedValue(value=missing, detail=detail)
    detail = (
        f"a metadata server of file system {file_system.name} was replaced or restarted during the trial, although all "
        "were active at the end"
    )
    servers = [
        sorted((server.rank, server.process) for server in servers_of(status, file_system))
        for status in evidence.statuses
    ]
    yield CheckedValue(value=_part_of_changes(servers), detail=detail)


def _part_of_changes(states: Sequence[object]) -> float:
    """Return a number below 1, so that a daemon that is still down is worse."""
    changes = sum(before != after for before, after in pairwise(states))
    return changes / (1 + changes)


@TrialCheck(
    reason="GroupsNotClean",
    what="placement groups that were not active+clean",
    invalid=0,
    remedy=(
        "wait until `ceph status` shows only active+clean; laggy placement groups have OSDs that cannot keep up, or if "
        "they stay laggy without load, OSDs that have to be restarted"
    ),
    concerns_health=True,
)
def groups_not_clean(evidence: Evidence) -> CheckedValues:
    for status in evidence.statuses:
        unclean = unclean_states(status)
        yield CheckedValue(value=sum(unclean.values()), detail=_states_detail(unclean, "not active+clean"))


def _states_detail(states: dict[str, int], words: str) -> str:
    return f"{sum(states.values())} placement groups were {words}: {states_text(states)}"


@TrialCheck(
    reason="RecoveryTraffic",
    what="bytes per second that the cluster recovered or moved",
    unit="bytes/s",
    invalid=0,
    remedy="wait until recovery ends, and switch off the balancer while measuring",
    concerns_health=True,
)
def recovery_traffic(evidence: Evidence) -> CheckedValues:
    for status in evidence.statuses:
        yield CheckedValue(value=status.recovering_bytes_per_second)


@TrialCheck(
    reason="Scrubbing",
    what=(
        "placement groups that were scrubbed or trimmed of snapshots, unless rate and tail latency were no "
        "worse than in the rest of the window"
    ),
    suspect=0,
    remedy=(
        "set gates.pauseScrub: true; scrubs of other pools share the disks, and `ceph osd set noscrub` prevents them"
    ),
)
def scrubbing(evidence: Evidence) -> CheckedValues:
    polls = [(sample.at, upkeep_states(sample.status)) for sample in evidence.polls if sample.status is not None]
    last = len(polls) - 1
    # They may have begun just after the poll before, and ended just before the next.
    disturbed = [
        Interval(start=polls[max(0, index - 1)][0], end=polls[min(last, index + 1)][0])
        for index, (_, states) in enumerate(polls)
        if states
    ]
    effect = effect_of(evidence, disturbed) if disturbed else None
    for _, states in polls:
        detail = f"{_states_detail(states, 'scrubbed or trimmed')}; {_effect_text(effect)}"
        yield CheckedValue(value=0 if _is_harmless(effect) else sum(states.values()), detail=detail)


def _is_harmless(effect: Effect | None) -> bool:
    return effect is not None and not effect.is_noticeable


def _effect_text(effect: Effect | None) -> str:
    return effect.text if effect else "its effect is unknown: there was no time without it to compare with"


@TrialCheck(
    reason="SlowOps",
    what="polls that reported slow operations",
    suspect=0,
    remedy="see `ceph health detail` for the OSDs and check their devices; the load may be more than they can handle",
)
def slow_ops(evidence: Evidence) -> CheckedValues:
    watch, statuses = evidence.facts.cluster, evidence.statuses
    if watch is not None:
        slow = sum(
            _SLOW_OPS in standing_checks(status.health, status.checks, watch.accepted_checks) for status in statuses
        )
        yield CheckedValue(value=slow, detail=f"{slow} of {len(statuses)} polls reported slow operations")


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
            bad = standing_checks(status.health, status.checks, watch.accepted_checks | {_SLOW_OPS})
            detail = f"the cluster was {quote(status.health, 40)}: {checks_text(bad)}"
            yield CheckedValue(value=len(bad), detail=detail)


@TrialCheck(
    reason="ForeignLoad",
    what=(
        "operations on other pools, as a part of those on the run's pools; Suspect unless rate and tail "
        "latency were no worse under this load than in the rest of the window"
    ),
    unit="%",
    suspect=5,
    invalid=20,
    remedy="keep other users off the cluster while measuring",
    concerns_health=True,
)
def foreign_load(evidence: Evidence) -> CheckedValues:
    watch, samples = evidence.facts.cluster, evidence.polls
    # All counters lag alike, so both numbers cover the same time. Where that reaches beyond the load, the part is a
    # little too large, never too small.
    io = pool_io(watch, samples) if watch is not None else None
    if watch is None or io is None or io.per_second(io.foreign) < _LEAST_FOREIGN:
        return
    # Measuring OSDs bypasses all pools.
    clients = sum(sample.ios for item in evidence.measured for sample in item.measurement.operations)
    ours = max(io.operations, clients)
    if ours:
        part = 100 * io.foreign / ours
        # Where there was more foreign load than Valid numbers permit.
        most = foreign_load.limit(Verdict.SUSPECT) / 100 * (ours / io.between.length)
        disturbed = [
            # The counters may lag by this much.
            Interval(start=between.start - LAG, end=between.end)
            for between, foreign in foreign_operations(watch, samples)
            if between.length and foreign / between.length > most
        ]
        effect = effect_of(evidence, disturbed)
        detail = (
            f"other pools had {number_text(io.per_second(io.foreign))} operations/s, {percent_text(part)} of "
            f"this run's {number_text(io.per_second(ours))}; {_effect_text(effect)}"
        )
        passes = _is_harmless(effect) and foreign_load.verdict(part) is not Verdict.INVALID
        yield CheckedValue(value=0 if passes else part, detail=detail)


@TrialCheck(
    reason="PoolCountersDisagree",
    what="bytes that the pools counted, beyond what the clients' own bytes can explain",
    unit="%",
    suspect=10,
    remedy="look for a cache between the tools and the pool, another user of the pool, or reads of unwritten extents",
)
def pool_counters_disagree(evidence: Evidence) -> CheckedValues:
    """Compare the pools' bytes with the least and the most that the counters can show, given their lag."""
    watch, span = evidence.facts.cluster, evidence.span
    io = pool_io_within(watch, span) if watch is not None and evidence.window is not None and span else None
    if io is None:
        return
    start, end = io.between.start, io.between.end
    is_synced = any(share.sample.ios for share in evidence.shares_of(Operation.SYNC))
    for operation, volume in ((Operation.READ, io.ours.read_bytes), (Operation.WRITE, io.ours.written_bytes)):
        shares = evidence.shares_of(operation)
        if not any(share.sample.bytes for share in shares):
            continue
        least = _within(shares, Interval(start=start, end=end - LAG)).bytes
        at_most = _within(shares, Interval(start=start - LAG, end=end))
        # Ceph rounds each operation up to whole KiB.
        is_exact = all(share.sample.bytes % (_KIBIBYTE * max(1, share.sample.ios)) == 0 for share in shares)
        most = at_most.bytes if is_exact else at_most.bytes + _KIBIBYTE * at_most.ios
        # A synced file system writes its journal too.
        may_exceed = is_synced and operation is Operation.WRITE
        below = (least - volume) / least if least else 0.0
        above = (volume - most) / most if most and not may_exceed else 0.0
        clients, beyond = _within(shares, io.between).bytes, 100 * max(0.0, below, above)
        detail = (
            f"{operation}: the clients measured {size_text(io.per_second(clients))}/s, the pools counted "
            f"{size_text(io.per_second(volume))}/s over {number_text(io.between.length / NANOSECONDS)} s, "
            f"{percent_text(beyond)} more than the counters' lag of up to {LAG // NANOSECONDS} s explains"
        )
        yield CheckedValue(value=beyond, detail=detail)


def _within(shares: Iterable[Share], interval: Interval) -> Amount:
    return add([share.within(interval) for share in shares])


# The user may ignore the state of the cluster, but not that it was not measured as specified.


@TrialCheck(
    reason="CephOptionsDiffer",
    what="options set for the run that the database or an OSD did not have before or after the trial",
    invalid=0,
    remedy="find out with `ceph config log` and `ceph config show osd.N` who changed or overrides it, and run again",
)
def ceph_options_differ(evidence: Evidence) -> CheckedValues:
    readings = evidence.facts.cluster.options if evidence.facts.cluster else ()
    for reading, time in zip(readings, ("before", "after"), strict=False):
        if reading.differences:
            texts = first_few([difference_text(difference) for difference in reading.differences])
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
    if problems:
        detail = f"the options set for the run could not all be read: {quote(problems[0])}"
        yield CheckedValue(value=len(problems), detail=detail)
