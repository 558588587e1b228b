"""Whether the Ceph cluster was itself, and the run's alone, while a trial was measured.

What Ceph does beside the benchmark takes time of the same disks and networks. The looks at the cluster that count are
those within the measured time, the last one before it and the first one after it. Scrubs and a little foreign load are
part of any cluster that is shared, so they are judged by what they changed, where there was time without them (see
`effect`).

**Foreign load** is the number of operations on all pools but the run's, as a part of those on the run's own, both as
the pools' counters tell between the first and the last such look. Counters lag (`measure.cluster`), but all pools' do
so alike, so that both numbers are of the same stretch of time. Where it reaches out of the time under load the part
comes out a little too large, never too small. The manager's own pool is left out, and nothing is said of less than one
operation per second, which is what clusters do by themselves. The run's own are at least those that its clients
counted: measuring OSDs goes past all pools.

**The pools' bytes** are held against the clients' own in the inner part of the window, from where on the lag cannot
reach out of it. The clients' own series gives the least and the most that the counters can show between two readings;
what is beyond counts, as a part of that bound. Ceph counts whole KiB per operation. A file system that is synced writes
its journal as well, so nothing is said then of more writes than the tool's.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import Finding
from plimsoll.ceph.gate import checks_text, standing_checks, states_text, unclean_states, upkeep_states
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch
from plimsoll.measure.checking import cluster_checks as checks
from plimsoll.measure.checking.check import Check, Observation, evaluate
from plimsoll.measure.checking.effect import Effect, effect_of
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.cluster import (
    LAG,
    Counted,
    around,
    counted,
    counted_within,
    foreign_between,
    statuses,
    unwatched,
)
from plimsoll.measure.series import Amount, Share, add
from plimsoll.measure.window import NANOSECONDS, Interval
from plimsoll.measure.wording import number_text, quote

_PERCENT = 100
_KIBIBYTE = 1024
_LEAST_FOREIGN = 1.0
"""Operations per second."""

_SLOW_OPS = "SLOW_OPS"


def judge_cluster(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks; nothing if nobody was to look at a cluster."""
    watch, span = evidence.facts.cluster, evidence.span
    if watch is None:
        return ()
    samples = around(watch, span)
    seen = statuses(samples)
    found = (
        (checks.CLUSTER_NOT_WATCHED, [*_unwatched(watch, span)]),
        (checks.OSDS_CHANGED, [*_osds(seen)]),
        (checks.GROUPS_NOT_CLEAN, [_states(unclean_states(status), "not active+clean") for status in seen]),
        (checks.RECOVERY_TRAFFIC, [Observation(value=status.recovering_bytes_per_second) for status in seen]),
        (checks.SCRUBBING, [*_upkeep(evidence, samples)]),
        (checks.SLOW_OPS, [*_slow_operations(seen, watch)]),
        (checks.CLUSTER_UNHEALTHY, [_health(status, watch) for status in seen]),
        (checks.FOREIGN_LOAD, [*_foreign(evidence, watch, samples)]),
        (checks.POOL_COUNTERS_DISAGREE, [*_disagreements(evidence, watch)]),
    )
    return tuple(finding for check, seen_by in found for finding in evaluate(_as_demanded(check, watch), seen_by))


def _as_demanded(check: Check, watch: ClusterWatch) -> Check:
    """Return a check as strict as the run wants it: who measures a cluster in trouble on purpose wants its numbers."""
    if watch.required or check.invalid is None:
        return check
    return replace(check, suspect=check.invalid if check.suspect is None else check.suspect, invalid=None)


def _unwatched(watch: ClusterWatch, span: Interval | None) -> Iterator[Observation]:
    if span is not None and span.length:
        part = _PERCENT * unwatched(watch, span) / span.length
        answers = sum(sample.status is not None for sample in watch.samples)
        why = next((f": {quote(sample.problem)}" for sample in watch.samples if sample.status is None), "")
        detail = f"Ceph did not say how it was in {part:.3g} % of the measured time, in {answers} answers{why}"
        yield Observation(value=part, detail=detail)


def _osds(seen: list[ClusterStatus]) -> Iterator[Observation]:
    for status in seen:
        down, out = status.osds - status.osds_up, status.osds - status.osds_in
        yield Observation(value=down + out, detail=f"{down} of {status.osds} OSDs were down, {out} were out")
    changes = sum(_standing(before) != _standing(after) for before, after in pairwise(seen))
    detail = "the set of OSDs that are up and in changed while measuring, though all are at last"
    yield Observation(value=changes / (1 + changes), detail=detail)


def _standing(status: ClusterStatus) -> tuple[object, ...]:
    return status.osds, status.osds_up_since, status.osds_in_since


def _states(states: dict[str, int], words: str) -> Observation:
    total = sum(states.values())
    return Observation(value=total, detail=f"{total} placement groups were {words}: {states_text(states)}")


def _upkeep(evidence: Evidence, samples: Iterable[ClusterSample]) -> Iterator[Observation]:
    """Look at scrubs by what they changed, if that can be told: on a large cluster there always are some."""
    telling = [(sample.at, upkeep_states(sample.status)) for sample in samples if sample.status is not None]
    last = len(telling) - 1
    # They may have begun just after the look before, and ended just before the next.
    disturbed = [
        Interval(start=telling[max(0, index - 1)][0], end=telling[min(last, index + 1)][0])
        for index, (_, states) in enumerate(telling)
        if states
    ]
    effect = effect_of(evidence, disturbed) if disturbed else None
    harmless = effect is not None and not effect.is_noticeable
    for _, states in telling:
        found = _states(states, "scrubbed or trimmed")
        detail = f"{found.detail}; {_words_of(effect)}"
        yield Observation(value=0.0 if harmless else found.value, detail=detail)


def _slow_operations(seen: list[ClusterStatus], watch: ClusterWatch) -> Iterator[Observation]:
    slow = sum(_SLOW_OPS in status.checks for status in seen) if _SLOW_OPS not in watch.accepted_checks else 0
    yield Observation(value=slow, detail=f"{slow} of {len(seen)} looks at the cluster showed slow operations")


def _health(status: ClusterStatus, watch: ClusterWatch) -> Observation:
    bad = standing_checks(status, watch.accepted_checks | {_SLOW_OPS})
    return Observation(value=len(bad), detail=f"the cluster was {quote(status.health, 40)}: {checks_text(bad)}")


def _foreign(evidence: Evidence, watch: ClusterWatch, samples: Collection[ClusterSample]) -> Iterator[Observation]:
    found = counted(watch, samples) if watch.pools else None
    if found is None or found.per_second(found.foreign) < _LEAST_FOREIGN:
        return
    clients = sum(sample.ios for item in evidence.measured for sample in item.measurement.operations)
    ours = max(found.operations, clients)
    if ours:
        part = _PERCENT * found.foreign / ours
        much = checks.FOREIGN_LOAD.limit(Verdict.SUSPECT) / _PERCENT * ours / found.between.length
        disturbed = [
            # What counters tell may have been so long ago.
            Interval(start=between.start - LAG, end=between.end)
            for between, foreign in foreign_between(watch, samples)
            if between.length and foreign / between.length > much
        ]
        effect = effect_of(evidence, disturbed)
        detail = (
            f"{number_text(found.per_second(found.foreign))} operations/s went to other pools, {part:.3g} % of the "
            f"{number_text(found.per_second(ours))} of this run; {_words_of(effect)}"
        )
        harmless = effect is not None and not effect.is_noticeable
        tolerable = checks.FOREIGN_LOAD.verdict(part) is not Verdict.INVALID
        yield Observation(value=0.0 if harmless and tolerable else part, detail=detail)


def _words_of(effect: Effect | None) -> str:
    return effect.text if effect else "what that changed cannot be told: there was no time without it to compare with"


def _disagreements(evidence: Evidence, watch: ClusterWatch) -> Iterator[Observation]:
    found = counted_within(watch, evidence.span) if evidence.window is not None and evidence.span else None
    if found is None:
        return
    shares = [share for item in evidence.measured for share in item.shares]
    synced = any(share.sample.operation is Operation.SYNC and share.sample.ios for share in shares)
    for operation, volume in ((Operation.READ, found.ours.read_bytes), (Operation.WRITE, found.ours.written_bytes)):
        mine = [share for share in shares if share.sample.operation is operation]
        if any(share.sample.bytes for share in mine):
            more_allowed = synced and operation is Operation.WRITE
            yield _disagreement(operation, volume, mine, found, more_allowed=more_allowed)


def _disagreement(
    operation: Operation, volume: int, shares: list[Share], found: Counted, *, more_allowed: bool
) -> Observation:
    start, end = found.between.start, found.between.end
    least = _within(shares, Interval(start=start, end=end - LAG)).bytes
    most = _rounded_up(shares, _within(shares, Interval(start=start - LAG, end=end)))
    below = (least - volume) / least if least else 0.0
    above = (volume - most) / most if most and not more_allowed else 0.0
    clients, beyond = _within(shares, found.between).bytes, _PERCENT * max(0.0, below, above)
    detail = (
        f"{operation}: the clients measured {number_text(found.per_second(clients))} bytes/s, the pools counted "
        f"{number_text(found.per_second(volume))} in {number_text(found.between.length / NANOSECONDS)} s, "
        f"{beyond:.3g} % beyond what the counters' lag of up to {LAG // NANOSECONDS} s explains"
    )
    return Observation(value=beyond, detail=detail)


def _within(shares: Iterable[Share], interval: Interval) -> Amount:
    return add([share.within(interval) for share in shares])


def _rounded_up(shares: Iterable[Share], amount: Amount) -> float:
    """Return the bytes as Ceph counts them at most: each operation in whole KiB."""
    whole = all(share.sample.bytes % (_KIBIBYTE * max(1, share.sample.ios)) == 0 for share in shares)
    return amount.bytes if whole else amount.bytes + _KIBIBYTE * amount.ios
