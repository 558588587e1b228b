"""What was seen of a Ceph cluster around a trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """What `ceph status` says.

    Attributes:
        health: `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`.
        checks: name of each health check -> its severity, in the same words; one may be there while all is well.
        pg_states: state as Ceph writes it, `active+clean+scrubbing` -> number of placement groups.
        osds_up_since: when the set of OSDs that are up last changed, as Ceph writes it; likewise `osds_in_since`.
        recovering_bytes_per_second: 0 if nothing recovers.

    """

    health: str
    checks: Mapping[str, str]
    pg_states: Mapping[str, int]
    osds: int
    osds_up: int
    osds_in: int
    osds_up_since: str
    osds_in_since: str
    remapped_pgs: int
    recovering_bytes_per_second: int
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounters:
    """What clients have done to a pool since it was made, as `ceph df detail` counts it."""

    reads: int
    writes: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample:
    """One look at the cluster.

    Attributes:
        at: Unix nanoseconds, of the answer.
        status: None if Ceph did not answer in time; then `problem` says why.
        pools: counters by name of the pool; empty if they could not be read.

    """

    at: int
    status: ClusterStatus | None
    pools: Mapping[str, PoolCounters] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWatch:
    """The looks at the cluster around one trial, by time: the first from before T0, the last from after its end.

    Without samples somebody was to look and did not.

    Attributes:
        pools: those that the run's own I/O goes to.
        accepted_checks: health checks that may stand.
        required: the run demands a healthy cluster; if not, what is wrong with it makes numbers Suspect at most.

    """

    samples: tuple[ClusterSample, ...]
    pools: tuple[str, ...]
    accepted_checks: frozenset[str] = frozenset()
    required: bool = True
