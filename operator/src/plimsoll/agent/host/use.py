"""Computes the host's load during a measurement from snapshots of counters. Pure: no clock, no files."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TypeVar

from plimsoll.agent.host.readings import Bounds, DeviceCounters, HostSnapshot, ToolCounters, Traffic
from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, MemoryUse, NetworkUse, ToolIo

_SECOND = 10**9
_MILLISECONDS = 1000
_NANOSECONDS = 10**6
"""Of a millisecond."""
_SECTOR_BYTES = 512

C = TypeVar("C", DeviceCounters, ToolCounters, Traffic)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetStorage:
    """The storage of a client's data set as far as the host shows it."""

    device: str | None = None  # `major:minor` of the block device; None if there is none, or no data set on this host
    disk: str | None = None  # `major:minor` of the disk that the device is a part of; None for a whole device
    file_system: str = ""  # type of the file system of a data set that is a file
    uncut_bytes: int | None = None  # size of the largest operation that reaches the disk unsplit; None if unknown
    identity: str = ""  # what identifies it under any device number and on any mount; empty if unknown


def host_use(
    bounds: Bounds, snapshots: Sequence[HostSnapshot], *, start: int, runtime: int, storage: DataSetStorage
) -> HostUse | None:
    """Return the load between the last snapshot before a measurement and the first one after it.

    None if the snapshots do not enclose the measurement, or if a counter that every Linux has decreased.

    Args:
        bounds: the client's limits.
        snapshots: in the order in which they were taken.
        start: start of the measurement; Unix nanoseconds.
        runtime: its duration; nanoseconds.
        storage: the storage that the snapshots describe.

    """
    window = _window(snapshots, start, runtime)
    if not window:
        return None
    before, after = window[0], window[-1]
    seconds = (after.monotonic - before.monotonic) / _SECOND
    cpu, network = _cpu(bounds, window, start), _network(bounds, before, after, seconds)
    if cpu is None or network is None:
        return None
    device = _device(storage.device, before.device, after.device, seconds)
    tool = _increases(before.tool, after.tool)
    return HostUse(
        seconds=seconds,
        cpu=cpu,
        memory=MemoryUse(
            limit=bounds.memory,
            used=max((seen.cgroup.memory for seen in window if seen.cgroup.memory is not None), default=None),
            node_total=after.memory_total,
            node_available=min(snapshot.memory_available for snapshot in window),
        ),
        network=network,
        device=device,
        disk=_device(storage.disk, before.disk, after.disk, seconds),
        uncut_bytes=storage.uncut_bytes if device else None,
        tool=ToolIo(read=tool.read / seconds, written=tool.written / seconds) if tool else None,
        unseen="" if device else f"block device {storage.device}" if storage.device else storage.file_system,
        volume=storage.identity,
    )


def _window(snapshots: Sequence[HostSnapshot], start: int, runtime: int) -> Sequence[HostSnapshot]:
    """Return the snapshots that enclose a measurement; empty if they do not.

    The wall clock only locates the start between two snapshots: it may be set at any time after that.
    """
    for index, (before, following) in enumerate(pairwise(snapshots)):
        if before.at <= start < following.at:
            begun = min(before.monotonic + start - before.at, following.monotonic)
            last = (number for number in range(index, len(snapshots)) if snapshots[number].monotonic >= begun + runtime)
            end = next(last, index)
            return snapshots[index : end + 1] if end > index else ()
    return ()


def _cpu(bounds: Bounds, window: Sequence[HostSnapshot], start: int) -> CpuUse | None:
    before, after = window[0], window[-1]
    seconds = (after.monotonic - before.monotonic) / _SECOND
    busy = _increase(before.busy, after.busy)
    idle = max(0, after.idle - before.idle)
    if busy is None or not busy + idle:
        return None
    used = _increase(before.cgroup.cpu, after.cgroup.cpu)
    throttled = _increase(before.cgroup.throttled, after.cgroup.throttled)
    return CpuUse(
        limit=bounds.usable,
        used=None if used is None else used / _SECOND / seconds,
        throttled_periods=_increase(before.cgroup.throttled_periods, after.cgroup.throttled_periods),
        throttled_seconds=None if throttled is None else throttled / _SECOND,
        throttled=None if throttled is None else _throttled(window, start),
        node_busy=busy / (busy + idle),
        node_processors=bounds.processors,
    )


def _throttled(window: Sequence[HostSnapshot], start: int) -> tuple[tuple[int, int], ...]:
    """Return the times between two snapshots in which a quota stopped the client, in milliseconds after the start."""
    origin = window[0].monotonic + start - window[0].at
    spans = list[tuple[int, int]]()
    for before, after in pairwise(window):
        if before.cgroup.throttled != after.cgroup.throttled:
            begin, end = ((snapshot.monotonic - origin) // _NANOSECONDS for snapshot in (before, after))
            if spans and spans[-1][1] == begin:
                begin = spans.pop()[0]
            spans.append((begin, end))
    return tuple(spans)


def _network(bounds: Bounds, before: HostSnapshot, after: HostSnapshot, seconds: float) -> NetworkUse | None:
    """Return the traffic of interfaces that existed throughout: on a node, other pods' interfaces come and go."""
    names = before.interfaces.keys() & after.interfaces.keys()
    names = names & bounds.physical or names
    uses = []
    for name in sorted(names):
        traffic = _increases(before.interfaces[name], after.interfaces[name])
        if traffic is None:
            return None
        link = bounds.speeds.get(name)
        uses.append(NetworkUse(received=traffic.received / seconds, sent=traffic.sent / seconds, link=link))
    total = NetworkUse(received=sum(use.received for use in uses), sent=sum(use.sent for use in uses))
    return max((use for use in uses if use.link), key=_load, default=total)


def _load(use: NetworkUse) -> float:
    """Return the share of its link that an interface uses; the fullest link is the bottleneck."""
    return max(use.received, use.sent) / use.link if use.link else 0.0


def _device(
    number: str | None, before: DeviceCounters | None, after: DeviceCounters | None, seconds: float
) -> DeviceUse | None:
    done = _increases(before, after)
    if number is None or done is None:
        return None
    return DeviceUse(
        number=number,
        read=done.read_sectors * _SECTOR_BYTES / seconds,
        written=done.written_sectors * _SECTOR_BYTES / seconds,
        operations=(done.reads + done.writes) / seconds,
        reads=done.reads / seconds,
        writes=done.writes / seconds,
        # The kernel counts in clock ticks: there may be one too many.
        busy=min(1.0, done.busy / _MILLISECONDS / seconds),
        queue=done.waiting / _MILLISECONDS / seconds,
    )


def _increases(before: C | None, after: C | None) -> C | None:
    """Return the increases of all counters; None if they are unknown or one decreased; see `_increase`."""
    if before is None or after is None:
        return None
    increases = {field.name: getattr(after, field.name) - getattr(before, field.name) for field in fields(before)}
    return replace(before, **increases) if min(increases.values()) >= 0 else None


def _increase(before: int | None, after: int | None) -> int | None:
    """Return the increase of a counter; None if unknown: a counter that decreased was reset or has wrapped."""
    return None if before is None or after is None or after < before else after - before
