"""The state and load of storage and hosts during a trial. Ratios are 0 to 1, and unknown quantities are absent."""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Count, Model, ServerOnly


class Spread(Model):
    """The distribution of one quantity."""

    min: float
    """Minimum."""
    median: float
    """Median."""
    max: float
    """Maximum."""


class OsdResult(Model):
    """One OSD."""

    osd: Count
    """Number of the OSD."""
    iops: float
    """Its operations per second."""
    bytes_per_second: Count
    """Its bytes per second."""


class Osds(Model):
    """The rates of all OSDs, each measured alone."""

    count: Count
    """Number of measured OSDs."""
    iops: Spread
    """Operations per second of an OSD."""
    bytes_per_second: Spread
    """Bytes per second of an OSD."""
    mean_iops: float  # times `count`: the capacity of all OSDs
    """Operations per second of one OSD, on average."""
    mean_bytes_per_second: Count
    """Bytes per second of one OSD, on average."""
    slowest: Annotated[tuple[OsdResult, ...], ServerOnly(max_length=32)] = ()
    """The OSDs with the fewest bytes per second, slowest first."""


class ClusterSummary(Model):
    """The state and load of the Ceph cluster during the measurement."""

    samples: Count
    """Number of polls."""
    failed: Count
    """Number of polls that Ceph did not answer."""
    worst_health: Annotated[str, ServerOnly(max_length=64)] | None = None
    """HEALTH_OK, HEALTH_WARN or HEALTH_ERR."""
    problems: Annotated[tuple[Annotated[str, ServerOnly(max_length=512)], ...], ServerOnly(max_length=8)] = ()
    """Problems of the poll with the most problems, in words."""
    used_ratio: float | None = None
    """Used part of the raw capacity, 0 to 1; the maximum of all polls."""
    read_bytes_per_second: Count | None = None
    """Bytes per second read from the run's pools, by Ceph's counters; if the window is short, over a longer time."""
    written_bytes_per_second: Count | None = None
    """Bytes per second written to the run's pools, over the same time."""
    operations_per_second: float | None = None
    """Operations per second on the run's pools, over the same time."""
    foreign_operations_per_second: float | None = None
    """Operations per second on all other pools, over the same time."""
    foreign_bytes_per_second: Count | None = None
    """Bytes per second read from and written to all other pools, over the same time."""
    data_set_bytes: Count | None = None
    """Size of the data that all clients read from; absent if none reads, or it is unknown."""
    osd_memory_bytes: Count | None = None
    """Memory in which the OSDs may cache it, the sum of osd_memory_target; absent if it is unknown."""


class HostSummary(Model):
    """The load of a client's host during the measurement."""

    cpu: float | None = None
    """CPUs that the client used on average; absent if unknown."""
    cpu_limit: float | None = None
    """CPU limit of the client; absent without a limit."""
    throttled_seconds: float | None = None
    """Time for which the limit throttled the client, over all its CPUs; absent if unknown."""
    node_cpu_busy: float
    """Part of the node's CPUs that was busy, 0 to 1."""
    memory_bytes: Count | None = None
    """Memory of the client, with page cache; absent if unknown."""
    received_bytes_per_second: Count
    """Bytes per second received over the client's network."""
    sent_bytes_per_second: Count
    """Bytes per second sent over the client's network."""
    device_read_bytes_per_second: Count | None = None
    """Bytes per second read from the block device by all programs; absent without one."""
    device_written_bytes_per_second: Count | None = None
    """Bytes per second written to the block device by all programs."""
    device_busy: float | None = None
    """Part of the time in which the block device was busy, 0 to 1."""
    device_queue: float | None = None
    """Average number of operations in the queue of the block device."""
    device_read_request_bytes: Count | None = None
    """Average size of a read that reached the block device; absent if there was none."""
    device_write_request_bytes: Count | None = None
    """Average size of a write that reached the block device; absent if there was none."""


class Hosts(Model):
    """The load of all clients' hosts during the measurement, as in `HostSummary`."""

    clients: Count
    """Number of clients whose host reported its load."""
    cpu: Spread | None = None
    """CPUs that a client used."""
    throttled_seconds: Spread | None = None
    """Time for which the CPU limit throttled a client, over all its CPUs."""
    node_cpu_busy: Spread | None = None
    """Part of a node's CPUs that was busy, 0 to 1."""
    memory_bytes: Spread | None = None
    """Memory of a client, with page cache."""
    received_bytes_per_second: Spread | None = None
    """Bytes per second received over a client's network."""
    sent_bytes_per_second: Spread | None = None
    """Bytes per second sent over a client's network."""
    device_busy: Spread | None = None
    """Part of the time in which a block device was busy, 0 to 1."""
    device_queue: Spread | None = None
    """Average number of operations in the queue of a block device."""
    device_read_request_bytes: Spread | None = None
    """Average size of a read that reached a block device."""
    device_write_request_bytes: Spread | None = None
    """Average size of a write that reached a block device."""


MAX_LISTED = 64  # nodes and OSDs that a result lists; of more it has the number
_Number = Annotated[int, Field(ge=0, lt=2**63)]
_Osd = Annotated[int, Field(ge=0, lt=2**31)]


class NodeCaches(Model):
    """The caches of one node, which were dropped: page cache, dentries and inodes."""

    node: Annotated[str, Field(max_length=253)]
    """Name of the node."""
    dropped_at: Annotated[str, Field(max_length=64)]
    """When they were dropped, by the clock of the node."""
    before_bytes: _Number
    """Bytes of page cache, buffers and reclaimable kernel memory before."""
    after_bytes: _Number
    """The same afterwards; memory file systems and mapped programs remain."""


class OsdCaches(Model):
    """The caches of the OSDs."""

    count: _Number
    """Number of OSDs that dropped their caches."""
    osds: Annotated[tuple[_Osd, ...], Field(max_length=MAX_LISTED, fail_fast=True)] = ()
    """Numbers of the first 64 of them."""
    reason: Annotated[str, Field(max_length=512)] | None = None
    """Why they were not dropped; absent if they were."""


class DroppedCaches(Model):
    """The caches that were dropped before a trial."""

    node_count: _Number
    """Number of nodes whose caches were dropped."""
    nodes: Annotated[tuple[NodeCaches, ...], Field(max_length=MAX_LISTED)] = ()
    """The first 64 of them; empty for an attempt that was repeated."""
    osds: OsdCaches | None = None
    """Caches of the OSDs; absent if the storage is not known to be Ceph."""
