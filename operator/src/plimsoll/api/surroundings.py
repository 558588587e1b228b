"""The state and load of storage and hosts during a trial; parts of a `BenchmarkResult`.

Ratios are 0 to 1. Unknown quantities are absent.
"""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Count, Model, ServerOnly

_Problem = Annotated[str, Field(description="One problem."), ServerOnly(max_length=512)]


class Spread(Model):
    """The distribution of one quantity.

    Attributes:
        min: Minimum.
        median: Median.
        max: Maximum.

    """

    min: float
    median: float
    max: float


class OsdResult(Model):
    """One OSD.

    Attributes:
        osd: Number of the OSD.
        iops: Its operations per second.
        bytes_per_second: Its bytes per second.

    """

    osd: Count
    iops: float
    bytes_per_second: Count


class Osds(Model):
    """The rates of all OSDs, each measured alone.

    Attributes:
        count: Number of measured OSDs.
        iops: Operations per second of an OSD.
        bytes_per_second: Bytes per second of an OSD.
        mean_iops: Operations per second of one OSD, on average.
        mean_bytes_per_second: Bytes per second of one OSD, on average.
        slowest: The OSDs with the fewest bytes per second, slowest first.

    """

    count: Count
    iops: Spread
    bytes_per_second: Spread
    mean_iops: float  # times `count`: the capacity of all OSDs
    mean_bytes_per_second: Count
    slowest: Annotated[tuple[OsdResult, ...], ServerOnly(max_length=32)] = ()


class ClusterSummary(Model):
    """The state and load of the Ceph cluster during the measurement.

    Attributes:
        samples: Number of polls.
        failed: Number of polls that Ceph did not answer.
        worst_health: HEALTH_OK, HEALTH_WARN or HEALTH_ERR.
        problems: Problems of the poll with the most problems, in words.
        used_ratio: Used part of the raw capacity, 0 to 1; the maximum of all polls.
        read_bytes_per_second: Bytes per second read from the run's pools by Ceph's counters, in the window, or from
            before until after a window that is too short.
        written_bytes_per_second: Bytes per second written to the run's pools, over the same time.
        operations_per_second: Operations per second on the run's pools, over the same time.
        foreign_operations_per_second: Operations per second on all other pools, over the same time.
        foreign_bytes_per_second: Bytes per second read from and written to them.
        data_set_bytes: Size of the data that all clients read from; absent if none reads, or it is unknown.
        osd_memory_bytes: Memory that the OSDs may use for it, the sum of osd_memory_target; absent if it is unknown.

    """

    samples: Count
    failed: Count
    worst_health: Annotated[str, ServerOnly(max_length=64)] | None = None
    problems: Annotated[tuple[_Problem, ...], ServerOnly(max_length=8)] = ()
    used_ratio: float | None = None
    read_bytes_per_second: Count | None = None
    written_bytes_per_second: Count | None = None
    operations_per_second: float | None = None
    foreign_operations_per_second: float | None = None
    foreign_bytes_per_second: Count | None = None
    data_set_bytes: Count | None = None
    osd_memory_bytes: Count | None = None


class HostSummary(Model):
    """The load of a client's host during the measurement.

    Attributes:
        cpu: CPUs that the client used on average; absent if unknown.
        cpu_limit: CPU limit of the client; absent without a limit.
        throttled_seconds: Time for which the limit throttled the client, over all its CPUs; absent if unknown.
        node_cpu_busy: Part of the node's CPUs that was busy, 0 to 1.
        memory_bytes: Memory of the client, with page cache; absent if unknown.
        received_bytes_per_second: Bytes per second received over the client's network.
        sent_bytes_per_second: Bytes per second sent over the client's network.
        device_read_bytes_per_second: Bytes per second read from the block device by all programs; absent without one.
        device_written_bytes_per_second: Bytes per second written to the block device by all programs.
        device_busy: Part of the time in which the block device was busy, 0 to 1.
        device_queue: Average number of operations in the queue of the block device.
        device_read_request_bytes: Average size of a read that reached the block device; absent if there was none.
        device_write_request_bytes: Average size of a write that reached the block device; absent if there was none.

    """

    cpu: float | None = None
    cpu_limit: float | None = None
    throttled_seconds: float | None = None
    node_cpu_busy: float
    memory_bytes: Count | None = None
    received_bytes_per_second: Count
    sent_bytes_per_second: Count
    device_read_bytes_per_second: Count | None = None
    device_written_bytes_per_second: Count | None = None
    device_busy: float | None = None
    device_queue: float | None = None
    device_read_request_bytes: Count | None = None
    device_write_request_bytes: Count | None = None


class Hosts(Model):
    """The load of all clients' hosts during the measurement, as in `HostSummary`.

    Attributes:
        clients: Number of clients whose host reported its load.
        cpu: CPUs that a client used.
        throttled_seconds: Time for which the CPU limit throttled a client, over all its CPUs.
        node_cpu_busy: Part of a node's CPUs that was busy, 0 to 1.
        memory_bytes: Memory of a client, with page cache.
        received_bytes_per_second: Bytes per second received over a client's network.
        sent_bytes_per_second: Bytes per second sent over a client's network.
        device_busy: Part of the time in which a block device was busy, 0 to 1.
        device_queue: Average number of operations in the queue of a block device.
        device_read_request_bytes: Average size of a read that reached a block device.
        device_write_request_bytes: Average size of a write that reached a block device.

    """

    clients: Count
    cpu: Spread | None = None
    throttled_seconds: Spread | None = None
    node_cpu_busy: Spread | None = None
    memory_bytes: Spread | None = None
    received_bytes_per_second: Spread | None = None
    sent_bytes_per_second: Spread | None = None
    device_busy: Spread | None = None
    device_queue: Spread | None = None
    device_read_request_bytes: Spread | None = None
    device_write_request_bytes: Spread | None = None


MAX_LISTED = 64
"""Nodes and OSDs that a result lists; of more it has the number."""

_Number = Annotated[int, Field(ge=0, lt=2**63)]
_Osd = Annotated[int, Field(ge=0, lt=2**31, description="Number of an OSD.")]


class NodeCaches(Model):
    """The caches of one node, which were dropped: page cache, dentries and inodes.

    Attributes:
        node: Name of the node.
        dropped_at: When they were dropped, by the clock of the node.
        before_bytes: Bytes of page cache, buffers and reclaimable kernel memory before.
        after_bytes: The same afterwards; memory file systems and mapped programs remain.

    """

    node: Annotated[str, Field(max_length=253)]
    dropped_at: Annotated[str, Field(max_length=64)]
    before_bytes: _Number
    after_bytes: _Number


class OsdCaches(Model):
    """The caches of the OSDs.

    Attributes:
        count: Number of OSDs that dropped their caches.
        osds: Numbers of the first 64 of them.
        reason: Why they were not dropped; absent if they were.

    """

    count: _Number
    osds: Annotated[tuple[_Osd, ...], Field(max_length=MAX_LISTED, fail_fast=True)] = ()
    reason: Annotated[str, Field(max_length=512)] | None = None


class DroppedCaches(Model):
    """The caches that were dropped before a trial.

    Attributes:
        node_count: Number of nodes whose caches were dropped.
        nodes: The first 64 of them; empty for an attempt that was repeated.
        osds: Caches of the OSDs; absent if the storage is not known to be Ceph.

    """

    node_count: _Number
    nodes: Annotated[tuple[NodeCaches, ...], Field(max_length=MAX_LISTED)] = ()
    osds: OsdCaches | None = None
