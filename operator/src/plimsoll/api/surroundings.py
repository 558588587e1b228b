"""What was seen of the storage itself while a trial was measured; parts of a `BenchmarkResult`."""

from plimsoll.api.model import Model


class Spread(Model):
    """One quantity over everything of which it is known."""

    min: float
    median: float
    max: float


class OsdResult(Model):
    """What one OSD did when it was measured alone."""

    osd: int
    iops: float
    bytes_per_second: int


class Osds(Model):
    """What all OSDs did when each was measured alone.

    Attributes:
        count: how many were measured.
        iops: operations per second of the least, the median and the fastest OSD.
        bytes_per_second: likewise.
        mean_iops: of one OSD; times `count` it is what all of them could do at once.
        mean_bytes_per_second: likewise.
        slowest: those with the fewest bytes per second, slowest first, at most 32.

    """

    count: int
    iops: Spread
    bytes_per_second: Spread
    mean_iops: float
    mean_bytes_per_second: int
    slowest: tuple[OsdResult, ...] = ()


class ClusterSummary(Model):
    """What was seen of the Ceph cluster while a trial was measured; absent is what Ceph did not tell.

    Attributes:
        samples: how often somebody looked.
        failed: how often Ceph did not answer.
        worst_health: `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`.
        problems: what was wrong when most was, in words, at most 8.
        used_ratio: part of the raw capacity that is full, 0 to 1; the highest that was seen.
        read_bytes_per_second: of the run's pools, as Ceph counts it inside the window; if that is too short, from
            before it until after it, so that some time without load counts as well.
        written_bytes_per_second: likewise.
        operations_per_second: likewise.
        foreign_operations_per_second: likewise, of all other pools.

    """

    samples: int
    failed: int
    worst_health: str | None = None
    problems: tuple[str, ...] = ()
    used_ratio: float | None = None
    read_bytes_per_second: int | None = None
    written_bytes_per_second: int | None = None
    operations_per_second: float | None = None
    foreign_operations_per_second: float | None = None
