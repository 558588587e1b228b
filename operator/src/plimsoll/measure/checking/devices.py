"""Whether direct I/O reached the block device below the data set, and whether others used that device as well.

Bytes that a device moved are those of the whole observed time, which contains the measured part, and of all its users.
So they can only be more than those of the tool, unless something answered in the device's place. What others moved may
hide that; the kernel's count of what each tool did on storage, where it shows that, is the second witness.

How much more is held against the tools of all clients on the same disk, as if they had gone on all the time as they did
while they measured, or as the kernel counted them if that is more. What is beyond was somebody else's, or of a layer in
between that writes more than it is given: the counters do not tell which, so numbers are never Invalid for it. A sync
makes a file system write its journal. Devices cut large operations and join small ones, so operations are counted
generously. What is little in itself is no matter, nor is anything on a disk that had nothing to do most of the time:
there was room for both.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.checking import host_checks
from plimsoll.measure.checking.caches import Observed, numbers_of
from plimsoll.measure.checking.check import Observation
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import DeviceUse, HostUse
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """Bytes and operations in the observed time; what cannot be told of both sides is in neither."""

    bytes: float
    operations: float

    def beyond(self, other: "_Traffic") -> "_Traffic":
        """Return what is more than another, of each."""
        return _Traffic(
            bytes=max(0.0, self.bytes - other.bytes), operations=max(0.0, self.operations - other.operations)
        )


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
    moved = _moved_by_disk(host, disk, judged)
    ours = [_asked_for(item, host, judged) for item, host in clients]
    tools = _Traffic(bytes=sum(one.bytes for one in ours), operations=sum(one.operations for one in ours))
    foreign = moved.beyond(tools)
    parts = (_part(foreign.bytes, moved.bytes), _part(foreign.operations, moved.operations))
    busy = max(_busy(host) for _, host in clients)
    matters = busy >= host_checks.LEAST_DEVICE_BUSY and (
        foreign.bytes >= host.seconds * host_checks.LEAST_FOREIGN_BYTES
        or foreign.operations >= host.seconds * host_checks.LEAST_FOREIGN_OPERATIONS
    )
    detail = (
        f"the disk below the data set moved {number_text(moved.bytes / host.seconds)} bytes/s in "
        f"{number_text(moved.operations / host.seconds)} operations/s and was busy for {_PERCENT * busy:.3g} % of the "
        f"time; the tools do not explain {parts[0]:.3g} % of the bytes, and {parts[1]:.3g} % of the operations"
    )
    yield Observation(clients=numbers_of(clients), value=max(parts) if matters else 0.0, detail=detail)


def _is_known(item: Measured, host: HostUse, operation: Operation) -> bool:
    """Return whether it can be told what a tool made the device do: what it wrote to a cache comes when it likes."""
    return item.measurement.bypasses_cache or (operation is Operation.READ and host.tool is not None)


def _moved_by_disk(host: HostUse, disk: DeviceUse, operations: Collection[Operation]) -> _Traffic:
    volume = sum(_moved(host, disk, operation) for operation in operations)
    # The kernel's counts of reads and of writes come as a sum.
    count = disk.operations or 0.0 if len(operations) == len(_DATA) else 0.0
    return _Traffic(bytes=volume, operations=host.seconds * count)


def _asked_for(item: Measured, host: HostUse, operations: Collection[Operation]) -> _Traffic:
    """Return the most that a client's tool explains of what its disk did in the observed time."""
    longer = host.seconds * NANOSECONDS / item.measurement.runtime
    samples = [sample for sample in item.measurement.operations if sample.operation is not Operation.SYNC]
    syncs = sum(sample.ios for sample in item.measurement.operations if sample.operation is Operation.SYNC)
    volume = 0.0
    for operation in operations:
        asked = sum(sample.bytes for sample in samples if sample.operation is operation)
        if operation is Operation.WRITE:
            asked += syncs * _SYNC_BYTES
        volume += max(asked * longer, _counted(host, operation) or 0.0)
    count = sum(sample.ios + sample.bytes / _LEAST_PIECE for sample in samples) + syncs * _SYNC_OPERATIONS
    return _Traffic(bytes=volume, operations=count * longer)


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


def _part(foreign: float, moved: float) -> float:
    return _PERCENT * foreign / moved if moved else 0.0
