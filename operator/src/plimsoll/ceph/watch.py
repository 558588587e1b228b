"""Observations of a Ceph cluster around a trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from plimsoll.api.json_reader import JsonNode
from plimsoll.api.status import NO_OSDS, OsdsSeen
from plimsoll.ceph.document import parse_answer

# Nanoseconds by which Ceph's states of groups and counters lag at most (`mgr_stats_period`, `mon_mgr_digest_period`).
LAG = 10 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataServer:
    """A metadata server with a rank in a file system."""

    file_system: int  # number of the file system
    rank: int
    name: str
    state: str  # as Ceph writes it, such as `up:active` or `up:replay`
    process: int  # Ceph's number of the process, which a server that takes over or restarts does not share


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemDetail:
    """A CephFS file system."""

    number: int  # Ceph's own
    name: str
    servers: int  # number of metadata servers that should be active
    metadata_pool: int  # number of its metadata pool
    data_pools: tuple[int, ...]  # numbers of its data pools, the default one first


LITTLE_RECOVERY = 16 * 1024
"""Bytes per second: four small objects, of the hundred operations that one hard disk has in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The output of `ceph status`."""

    health: str  # `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`
    # Name of each health check -> its severity, one of the same values; some have severity `HEALTH_OK`
    checks: Mapping[str, str]
    # State as Ceph writes it, such as `active+clean+scrubbing` -> number of placement groups
    pg_states: Mapping[str, int]
    osds: int
    osds_up: int
    osds_in: int
    osds_up_since: str  # time of the last change of the set of OSDs that are up, as Ceph writes it
    osds_in_since: str  # the same of OSDs that are in
    remapped_pgs: int
    recovering_bytes_per_second: int  # a mean over some time; 0 without recovery
    used_bytes: int
    total_bytes: int
    metadata_servers: tuple[MetadataServer, ...] = ()  # those with a rank, of all file systems
    muted: frozenset[str] = frozenset()  # health checks that an administrator has muted; they are not in `checks`

    @property
    def is_recovering(self) -> bool:
        """Whether so much is recovered that it may matter if no placement group says so.

        The mean sinks to a few bytes per second after a pool has been created or an OSD has returned.
        """
        return self.recovering_bytes_per_second > LITTLE_RECOVERY

    @property
    def osds_seen(self) -> OsdsSeen:
        """The OSDs that are up, and in; no more count as up than are in."""
        # One that is out but up, because its data was moved away, may go down and be purged at any time.
        return OsdsSeen(up=min(self.osds_up, self.osds_in), members=self.osds_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounters:
    """The clients' I/O since a pool was created, from `ceph df detail`."""

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    @property
    def operations(self) -> int:
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample:
    """One observation of the cluster."""

    at: int  # time of the answer in Unix nanoseconds
    status: ClusterStatus | None  # None if Ceph did not answer in time; `problem` has the reason
    # Name of the pool -> counters; empty if they could not be read
    pools: Mapping[str, PoolCounters] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionReading:
    """The values of the options that the run has set, in the configuration database and all OSDs at one time."""

    differences: tuple[str, ...] = ()  # options that differ from what the run has set, in words
    problem: str = ""  # why some of them could not be read; empty if all were


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What a trial took away from the cluster."""

    osds: tuple[int, ...]  # their numbers
    action: Literal["Out", "Down"]
    start: int = 0  # when it began to, in Unix nanoseconds; 0 before that
    away: int = 0  # when Ceph had done so with all of them; 0 before that
    end: int = 0  # when it began to give them back; 0 before that, and until it had
    returned: tuple[int, ...] = ()  # those that were back before that
    problem: str = ""  # why it could not take them away; empty if it could

    def is_within(self, start: int, end: int) -> bool:
        """Whether it began and ended in that time, so that there are operations before, during and after it."""
        return start < self.start < self.end < end


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The OSDs that hold a run's data: activity elsewhere in the cluster does not dilute theirs."""

    osds: int | None = None  # number of OSDs that may hold it; None if it is unknown
    per_read: int = 3  # OSDs that a read waits for
    per_write: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWatch:
    """The observations around one trial, from before T0 until after the end; none if the planned ones are missing."""

    samples: tuple[ClusterSample, ...]
    pools: tuple[str, ...]  # the pools of the run's own I/O
    # Pools of the run that only metadata servers read and write; their I/O is neither the clients' nor foreign
    metadata_pools: tuple[str, ...] = ()
    file_system: FileSystemDetail | None = None  # the file system that the run measures; None if it measures a pool
    owns_file_system: bool = False  # whether it was created for the run, so that only the run uses its pools
    accepted_checks: frozenset[str] = frozenset()  # tolerated health checks
    # Whether the run requires a healthy cluster; otherwise an unhealthy one makes numbers at most Suspect
    required: bool = True
    osds: OsdsSeen = NO_OSDS  # those that the run has seen until the trial
    widest: int = 3  # OSDs that a placement group is on, in the pool with the most
    placement: Placement = Placement()
    # Memory that the OSDs of the data's device class may use: the sum of `osd_memory_target`; None if it is unknown
    osd_memory_bytes: int | None = None
    # The readings before and after the trial of options that the run has set; empty if it sets none
    options: tuple[OptionReading, ...] = ()
    outage: Outage | None = None  # None if the trial takes no OSDs away


def parse_status(text: str) -> ClusterStatus:
    """Read `ceph status`; ValueError with the field."""
    document = parse_answer(text)
    checks = dict(document["health"]["checks"].items())
    muted = frozenset(name for name, check in checks.items() if is_muted(check))
    osds, groups = document["osdmap"], document["pgmap"]
    states: dict[str, int] = {}
    for entry in groups["pgs_by_state"].elements():
        state = entry["state_name"].text()
        states[state] = states.get(state, 0) + entry["count"].count()
    recovering, file_systems = groups.get("recovering_bytes_per_sec"), document.get("fsmap")
    return ClusterStatus(
        health=document["health"]["status"].text(),
        checks={name: check["severity"].text() for name, check in checks.items() if name not in muted},
        muted=muted,
        pg_states=states,
        osds=osds["num_osds"].count(),
        osds_up=osds["num_up_osds"].count(),
        osds_in=osds["num_in_osds"].count(),
        osds_up_since=str(osds["osd_up_since"].value),
        osds_in_since=str(osds["osd_in_since"].value),
        remapped_pgs=osds["num_remapped_pgs"].count(),
        # Ceph prints it only during recovery.
        recovering_bytes_per_second=recovering.count() if recovering else 0,
        used_bytes=groups["bytes_used"].count(),
        total_bytes=groups["bytes_total"].count(),
        metadata_servers=tuple(
            MetadataServer(
                file_system=server["filesystem_id"].count(),
                rank=server["rank"].count(),
                name=server["name"].text(),
                state=server["status"].text(),
                process=server["gid"].identifier(),
            )
            for server in (file_systems["by_rank"].elements() if file_systems else ())
        ),
    )


def is_muted(check: JsonNode) -> bool:
    """Whether a health check of `ceph status` is muted."""
    flag = check.get("muted")
    return flag is not None and flag.flag()
