"""Observes the host and the tool during one trial, every second, and computes the load during the measurement."""

import os
import platform
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import JsonValue

from plimsoll.agent.readings import (
    Bounds,
    DeviceCounters,
    Host,
    HostSnapshot,
    ToolAccount,
    ToolCounters,
    Traffic,
    text_of,
    with_descendants,
)
from plimsoll.agent.volume import (
    SECTOR_BYTES,
    DeviceVolume,
    FileVolume,
    ImageVolume,
    LocalVolume,
    SharedVolume,
    mount_of,
    read_mounts,
)
from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, Measurement, MemoryUse, NetworkUse, ToolIo
from plimsoll.tools.target import VolumeTarget

_NEVER_DATA = (PurePosixPath("/proc"), PurePosixPath("/sys"), PurePosixPath("/dev/shm"))  # noqa: S108 - nothing is written there
_MAX_CHARACTERS = 256

_MILLISECONDS = 1000
_NANOSECONDS_PER_MILLISECOND = 10**6
_SECOND = 10**9
# When there are more, every other one is dropped: a trial's ends stay known to a thousandth of its length.
MAX_SNAPSHOTS = 1024

C = TypeVar("C", DeviceCounters, ToolCounters, Traffic)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetStorage:
    """The storage of a client's data set as far as the host shows it."""

    device: str | None = None  # `major:minor` of the block device; None if there is none, or no data set on this host
    disk: str | None = None  # `major:minor` of the disk that the device is a part of; None for a whole device
    file_system: str = ""  # type of the file system of a data set that is a file
    uncut_bytes: int | None = None  # size of the largest operation that reaches the disk unsplit; None if unknown
    identity: str = ""  # what identifies it under any device number and on any mount; empty if unknown


@dataclass(frozen=True, slots=True)
class DataSetIdentity:
    """How the kernel identifies a data set."""

    path: str  # path without symbolic links; a directory if the tool writes files of its own there
    file: tuple[int, int] | None  # device and inode number; None for a block device
    device: int  # number of the block device, or of the device that contains the file

    @property
    def block_device(self) -> str | None:
        """`major:minor` of the underlying block device; None if there is none, as for NFS, overlay and tmpfs."""
        major = os.major(self.device)
        return f"{major}:{os.minor(self.device)}" if major else None


def identify(target: VolumeTarget) -> DataSetIdentity:
    """Return the identity of a data set; OSError if it does not exist."""
    return DataSetIdentity(os.path.realpath(target.path), *_numbers(Path(target.path).stat()))


def _numbers(status: os.stat_result) -> tuple[tuple[int, int] | None, int]:
    """Return `DataSetIdentity.file` and `device` of a block device or file."""
    is_device = stat.S_ISBLK(status.st_mode)
    return (None, status.st_rdev) if is_device else ((status.st_dev, status.st_ino), status.st_dev)


class OpenFiles:
    """Looks repeatedly at a tool's open files until the data set is among them."""

    def __init__(self, identity: DataSetIdentity, *, work_directory: str, proc: Path) -> None:
        self._identity, self._proc = identity, proc
        self._not_data = (*_NEVER_DATA, PurePosixPath(os.path.realpath(work_directory)))
        self._has_data_set, self._instead = False, ""
        self._open_before: frozenset[str] = frozenset()

    @property
    def foreign_target(self) -> str:
        """A message with the file that the tool had open instead of the data set; empty if there is none."""
        if self._has_data_set or not self._instead:
            return ""
        instead = os.fsencode(self._instead).decode(errors="replace")[:_MAX_CHARACTERS]
        return f"the tool had {instead} open, and never {self._identity.path}"

    def look(self, pid: int) -> None:
        """Look at a process and its descendants, unless the data set has been seen."""
        if self._has_data_set:
            return
        links: list[Path] = []
        for process in with_descendants(self._proc, pid):
            with suppress(OSError):
                links.extend((self._proc / str(process) / "fd").iterdir())
        names = {name for link in links if (name := self._data_behind(link))}
        self._has_data_set = self._identity.path in names
        # A file counts if two looks in a row see it, and the last such file wins: a slow library comes before the data.
        self._instead = min(names & self._open_before, default=self._instead)
        self._open_before = frozenset(names)

    def _data_behind(self, link: Path) -> str:
        """Return the path of the data behind a file descriptor, the same for all links to the data set; else empty."""
        with suppress(OSError):
            name = str(link.readlink())
            # The name is nearly always enough; a stat may block for as long as the storage does not answer.
            if name == self._identity.path or name.startswith(f"{self._identity.path}/"):
                return self._identity.path
            if not name.startswith("/") or any(PurePosixPath(name).is_relative_to(place) for place in self._not_data):
                return ""
            status = link.stat()
            if stat.S_ISBLK(status.st_mode) or stat.S_ISREG(status.st_mode):
                is_same = _numbers(status) == (self._identity.file, self._identity.device)
                return self._identity.path if is_same else name
        return ""


class HostObservation:
    """The observation of one trial. The constructor takes the first snapshot, before the tool starts."""

    def __init__(self, host: Host, data_set: DataSetIdentity | None, *, work_directory: str) -> None:
        self._host = host
        self._storage = _storage(host, data_set) if data_set else DataSetStorage()
        self._files = OpenFiles(data_set, work_directory=work_directory, proc=host.proc) if data_set else None
        cgroup = host.cgroup()
        self._bounds = host.bounds(cgroup)
        self._own_cgroup = cgroup.own(host.proc) if cgroup else None
        self._account = ToolAccount(host.proc)
        self._snapshots: list[HostSnapshot] = []
        self._stride = 1
        self._looks = 0
        self._take_snapshot(ToolCounters())

    def look(self, pid: int) -> None:
        """Observe the host and the tool, process `pid`, unless it has ended. Call it about every second."""
        self._looks += 1
        if self._looks % self._stride == 0:
            tool = self._account.look(pid)
            if tool is not None or not self._account.is_visible:
                self._take_snapshot(tool)
        if self._files is not None:
            self._files.look(pid)

    def end(self) -> None:
        """Take the last snapshot, after the tool has ended."""
        self._take_snapshot(self._account.end())

    def host_use(self, measurement: Measurement | None) -> HostUse | None:
        """Return the host's load during the measurement; None if there is none or snapshots do not cover it."""
        if measurement is None or self._bounds is None:
            return None
        start, runtime = measurement.started_at, measurement.runtime
        return host_use_during(self._bounds, self._snapshots, start=start, runtime=runtime, storage=self._storage)

    @property
    def foreign_target(self) -> str:
        """See `OpenFiles.foreign_target`; empty without a data set."""
        return self._files.foreign_target if self._files else ""

    def _take_snapshot(self, tool: ToolCounters | None) -> None:
        snapshot = self._host.snapshot(
            cgroup=self._own_cgroup, device=self._storage.device, disk=self._storage.disk, tool=tool
        )
        if snapshot is None:
            return
        if len(self._snapshots) >= MAX_SNAPSHOTS:
            del self._snapshots[1::2]
            self._stride *= 2
        self._snapshots.append(snapshot)


def _storage(host: Host, data_set: DataSetIdentity) -> DataSetStorage:
    device = data_set.block_device
    if device is not None:
        # A file may be fragmented, which splits operations too.
        uncut = host.uncut_bytes(device) if data_set.file is None else None
        identity = host.identity_of(device)
        return DataSetStorage(device=device, disk=host.disk_of(device), uncut_bytes=uncut, identity=identity)
    with suppress(OSError):
        mount = mount_of(PurePosixPath(data_set.path), read_mounts(host.proc / "self/mountinfo"))
        if mount is not None:
            return DataSetStorage(file_system=mount.file_system[:100], identity=mount.source[:_MAX_CHARACTERS])
    return DataSetStorage(file_system="an unknown file system")


def host_facts(host: Host) -> dict[str, JsonValue]:
    """Return facts about the host, without those that cannot be read."""
    facts: dict[str, JsonValue] = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }
    cpus = text_of(host.proc / "cpuinfo").splitlines()
    return facts | _known(
        cpuModel=next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), ""),
        cpuGovernor=text_of(host.sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clockSource=text_of(host.sys / "devices/system/clocksource/clocksource0/current_clocksource"),
    )


def volume_facts(volume: LocalVolume | ImageVolume | None, host: Host) -> dict[str, JsonValue]:
    """Return facts about a volume: its mount, its device and discard support, or of an image the access path."""
    with suppress(OSError):
        match volume:
            case FileVolume():
                return _mount_facts(volume.path.parent, host.proc)
            case SharedVolume():
                return _mount_facts(volume.directory, host.proc)
            case DeviceVolume() if stat.S_ISBLK((status := volume.path.stat()).st_mode):
                device = host.sys / "dev/block" / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
                # A partition uses the queue of its disk.
                queues = (device / "queue", device.resolve().parent / "queue")
                limit = next(filter(None, (text_of(queue / "discard_max_bytes") for queue in queues)), "")
                discards: dict[str, JsonValue] = {"volumeDiscards": limit != "0"} if limit else {}
                return _known(volumeDevice=device.readlink().name) | discards
            case ImageVolume():
                return {"volumeAccess": "librbd"}
    return {}


def _mount_facts(directory: Path, proc: Path) -> dict[str, JsonValue]:
    mount = mount_of(PurePosixPath(os.path.realpath(directory)), read_mounts(proc / "self/mountinfo"))
    return _known(volumeFileSystem=mount.file_system, volumeSource=mount.source) if mount else {}


def _known(**words: str) -> dict[str, JsonValue]:
    return {name: word[:128] for name, word in words.items() if word}


def host_use_during(
    bounds: Bounds, snapshots: Sequence[HostSnapshot], *, start: int, runtime: int, storage: DataSetStorage
) -> HostUse | None:
    """Return the load between the snapshots around a measurement from `start` (Unix ns) that took `runtime` (ns).

    None if no snapshots enclose it, or if a counter that every Linux has decreased.
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
    """Return the snapshots that enclose a measurement; empty if they do not. Afterwards the wall clock may be set."""
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
    busy, idle = _increase(before.busy, after.busy), max(0, after.idle - before.idle)
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
            begin, end = ((snapshot.monotonic - origin) // _NANOSECONDS_PER_MILLISECOND for snapshot in (before, after))
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
    # The fullest link is the bottleneck.
    loads = [(max(use.received, use.sent) / use.link, use) for use in uses if use.link]
    return max(loads, key=lambda load: load[0], default=(0, total))[1]


def _device(
    number: str | None, before: DeviceCounters | None, after: DeviceCounters | None, seconds: float
) -> DeviceUse | None:
    done = _increases(before, after)
    if number is None or done is None:
        return None
    return DeviceUse(
        number=number,
        read=done.read_sectors * SECTOR_BYTES / seconds,
        written=done.written_sectors * SECTOR_BYTES / seconds,
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
