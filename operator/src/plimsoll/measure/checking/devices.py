"""Whether direct I/O reached the block device below the data set, and whether others used that device as well.

Bytes that a device moved are those of the whole observed time, which contains the measured part, and of all its users.
So they can only be more than those of the tool, unless something answered in the device's place. What others moved may
hide that; the kernel's count of what each tool did on storage, where it shows that, is the second witness.

How much more is held against the tools of all clients on the same disk, as if they had gone on all the time as they did
while they measured, or as the kernel counted them if that is more. What is beyond was somebody else's, or of a layer in
between that does more than it is given: the counters do not tell which, so numbers are never Invalid for it. A sync
makes a file system write its journal. What is little in itself is no matter, nor is anything on a disk that had nothing
to do most of the time: there was room for both.

Reads are held against reads and writes against writes, so whoever reads beside a tool that only writes is seen to the
last operation. The kernel cuts large operations: it hands them down in parts of 256 pages, cut again by what the queue
of the disk takes at once, and an operation that does not begin where a part may has one more. Where that is not known,
since the data set is a file, which may lie in pieces, or layers in between have limits of their own, operations are
counted generously. Small ones may be joined, and what others do in their place is not seen.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.checking import host_checks
from plimsoll.measure.checking.caches import Observed, numbers_of
from plimsoll.measure.checking.check import Observation
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import DeviceUse, HostUse, OperationSample
from plimsoll.measure.window import NANOSECONDS
from plimsoll.measure.wording import number_text, quote

_DATA = (Operation.READ, Operation.WRITE)
_PERCENT = 100
_NAME_CHARACTERS = 120
_SYNC_BYTES = 64 * 2**10
"""Of a journal, for one sync; ext4 was seen to write 12 to 20 KiB, XFS pads its log to as much as 256."""
_SYNC_OPERATIONS = 8
_LEAST_PIECE = 64 * 2**10
"""Bytes into which devices cut what is larger, at least."""
_PART = 2**20
"""Bytes of 256 pages, which the kernel hands down at once (`BIO_MAX_VECS`), or more where memory is contiguous."""


_Ways = tuple[Operation, ...]
"""Reads, writes, or both where the kernel's counts come as a sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """What a disk did in the observed time.

    Attributes:
        moved: all of it.
        foreign: what the tools do not explain, each way by itself.
        own: what the tools did themselves, at least.

    """

    moved: float
    foreign: float
    own: float

    @property
    def part(self) -> float:
        """What they do not explain, as a part of that and their own, in percent.

        Not as a part of all: what more others do that may be the tools' must not make the rest seem little.
        """
        return _PERCENT * self.foreign / (self.foreign + self.own) if self.foreign else 0.0


def bypassed(known: Iterable[Observed]) -> Iterator[Observation]:
    """Look at each device of each node, with all clients that have their data sets on it."""
    devices = defaultdict[Hashable, list[Observed]](list)
    for item, host in known:
        if host.device is not None and not is_silent(host.device) and direct_bytes(item):
            devices[item.node, host.device.number].append((item, host))
    for clients in devices.values():
        for operation in _DATA:
            yield from _seen_by_device(clients, operation)


def unwitnessed(known: Iterable[Observed]) -> Iterator[Observation]:
    """Look at clients whose data set lies on no device that can be seen; the kernel counts what their tools did."""
    for item, host in known:
        if host.unseen:
            for operation in _DATA:
                if asked := direct_bytes(item, (operation,)):
                    yield _witnessed(item, host, operation, asked)


def foreign_load(known: Iterable[Observed]) -> Iterator[Observation]:
    """Look at each disk of each node, with all clients that have their data sets on it."""
    disks = defaultdict[Hashable, list[Observed]](list)
    for item, host in known:
        disk = host.disk or host.device
        if disk is not None and not is_silent(disk) and item.answer.document.data_set_bytes:
            disks[item.node, disk.number].append((item, host))
    for clients in disks.values():
        yield from _beside(clients)


def is_silent(device: DeviceUse) -> bool:
    """Return whether a device counts nothing: its statistics can be off, as those of multipath devices often are."""
    return not (device.read or device.written or device.busy or device.queue)


def direct_bytes(item: Measured, operations: Collection[Operation] = _DATA) -> int:
    """Return how much data of the client's data set the tool moved past the page cache."""
    if not item.measurement.bypasses_cache or not item.answer.document.data_set_bytes:
        return 0
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation in operations)


def _seen_by_device(clients: Collection[Observed], operation: Operation) -> Iterator[Observation]:
    asked = sum(direct_bytes(item, (operation,)) for item, _ in clients)
    if asked:
        seen = max(_moved(host, host.device, operation) for _, host in clients)
        counted = [_counted(host, operation) for _, host in clients]
        # Somebody else's I/O on the device hides what did not reach it; the kernel's count of the tools' own does not.
        seen = min(seen, sum(one for one in counted if one is not None)) if None not in counted else seen
        part = _PERCENT * seen / asked
        detail = f"the block device below the data set saw {part:.3g} % of the direct {operation} bytes"
        yield Observation(clients=numbers_of(clients), value=part, detail=detail)


def _witnessed(item: Measured, host: HostUse, operation: Operation, asked: int) -> Observation:
    counted = _counted(host, operation)
    part = _PERCENT * (counted or 0.0) / asked
    words = "does not show what it counts of the tool" if counted is None else f"counted {part:.3g} % as I/O on storage"
    where = quote(host.unseen, _NAME_CHARACTERS)
    detail = f"no block device can be seen below its data set on {where}; of its direct {operation} bytes the kernel"
    return Observation(clients=(item.client,), value=part, detail=f"{detail} {words}")


def _beside(clients: Collection[Observed]) -> Iterator[Observation]:
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
        f"the disk below the data set moved {number_text(volume.moved / host.seconds)} bytes/s in "
        f"{number_text(count.moved / host.seconds)} operations/s and was busy for {_PERCENT * busy:.3g} % of the "
        f"time; the tools do not explain {volume.part:.3g} % of the bytes, and {count.part:.3g} % of the operations"
    )
    value = max(volume.part, count.part) if matters else 0.0
    yield Observation(clients=numbers_of(clients), value=value, detail=detail)


def _traffic(ways: Iterable[tuple[float, float, float]]) -> _Traffic:
    """Add up what was moved each way, what of that is beyond the most that is explained, and the least that is."""
    known = [*ways]
    return _Traffic(
        moved=sum(moved for moved, _, _ in known),
        foreign=sum(max(0.0, moved - most) for moved, most, _ in known),
        own=sum(min(moved, least) for moved, _, least in known),
    )


def _counts(disk: DeviceUse) -> dict[_Ways, float]:
    """Return the operations per second of a disk, of either kind by itself if it tells."""
    if disk.reads is None or disk.writes is None:
        return {_DATA: disk.operations or 0.0}
    return {(Operation.READ,): disk.reads, (Operation.WRITE,): disk.writes}


def _is_known(item: Measured, host: HostUse, operation: Operation) -> bool:
    """Return whether it can be told what a tool made the device do: what it wrote to a cache comes when it likes."""
    return item.measurement.bypasses_cache or (operation is Operation.READ and host.tool is not None)


def _bytes_explained(clients: Iterable[Observed], way: Operation) -> tuple[float, float]:
    """Return the most that the clients' tools explain of what their disk moved in the observed time, and the least."""
    most = least = 0.0
    for item, host in clients:
        asked, longer = _asked(item, way), _longer(item, host)
        least += asked
        most += max(asked * longer, _counted(host, way) or 0.0)
        if way is Operation.WRITE:
            most += _syncs(item) * longer * _SYNC_BYTES
    return most, least


def _operations_explained(clients: Iterable[Observed], ways: _Ways) -> tuple[float, float]:
    """Return the same of operations."""
    most = least = 0.0
    for item, host in clients:
        for sample in item.measurement.operations:
            # Trims are neither reads nor writes, but a file system has to write down what they left.
            way = Operation.READ if sample.operation is Operation.READ else Operation.WRITE
            if way in ways:
                most += _most_operations(sample, host) * _scale(item, host, sample)
                least += max(sample.ios, sample.bytes / _PART) if sample.operation in _DATA else 0.0
    return most, least


def _most_operations(sample: OperationSample, host: HostUse) -> float:
    """Return the most that a device makes of what a tool did, while it measured."""
    if sample.operation is Operation.SYNC:
        return sample.ios * _SYNC_OPERATIONS
    return sample.ios + sample.bytes / _piece(host)


def _piece(host: HostUse) -> float:
    """Return the mean bytes of the parts into which large operations are cut, at least."""
    return _PART / math.ceil(_PART / host.uncut_bytes) if host.uncut_bytes else _LEAST_PIECE


def _scale(item: Measured, host: HostUse, sample: OperationSample) -> float:
    """Return how many times more a tool did in the observed time than while it measured."""
    counted = _counted(host, sample.operation) if sample.operation in _DATA else None
    return max(_longer(item, host), counted / sample.bytes if counted and sample.bytes else 0.0)


def _longer(item: Measured, host: HostUse) -> float:
    return host.seconds * NANOSECONDS / item.measurement.runtime


def _asked(item: Measured, way: Operation) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation is way)


def _syncs(item: Measured) -> int:
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
    """Return the part of the time in which a disk had something to do; all of it if the disk does not tell."""
    disk = host.disk or host.device
    return disk.busy if disk is not None and (disk.busy or disk.queue) else 1.0
