"""From counters to what the host did while a client measured. Pure: no clock, no files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.agent.host.processes import ToolCounters
from plimsoll.agent.host.readings import Bounds, DeviceCounters, Snapshot
from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, MemoryUse, NetworkUse, ToolUse

_SECOND = 10**9
_MILLISECONDS = 1000
_SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What a client's data set lies on, as far as the host shows it.

    Attributes:
        device: `major:minor` of the block device below; None if there is none, or no data set on this host.
        disk: `major:minor` of what that is a part of; None if it is a whole one.
        file_system: its type, of a data set that is a file.
        uncut_bytes: operations up to this size reach the disk in one piece; None if that is not known.

    """

    device: str | None = None
    disk: str | None = None
    file_system: str = ""
    uncut_bytes: int | None = None


def host_use(
    bounds: Bounds, snapshots: Sequence[Snapshot], *, start: int, runtime: int, storage: Storage
) -> HostUse | None:
    """Return what happened from the last snapshot before a time to the first after the tool has run from then on.

    None if it was not seen from before its start to after its end, or if a counter that every Linux has went back.

    Args:
        bounds: of the host.
        snapshots: in the order in which they were taken.
        start: Unix nanoseconds.
        runtime: nanoseconds.
        storage: that the snapshots are of.

    """
    seen = _window(snapshots, start, runtime)
    if not seen:
        return None
    before, after = seen[0], seen[-1]
    seconds = (after.monotonic - before.monotonic) / _SECOND
    cpu, network = _cpu(bounds, before, after, seconds), _network(bounds, before, after, seconds)
    if cpu is None or network is None:
        return None
    device = _device(storage.device, before.device, after.device, seconds)
    return HostUse(
        seconds=seconds,
        cpu=cpu,
        memory=_memory(bounds, seen),
        network=network,
        device=device,
        disk=_device(storage.disk, before.disk, after.disk, seconds),
        uncut_bytes=storage.uncut_bytes if device else None,
        tool=_tool(before.tool, after.tool, seconds),
        unseen="" if device else _unseen(storage),
    )


def _unseen(storage: Storage) -> str:
    return f"block device {storage.device}" if storage.device else storage.file_system


def _window(snapshots: Sequence[Snapshot], start: int, runtime: int) -> Sequence[Snapshot]:
    """Return the snapshots around a measured part; none if it was not seen as a whole.

    The wall clock says only between which two it began: it may be set at any moment after that.
    """
    for index, (before, following) in enumerate(pairwise(snapshots)):
        if before.at <= start < following.at:
            begun = min(before.monotonic + start - before.at, following.monotonic)
            last = (number for number in range(index, len(snapshots)) if snapshots[number].monotonic >= begun + runtime)
            end = next(last, index)
            return snapshots[index : end + 1] if end > index else ()
    return ()


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
    """Look at the interfaces that were there all the time: on a node those of other pods come and go."""
    names = before.interfaces.keys() & after.interfaces.keys()
    names = names & bounds.physical or names
    uses = []
    for name in sorted(names):
        received = _grown(before.interfaces[name].received, after.interfaces[name].received)
        sent = _grown(before.interfaces[name].sent, after.interfaces[name].sent)
        if received is None or sent is None:
            return None
        uses.append(NetworkUse(received=received / seconds, sent=sent / seconds, link=bounds.speeds.get(name)))
    return max((use for use in uses if use.link), key=_load, default=_together(uses))


def _load(use: NetworkUse) -> float:
    """Return the part of its link that an interface uses: one that is full is full, however idle others are."""
    return max(use.received, use.sent) / use.link if use.link else 0.0


def _together(uses: Sequence[NetworkUse]) -> NetworkUse:
    """Add up interfaces that do not tell their speed."""
    return NetworkUse(received=sum(use.received for use in uses), sent=sum(use.sent for use in uses))


def _device(
    number: str | None, before: DeviceCounters | None, after: DeviceCounters | None, seconds: float
) -> DeviceUse | None:
    if number is None or before is None or after is None:
        return None
    read = _grown(before.read_sectors, after.read_sectors)
    written = _grown(before.written_sectors, after.written_sectors)
    busy, waiting = _grown(before.busy, after.busy), _grown(before.waiting, after.waiting)
    reads, writes = _grown(before.reads, after.reads), _grown(before.writes, after.writes)
    if read is None or written is None or reads is None or writes is None or busy is None or waiting is None:
        return None
    return DeviceUse(
        number=number,
        read=read * _SECTOR_BYTES / seconds,
        written=written * _SECTOR_BYTES / seconds,
        operations=(reads + writes) / seconds,
        reads=reads / seconds,
        writes=writes / seconds,
        # The kernel counts in clock ticks: of a device that never rests there may be one too many.
        busy=min(1.0, busy / _MILLISECONDS / seconds),
        queue=waiting / _MILLISECONDS / seconds,
    )


def _tool(before: ToolCounters | None, after: ToolCounters | None, seconds: float) -> ToolUse | None:
    if before is None or after is None:
        return None
    read, written = _grown(before.read, after.read), _grown(before.written, after.written)
    return None if read is None or written is None else ToolUse(read=read / seconds, written=written / seconds)


def _grown(before: int | None, after: int | None) -> int | None:
    """Return by how much a counter has grown; None if unknown: one that fell was reset, or has wrapped."""
    return None if before is None or after is None or after < before else after - before
