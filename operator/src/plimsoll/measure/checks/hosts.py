"""Whether clients, nodes or network were the limit, whether I/O reached the storage, and who else used its disks."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass

from plimsoll.api.names import Cause, Operation, Verdict
from plimsoll.measure.checks.activities import judged, throttling
from plimsoll.measure.checks.check import (
    CheckedValue,
    CheckedValues,
    Direction,
    Evidence,
    ObservedClient,
    TrialCheck,
    by_node,
    client_value,
    value_of_clients,
)
from plimsoll.measure.checks.effect import NEGLIGIBLE_TIME
from plimsoll.measure.intake import ClientMeasurement, bytes_read_from, bytes_visited, part_read_again
from plimsoll.measure.rates import grouped
from plimsoll.measure.sample import DeviceUse, HostUse, ToolIo
from plimsoll.measure.text import number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, add

_DATA = (Operation.READ, Operation.WRITE)
_MOST_FROM_MEMORY = 50
"""Percent that memory may have answered: the storage answered at least as much. Of larger data sets, a part is in
memory in daily use, too."""
_LEAST_BUSY = 0.3
_LEAST_FOREIGN_BYTES = 256 * 2**10
_LEAST_FOREIGN_OPERATIONS = 25  # per second; an idle file system writes less
_SYNC_BYTES = 64 * 2**10  # of a journal, for one sync: ext4 writes 12 to 20 KiB, XFS up to 256 KiB with its padding
_SYNC_OPERATIONS = 8
_LEAST_PIECE = 64 * 2**10  # the smallest pieces into which devices split larger operations
_PART = 2**20  # 256 pages, which the kernel passes down at once (`BIO_MAX_VECS`); more where memory is contiguous
_Ways = tuple[Operation, ...]  # reads, writes, or both where the kernel counts them together


@TrialCheck(
    reason="HostUnknown",
    what="clients whose host or block device could not be observed",
    suspect=0,
    remedy="see the agent's log and check that its /proc shows the node; whether the client was the limit is unknown",
)
def host_unknown(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        host = item.answer.host
        if host is None:
            yield client_value(item.client, 1, "its host was not observed")
        elif host.device is not None and not has_statistics(host.device) and direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield client_value(item.client, 1, detail)


@TrialCheck(
    reason="ClientThrottled",
    cause=Cause.HARNESS,
    what=(
        "periods in which the CPU quota throttled the client, as a part of all periods, or throttled time, as a part "
        "of the measured time, if that is less; Suspect unless the client's rate, median and 99th percentile were no "
        "worse in the seconds with such periods"
    ),
    unit="%",
    suspect=0,
    invalid=10,
    remedy="raise or remove the CPU limit in spec.clients.resources; for a local run, the limit of its cgroup",
)
def client_throttled(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        activity, seconds = throttling((item, host)), host.cpu.throttled_seconds
        if activity is None or not seconds:
            continue
        part, detail = 100 * activity.part, f"its CPU quota stopped it for {number_text(seconds)} s"
        if host.cpu.throttled_periods:
            detail = f"{detail}, summed over CPUs, in {host.cpu.throttled_periods} periods"
        detail = f"{detail}, in {number_text(host.seconds)} s of observation: {percent_text(part)}"
        effect = judged(evidence, activity)
        is_harmless = activity.part < NEGLIGIBLE_TIME or effect.is_harmless
        passes = is_harmless and client_throttled.verdict(part) is not Verdict.INVALID
        yield client_value(item.client, 0 if passes else part, f"{detail}; {effect.text}")


@TrialCheck(
    reason="ClientCpuSaturated",
    what="CPU time that the client used, as a part of what it may use",
    unit="%",
    suspect=90,
    remedy="give the clients more CPU, or share the load among more clients",
)
def client_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        cpu = host.cpu
        if cpu.used is not None:
            usable = min(cpu.limit or cpu.node_processors, cpu.node_processors)
            yield client_value(item.client, 100 * cpu.used / usable)


@TrialCheck(
    reason="NodeCpuSaturated",
    what="part of the time in which the node's CPUs were busy",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or remove other load; latencies include waiting for a CPU",
)
def node_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for node, clients in by_node(evidence.observed).items():
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        yield value_of_clients(
            clients, busy, f"the CPUs of {quote(node, 80)} were busy for {percent_text(busy)} of the time"
        )


@TrialCheck(
    reason="NodeMemoryShort",
    what="part of the node's memory that was available",
    unit="%",
    suspect=5,
    direction=Direction.BELOW,
    remedy="free memory on the node or use another node; reclaiming memory delays I/O",
)
def node_memory_short(evidence: Evidence) -> CheckedValues:
    for node, clients in by_node(evidence.observed).items():
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        yield value_of_clients(clients, part, f"{quote(node, 80)} had {percent_text(part)} of its memory available")


@TrialCheck(
    reason="NetworkBound",
    what="traffic in one direction, as a part of what the network can carry",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or use a faster network; the rate is the network's, not the storage's",
)
def network_bound(evidence: Evidence) -> CheckedValues:
    if evidence.facts.measures_network:
        return
    for item, host in evidence.observed:
        if host.network.link is not None:
            yield client_value(item.client, 100 * max(host.network.received, host.network.sent) / host.network.link)
    for value in _parts_of_capacity(evidence, Operation.READ, Operation.WRITE):
        # Faster rates than the network can have carried show nothing about the network.
        if value.value <= faster_than_network.limit(Verdict.INVALID):
            yield value


@TrialCheck(
    reason="FasterThanNetwork",
    cause=Cause.HARNESS,
    what="reads of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    invalid=105,
    remedy="use direct I/O, prefill, and data sets larger than any cache; or correct networkBytesPerSecond",
)
def faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.READ)


@TrialCheck(
    reason="WritesFasterThanNetwork",
    what="writes of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    suspect=105,
    remedy="use direct I/O, or lengthen the runtime until any cache is full; or correct networkBytesPerSecond",
)
def writes_faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.WRITE)


def _parts_of_capacity(evidence: Evidence, *operations: Operation) -> CheckedValues:
    """Yield each node's rate as a part of the capacity that the user states for its network.

    The rate is taken in the window, or in the operation's own phase. Benchmarks that OSDs run themselves do not use the
    clients' networks.
    """
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if evidence.facts.measures_network or network is None or span is None or not span.length:
        return
    nodes = grouped((item for item in evidence.measured if not item.measurement.osds), lambda item: item.node)
    for operation in operations:
        for node, clients in nodes.items():
            shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
            times = [(share, share.interval if share.is_phase else span) for share in shares]
            rate = add([share.within(time).per_second(time.length) for share, time in times]).bytes
            part = 100 * rate / network
            detail = (
                f"{operation} {size_text(rate)}/s on {quote(node, 80)}, whose network can carry "
                f"{size_text(network)}/s: {percent_text(part)}"
            )
            yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)


def has_statistics(device: DeviceUse) -> bool:
    """Whether the kernel counts a device's I/O: that can be switched off, and often is for multipath devices."""
    return bool(device.read or device.written or device.busy or device.queue)


def direct_bytes(item: ClientMeasurement, operations: Collection[Operation] = _DATA) -> int:
    """Return how many bytes of the client's data set the tool moved without the page cache."""
    if not item.measurement.bypasses_cache or not item.answer.document.data_set_bytes:
        return 0
    return _bytes(item, operations)


def _submitted_bytes(item: ClientMeasurement, operation: Operation) -> float:
    """Return how many of the direct bytes the tool submitted while it measured.

    Linux counts the tool's I/O when it is submitted, and a device may have done most of it before it completes. What
    was in flight when the measurement began is therefore missing in both counts: a part of all operations that is their
    mean latency, divided by the runtime (Little's law).
    """
    if not direct_bytes(item):
        return 0.0
    measured = item.measurement
    return sum(
        sample.bytes * max(0.0, 1 - sample.latency.mean_nanoseconds / measured.runtime)
        for sample in measured.operations
        if sample.operation is operation
    )


def _bytes(item: ClientMeasurement, operations: Collection[Operation]) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation in operations)


@TrialCheck(
    reason="CacheSized",
    what=(
        "largest part of the data that the clients of one node read, or wrote without fsync, through the page cache "
        "that memory may have held; if the nodes dropped their caches before the trial, only data that was read "
        "again counts"
    ),
    unit="%",
    suspect=_MOST_FROM_MEMORY,
    remedy="use direct I/O, larger volumes (twice the memory) or longer writes",
)
def cache_sized(evidence: Evidence) -> CheckedValues:
    # Clients without a data set have nothing that their page cache could hold.
    cached = [(item, host) for item, host in evidence.observed if not item.measurement.bypasses_cache]
    for node, clients in by_node((item, host) for item, host in cached if item.data_bytes).items():
        # If a tool was too fast to be timed, a cache is even more likely.
        readers = [(item, host) for item, host in clients if item.reads]
        if readers:
            size = sum(item.data_bytes for item, _ in readers)
            again = None
            if evidence.facts.dropped_node_caches:
                again = part_read_again(evidence.facts, [item for item, _ in readers])
            data = f"data sets read on {quote(node, 80)} through the page cache"
            skew = _mean_skew(evidence, [item for item, _ in readers])
            part, detail = _part_in_memory(data, size, _page_cache(readers), again, skew)
            yield value_of_clients(readers, part, detail)
        writers = [
            (item, host)
            for item, host in clients
            if item.does(Operation.WRITE) and not (item.does(Operation.SYNC) or item.measurement.flushes)
        ]
        if writers:
            # Overwriting the same data takes no more memory.
            facts = evidence.facts
            size = round(
                sum(
                    bytes_visited(
                        _bytes(item, (Operation.WRITE,)),
                        item.data_bytes,
                        at_random=facts.skew is not None,
                        skew=facts.skew,
                    )
                    for item, _ in writers
                )
            )
            data = f"writes without fsync on {quote(node, 80)} through the page cache"
            part, detail = _part_in_memory(data, size, _page_cache(writers))
            yield value_of_clients(writers, part, detail)


def _page_cache(clients: Collection[ObservedClient]) -> int:
    """Return the memory that can hold the data of a node's clients: the node's, or what their limits allow."""
    memory = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit for _, host in clients if host.memory.limit]
    return min(memory, sum(limits)) if len(limits) == len(clients) else memory


def _mean_skew(evidence: Evidence, readers: Collection[ClientMeasurement]) -> Callable[[float], float] | None:
    """Return the share of the reads on the hottest part of the clients' data sets; None if no part is hotter."""
    skew, sizes = evidence.facts.skew, [item.data_bytes for item in readers]
    return None if skew is None else lambda part: skew.share(part, sum(sizes) // len(sizes))


def _part_in_memory(
    data: str, size: int, memory: int, again: float | None = None, skew: Callable[[float], float] | None = None
) -> tuple[float, str]:
    """Return how much of the I/O memory may have answered at most, in percent, and the message of the check.

    Memory may hold any part of the data, written or read last, but at best the hottest, whose part of the I/O `skew`
    returns. If caches were dropped, it was empty at the beginning, and `again` is the part of the I/O, 0 to 1, on data
    that had been read or written since.
    """
    held = min(1.0, memory / size)
    detail = f"{data}: {size_text(size)}, of which {size_text(memory)} of memory may hold {percent_text(100 * held)}"
    if skew is not None and held < 1:
        held = skew(held)
        detail += f", and {percent_text(100 * held)} of the I/O was on the hottest part of that size"
    if again is None:
        return 100 * held, detail
    part = 100 * min(held, again)
    return part, (
        f"{detail}; {percent_text(100 * again)} of the I/O was on data that had been read or written since the caches "
        f"were dropped, so {percent_text(part)} may have been in memory"
    )


@TrialCheck(
    reason="ServerCacheSized",
    what=(
        "largest part of the data that the clients read that the memory of the OSDs (the sum of osd_memory_target) "
        "may have held; if the OSDs dropped their caches before the trial, only data that was read again counts; not "
        "if the workload declares caches: Warm"
    ),
    unit="%",
    suspect=_MOST_FROM_MEMORY,
    remedy=(
        "read from larger volumes (twice the memory), set prepare.dropCaches and read little data twice, or declare "
        "caches: Warm if you want to measure a cached working set; applications may have to read from disks"
    ),
)
def server_cache_sized(evidence: Evidence) -> CheckedValues:
    facts, size = evidence.facts, bytes_read_from(evidence.measured)
    memory = facts.cluster.osd_memory_bytes if facts.cluster else None
    if memory and size is not None and not facts.warm_caches:
        readers = [item for item in evidence.measured if item.reads]
        again = part_read_again(facts, readers) if facts.dropped_osd_caches else None
        skew = _mean_skew(evidence, readers)
        part, detail = _part_in_memory("data that the clients read from the OSDs", size, memory, again, skew)
        yield CheckedValue(value=part, detail=detail)


@TrialCheck(
    reason="WrongDevice",
    cause=Cause.HARNESS,
    what="clients whose tool had something other than the client's volume open",
    invalid=0,
    remedy="check that the volume is mounted or mapped where the tool expects it",
)
def wrong_device(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if target := item.answer.document.foreign_target:
            yield client_value(item.client, 1, quote(target, 200))


@TrialCheck(
    reason="DeviceBypassed",
    cause=Cause.HARNESS,
    what="part of the direct reads, or of the direct writes, that reached the block device below the data set",
    unit="%",
    suspect=90,
    invalid=50,
    direction=Direction.BELOW,
    remedy="look for a cache, a hole in the file or another device between the tool and the volume",
)
def device_bypassed(evidence: Evidence) -> CheckedValues:
    """Yield the part that each device of each node saw, for all clients with data sets on it."""
    devices = defaultdict[Hashable, list[ObservedClient]](list)
    for item, host in evidence.observed:
        if host.device is not None and has_statistics(host.device) and direct_bytes(item):
            devices[item.node, host.device.number].append((item, host))
    for clients, operation in ((clients, operation) for clients in devices.values() for operation in _DATA):
        asked = sum(_submitted_bytes(item, operation) for item, _ in clients)
        if not asked:
            continue
        seen = max(_moved(host, host.device, operation) or 0.0 for _, host in clients)
        counted = [_moved(host, host.tool, operation) for _, host in clients]
        # Other users' I/O hides what did not reach the device; the kernel's count of the tools' own does not.
        if None not in counted:
            seen = min(seen, sum(volume for volume in counted if volume is not None))
        part = 100 * seen / asked
        detail = f"the block device below the data set saw {percent_text(part)} of the direct {operation} bytes"
        yield value_of_clients(clients, part, detail)


def _moved(host: HostUse, counted: DeviceUse | ToolIo | None, operation: Operation) -> float | None:
    """Return the bytes that the kernel counted in the observed time, of a device or the tool; None if it does not."""
    if counted is None:
        return None
    return host.seconds * (counted.read if operation is Operation.READ else counted.written)


_COUNTED_IN_MEMORY: Mapping[str, Collection[Operation]] = {
    "zfs": _DATA,
    "btrfs": (Operation.WRITE,),
}
"""Operations that the kernel counts as I/O of the tool although memory answers them, by file system.

OpenZFS counts all reads and writes (`zfs_vnops.c`). btrfs buffers direct writes of data with checksums, its default
(Linux commit 968f19c5b1b7), and Linux counts buffered writes when they dirty pages.
"""


@TrialCheck(
    reason="CacheNotExcluded",
    what=(
        "part of the direct reads, or of the direct writes, that the kernel counted as I/O on storage, where "
        "no block device is visible below the data set"
    ),
    unit="%",
    suspect=90,
    direction=Direction.BELOW,
    remedy="use storage with a block device; memory or a hole in the file may have answered instead",
)
def cache_not_excluded(evidence: Evidence) -> CheckedValues:
    # The kernel's client of CephFS has no block device and does not count direct I/O as the tool's. If the pools'
    # counters show what reached Ceph in a window, PoolCountersDisagree judges caches.
    watch = evidence.facts.cluster
    owns_file_system = watch is not None and watch.owns_file_system
    judged = [operation for operation in _DATA if not owns_file_system or evidence.pool_io(operation) is None]
    for item, host in evidence.observed:
        for operation in judged if host.unseen else ():
            asked, counted = _submitted_bytes(item, operation), _moved(host, host.tool, operation)
            if not asked:
                continue
            if operation in _COUNTED_IN_MEMORY.get(host.unseen, ()):
                part, words = 0.0, "counts those that memory answered, too"
            elif counted is None:
                part, words = 0.0, "exposes no counters of the tool"
            else:
                part = 100 * counted / asked
                words = f"counted {percent_text(part)} as I/O on storage"
            detail = (
                f"no block device is visible below its data set on {quote(host.unseen, 120)}; of its direct "
                f"{operation} bytes the kernel {words}"
            )
            yield client_value(item.client, part, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """The bytes or operations of a disk in the observed time."""

    moved: float  # all of them
    foreign: float  # those that the tools do not explain, reads and writes separately
    ours: float  # those that the tools certainly caused

    @classmethod
    def total(cls, ways: Iterable[tuple[float, float, float]]) -> "_Traffic":
        """Sum up (moved, most explained, least explained) of each way."""
        ways = [*ways]
        return cls(
            moved=sum(moved for moved, _, _ in ways),
            foreign=sum(max(0.0, moved - most) for moved, most, _ in ways),
            ours=sum(min(moved, least) for moved, _, least in ways),
        )

    @property
    def part(self) -> float:
        """The foreign part of foreign and own traffic, in percent; traffic that may be either counts as neither."""
        return 100 * self.foreign / (self.foreign + self.ours) if self.foreign else 0.0


@TrialCheck(
    reason="ForeignDeviceLoad",
    what=(
        "bytes or operations of the disk below the data set that the tools do not explain, as a part of these and "
        f"the tools' own, for reads and writes separately; only from {_LEAST_FOREIGN_BYTES // 2**10} KiB or "
        f"{_LEAST_FOREIGN_OPERATIONS} operations per second on, and only if the disk was busy for "
        f"{100 * _LEAST_BUSY:.0f} % of the time or more"
    ),
    unit="%",
    suspect=10,
    remedy=(
        "keep other users off the disk while measuring, or look for a layer that does more I/O than it "
        "receives, such as data journalling or a new ext4 that still initialises (mount option noinit_itable)"
    ),
)
def foreign_device_load(evidence: Evidence) -> CheckedValues:
    """Yield the foreign part of the traffic of each disk of each node, for all clients with data sets on it."""
    disks = defaultdict[Hashable, list[ObservedClient]](list)
    for item, host in evidence.observed:
        disk = host.disk or host.device
        if disk is not None and has_statistics(disk) and item.answer.document.data_set_bytes:
            disks[item.node, disk.number].append((item, host))
    for clients in disks.values():
        # Cached writes reach the device at unpredictable times.
        ways = [
            operation
            for operation in _DATA
            if all(
                item.measurement.bypasses_cache or (operation is Operation.READ and host.tool is not None)
                for item, host in clients
            )
        ]
        if ways:
            yield _foreign_part(clients, ways)


def _foreign_part(clients: Collection[ObservedClient], ways: Collection[Operation]) -> CheckedValue:
    host = max((host for _, host in clients), key=lambda host: host.seconds)
    disk = host.disk or host.device
    volume = _Traffic.total((_moved(host, disk, way) or 0.0, *_bytes_explained(clients, way)) for way in ways)
    rates: dict[_Ways, float] = {}
    if disk is not None and len(ways) == len(_DATA):
        rates = {_DATA: disk.operations or 0.0}
        if disk.reads is not None and disk.writes is not None:
            rates = {(Operation.READ,): disk.reads, (Operation.WRITE,): disk.writes}
    count = _Traffic.total((host.seconds * rate, *_operations_explained(clients, ways)) for ways, rate in rates.items())
    # A disk without such statistics counts as busy all the time.
    disks = [host.disk or host.device for _, host in clients]
    busy = max(it.busy if it is not None and (it.busy or it.queue) else 1.0 for it in disks)
    matters = busy >= _LEAST_BUSY and (
        volume.foreign >= host.seconds * _LEAST_FOREIGN_BYTES
        or count.foreign >= host.seconds * _LEAST_FOREIGN_OPERATIONS
    )
    detail = (
        f"the disk below the data set moved {size_text(volume.moved / host.seconds)}/s in "
        f"{number_text(count.moved / host.seconds)} operations/s and was busy for {percent_text(100 * busy)} of the "
        f"time; the tools do not explain {percent_text(volume.part)} of the bytes and {percent_text(count.part)} of "
        "the operations"
    )
    return value_of_clients(clients, max(volume.part, count.part) if matters else 0.0, detail)


def _bytes_explained(clients: Iterable[ObservedClient], way: Operation) -> tuple[float, float]:
    """Return the most and the least bytes that the clients' tools explain of their disk's in the observed time."""
    most = least = 0.0
    for item, host in clients:
        asked, longer = _bytes(item, (way,)), _longer(item, host)
        least += asked
        most += max(asked * longer, _moved(host, host.tool, way) or 0.0)
        if way is Operation.WRITE:
            syncs = sum(sample.ios for sample in item.measurement.operations if sample.operation is Operation.SYNC)
            most += syncs * longer * _SYNC_BYTES
    return most, least


def _operations_explained(clients: Iterable[ObservedClient], ways: _Ways) -> tuple[float, float]:
    """Return the same for operations."""
    most = least = 0.0
    for item, host in clients:
        # The least mean size of the pieces into which large operations are split.
        piece = _PART / math.ceil(_PART / host.uncut_bytes) if host.uncut_bytes else _LEAST_PIECE
        for sample in item.measurement.operations:
            operation = sample.operation
            # Trims are neither reads nor writes, but make a file system write its metadata.
            if (Operation.READ if operation is Operation.READ else Operation.WRITE) not in ways:
                continue
            is_sync = operation is Operation.SYNC
            on_device = sample.ios * _SYNC_OPERATIONS if is_sync else sample.ios + sample.bytes / piece
            # The tool may have done more in the observed time than while it measured.
            counted = _moved(host, host.tool, operation) if operation in _DATA else None
            most += on_device * max(_longer(item, host), counted / sample.bytes if counted and sample.bytes else 0.0)
            least += max(sample.ios, sample.bytes / _PART) if operation in _DATA else 0.0
    return most, least


def _longer(item: ClientMeasurement, host: HostUse) -> float:
    """Return the observed time as a multiple of the measured time."""
    return host.seconds * NANOSECONDS / item.measurement.runtime
