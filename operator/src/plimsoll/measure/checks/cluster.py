"""Whether the Ceph cluster was healthy, and the run's alone, while a trial measured; and whether its OSDs are alike.

The polls within the measured time count, the last one before it and the first one after it. A shared cluster always has
scrubs and a little foreign load, so their effect is judged, if there was time without them (see `effect`). For the
reasoning see docs/trust.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    PoolIo,
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
_READING_TIMES = ("before", "after")


def judge_cluster(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks; none if the run watches no cluster."""
    watch, span = evidence.facts.cluster, evidence.span
    if watch is None:
        return ()
    samples = polls_around(watch, span)
    seen = statuses_of(samples)
    values = (
        (checks.CLUSTER_NOT_WATCHED, [*_unwatched(watch, span)]),
        (checks.OSDS_CHANGED, [*_osds(seen)]),
        (checks.METADATA_SERVERS_CHANGED, [*_metadata_servers(seen, watch)]),
        (checks.GROUPS_NOT_CLEAN, [_states(unclean_states(status), "not active+clean") for status in seen]),
        (checks.RECOVERY_TRAFFIC, [CheckedValue(value=status.recovering_bytes_per_second) for status in seen]),
        (checks.SCRUBBING, [*_upkeep(evidence, samples)]),
        (checks.SLOW_OPS, [*_slow_operations(seen, watch)]),
        (checks.CLUSTER_UNHEALTHY, [_health(status, watch) for status in seen]),
        (checks.FOREIGN_LOAD, [*_foreign(evidence, watch, samples)]),
        (checks.POOL_COUNTERS_DISAGREE, [*_disagreements(evidence, watch)]),
    )
    judged = [(_as_required(check, watch), found) for check, found in values]
    # The state of the cluster may be ignored, but not whether it was measured as specified.
    judged += [
        (checks.CEPH_OPTIONS_DIFFER, [*_differing_options(watch)]),
        (checks.CEPH_OPTIONS_UNREAD, [*_unread_options(watch)]),
    ]
    return tuple(finding for check, found in judged for finding in evaluate(check, found))


def judge_osds(evidence: Evidence) -> tuple[Finding, ...]:
    """Compare each OSD that was measured alone with the median of its device class; unknown classes count as one."""
    speeds = speeds_of(item.measurement for item in evidence.measured)
    return evaluate(checks.OSD_OUTLIER, _slow_osds(speeds, evidence.facts.osd_classes))


def _as_required(check: Check, watch: ClusterWatch) -> Check:
    """Return a check that is never Invalid if the run requires no healthy cluster: its user wants the numbers."""
    if watch.required or check.invalid is None:
        return check
    return replace(check, suspect=check.invalid if check.suspect is None else check.suspect, invalid=None)


def _unwatched(watch: ClusterWatch, span: Interval | None) -> Iterator[CheckedValue]:
    if span is not None and span.length:
        part = 100 * unwatched_nanoseconds(watch, span) / span.length
        answers = sum(sample.status is not None for sample in watch.samples)
        why = next((f": {quote(sample.problem)}" for sample in watch.samples if sample.status is None), "")
        detail = f"Ceph did not answer during {percent_text(part)} of the measured time ({answers} answers in all){why}"
        yield CheckedValue(value=part, detail=detail)


def _osds(seen: list[ClusterStatus]) -> Iterator[CheckedValue]:
    for status in seen:
        down, out = status.osds - status.osds_up, status.osds - status.osds_in
        yield CheckedValue(value=down + out, detail=f"{down} of {status.osds} OSDs were down, {out} were out")
    changes = sum(_osd_set(before) != _osd_set(after) for before, after in pairwise(seen))
    detail = "the set of OSDs that are up and in changed during the trial, although all were up and in at the end"
    yield CheckedValue(value=changes / (1 + changes), detail=detail)


def _osd_set(status: ClusterStatus) -> tuple[object, ...]:
    return status.osds, status.osds_up_since, status.osds_in_since


def _metadata_servers(seen: list[ClusterStatus], watch: ClusterWatch) -> Iterator[CheckedValue]:
    found = watch.file_system
    if found is None:
        return
    for status in seen:
        missing = inactive_servers(status, found)
        detail = f"{missing} of {found.servers} metadata servers of file system {found.name} were not active"
        yield CheckedValue(value=missing, detail=detail)
    processes = [sorted((server.rank, server.process) for server in servers_of(status, found)) for status in seen]
    changes = sum(before != after for before, after in pairwise(processes))
    detail = (
        f"a metadata server of file system {found.name} was replaced or restarted during the trial, although all were "
        "active at the end"
    )
    yield CheckedValue(value=changes / (1 + changes), detail=detail)


def _differing_options(watch: ClusterWatch) -> Iterator[CheckedValue]:
    for reading, time in zip(watch.options, _READING_TIMES, strict=False):
        if reading.differences:
            texts = first_few([difference_text(one) for one in reading.differences])
            yield CheckedValue(value=len(reading.differences), detail=f"{time} the trial, {texts}")


def _unread_options(watch: ClusterWatch) -> Iterator[CheckedValue]:
    problems = [reading.problem for reading in watch.options if reading.problem]
    for problem in problems[:1]:
        detail = f"the options set for the run could not all be read: {quote(problem)}"
        yield CheckedValue(value=len(problems), detail=detail)


def _states(states: dict[str, int], words: str) -> CheckedValue:
    total = sum(states.values())
    return CheckedValue(value=total, detail=f"{total} placement groups were {words}: {states_text(states)}")


def _upkeep(evidence: Evidence, samples: Iterable[ClusterSample]) -> Iterator[CheckedValue]:
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
        found = _states(states, "scrubbed or trimmed")
        yield CheckedValue(value=0 if _is_harmless(effect) else found.value, detail=f"{found.detail}; {_text(effect)}")


def _slow_operations(seen: list[ClusterStatus], watch: ClusterWatch) -> Iterator[CheckedValue]:
    slow = sum(_SLOW_OPS in standing_checks(status, watch.accepted_checks) for status in seen)
    yield CheckedValue(value=slow, detail=f"{slow} of {len(seen)} polls reported slow operations")


def _health(status: ClusterStatus, watch: ClusterWatch) -> CheckedValue:
    bad = standing_checks(status, watch.accepted_checks | {_SLOW_OPS})
    return CheckedValue(value=len(bad), detail=f"the cluster was {quote(status.health, 40)}: {checks_text(bad)}")


def _foreign(evidence: Evidence, watch: ClusterWatch, samples: Collection[ClusterSample]) -> Iterator[CheckedValue]:
    # All counters lag alike, so both numbers cover the same time. Where that reaches beyond the load, the part is a
    # little too large, never too small.
    found = pool_io(watch, samples) if watch.pools else None
    if found is None or found.per_second(found.foreign) < _LEAST_FOREIGN:
        return
    # Measuring OSDs bypasses all pools.
    clients = sum(sample.ios for item in evidence.measured for sample in item.measurement.operations)
    ours = max(found.operations, clients)
    if ours:
        part = 100 * found.foreign / ours
        effect = effect_of(evidence, _foreign_times(watch, samples, ours / found.between.length))
        detail = (
            f"other pools had {number_text(found.per_second(found.foreign))} operations/s, {percent_text(part)} of "
            f"this run's {number_text(found.per_second(ours))}; {_text(effect)}"
        )
        passes = _is_harmless(effect) and checks.FOREIGN_LOAD.verdict(part) is not Verdict.INVALID
        yield CheckedValue(value=0 if passes else part, detail=detail)


def _foreign_times(watch: ClusterWatch, samples: Collection[ClusterSample], own_rate: float) -> Iterator[Interval]:
    """Yield when there was more foreign load than Valid numbers may have beside the run's own operations."""
    most = checks.FOREIGN_LOAD.limit(Verdict.SUSPECT) / 100 * own_rate
    for between, foreign in foreign_operations(watch, samples):
        if between.length and foreign / between.length > most:
            # The counters may lag by this much.
            yield Interval(start=between.start - LAG, end=between.end)


def _is_harmless(effect: Effect | None) -> bool:
    return effect is not None and not effect.is_noticeable


def _text(effect: Effect | None) -> str:
    return effect.text if effect else "its effect is unknown: there was no time without it to compare with"


def _disagreements(evidence: Evidence, watch: ClusterWatch) -> Iterator[CheckedValue]:
    found = pool_io_within(watch, evidence.span) if evidence.window is not None and evidence.span else None
    if found is None:
        return
    is_synced = any(share.sample.ios for share in evidence.shares_of(Operation.SYNC))
    for operation, volume in ((Operation.READ, found.ours.read_bytes), (Operation.WRITE, found.ours.written_bytes)):
        shares = evidence.shares_of(operation)
        if any(share.sample.bytes for share in shares):
            # A synced file system writes its journal too.
            may_exceed = is_synced and operation is Operation.WRITE
            yield _disagreement(operation, volume, shares, found, may_exceed=may_exceed)


def _disagreement(
    operation: Operation, volume: int, shares: list[Share], found: PoolIo, *, may_exceed: bool
) -> CheckedValue:
    """Compare the pools' bytes with the least and the most that the counters can show, given their lag."""
    start, end = found.between.start, found.between.end
    least = _within(shares, Interval(start=start, end=end - LAG)).bytes
    most = _rounded_up(shares, _within(shares, Interval(start=start - LAG, end=end)))
    below = (least - volume) / least if least else 0.0
    above = (volume - most) / most if most and not may_exceed else 0.0
    clients, beyond = _within(shares, found.between).bytes, 100 * max(0.0, below, above)
    detail = (
        f"{operation}: the clients measured {size_text(found.per_second(clients))}/s, the pools counted "
        f"{size_text(found.per_second(volume))}/s over {number_text(found.between.length / NANOSECONDS)} s, "
        f"{percent_text(beyond)} more than the counters' lag of up to {LAG // NANOSECONDS} s explains"
    )
    return CheckedValue(value=beyond, detail=detail)


def _within(shares: Iterable[Share], interval: Interval) -> Amount:
    return add([share.within(interval) for share in shares])


def _rounded_up(shares: Iterable[Share], amount: Amount) -> float:
    """Return the most bytes that Ceph can count: it rounds each operation up to whole KiB."""
    is_exact = all(share.sample.bytes % (_KIBIBYTE * max(1, share.sample.ios)) == 0 for share in shares)
    return amount.bytes if is_exact else amount.bytes + _KIBIBYTE * amount.ios


def _slow_osds(speeds: Collection[OsdSpeed], classes: Mapping[int, str]) -> Iterator[CheckedValue]:
    by_class = defaultdict[str, list[OsdSpeed]](list)
    for speed in speeds:
        by_class[classes.get(speed.osd, "")].append(speed)
    medians = {name: median(speed.bytes_per_second for speed in known) for name, known in by_class.items()}
    parts = [
        (100 * speed.bytes_per_second / medians[name], speed.osd, name)
        for name, known in by_class.items()
        for speed in known
        if medians[name]
    ]
    slow = sorted(part for part in parts if checks.OSD_OUTLIER.verdict(part[0]) is not Verdict.VALID)
    if slow:
        texts = [f"osd.{osd} at {percent_text(part)} of the median of {_class(name)}" for part, osd, name in slow]
        yield CheckedValue(value=slow[0][0], detail=f"slow OSDs: {first_few(texts)}")


def _class(name: str) -> str:
    return f"class {quote(name, 40)}" if name else "all"
