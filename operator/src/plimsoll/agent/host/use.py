"""From counters to what the host did while a client measured. Pure: no clock, no files."""

from collections.abc import Sequence

from plimsoll.agent.host.readings import Bounds, DeviceCounters, Snapshot
from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, MemoryUse, NetworkUse

_SECOND = 10**9
_MILLISECONDS = 1000
_SECTOR_BYTES = 512


def host_use(
    bounds: Bounds, snapshots: Sequence[Snapshot], *, start: int, end: int, device: str | None
) -> HostUse | None:
    """Return what happened from the last snapshot before a time to the first after another; Unix nanoseconds.

    None if it was not seen from before its start to after its end, or if a counter that every Linux has went back.
    `device` is `major:minor` of the device in the snapshots.
    """
    before = max((snapshot for snapshot in snapshots if snapshot.at <= start), key=_time, default=None)
    after = min((snapshot for snapshot in snapshots if snapshot.at >= end), key=_time, default=None)
    if before is None or after is None or before.at >= after.at:
        return None
    seconds = (after.at - before.at) / _SECOND
    seen = [snapshot for snapshot in snapshots if before.at <= snapshot.at <= after.at]
    cpu, network = _cpu(bounds, before, after, seconds), _network(bounds, before, after, seconds)
    if cpu is None or network is None:
        return None
    return HostUse(
        seconds=seconds,
        cpu=cpu,
        memory=_memory(bounds, seen),
        network=network,
        device=_device(device, before.device, after.device, seconds),
    )


def _time(snapshot: Snapshot) -> int:
    return snapshot.at


def _cpu(bounds: Bounds, before: Snapshot, after: Snapshot, seconds: float) -> CpuUse | None:
    busy = _grown(before.busy, after.busy)
    idle = max(0, after.idle - before.idle)
    if busy is None or not busy + idle:
        return None
    used = _grown(before.cgroup.cpu, after.cgroup.cpu)
    throttled = _grown(before.cgroup.throttled, after.cgroup.throttled)
    return CpuUse(
        limit=bounds.usable,
        used=None if used is None else used / _SECOND / seconds,
        throttled_periods=_grown(before.cgroup.throttled_periods, after.cgroup.throttled_periods),
        throttled_seconds=None if throttled is None else throttled / _SECOND,
        node_busy=busy / (busy + idle),
        node_processors=bounds.processors,
    )


def _memory(bounds: Bounds, seen: Sequence[Snapshot]) -> MemoryUse:
    used = (snapshot.cgroup.memory for snapshot in seen if snapshot.cgroup.memory is not None)
    return MemoryUse(
        limit=bounds.memory,
        used=max(used, default=None),
        node_total=seen[-1].memory_total,
        node_available=min(snapshot.memory_available for snapshot in seen),
    )


def _network(bounds: Bounds, before: Snapshot, after: Snapshot, seconds: float) -> NetworkUse | None:
    """Add up the interfaces that were there all the time: on a node those of other pods come and go."""
    names = before.interfaces.keys() & after.interfaces.keys()
    names = names & bounds.physical or names
    received = [_grown(before.interfaces[name].received, after.interfaces[name].received) for name in names]
    sent = [_grown(before.interfaces[name].sent, after.interfaces[name].sent) for name in names]
    arrived, left = _sum(received), _sum(sent)
    if arrived is None or left is None:
        return None
    return NetworkUse(received=arrived / seconds, sent=left / seconds, link=bounds.link)


def _device(
    number: str | None, before: DeviceCounters | None, after: DeviceCounters | None, seconds: float
) -> DeviceUse | None:
    if number is None or before is None or after is None:
        return None
    read = _grown(before.read_sectors, after.read_sectors)
    written = _grown(before.written_sectors, after.written_sectors)
    busy, waiting = _grown(before.busy, after.busy), _grown(before.waiting, after.waiting)
    if read is None or written is None or busy is None or waiting is None:
        return None
    return DeviceUse(
        number=number,
        read=read * _SECTOR_BYTES / seconds,
        written=written * _SECTOR_BYTES / seconds,
        # The kernel counts in clock ticks: of a device that never rests there may be one too many.
        busy=min(1.0, busy / _MILLISECONDS / seconds),
        queue=waiting / _MILLISECONDS / seconds,
    )


def _grown(before: int | None, after: int | None) -> int | None:
    """Return by how much a counter has grown; None if unknown: one that fell was reset, or has wrapped."""
    return None if before is None or after is None or after < before else after - before


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
