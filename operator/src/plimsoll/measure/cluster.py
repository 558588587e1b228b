"""The state and the I/O of the Ceph cluster while a trial measured.

The pools' counters lag: an OSD reports to the manager every 5 s (`mgr_stats_period`), the manager to the monitors every
5 s (`mon_mgr_digest_period`). With C[x, y] the I/O from x to y, counters read at a and b therefore differ by no less
than C[a, b - 10 s] and no more than C[a - 10 s, b].
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import fmean, median

from plimsoll.api.surroundings import ClusterSummary, OsdResult, Osds, Spread
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.watch import LAG, ClusterSample, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.measure.rates import grouped
from plimsoll.measure.sample import Measurement
from plimsoll.measure.text import percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, rounded_iops

LONGEST_PAUSE = 15 * NANOSECONDS  # three polling intervals; a longer pause was not watched
_LEAST_COUNTED = 10 * NANOSECONDS
_MANAGER_POOL = ".mgr"  # the manager writes to its own pool all the time
MAX_SLOWEST_OSDS = 32
_COUNTERS = tuple(field.name for field in fields(PoolCounters))
_HEALTH = ("HEALTH_OK", "HEALTH_WARN", "HEALTH_ERR")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolIo:
    """The I/O that the pools counted between two polls."""

    between: Interval
    ours: PoolCounters
    foreign: PoolCounters  # in other pools, except the manager's

    def per_second(self, amount: float) -> float:
        return amount * NANOSECONDS / self.between.length

    def exceeds(self, limit: PoolCounters, times: int = 1) -> bool:
        """Whether foreign operations or bytes reach this many times a limit per second."""
        pairs = ((self.foreign.operations, limit.operations), (self.foreign.bytes, limit.bytes))
        return any(self.per_second(amount) >= times * bound for amount, bound in pairs)


def polls_around(watch: ClusterWatch, span: Interval | None) -> tuple[ClusterSample, ...]:
    """Return the polls within a time, the last one before it and the first one after it; all polls without a time."""
    if span is None:
        return watch.samples
    before = sum(sample.at <= span.start for sample in watch.samples)
    until = sum(sample.at < span.end for sample in watch.samples)
    return watch.samples[max(0, before - 1) : until + 1]


def statuses_of(samples: Iterable[ClusterSample]) -> list[ClusterStatus]:
    return [sample.status for sample in samples if sample.status is not None]


def unwatched_nanoseconds(watch: ClusterWatch, span: Interval) -> int:
    """Return how much of a time lies in pauses of more than 15 s between answers."""
    answers = [sample.at for sample in watch.samples if sample.status is not None]
    if not answers:
        return span.length
    first, last = min(*answers, span.start), max(*answers, span.end)
    pauses = [Interval(start=start, end=end) for start, end in pairwise(sorted({first, *answers, last}))]
    return sum(span.clipped(pause) for pause in pauses if pause.length > LONGEST_PAUSE)


def pool_io(watch: ClusterWatch, samples: Collection[ClusterSample]) -> PoolIo | None:
    """Return the I/O between the first and the last poll with counters; None below 10 s, or if the run has no pools."""
    polls = _with_counters(watch, samples) if watch.pools else []
    if not polls or polls[-1].at - polls[0].at < _LEAST_COUNTED:
        return None
    first, last = polls[0], polls[-1]
    foreign = [counters for _, counters in foreign_io(watch, polls)]
    return PoolIo(
        between=Interval(start=first.at, end=last.at),
        ours=_difference(first, last, set(watch.pools).difference(watch.metadata_pools)),
        # A pool may exist for a part of the time.
        foreign=PoolCounters(**{name: sum(getattr(part, name) for part in foreign) for name in _COUNTERS}),
    )


def pool_io_within(watch: ClusterWatch, span: Interval) -> PoolIo | None:
    """Return the I/O between the polls whose counters reflect only moments within a time; None up to twice the lag."""
    inner = [sample for sample in watch.samples if span.start + LAG <= sample.at <= span.end]
    io = pool_io(watch, inner)
    return io if io is not None and io.between.length > 2 * LAG else None


def foreign_io(watch: ClusterWatch, samples: Iterable[ClusterSample]) -> Iterator[tuple[Interval, PoolCounters]]:
    """Yield the I/O on foreign pools but the manager's between polls; a pool that appears counts from zero."""
    for first, last in pairwise(_with_counters(watch, samples)):
        names = [name for name in last.pools if name not in watch.pools and name != _MANAGER_POOL]
        yield Interval(start=first.at, end=last.at), _difference(first, last, names)


def cluster_summary(
    watch: ClusterWatch | None, span: Interval | None, data_set_bytes: int | None = None
) -> ClusterSummary | None:
    """Return the cluster's part of the result, with the bytes read; None if the run watches no cluster."""
    if watch is None:
        return None
    samples = polls_around(watch, span)
    seen = statuses_of(samples)
    # The time around a short window includes time without load; the inner part of a long window does not.
    inner = pool_io_within(watch, span) if span is not None else None
    rates = inner or pool_io(watch, samples)
    # The problems of the poll with the most, and the reason of the first poll without an answer.
    by_poll = [gate_problems(it, accepted=watch.accepted_checks, file_system=watch.file_system) for it in seen]
    unanswered = [f"Ceph did not answer: {sample.problem}" for sample in samples if sample.status is None]
    problems = (*max(by_poll, key=len, default=()), *unanswered[:1])
    return ClusterSummary(
        samples=len(samples),
        failed=len(samples) - len(seen),
        worst_health=max(
            (status.health for status in seen),
            key=lambda health: _HEALTH.index(health) if health in _HEALTH else len(_HEALTH),
            default=None,
        ),
        problems=tuple(quote(problem) for problem in problems[:8]),
        used_ratio=max(
            (round(it.used_bytes / it.total_bytes, 4) if it.total_bytes else 0.0 for it in seen), default=None
        ),
        read_bytes_per_second=round(rates.per_second(rates.ours.read_bytes)) if rates else None,
        written_bytes_per_second=round(rates.per_second(rates.ours.written_bytes)) if rates else None,
        operations_per_second=round(rates.per_second(rates.ours.operations), 3) if rates else None,
        foreign_operations_per_second=round(rates.per_second(rates.foreign.operations), 3) if rates else None,
        foreign_bytes_per_second=round(rates.per_second(rates.foreign.bytes)) if rates else None,
        data_set_bytes=data_set_bytes,
        osd_memory_bytes=watch.osd_memory_bytes,
    )


def data_set_text(clusters: Iterable[ClusterSummary | None]) -> str:
    """Return what trials read from: `of 12 GiB, 25 % of the OSDs' memory`; empty if that is unknown."""
    sizes = [(it.data_set_bytes, it.osd_memory_bytes) for it in clusters if it is not None and it.data_set_bytes]
    size, memory = sizes[-1] if sizes else (0, None)
    if not size:
        return ""
    part = f"{percent_text(100 * size / memory)} of the OSDs' memory" if memory else "the OSDs' memory is unknown"
    return f"of {size_text(size)}, {part}"


def _with_counters(watch: ClusterWatch, samples: Iterable[ClusterSample]) -> list[ClusterSample]:
    return [sample for sample in samples if all(pool in sample.pools for pool in watch.pools) and sample.pools]


def _difference(first: ClusterSample, last: ClusterSample, pools: Collection[str]) -> PoolCounters:
    """Return the I/O between two polls; counters decrease if a pool is recreated, or placement groups are merged."""
    pairs = [(first.pools.get(name, PoolCounters()), last.pools[name]) for name in pools]
    return PoolCounters(
        **{it: sum(max(0, getattr(new, it) - getattr(old, it)) for old, new in pairs) for it in _COUNTERS}
    )


def speeds_of(measurements: Iterable[Measurement]) -> list[OsdResult]:
    """Return the rates of each OSD over all measurements of it, by its number."""
    rates = grouped((rate for measurement in measurements for rate in measurement.osds), lambda rate: rate.osd)
    speeds = []
    for osd, measured in sorted(rates.items()):
        seconds = sum(rate.seconds for rate in measured)
        iops, volume = (sum(counts) / seconds for counts in zip(*((it.ios, it.bytes) for it in measured), strict=True))
        speeds.append(OsdResult(osd=osd, iops=rounded_iops(iops), bytes_per_second=round(volume)))
    return speeds


def osds_summary(measurements: Iterable[Measurement]) -> Osds | None:
    """Return the OSDs' part of the result; None if no OSD was measured."""
    if not (speeds := speeds_of(measurements)):
        return None
    iops, volumes = [speed.iops for speed in speeds], [speed.bytes_per_second for speed in speeds]
    slowest = sorted(speeds, key=lambda speed: (speed.bytes_per_second, speed.osd))
    return Osds(
        count=len(speeds),
        iops=_spread(iops),
        bytes_per_second=_spread(volumes),
        mean_iops=rounded_iops(fmean(iops)),
        mean_bytes_per_second=round(fmean(volumes)),
        slowest=tuple(slowest[:MAX_SLOWEST_OSDS]),
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(min=rounded_iops(min(values)), median=rounded_iops(median(values)), max=rounded_iops(max(values)))
