"""Reads this host's counters: `proc_stat(5)`, `proc_meminfo(5)`, `/proc/net/dev`, and `/sys`."""

import math
import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from plimsoll.agent.volume import SECTOR_BYTES, Mount, read_mounts

_MICROSECOND = 1000
_UNIFIED = "cgroup2"
_SYS = PurePosixPath("/sys")
_UNLIMITED_BYTES = 2**60  # version 1 shows "no limit" as the largest number of bytes in whole pages
_IO_COUNTERS = {"read_bytes", "write_bytes"}
_IDLE = (3, 4)  # columns of /proc/stat with idle time: idle, and idle while waiting for I/O
_ACCOUNTED = 8  # columns that add up to the total; guest time, which follows, is part of user time
_CUTTING = ("max_sectors_kb", "max_segments", "chunk_sectors")  # a device's limits at which the kernel splits I/O
# Files of a block device that identify it: of logical volumes, loop devices, RBD images by krbd and rbd-nbd, disks.
_DISK_IDENTITIES = ("wwid", "device/wwid", "serial", "device/serial")
_IDENTITIES = ("dm/uuid", "loop/backing_file", "device/image_id", "backend", *_DISK_IDENTITIES)
_MAX_IDENTITY = 200
_PAGE = 4096
_KIBIBYTE = 1024
_MEGABIT = 10**6 // 8
_LOOPBACK = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """This process's group in one hierarchy. `top` is the highest visible directory of the hierarchy."""

    directory: Path
    top: Path

    def levels(self) -> list[Path]:
        """Return the group and its ancestors, each of which limits it."""
        return [place for place in (self.directory, *self.directory.parents) if place.is_relative_to(self.top)]

    def is_own(self, proc: Path) -> bool:
        """Whether the group contains only this process, its descendants and its ancestors, which only wait."""
        with suppress(OSError, ValueError, IndexError):
            agent = int((proc / "self/stat").read_text().split(maxsplit=1)[0])
            ancestors = set(_lineage(proc, agent))
            members = [int(line) for line in (self.directory / "cgroup.procs").read_text().split()]
            return bool(members) and all(pid in ancestors or agent in _lineage(proc, pid) for pid in members)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupCounters:
    """A group's counters at one time: nanoseconds of processor time, bytes; None if unreadable."""

    cpu: int | None = None
    # Periods in which its quota or an ancestor's stopped it; sum over these groups.
    throttled_periods: int | None = None
    throttled: int | None = None  # duration of these stops; a sum, too
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """This process's group for each controller, if any."""

    unified: bool  # version 2 of the interface; all three groups are the same
    cpu: Group | None = None  # its quota and its ancestors' limit this process
    accounting: Group | None = None  # the group that counts its processor time
    memory: Group | None = None

    def own(self, proc: Path) -> "Cgroup":
        """Return the groups whose usage is this process's own. `cpu` is unchanged: its quota applies in any case."""
        own = [group if group and group.is_own(proc) else None for group in (self.accounting, self.memory)]
        return replace(self, accounting=own[0], memory=own[1])

    def processors(self) -> float | None:
        """Return the number of processors that the quota allows; None without a quota."""

        def quota_of(level: Path) -> float | None:
            with suppress(OSError, ValueError, ZeroDivisionError):
                quota, period = map(int, (level / "cpu.max").read_text().split())
                return quota / period
            limit, interval = _number(level / "cpu.cfs_quota_us"), _number(level / "cpu.cfs_period_us")
            return limit / interval if limit and interval and limit > 0 else None

        return min(filter(None, map(quota_of, self.cpu.levels() if self.cpu else ())), default=None)

    def memory_limit(self) -> int | None:
        """Return the memory limit in bytes; None without a limit."""
        name = "memory.max" if self.unified else "memory.limit_in_bytes"
        limits = (_number(level / name) for level in (self.memory.levels() if self.memory else ()))
        return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)

    def read(self) -> CgroupCounters:
        stats = [_table(level / "cpu.stat") for level in self.cpu.levels()] if self.cpu else []
        used, memory, throttled = None, "memory.usage_in_bytes", ("throttled_time", 1)
        if self.accounting:
            used = _number(self.accounting.directory / "cpuacct.usage")
        if self.unified:
            memory, throttled = "memory.current", ("throttled_usec", _MICROSECOND)
            own = [_table(self.accounting.directory / "cpu.stat")] if self.accounting else []
            used = _total(own, "usage_usec", _MICROSECOND)
        return CgroupCounters(
            cpu=used,
            throttled_periods=_total(stats, "nr_throttled"),
            throttled=_total(stats, *throttled),
            memory=_number(self.memory.directory / memory) if self.memory else None,
        )


def _find(controller: str, paths: Mapping[str, PurePosixPath], mounts: Iterable[Mount], sys: Path) -> Group | None:
    path = paths.get(controller)
    kind = "cgroup" if controller else _UNIFIED
    hierarchies = (mount for mount in mounts if mount.file_system == kind and mount.point.is_relative_to(_SYS))
    mount = next((mount for mount in hierarchies if not controller or controller in mount.options), None)
    if path is None or mount is None:
        return None
    top = sys / mount.point.relative_to(_SYS)
    inside = path.is_relative_to(mount.root) and ".." not in path.parts
    # A container may see only its own group: then the mounted directory is the group.
    return Group(directory=top / path.relative_to(mount.root) if inside else top, top=top)


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _total(tables: Iterable[Mapping[str, int]], name: str, unit: int = 1) -> int | None:
    """Return the sum of a counter in the tables that have it; None if none has."""
    values = [table[name] * unit for table in tables if name in table]
    return sum(values) if values else None


def _table(path: Path) -> Mapping[str, int]:
    with suppress(OSError, ValueError):
        return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}
    return {}


def _lineage(proc: Path, pid: int) -> Iterator[int]:
    """Yield a process and its ancestors within this PID namespace; OSError if one has exited."""
    while pid > 0:
        yield pid
        # The name, in parentheses, may itself contain blanks and parentheses.
        pid = int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCounters:
    """Bytes that a tool has read from and written to storage."""

    read: int = 0
    written: int = 0


def process_io(pid: int, proc: Path = Path("/proc")) -> Mapping[str, int] | None:
    """Return the I/O counters of a process (`proc_pid_io(5)`), with children that have ended; None if unreadable."""
    with suppress(OSError, ValueError):
        lines = (proc / str(pid) / "io").read_text().splitlines()
        counters = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
        return counters if counters.keys() >= _IO_COUNTERS else None
    return None


class ToolAccount:
    """Counts one tool's I/O from before its start until after its end."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._before = _ended_children_counters()
        self.is_visible = False  # whether `look` has seen its counters

    def look(self, pid: int) -> ToolCounters | None:
        """Return the I/O of a process and its descendants so far; None if it is not visible."""
        processes = with_descendants(self._proc, pid)
        counters = [counter for process in processes if (counter := process_io(process, self._proc))]
        self.is_visible = self.is_visible or bool(counters)
        if not counters:
            return None
        return ToolCounters(
            read=sum(counter["read_bytes"] for counter in counters),
            written=sum(counter["write_bytes"] for counter in counters),
        )

    def end(self) -> ToolCounters | None:
        """Return the tool's total I/O, after its end; None if `look` never saw any, as without accounting."""
        if not self.is_visible:
            return None
        after = _ended_children_counters()
        return ToolCounters(read=after.read - self._before.read, written=after.written - self._before.written)


def with_descendants(proc: Path, pid: int) -> Iterator[int]:
    yield pid
    children: list[int] = []
    with suppress(OSError, ValueError):
        lists = (proc / str(pid) / "task").glob("*/children")
        children = [int(child) for path in lists for child in path.read_text().split()]
    for child in children:
        yield from with_descendants(proc, child)


def _ended_children_counters() -> ToolCounters:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ToolCounters(read=use.ru_inblock * SECTOR_BYTES, written=use.ru_oublock * SECTOR_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that an interface has received and sent."""

    received: int
    sent: int


@dataclass(frozen=True, slots=True)
class DeviceCounters:
    """Counters of a block device (the kernel's `block/stat`)."""

    read_sectors: int  # sectors of 512 bytes
    written_sectors: int
    reads: int  # completed reads
    writes: int  # completed writes, without discards and flushes
    busy: int  # milliseconds with at least one operation in flight
    waiting: int  # milliseconds of all operations, added up


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """All counters at one time."""

    at: int  # Unix nanoseconds, to find the time that a tool reports; this clock may be set meanwhile
    monotonic: int  # nanoseconds of the monotonic clock; durations are differences of it
    busy: int  # clock ticks that the node's processors worked, or that a hypervisor stole from them
    idle: int  # clock ticks that they idled; the kernel's count may decrease slightly
    memory_total: int
    memory_available: int
    interfaces: Mapping[str, Traffic]  # traffic by interface, without the loopback
    cgroup: CgroupCounters  # counters of the client's own group; all None if it has none
    device: DeviceCounters | None
    disk: DeviceCounters | None = None  # counters of the disk that the device is a part of; None for a whole device
    tool: ToolCounters | None = None  # the tool's I/O; None if it is not visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits that apply to a client during a trial."""

    processors: int  # number of the node's processors
    usable: float | None  # number of processors that the client may use; None for all
    memory: int | None  # bytes that it may use; None without a limit
    physical: frozenset[str]  # names of the hardware interfaces
    speeds: Mapping[str, float]  # bytes per second of each of those in one direction, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This host, through its `/proc` and `/sys`."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def cgroup(self) -> Cgroup | None:
        """Return the control group of this process; of two versions, version 1 wins for the controllers that it has."""
        try:
            groups = (self.proc / "self/cgroup").read_text().splitlines()
            mounts = read_mounts(self.proc / "self/mountinfo")
        except (OSError, ValueError):
            return None
        lines = [line.split(":", maxsplit=2) for line in groups if line.count(":") > 1]
        # The path in each controller's hierarchy; version 2's hierarchy has an empty name.
        paths = {name: PurePosixPath(path) for _, names, path in lines for name in names.split(",")}
        cpu, accounting, memory = (_find(name, paths, mounts, self.sys) for name in ("cpu", "cpuacct", "memory"))
        if cpu or accounting or memory:
            return Cgroup(unified=False, cpu=cpu, accounting=accounting, memory=memory)
        group = _find("", paths, mounts, self.sys)
        return Cgroup(unified=True, cpu=group, accounting=group, memory=group) if group else None

    def bounds(self, cgroup: Cgroup | None) -> Bounds | None:
        """Return the limits of this process; None if they cannot be read."""
        with suppress(OSError, ValueError, IndexError):
            processors = sum(line.startswith("cpu") for line in (self.proc / "stat").read_text().splitlines()) - 1
            # The affinity mask of this process, which a static CPU manager sets.
            status = (self.proc / "self/status").read_text().splitlines()
            masks = (line.split()[1] for line in status if line.startswith("Cpus_allowed:"))
            pinned = next((int(mask.replace(",", ""), 16).bit_count() for mask in masks), None)
            limits = [cgroup.processors() if cgroup else None, pinned if pinned != processors else None]
            # Those with a device: a veth, bridge or bond only forwards their traffic.
            physical = frozenset(path.parent.name for path in (self.sys / "class/net").glob("*/device"))
            speeds = {name: _number(self.sys / "class/net" / name / "speed") for name in physical}
            return Bounds(
                processors=processors,
                usable=min((limit for limit in limits if limit is not None), default=None),
                memory=cgroup.memory_limit() if cgroup else None,
                physical=physical,
                # Without a link it is -1.
                speeds={name: speed * _MEGABIT for name, speed in speeds.items() if speed is not None and speed > 0},
            )
        return None

    def disk_of(self, device: str) -> str | None:
        """Return `major:minor` of the disk that a device is part of; None for a whole device, such as a RAID."""
        with suppress(OSError):
            disk, carriers = _disk((self.sys / "dev/block" / device).resolve(strict=True))
            while len(carriers) == 1:
                disk, carriers = _disk(carriers[0].resolve(strict=True))
            number = (disk / "dev").read_text().strip()
            return number if number != device else None
        return None

    def identity_of(self, device: str) -> str:
        """Return what identifies a block device, or the disk of a partition, under any number; empty if unknown."""
        place = (self.sys / "dev/block" / device).resolve()
        part, (disk, _) = text_of(place / "partition"), _disk(place)
        identity = " ".join(next(filter(None, (text_of(disk / name) for name in _IDENTITIES)), "").split())
        return f"{identity[:_MAX_IDENTITY]} partition {part}" if part and identity else identity[:_MAX_IDENTITY]

    def uncut_bytes(self, device: str) -> int | None:
        """Return the largest operation that reaches a disk unsplit; None if layers have limits of their own."""
        with suppress(OSError, ValueError):
            disk, carriers = _disk((self.sys / "dev/block" / device).resolve(strict=True))
            if carriers:
                return None
            limits = {name: int((disk / "queue" / name).read_text()) for name in _CUTTING}
            # A segment holds at least a page, and memory is rarely contiguous.
            piece = min(_KIBIBYTE * limits["max_sectors_kb"], _PAGE * limits["max_segments"])
            if piece and (boundary := SECTOR_BYTES * limits["chunk_sectors"]):
                # The kernel splits each stretch between two boundaries separately; its last piece may be small.
                piece = max(boundary // math.ceil(boundary / piece), _PAGE)
            return piece or None
        return None

    def snapshot(
        self, *, cgroup: Cgroup | None, device: str | None, disk: str | None = None, tool: ToolCounters | None = None
    ) -> HostSnapshot | None:
        """Return all counters, of `major:minor` devices too; None if one that every Linux has cannot be read."""
        with suppress(OSError, ValueError, LookupError):
            with (self.proc / "stat").open() as file:
                ticks = [int(text) for text in file.readline().split()[1 : 1 + _ACCOUNTED]]
            idle = sum(ticks[column] for column in _IDLE)
            with (self.proc / "meminfo").open() as file:
                # MemTotal, MemFree and MemAvailable come first.
                lines = [file.readline().split() for _ in range(3)]
            memory = {line[0].rstrip(":"): int(line[1]) * _KIBIBYTE for line in lines}
            return HostSnapshot(
                at=time.time_ns(),
                monotonic=time.monotonic_ns(),
                busy=sum(ticks) - idle,
                idle=idle,
                memory_total=memory["MemTotal"],
                memory_available=memory["MemAvailable"],
                interfaces={name: traffic for name, traffic in interfaces(self.proc).items() if name != _LOOPBACK},
                cgroup=cgroup.read() if cgroup else CgroupCounters(),
                device=self._device(device) if device else None,
                disk=self._device(disk) if disk else None,
                tool=tool,
            )
        return None

    def _device(self, number: str) -> DeviceCounters | None:
        with suppress(OSError, ValueError, IndexError):
            counters = [int(text) for text in (self.sys / "dev/block" / number / "stat").read_text().split()]
            reads, _, read_sectors, _, writes, _, written_sectors, _, _, busy, waiting, *_ = counters
            return DeviceCounters(read_sectors, written_sectors, reads, writes, busy, waiting)
        return None


def interfaces(place: Path) -> Mapping[str, Traffic]:
    """Return the traffic of each network interface that `net/dev` in /proc, or in a process's directory, shows."""
    _, _, *lines = (place / "net/dev").read_text().splitlines()
    named = ((name.strip(), counters.split()) for name, _, counters in (line.partition(":") for line in lines))
    return {name: Traffic(received=int(counters[0]), sent=int(counters[8])) for name, counters in named}


def _disk(place: Path) -> tuple[Path, list[Path]]:
    """Return the disk of a block device in /sys, which may be a partition, and the devices that carry the disk."""
    disk = place.parent if (place / "partition").exists() else place
    return disk, [*(disk / "slaves").glob("*")]


def text_of(path: Path) -> str:
    """Return the stripped text of a file; empty if it cannot be read."""
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
