"""Whether the clients' hosts were the limit, and whether the I/O reached the intended storage."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import Finding
from plimsoll.measure.checks import registry
from plimsoll.measure.checks.check import CheckedValue, evaluate, number_text, percent_text, quote, size_text
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.cluster import pool_io_within
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, OperationSample
from plimsoll.measure.timeline import NANOSECONDS, Amount, Interval, Share, add

_NODE_CHARACTERS = 80
_READS = (Operation.READ, Operation.READ_CHARACTERS, Operation.REWRITE, Operation.SEEK)

ObservedClient = tuple[ClientMeasurement, HostUse]


def cached(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    """Yield how much the clients of a node read through the cache, and wrote through it without making it durable.

    Clients without a data set have nothing that their page cache could hold.
    """
    buffered = [(item, host) for item, host in known if not item.measurement.bypasses_cache and _data_bytes(item)]
    for node, clients in by_node(buffered).items():
        name = quote(node, _NODE_CHARACTERS)
        if reading := [(item, host) for item, host in clients if _reads(item)]:
            size = sum(_data_bytes(item) for item, _ in reading)
            yield _compared_with_memory(f"data sets read on {name}", reading, size)
        if writing := [(item, host) for item, host in clients if _leaves_writes(item)]:
            # Overwriting the same data takes no more memory.
            size = sum(min(_data_bytes(item), _bytes_written(item)) for item, _ in writing)
            yield _compared_with_memory(f"writes without fsync on {name}", writing, size)


def by_node(known: Iterable[ObservedClient]) -> dict[str, list[ObservedClient]]:
    """Group clients by node."""
    nodes = defaultdict[str, list[ObservedClient]](list)
    for item, host in known:
        nodes[item.node].append((item, host))
    return nodes


def numbers_of(clients: Iterable[ObservedClient]) -> tuple[int, ...]:
    """Return the clients' numbers."""
    return tuple(item.client for item, _ in clients)


def _data_bytes(item: ClientMeasurement) -> int:
    """Return the size of what the tool worked on: of its files, or of the data set."""
    own = item.measurement.data_bytes
    return item.answer.document.data_set_bytes if own is None else own


def _reads(item: ClientMeasurement) -> bool:
    """Whether a tool read data. If it was too fast to be timed, a cache is even more likely."""
    return any(operation in item.measurement.untimed or _does(item, operation) for operation in _READS)


def _does(item: ClientMeasurement, operation: Operation) -> bool:
    return any(one.operation is operation and (one.ios or one.bytes) for one in item.measurement.operations)


def _leaves_writes(item: ClientMeasurement) -> bool:
    return _does(item, Operation.WRITE) and not (_does(item, Operation.SYNC) or item.measurement.flushes)


def _bytes_written(item: ClientMeasurement) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation is Operation.WRITE)


def _compared_with_memory(what: str, clients: Collection[ObservedClient], size: int) -> CheckedValue:
    memory = _usable_memory(clients)
    detail = (
        f"{what} through the page cache: {size_text(size)}, {number_text(size / memory)} times the {size_text(memory)} "
        "of memory that may hold them"
    )
    return CheckedValue(clients=numbers_of(clients), value=size / memory, detail=detail)


def _usable_memory(clients: Collection[ObservedClient]) -> int:
    node = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit for _, host in clients if host.memory.limit]
    return min(node, sum(limits)) if len(limits) == len(clients) else node


_DATA = (Operation.READ, Operation.WRITE)
_NAME_CHARACTERS = 120
_SYNC_BYTES = 64 * 2**10
"""Of a journal, for one sync; ext4 writes 12 to 20 KiB, XFS pads its log to as much as 256 KiB."""
_SYNC_OPERATIONS = 8
_LEAST_PIECE = 64 * 2**10
"""The smallest pieces into which devices split larger operations."""
_PART = 2**20
"""256 pages, which the kernel passes down at once (`BIO_MAX_VECS`); more where memory is contiguous."""


_Ways = tuple[Operation, ...]
"""Reads, writes, or both where the kernel counts them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """The bytes or operations of a disk in the observed time.

    Attributes:
        moved: all of them.
        foreign: those that the tools do not explain, reads and writes separately.
        own: those that the tools certainly caused.

    """

    moved: float
    foreign: float
    own: float

    @property
    def part(self) -> float:
        """The foreign part of foreign and own traffic, in percent.

        Not of all traffic: traffic that may be either must not make the foreign part seem small.
        """
        return 100 * self.foreign / (self.foreign + self.own) if self.foreign else 0.0


def bypassed(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    """Yield the part of the direct I/O that each device of each node saw, for all clients with data sets on it."""
    devices = defaultdict[Hashable, list[ObservedClient]](list)
    for item, host in known:
        if host.device is not None and not is_silent(host.device) and direct_bytes(item):
            devices[item.node, host.device.number].append((item, host))
    for clients in devices.values():
        for operation in _DATA:
            yield from _reached_device(clients, operation)


def unwitnessed(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    """Yield the part of the direct I/O that the kernel counted, of clients without a visible device."""
    for item, host in known:
        if host.unseen:
            for operation in _DATA:
                if asked := direct_bytes(item, (operation,)):
                    yield _witnessed(item, host, operation, asked)


def foreign_load(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    """Yield the foreign part of the traffic of each disk of each node, for all clients with data sets on it."""
    disks = defaultdict[Hashable, list[ObservedClient]](list)
    for item, host in known:
        disk = host.disk or host.device
        if disk is not None and not is_silent(disk) and item.answer.document.data_set_bytes:
            disks[item.node, disk.number].append((item, host))
    for clients in disks.values():
        yield from _foreign_part(clients)


def is_silent(device: DeviceUse) -> bool:
    """Whether a device has no statistics: they can be switched off, as those of multipath devices often are."""
    return not (device.read or device.written or device.busy or device.queue)


def direct_bytes(item: ClientMeasurement, operations: Collection[Operation] = _DATA) -> int:
    """Return how many bytes of the client's data set the tool moved without the page cache."""
    if not item.measurement.bypasses_cache or not item.answer.document.data_set_bytes:
        return 0
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation in operations)


def _reached_device(clients: Collection[ObservedClient], operation: Operation) -> Iterator[CheckedValue]:
    asked = sum(direct_bytes(item, (operation,)) for item, _ in clients)
    if asked:
        seen = max(_moved(host, host.device, operation) for _, host in clients)
        counted = [_counted(host, operation) for _, host in clients]
        # Other users' I/O hides what did not reach the device; the kernel's count of the tools' own does not.
        seen = min(seen, sum(one for one in counted if one is not None)) if None not in counted else seen
        part = 100 * seen / asked
        detail = f"the block device below the data set saw {percent_text(part)} of the direct {operation} bytes"
        yield CheckedValue(clients=numbers_of(clients), value=part, detail=detail)


def _witnessed(item: ClientMeasurement, host: HostUse, operation: Operation, asked: int) -> CheckedValue:
    counted = _counted(host, operation)
    part = 100 * (counted or 0.0) / asked
    words = "exposes no counters of the tool" if counted is None else f"counted {percent_text(part)} as I/O on storage"
    where = quote(host.unseen, _NAME_CHARACTERS)
    detail = f"no block device is visible below its data set on {where}; of its direct {operation} bytes the kernel"
    return CheckedValue(clients=(item.client,), value=part, detail=f"{detail} {words}")


def _foreign_part(clients: Collection[ObservedClient]) -> Iterator[CheckedValue]:
    judged = [operation for operation in _DATA if all(_is_known(item, host, operation) for item, host in clients)]
    host = max((host for _, host in clients), key=lambda host: host.seconds)
    disk = host.disk or host.device
    if disk is None or not judged:
        return
    volume = _traffic((_moved(host, disk, way), *_bytes_explained(clients, way)) for way in judged)
    counted = _counts(disk) if len(judged) == len(_DATA) else {}
    count = _traffic((host.seconds * rate, *_operations_explained(clients, ways)) for ways, rate in counted.items())
    busy = max(_busy(host) for _, host in clients)
    matters = busy >= registry.LEAST_DEVICE_BUSY and (
        volume.foreign >= host.seconds * registry.LEAST_FOREIGN_BYTES
        or count.foreign >= host.seconds * registry.LEAST_FOREIGN_OPERATIONS
    )
    detail = (
        f"the disk below the data set moved {size_text(volume.moved / host.seconds)}/s in "
        f"{number_text(count.moved / host.seconds)} operations/s and was busy for {percent_text(100 * busy)} of the "
        f"time; the tools do not explain {percent_text(volume.part)} of the bytes and {percent_text(count.part)} of "
        "the operations"
    )
    value = max(volume.part, count.part) if matters else 0.0
    yield CheckedValue(clients=numbers_of(clients), value=value, detail=detail)


def _traffic(ways: Iterable[tuple[float, float, float]]) -> _Traffic:
    """Sum up (moved, most explained, least explained) of each way."""
    known = [*ways]
    return _Traffic(
        moved=sum(moved for moved, _, _ in known),
        foreign=sum(max(0.0, moved - most) for moved, most, _ in known),
        own=sum(min(moved, least) for moved, _, least in known),
    )


def _counts(disk: DeviceUse) -> dict[_Ways, float]:
    """Return the operations per second of a disk, reads and writes separately if it counts them so."""
    if disk.reads is None or disk.writes is None:
        return {_DATA: disk.operations or 0.0}
    return {(Operation.READ,): disk.reads, (Operation.WRITE,): disk.writes}


def _is_known(item: ClientMeasurement, host: HostUse, operation: Operation) -> bool:
    """Whether the tool's I/O on the device is known: cached writes reach it at unpredictable times."""
    return item.measurement.bypasses_cache or (operation is Operation.READ and host.tool is not None)


def _bytes_explained(clients: Iterable[ObservedClient], way: Operation) -> tuple[float, float]:
    """Return the most and the least bytes that the clients' tools explain of their disk's in the observed time."""
    most = least = 0.0
    for item, host in clients:
        asked, longer = _asked(item, way), _longer(item, host)
        least += asked
        most += max(asked * longer, _counted(host, way) or 0.0)
        if way is Operation.WRITE:
            most += _syncs(item) * longer * _SYNC_BYTES
    return most, least


def _operations_explained(clients: Iterable[ObservedClient], ways: _Ways) -> tuple[float, float]:
    """Return the same for operations."""
    most = least = 0.0
    for item, host in clients:
        for sample in item.measurement.operations:
            # Trims are neither reads nor writes, but make a file system write its metadata.
            way = Operation.READ if sample.operation is Operation.READ else Operation.WRITE
            if way in ways:
                most += _most_operations(sample, host) * _scale(item, host, sample)
                least += max(sample.ios, sample.bytes / _PART) if sample.operation in _DATA else 0.0
    return most, least


def _most_operations(sample: OperationSample, host: HostUse) -> float:
    """Return the most operations of the device for those of a tool, while it measured."""
    if sample.operation is Operation.SYNC:
        return sample.ios * _SYNC_OPERATIONS
    return sample.ios + sample.bytes / _piece(host)


def _piece(host: HostUse) -> float:
    """Return the least mean size of the pieces into which large operations are split."""
    return _PART / math.ceil(_PART / host.uncut_bytes) if host.uncut_bytes else _LEAST_PIECE


def _scale(item: ClientMeasurement, host: HostUse, sample: OperationSample) -> float:
    """Return how many times as much a tool did in the observed time as while it measured."""
    counted = _counted(host, sample.operation) if sample.operation in _DATA else None
    return max(_longer(item, host), counted / sample.bytes if counted and sample.bytes else 0.0)


def _longer(item: ClientMeasurement, host: HostUse) -> float:
    return host.seconds * NANOSECONDS / item.measurement.runtime


def _asked(item: ClientMeasurement, way: Operation) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation is way)


def _syncs(item: ClientMeasurement) -> int:
    return sum(sample.ios for sample in item.measurement.operations if sample.operation is Operation.SYNC)


def _moved(host: HostUse, device: DeviceUse | None, operation: Operation) -> float:
    if device is None:
        return 0.0
    return host.seconds * (device.read if operation is Operation.READ else device.written)


def _counted(host: HostUse, operation: Operation) -> float | None:
    if host.tool is None:
        return None
    return host.seconds * (host.tool.read if operation is Operation.READ else host.tool.written)


def _busy(host: HostUse) -> float:
    """Return the part of the time in which the disk was busy; all of it if the disk has no such statistics."""
    disk = host.disk or host.device
    return disk.busy if disk is not None and (disk.busy or disk.queue) else 1.0


_WORDS_CHARACTERS = 200
_PERIODS_PER_SECOND = 10
"""Of a CPU quota, unless the kubelet's `cpuCFSQuotaPeriod` was changed."""


def judge_hosts(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    measured = evidence.measured
    known = [(item, host) for item in measured if (host := item.answer.host) is not None]
    return (
        *evaluate(registry.HOST_UNKNOWN, _unknown(measured)),
        *evaluate(registry.CLIENT_THROTTLED, _throttled(known)),
        *evaluate(registry.CLIENT_CPU_SATURATED, _cpu_use(known)),
        *evaluate(registry.NODE_CPU_SATURATED, _busy_nodes(known)),
        *evaluate(registry.NODE_MEMORY_SHORT, _available_memory(known)),
        *(() if evidence.facts.measures_network else _judge_network(evidence, known)),
        *evaluate(registry.CACHE_SIZED, cached(known)),
        *evaluate(registry.WRONG_DEVICE, _foreign_targets(measured)),
        *evaluate(registry.DEVICE_BYPASSED, bypassed(known)),
        *evaluate(registry.CACHE_NOT_EXCLUDED, () if _is_counted_by_pools(evidence) else unwitnessed(known)),
        *evaluate(registry.FOREIGN_DEVICE_LOAD, foreign_load(known)),
    )


def _judge_network(evidence: Evidence, known: Sequence[ObservedClient]) -> tuple[Finding, ...]:
    return (
        *evaluate(registry.NETWORK_BOUND, [*_links(known), *_within_capacity(evidence)]),
        *evaluate(registry.FASTER_THAN_NETWORK, _parts_of_capacity(evidence, Operation.READ)),
        *evaluate(registry.WRITES_FASTER_THAN_NETWORK, _parts_of_capacity(evidence, Operation.WRITE)),
    )


def _is_counted_by_pools(evidence: Evidence) -> bool:
    """Whether the pools' counters show what reached Ceph: then `PoolCountersDisagree` judges caches, in a window.

    The kernel's client of CephFS has no block device and does not count direct I/O as the tool's.
    """
    watch, span = evidence.facts.cluster, evidence.span if evidence.window else None
    return bool(watch and watch.owns_file_system and span and pool_io_within(watch, span))


def _unknown(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        host = item.answer.host
        if host is None:
            yield CheckedValue(clients=(item.client,), value=1, detail="its host was not observed")
        elif host.device is not None and is_silent(host.device) and direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield CheckedValue(clients=(item.client,), value=1, detail=detail)


def _throttled(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.cpu.throttled_seconds is not None:
            yield _throttling(item, host, host.cpu.throttled_seconds)


def _throttling(item: ClientMeasurement, host: HostUse, seconds: float) -> CheckedValue:
    """Use the periods too: the kernel sums the time over CPUs, so it can exceed the observed time."""
    part, detail = 100 * seconds / host.seconds, f"its CPU quota stopped it for {number_text(seconds)} s"
    if periods := host.cpu.throttled_periods:
        part = min(part, 100 * periods / (host.seconds * _PERIODS_PER_SECOND))
        detail = f"{detail}, summed over CPUs, in {periods} periods"
    detail = f"{detail}, in {number_text(host.seconds)} s of observation: {percent_text(part)}"
    return CheckedValue(clients=(item.client,), value=part, detail=detail)


def _cpu_use(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.cpu.used is not None:
            yield CheckedValue(clients=(item.client,), value=100 * host.cpu.used / _usable_cpus(host.cpu))


def _usable_cpus(cpu: CpuUse) -> float:
    return min(cpu.limit or cpu.node_processors, cpu.node_processors)


def _busy_nodes(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for node, clients in by_node(known).items():
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        detail = f"the CPUs of {quote(node, _NODE_CHARACTERS)} were busy for {percent_text(busy)} of the time"
        yield CheckedValue(clients=numbers_of(clients), value=busy, detail=detail)


def _available_memory(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for node, clients in by_node(known).items():
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        detail = f"{quote(node, _NODE_CHARACTERS)} had {percent_text(part)} of its memory available"
        yield CheckedValue(clients=numbers_of(clients), value=part, detail=detail)


def _links(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.network.link is not None:
            busiest = max(host.network.received, host.network.sent)
            yield CheckedValue(clients=(item.client,), value=100 * busiest / host.network.link)


def _within_capacity(evidence: Evidence) -> Iterator[CheckedValue]:
    """Yield rates that the network can have carried: faster ones show nothing about the network."""
    most = registry.FASTER_THAN_NETWORK.invalid
    for operation in _DATA:
        for found in _parts_of_capacity(evidence, operation):
            if most is None or found.value <= most:
                yield found


def _parts_of_capacity(evidence: Evidence, operation: Operation) -> Iterator[CheckedValue]:
    """Yield each node's rate as a part of what the user says that its network can carry."""
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if network is None or span is None or not span.length:
        return
    nodes = defaultdict[str, list[ClientMeasurement]](list)
    for item in evidence.measured:
        # Benchmarks that OSDs run themselves use no client's network.
        if not item.measurement.osds:
            nodes[item.node].append(item)
    for node, clients in nodes.items():
        rate = _rate(clients, operation, span)
        part = 100 * rate / network
        detail = (
            f"{operation} {size_text(rate)}/s on {quote(node, _NODE_CHARACTERS)}, whose network can carry "
            f"{size_text(network)}/s: {percent_text(part)}"
        )
        yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)


def _rate(clients: Iterable[ClientMeasurement], operation: Operation, span: Interval) -> float:
    shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
    return add([_share_rate(share, span) for share in shares]).bytes


def _share_rate(share: Share, span: Interval) -> Amount:
    """Return a client's rate in the window, or in the operation's own phase."""
    time = share.interval if share.is_phase else span
    return share.within(time).per_second(time.length)


def _foreign_targets(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if words := item.answer.document.foreign_target:
            yield CheckedValue(clients=(item.client,), value=1, detail=quote(words, _WORDS_CHARACTERS))
