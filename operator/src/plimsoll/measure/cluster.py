"""What was seen of the Ceph cluster while a trial was measured.

Pools' counters lag: an OSD reports to the manager every 5 s (`mgr_stats_period`), the manager to the monitors every 5 s
(`mon_mgr_digest_period`), and monitors answer. So counters read at t tell of some moment between t - 10 s and t. What
lies between two readings is known to within that: with C[x, y] the I/O from x to y, counters read at a and b differ by
no less than C[a, b - 10 s] and no more than C[a - 10 s, b].
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.api.surroundings import ClusterSummary
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.measure.window import NANOSECONDS, Interval
from plimsoll.measure.wording import quote

LAG = 10 * NANOSECONDS
"""By which counters may be behind, at most."""

_LONGEST_PAUSE = 15 * NANOSECONDS
"""Three looks that ought to have been made; what lies in a longer pause was not watched."""

_LEAST_COUNTED = 10 * NANOSECONDS
_BOOKKEEPING = ".mgr"
"""The manager's own pool, in which it writes whatever anybody does."""

_MAX_PROBLEMS = 8
_PROBLEM_CHARACTERS = 300
_DECIMALS = 4
_HEALTH = ("HEALTH_OK", "HEALTH_WARN", "HEALTH_ERR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What pools counted between two readings.

    Attributes:
        foreign: operations on pools that are not the run's, without the manager's.

    """

    between: Interval
    ours: PoolCounters
    foreign: int

    @property
    def operations(self) -> int:
        """The run's own."""
        return self.ours.reads + self.ours.writes

    def per_second(self, amount: float) -> float:
        """Return an amount as a rate."""
        return amount * NANOSECONDS / self.between.length


def around(watch: ClusterWatch, span: Interval | None) -> tuple[ClusterSample, ...]:
    """Return the looks within a time, and the last one before and the first one after it; all without a time."""
    if span is None:
        return watch.samples
    before = [sample for sample in watch.samples if sample.at <= span.start]
    within = [sample for sample in watch.samples if span.start < sample.at < span.end]
    after = [sample for sample in watch.samples if sample.at >= span.end]
    return (*before[-1:], *within, *after[:1])


def statuses(samples: Iterable[ClusterSample]) -> list[ClusterStatus]:
    """Return what Ceph said, where it did."""
    return [sample.status for sample in samples if sample.status is not None]


def unwatched(watch: ClusterWatch, span: Interval) -> int:
    """Return for how long of a time nobody knows how the cluster was: nanoseconds in pauses of more than 15 s."""
    seen = [sample.at for sample in watch.samples if sample.status is not None]
    first = max((at for at in seen if at <= span.start), default=span.start)
    last = min((at for at in seen if at >= span.end), default=span.end)
    if not seen:
        return span.length
    edges = [first, *(at for at in seen if span.start < at < span.end), last]
    pauses = [Interval(start=start, end=end) for start, end in pairwise(edges)]
    return sum(span.clipped(pause) for pause in pauses if pause.length > _LONGEST_PAUSE)


def counted(watch: ClusterWatch, samples: Collection[ClusterSample]) -> Counted | None:
    """Return what was counted between the first and the last look that tell; None if they are less than 10 s apart."""
    telling = [sample for sample in samples if all(pool in sample.pools for pool in watch.pools) and sample.pools]
    if not telling or telling[-1].at - telling[0].at < _LEAST_COUNTED:
        return None
    first, last = telling[0], telling[-1]
    return Counted(
        between=Interval(start=first.at, end=last.at),
        ours=_sum(_difference(first.pools[name], last.pools[name]) for name in dict.fromkeys(watch.pools)),
        foreign=_foreign(watch, first, last),
    )


def foreign_between(watch: ClusterWatch, samples: Collection[ClusterSample]) -> Iterator[tuple[Interval, int]]:
    """Yield how many operations pools had that are not the run's, without the manager's, between each two looks."""
    telling = [sample for sample in samples if all(pool in sample.pools for pool in watch.pools) and sample.pools]
    for first, last in pairwise(telling):
        yield Interval(start=first.at, end=last.at), _foreign(watch, first, last)


def _foreign(watch: ClusterWatch, first: ClusterSample, last: ClusterSample) -> int:
    names = [name for name in last.pools if name not in watch.pools and name != _BOOKKEEPING and name in first.pools]
    differences = (_difference(first.pools[name], last.pools[name]) for name in names)
    return sum(difference.reads + difference.writes for difference in differences)


def counted_within(watch: ClusterWatch, span: Interval) -> Counted | None:
    """Return what was counted between the looks farthest apart of which all that they tell lies within a time.

    None if that is no longer than twice the lag: nothing could be held against the clients' own numbers.
    """
    inner = [sample for sample in watch.samples if span.start + LAG <= sample.at <= span.end]
    found = counted(watch, inner) if watch.pools else None
    return found if found is not None and found.between.length > 2 * LAG else None


def cluster_summary(watch: ClusterWatch | None, span: Interval | None) -> ClusterSummary | None:
    """Return what stands in the result; None if nobody was to look at a cluster."""
    if watch is None:
        return None
    samples = around(watch, span)
    seen = statuses(samples)
    # Around a short window there is time without load in between; what lies within a long one is closer.
    inner = counted_within(watch, span) if span is not None else None
    rates = inner or (counted(watch, samples) if watch.pools else None)
    return ClusterSummary(
        samples=len(samples),
        failed=len(samples) - len(seen),
        worst_health=max((status.health for status in seen), key=_severity, default=None),
        problems=tuple(_problems(watch, samples)),
        used_ratio=max((_used(status) for status in seen), default=None),
        read_bytes_per_second=round(rates.per_second(rates.ours.read_bytes)) if rates else None,
        written_bytes_per_second=round(rates.per_second(rates.ours.written_bytes)) if rates else None,
        operations_per_second=round(rates.per_second(rates.operations), 3) if rates else None,
        foreign_operations_per_second=round(rates.per_second(rates.foreign), 3) if rates else None,
    )


def _problems(watch: ClusterWatch, samples: Collection[ClusterSample]) -> Iterator[str]:
    """Yield what was wrong when most was, and why Ceph did not answer when it first did not."""
    found = [gate_problems(status, accepted=watch.accepted_checks) for status in statuses(samples)]
    unanswered = [f"Ceph did not answer: {sample.problem}" for sample in samples if sample.status is None]
    for problem in (*max(found, key=len, default=()), *unanswered[:1])[:_MAX_PROBLEMS]:
        yield quote(problem, _PROBLEM_CHARACTERS)


def _severity(health: str) -> int:
    return _HEALTH.index(health) if health in _HEALTH else len(_HEALTH)


def _used(status: ClusterStatus) -> float:
    return round(status.used_bytes / status.total_bytes, _DECIMALS) if status.total_bytes else 0.0


def _difference(first: PoolCounters, last: PoolCounters) -> PoolCounters:
    """Return what was done in between.

    Counters go back when a pool is made anew under its name, and when its placement groups are merged.
    """
    return PoolCounters(
        reads=max(0, last.reads - first.reads),
        writes=max(0, last.writes - first.writes),
        read_bytes=max(0, last.read_bytes - first.read_bytes),
        written_bytes=max(0, last.written_bytes - first.written_bytes),
    )


def _sum(counters: Iterable[PoolCounters]) -> PoolCounters:
    known = list(counters)
    return PoolCounters(
        reads=sum(item.reads for item in known),
        writes=sum(item.writes for item in known),
        read_bytes=sum(item.read_bytes for item in known),
        written_bytes=sum(item.written_bytes for item in known),
    )
