"""Whether the Ceph cluster was healthy, and the run's alone, while a trial measured; and whether its OSDs are alike.

The polls within the measured time count, the last one before it and the first one after it. A shared cluster always has
scrubs and a little foreign load, so their effect is judged, if there was time without them (see `Effect`). For the
reasoning see docs/trust.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import Finding
from plimsoll.ceph.gate import checks_text, standing_checks, states_text, unclean_states, upkeep_states
from plimsoll.ceph.options import difference_text
from plimsoll.ceph.pools import inactive_servers, servers_of
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch
from plimsoll.measure.checks import registry as checks
from plimsoll.measure.checks.check import (
    Check,
    CheckedValue,
    CheckedValues,
    evaluate,
    first_few,
    number_text,
    percent_text,
    quote,
    size_text,
)
from plimsoll.measure.checks.evidence import Effect, Evidence, effect_of
from plimsoll.measure.cluster import (
    LAG,
    OsdSpeed,
    foreign_operations,
    polls_around,
    pool_io,
    pool_io_within,
    speeds_of,
    statuses_of,
    unwatched_nanoseconds,
)
from plimsoll.measure.timeline import NANOSECONDS, Amount, Interval, Share, add

_KIBIBYTE = 1024
_LEAST_FOREIGN = 1.0
"""Operations per second; clusters cause less by themselves."""
_SLOW_OPS = "SLOW_OPS"


def judge_cluster(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks; none if the run watches no cluster."""
    watch, span = evidence.facts.cluster, evidence.span
    if watch is None:
        return ()
    samples = polls_around(watch, span)
    statuses = statuses_of(samples)
    state = [
        *_unwatched(watch, span),
        *_daemons(statuses, watch),
        *_upkeep(evidence, samples),
        *_health(statuses, watch),
        *_foreign(evidence, watch, samples),
        *_disagreements(evidence, watch),
    ]
    # The state of the cluster may be ignored, but not whether it was measured as specified.
    return checks.findings_of([*((_as_required(check, watch), value) for check, value in state), *_options(watch)])


def judge_osds(evidence: Evidence) -> tuple[Finding, ...]:
    """Compare each OSD that was measured alone with the median of its device class; unknown classes count as one."""
    by_class = defaultdict[str, list[OsdSpeed]](list)
    for speed in speeds_of(item.measurement for item in evidence.measured):
        by_class[evidence.facts.osd_classes.get(speed.osd, "")].append(speed)
    slow = []
    for name, speeds in by_class.items():
        usual = median(speed.bytes_per_second for speed in speeds)
        parts = ((100 * speed.bytes_per_second / usual, speed.osd, name) for speed in speeds if usual)
        slow += [part for part in parts if checks.OSD_OUTLIER.verdict(part[0]) is not Verdict.VALID]
    if not slow:
        return ()
    slow.sort()
    texts = [
        f"osd.{osd} at {percent_text(part)} of the median of {f'class {quote(name, 40)}' if name else 'all'}"
        for part, osd, name in slow
    ]
    return evaluate(checks.OSD_OUTLIER, [CheckedValue(value=slow[0][0], detail=f"slow OSDs: {first_few(texts)}")])


def _as_required(check: Check, watch: ClusterWatch) -> Check:
    """Return a check that is never Invalid if the run requires no healthy cluster: its user wants the numbers."""
    if watch.required or check.invalid is None:
        return check
    return replace(check, suspect=check.invalid if check.suspect is None else check.suspect, invalid=None)


def _unwatched(watch: ClusterWatch, span: Interval | None) -> CheckedValues:
    if span is not None and span.length:
        part = 100 * unwatched_nanoseconds(watch, span) / span.length
        answers = sum(sample.status is not None for sample in watch.samples)
        why = next((f": {quote(sample.problem)}" for sample in watch.samples if sample.status is None), "")
        detail = f"Ceph did not answer during {percent_text(part)} of the measured time ({answers} answers in all){why}"
        yield checks.CLUSTER_NOT_WATCHED, CheckedValue(value=part, detail=detail)


def _daemons(statuses: list[ClusterStatus], watch: ClusterWatch) -> CheckedValues:
    """Yield OSDs and metadata servers that were down, or replaced or restarted between two polls."""
    for status in statuses:
        down, out = status.osds - status.osds_up, status.osds - status.osds_in
        detail = f"{down} of {status.osds} OSDs were down, {out} were out"
        yield checks.OSDS_CHANGED, CheckedValue(value=down + out, detail=detail)
    detail = "the set of OSDs that are up and in changed during the trial, although all were up and in at the end"
    sets = [(status.osds, status.osds_up_since, status.osds_in_since) for status in statuses]
    yield checks.OSDS_CHANGED, CheckedValue(value=_part_of_changes(sets), detail=detail)
    file_system = watch.file_system
    if file_system is None:
        return
    for status in statuses:
        missing = inactive_servers(status, file_system)
        detail = (
            f"{missing} of {file_system.servers} metadata servers of file system {file_system.name} were not active"
        )
        yield checks.METADATA_SERVERS_CHANGED, CheckedValue(value=missing, detail=detail)
    detail = (
        f"a metadata server of file system {file_system.name} was replaced or restarted during the trial, although all "
        "were active at the end"
    )
    servers = [sorted((server.rank, server.process) for server in servers_of(it, file_system)) for it in statuses]
    yield checks.METADATA_SERVERS_CHANGED, CheckedValue(value=_part_of_changes(servers), detail=detail)


def _part_of_changes(states: Sequence[object]) -> float:
    """Return a number below 1, so that what is still down is worse."""
    changes = sum(before != after for before, after in pairwise(states))
    return changes / (1 + changes)


def _options(watch: ClusterWatch) -> CheckedValues:
    for reading, time in zip(watch.options, ("before", "after"), strict=False):
        if reading.differences:
            texts = first_few([difference_text(difference) for difference in reading.differences])
            detail = f"{time} the trial, {texts}"
            yield checks.CEPH_OPTIONS_DIFFER, CheckedValue(value=len(reading.differences), detail=detail)
    problems = [reading.problem for reading in watch.options if reading.problem]
    if problems:
        detail = f"the options set for the run could not all be read: {quote(problems[0])}"
        yield checks.CEPH_OPTIONS_UNREAD, CheckedValue(value=len(problems), detail=detail)


def _states_detail(states: dict[str, int], words: str) -> str:
    return f"{sum(states.values())} placement groups were {words}: {states_text(states)}"


def _upkeep(evidence: Evidence, samples: Iterable[ClusterSample]) -> CheckedValues:
    """Judge scrubs by their effect, if it is known: a large cluster always has some."""
    polls = [(sample.at, upkeep_states(sample.status)) for sample in samples if sample.status is not None]
    last = len(polls) - 1
    # They may have begun just after the poll before, and ended just before the next.
    disturbed = [
        Interval(start=polls[max(0, index - 1)][0], end=polls[min(last, index + 1)][0])
        for index, (_, states) in enumerate(polls)
        if states
    ]
    effect = effect_of(evidence, disturbed) if disturbed else None
    for _, states in polls:
        detail = f"{_states_detail(states, 'scrubbed or trimmed')}; {_text(effect)}"
        value = 0 if _is_harmless(effect) else sum(states.values())
        yield checks.SCRUBBING, CheckedValue(value=value, detail=detail)


def _health(statuses: list[ClusterStatus], watch: ClusterWatch) -> CheckedValues:
    for status in statuses:
        unclean = unclean_states(status)
        detail = _states_detail(unclean, "not active+clean")
        yield checks.GROUPS_NOT_CLEAN, CheckedValue(value=sum(unclean.values()), detail=detail)
        yield checks.RECOVERY_TRAFFIC, CheckedValue(value=status.recovering_bytes_per_second)
        bad = standing_checks(status.health, status.checks, watch.accepted_checks | {_SLOW_OPS})
        detail = f"the cluster was {quote(status.health, 40)}: {checks_text(bad)}"
        yield checks.CLUSTER_UNHEALTHY, CheckedValue(value=len(bad), detail=detail)
    slow = sum(_SLOW_OPS in standing_checks(status.health, status.checks, watch.accepted_checks) for status in statuses)
    detail = f"{slow} of {len(statuses)} polls reported slow operations"
    yield checks.SLOW_OPS, CheckedValue(value=slow, detail=detail)


def _foreign(evidence: Evidence, watch: ClusterWatch, samples: Collection[ClusterSample]) -> CheckedValues:
    # All counters lag alike, so both numbers cover the same time. Where that reaches beyond the load, the part is a
    # little too large, never too small.
    io = pool_io(watch, samples) if watch.pools else None
    if io is None or io.per_second(io.foreign) < _LEAST_FOREIGN:
        return
    # Measuring OSDs bypasses all pools.
    clients = sum(sample.ios for item in evidence.measured for sample in item.measurement.operations)
    ours = max(io.operations, clients)
    if ours:
        part = 100 * io.foreign / ours
        # Where there was more foreign load than Valid numbers may have beside the run's own operations.
        most = checks.FOREIGN_LOAD.limit(Verdict.SUSPECT) / 100 * (ours / io.between.length)
        disturbed = [
            # The counters may lag by this much.
            Interval(start=between.start - LAG, end=between.end)
            for between, foreign in foreign_operations(watch, samples)
            if between.length and foreign / between.length > most
        ]
        effect = effect_of(evidence, disturbed)
        detail = (
            f"other pools had {number_text(io.per_second(io.foreign))} operations/s, {percent_text(part)} of "
            f"this run's {number_text(io.per_second(ours))}; {_text(effect)}"
        )
        passes = _is_harmless(effect) and checks.FOREIGN_LOAD.verdict(part) is not Verdict.INVALID
        yield checks.FOREIGN_LOAD, CheckedValue(value=0 if passes else part, detail=detail)


def _is_harmless(effect: Effect | None) -> bool:
    return effect is not None and not effect.is_noticeable


def _text(effect: Effect | None) -> str:
    return effect.text if effect else "its effect is unknown: there was no time without it to compare with"


def _disagreements(evidence: Evidence, watch: ClusterWatch) -> CheckedValues:
    """Compare the pools' bytes with the least and the most that the counters can show, given their lag."""
    io = pool_io_within(watch, evidence.span) if evidence.window is not None and evidence.span else None
    if io is None:
        return
    start, end = io.between.start, io.between.end
    is_synced = any(share.sample.ios for share in evidence.shares_of(Operation.SYNC))
    for operation, volume in ((Operation.READ, io.ours.read_bytes), (Operation.WRITE, io.ours.written_bytes)):
        shares = evidence.shares_of(operation)
        if not any(share.sample.bytes for share in shares):
            continue
        least = _within(shares, Interval(start=start, end=end - LAG)).bytes
        most = _rounded_up(shares, _within(shares, Interval(start=start - LAG, end=end)))
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
        yield checks.POOL_COUNTERS_DISAGREE, CheckedValue(value=beyond, detail=detail)


def _within(shares: Iterable[Share], interval: Interval) -> Amount:
    return add([share.within(interval) for share in shares])


def _rounded_up(shares: Iterable[Share], amount: Amount) -> float:
    """Return the most bytes that Ceph can count: it rounds each operation up to whole KiB."""
    is_exact = all(share.sample.bytes % (_KIBIBYTE * max(1, share.sample.ios)) == 0 for share in shares)
    return amount.bytes if is_exact else amount.bytes + _KIBIBYTE * amount.ios
