"""Whether direct I/O reached the block device below the data set, and whether others used that device as well.

A device's counters cover the whole observed time, which includes the measured part, and all users of the device. So
they can only show more than the tool did, unless something else answered in the device's place. Other users may hide
that; the kernel's count of each tool's own I/O on storage, where it is visible, is the second witness.

The excess is compared with the tools of all clients on the same disk, as if they had run during the whole observed
time as they did while they measured. Reads are compared with reads and writes with writes. The kernel splits large
operations: into parts of 256 pages, split again by what the queue of the disk takes at once. docs/trust.md has the
formula and the reasoning.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.checking import host_checks
from plimsoll.measure.checking.caches import ObservedClient, numbers_of
from plimsoll.measure.checking.check import CheckedValue
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import DeviceUse, HostUse, OperationSample
from plimsoll.measure.window import NANOSECONDS
from plimsoll.measure.wording import number_text, percent_text, quote, size_text

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
    matters = busy >= host_checks.LEAST_DEVICE_BUSY and (
        volume.foreign >= host.seconds * host_checks.LEAST_FOREIGN_BYTES
        or count.foreign >= host.seconds * host_checks.LEAST_FOREIGN_OPERATIONS
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
