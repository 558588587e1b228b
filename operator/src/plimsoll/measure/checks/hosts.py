"""Whether the clients' hosts were the limit, and whether the I/O reached the intended storage."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import Finding
from plimsoll.measure.checks import registry as checks
from plimsoll.measure.checks.check import (
    CheckedValue,
    CheckedValues,
    client_value,
    number_text,
    percent_text,
    quote,
    size_text,
)
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.cluster import pool_io_within
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import DeviceUse, HostUse
from plimsoll.measure.timeline import NANOSECONDS, add

_DATA = (Operation.READ, Operation.WRITE)
_READS = (Operation.READ, Operation.READ_CHARACTERS, Operation.REWRITE, Operation.SEEK)
_NODE_CHARACTERS = 80
_SYNC_BYTES = 64 * 2**10
"""Of a journal, for one sync; ext4 writes 12 to 20 KiB, XFS pads its log to as much as 256 KiB."""
_SYNC_OPERATIONS = 8
_LEAST_PIECE = 64 * 2**10
"""The smallest pieces into which devices split larger operations."""
_PART = 2**20
"""256 pages, which the kernel passes down at once (`BIO_MAX_VECS`); more where memory is contiguous."""
_PERIODS_PER_SECOND = 10
"""Of a CPU quota, unless the kubelet's `cpuCFSQuotaPeriod` was changed."""

_Observed = tuple[ClientMeasurement, HostUse]
_Ways = tuple[Operation, ...]
"""Reads, writes, or both where the kernel counts them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """The bytes or operations of a disk in the observed time."""

    moved: float  # all of them
    foreign: float  # those that the tools do not explain, reads and writes separately
    own: float  # those that the tools certainly caused

    @classmethod
    def total(cls, ways: Iterable[tuple[float, float, float]]) -> "_Traffic":
        """Sum up (moved, most explained, least explained) of each way."""
        ways = [*ways]
        return cls(
            moved=sum(moved for moved, _, _ in ways),
            foreign=sum(max(0.0, moved - most) for moved, most, _ in ways),
            own=sum(min(moved, least) for moved, _, least in ways),
        )

    @property
    def part(self) -> float:
        """The foreign part of foreign and own traffic, in percent.

        Not of all traffic: traffic that may be either must not make the foreign part seem small.
        """
        return 100 * self.foreign / (self.foreign + self.own) if self.foreign else 0.0


def judge_hosts(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    observed = [(item, host) for item in evidence.measured if (host := item.answer.host) is not None]
    values = [
        *_visibility(evidence.measured),
        *_client_use(observed),
        *_node_use(observed),
        *(() if evidence.facts.measures_network else _network_use(evidence, observed)),
        *((checks.CACHE_SIZED, value) for value in _cached(observed)),
        *((checks.DEVICE_BYPASSED, value) for value in _bypassed(observed)),
        *(() if _is_counted_by_pools(evidence) else _unwitnessed(observed)),
        *((checks.FOREIGN_DEVICE_LOAD, value) for value in _foreign_load(observed)),
    ]
    return checks.findings_of(values)


def _visibility(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    for item in measured:
        host = item.answer.host
        if host is None:
            yield checks.HOST_UNKNOWN, client_value(item.client, 1, "its host was not observed")
        elif host.device is not None and _is_silent(host.device) and _direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield checks.HOST_UNKNOWN, client_value(item.client, 1, detail)
        if words := item.answer.document.foreign_target:
            yield checks.WRONG_DEVICE, client_value(item.client, 1, quote(words, 200))


def _client_use(observed: Iterable[_Observed]) -> CheckedValues:
    for item, host in observed:
        cpu, seconds = host.cpu, host.cpu.throttled_seconds
        if seconds is not None:
            part, detail = 100 * seconds / host.seconds, f"its CPU quota stopped it for {number_text(seconds)} s"
            # The kernel sums the time over CPUs, so it can exceed the observed time.
            if periods := cpu.throttled_periods:
                part = min(part, 100 * periods / (host.seconds * _PERIODS_PER_SECOND))
                detail = f"{detail}, summed over CPUs, in {periods} periods"
            detail = f"{detail}, in {number_text(host.seconds)} s of observation: {percent_text(part)}"
            yield checks.CLIENT_THROTTLED, client_value(item.client, part, detail)
        if cpu.used is not None:
            usable = min(cpu.limit or cpu.node_processors, cpu.node_processors)
            yield checks.CLIENT_CPU_SATURATED, client_value(item.client, 100 * cpu.used / usable)


def _node_use(observed: Iterable[_Observed]) -> CheckedValues:
    for node, clients in _by_node(observed).items():
        name, numbers = quote(node, _NODE_CHARACTERS), _numbers(clients)
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        detail = f"the CPUs of {name} were busy for {percent_text(busy)} of the time"
        yield checks.NODE_CPU_SATURATED, CheckedValue(clients=numbers, value=busy, detail=detail)
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        detail = f"{name} had {percent_text(part)} of its memory available"
        yield checks.NODE_MEMORY_SHORT, CheckedValue(clients=numbers, value=part, detail=detail)


def _by_node(observed: Iterable[_Observed]) -> dict[str, list[_Observed]]:
    nodes = defaultdict[str, list[_Observed]](list)
    for item, host in observed:
        nodes[item.node].append((item, host))
    return nodes


def _numbers(clients: Iterable[_Observed]) -> tuple[int, ...]:
    return tuple(item.client for item, _ in clients)


def _network_use(evidence: Evidence, observed: Iterable[_Observed]) -> CheckedValues:
    for item, host in observed:
        if host.network.link is not None:
            busiest = max(host.network.received, host.network.sent)
            yield checks.NETWORK_BOUND, client_value(item.client, 100 * busiest / host.network.link)
    most = checks.FASTER_THAN_NETWORK.invalid
    too_fast = {Operation.READ: checks.FASTER_THAN_NETWORK, Operation.WRITE: checks.WRITES_FASTER_THAN_NETWORK}
    for operation, check in too_fast.items():
        for value in _parts_of_capacity(evidence, operation):
            # Faster rates than the network can have carried show nothing about the network.
            if most is None or value.value <= most:
                yield checks.NETWORK_BOUND, value
            yield check, value


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
        shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
        # The rate in the window, or in the operation's own phase.
        times = [(share, share.interval if share.is_phase else span) for share in shares]
        rate = add([share.within(time).per_second(time.length) for share, time in times]).bytes
        part = 100 * rate / network
        detail = (
            f"{operation} {size_text(rate)}/s on {quote(node, _NODE_CHARACTERS)}, whose network can carry "
            f"{size_text(network)}/s: {percent_text(part)}"
        )
        yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)


def _cached(observed: Iterable[_Observed]) -> Iterator[CheckedValue]:
    """Yield how much the clients of a node read through the cache, and wrote through it without making it durable.

    Clients without a data set have nothing that their page cache could hold.
    """
    buffered = [(item, host) for item, host in observed if not item.measurement.bypasses_cache and _data_bytes(item)]
    for node, clients in _by_node(buffered).items():
        name = quote(node, _NODE_CHARACTERS)
        # If a tool was too fast to be timed, a cache is even more likely.
        reading = [
            (item, host)
            for item, host in clients
            if any(operation in item.measurement.untimed or _does(item, operation) for operation in _READS)
        ]
        if reading:
            size = sum(_data_bytes(item) for item, _ in reading)
            yield _compared_with_memory(f"data sets read on {name}", reading, size)
        writing = [
            (item, host)
            for item, host in clients
            if _does(item, Operation.WRITE) and not (_does(item, Operation.SYNC) or item.measurement.flushes)
        ]
        if writing:
            # Overwriting the same data takes no more memory.
            size = sum(min(_data_bytes(item), _bytes(item, (Operation.WRITE,))) for item, _ in writing)
            yield _compared_with_memory(f"writes without fsync on {name}", writing, size)


def _data_bytes(item: ClientMeasurement) -> int:
    """Return the size of what the tool worked on: of its files, or of the data set."""
    size = item.measurement.data_bytes
    return item.answer.document.data_set_bytes if size is None else size


def _does(item: ClientMeasurement, operation: Operation) -> bool:
    samples = item.measurement.operations
    return any(sample.operation is operation and (sample.ios or sample.bytes) for sample in samples)


def _bytes(item: ClientMeasurement, operations: Collection[Operation]) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation in operations)


def _compared_with_memory(what: str, clients: Collection[_Observed], size: int) -> CheckedValue:
    memory = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit for _, host in clients if host.memory.limit]
    if len(limits) == len(clients):
        memory = min(memory, sum(limits))
    detail = (
        f"{what} through the page cache: {size_text(size)}, {number_text(size / memory)} times the {size_text(memory)} "
        "of memory that may hold them"
    )
    return CheckedValue(clients=_numbers(clients), value=size / memory, detail=detail)


def _is_silent(device: DeviceUse) -> bool:
    """Whether a device has no statistics: they can be switched off, as those of multipath devices often are."""
    return not (device.read or device.written or device.busy or device.queue)


def _direct_bytes(item: ClientMeasurement, operations: Collection[Operation] = _DATA) -> int:
    """Return how many bytes of the client's data set the tool moved without the page cache."""
    if not item.measurement.bypasses_cache or not item.answer.document.data_set_bytes:
        return 0
    return _bytes(item, operations)


def _bypassed(observed: Iterable[_Observed]) -> Iterator[CheckedValue]:
    """Yield the part of the direct I/O that each device of each node saw, for all clients with data sets on it."""
    devices = defaultdict[Hashable, list[_Observed]](list)
    for item, host in observed:
        if host.device is not None and not _is_silent(host.device) and _direct_bytes(item):
            devices[item.node, host.device.number].append((item, host))
    for clients, operation in ((clients, operation) for clients in devices.values() for operation in _DATA):
        asked = sum(_direct_bytes(item, (operation,)) for item, _ in clients)
        if not asked:
            continue
        seen = max(_moved(host, host.device, operation) for _, host in clients)
        counted = [_counted(host, operation) for _, host in clients]
        # Other users' I/O hides what did not reach the device; the kernel's count of the tools' own does not.
        if None not in counted:
            seen = min(seen, sum(volume for volume in counted if volume is not None))
        part = 100 * seen / asked
        detail = f"the block device below the data set saw {percent_text(part)} of the direct {operation} bytes"
        yield CheckedValue(clients=_numbers(clients), value=part, detail=detail)


def _is_counted_by_pools(evidence: Evidence) -> bool:
    """Whether the pools' counters show what reached Ceph: then `PoolCountersDisagree` judges caches, in a window.

    The kernel's client of CephFS has no block device and does not count direct I/O as the tool's.
    """
    watch, span = evidence.facts.cluster, evidence.span if evidence.window else None
    return bool(watch and watch.owns_file_system and span and pool_io_within(watch, span))


def _unwitnessed(observed: Iterable[_Observed]) -> CheckedValues:
    """Yield the part of the direct I/O that the kernel counted, of clients without a visible device."""
    for item, host in observed:
        for operation in _DATA if host.unseen else ():
            if asked := _direct_bytes(item, (operation,)):
                counted = _counted(host, operation)
                part = 100 * (counted or 0.0) / asked
                words = f"counted {percent_text(part)} as I/O on storage"
                detail = (
                    f"no block device is visible below its data set on {quote(host.unseen, 120)}; of its direct "
                    f"{operation} bytes the kernel {'exposes no counters of the tool' if counted is None else words}"
                )
                yield checks.CACHE_NOT_EXCLUDED, client_value(item.client, part, detail)


def _foreign_load(observed: Iterable[_Observed]) -> Iterator[CheckedValue]:
    """Yield the foreign part of the traffic of each disk of each node, for all clients with data sets on it."""
    disks = defaultdict[Hashable, list[_Observed]](list)
    for item, host in observed:
        disk = host.disk or host.device
        if disk is not None and not _is_silent(disk) and item.answer.document.data_set_bytes:
            disks[item.node, disk.number].append((item, host))
    for clients in disks.values():
        if value := _foreign_part(clients):
            yield value


def _foreign_part(clients: Collection[_Observed]) -> CheckedValue | None:
    # Cached writes reach the device at unpredictable times.
    judged = [
        operation
        for operation in _DATA
        if all(
            item.measurement.bypasses_cache or (operation is Operation.READ and host.tool is not None)
            for item, host in clients
        )
    ]
    host = max((host for _, host in clients), key=lambda host: host.seconds)
    disk = host.disk or host.device
    if disk is None or not judged:
        return None
    volume = _Traffic.total((_moved(host, disk, way), *_bytes_explained(clients, way)) for way in judged)
    rates: dict[_Ways, float] = {}
    if len(judged) == len(_DATA):
        rates = {_DATA: disk.operations or 0.0}
        if disk.reads is not None and disk.writes is not None:
            rates = {(Operation.READ,): disk.reads, (Operation.WRITE,): disk.writes}
    count = _Traffic.total((host.seconds * rate, *_operations_explained(clients, ways)) for ways, rate in rates.items())
    # A disk without such statistics counts as busy all the time.
    disks = [host.disk or host.device for _, host in clients]
    busy = max(it.busy if it is not None and (it.busy or it.queue) else 1.0 for it in disks)
    matters = busy >= checks.LEAST_DEVICE_BUSY and (
        volume.foreign >= host.seconds * checks.LEAST_FOREIGN_BYTES
        or count.foreign >= host.seconds * checks.LEAST_FOREIGN_OPERATIONS
    )
    detail = (
        f"the disk below the data set moved {size_text(volume.moved / host.seconds)}/s in "
        f"{number_text(count.moved / host.seconds)} operations/s and was busy for {percent_text(100 * busy)} of the "
        f"time; the tools do not explain {percent_text(volume.part)} of the bytes and {percent_text(count.part)} of "
        "the operations"
    )
    value = max(volume.part, count.part) if matters else 0.0
    return CheckedValue(clients=_numbers(clients), value=value, detail=detail)


def _bytes_explained(clients: Iterable[_Observed], way: Operation) -> tuple[float, float]:
    """Return the most and the least bytes that the clients' tools explain of their disk's in the observed time."""
    most = least = 0.0
    for item, host in clients:
        asked, longer = _bytes(item, (way,)), _longer(item, host)
        least += asked
        most += max(asked * longer, _counted(host, way) or 0.0)
        if way is Operation.WRITE:
            syncs = sum(sample.ios for sample in item.measurement.operations if sample.operation is Operation.SYNC)
            most += syncs * longer * _SYNC_BYTES
    return most, least


def _operations_explained(clients: Iterable[_Observed], ways: _Ways) -> tuple[float, float]:
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
            counted = _counted(host, operation) if operation in _DATA else None
            most += on_device * max(_longer(item, host), counted / sample.bytes if counted and sample.bytes else 0.0)
            least += max(sample.ios, sample.bytes / _PART) if operation in _DATA else 0.0
    return most, least


def _longer(item: ClientMeasurement, host: HostUse) -> float:
    return host.seconds * NANOSECONDS / item.measurement.runtime


def _moved(host: HostUse, device: DeviceUse | None, operation: Operation) -> float:
    if device is None:
        return 0.0
    return host.seconds * (device.read if operation is Operation.READ else device.written)


def _counted(host: HostUse, operation: Operation) -> float | None:
    if host.tool is None:
        return None
    return host.seconds * (host.tool.read if operation is Operation.READ else host.tool.written)
