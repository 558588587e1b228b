"""Reads this host's counters: `proc_stat(5)`, `proc_meminfo(5)`, `/proc/net/dev`, and `/sys`.

A reading takes a few small files and a fraction of a millisecond, so it does not disturb the measurement.
"""

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plimsoll.agent.host.cgroup import Cgroup, CgroupCounters, find_cgroup
from plimsoll.agent.host.processes import ToolCounters

_IDLE = (3, 4)
"""Columns of /proc/stat with idle time: idle, and idle while waiting for I/O."""
_ACCOUNTED = 8
"""Columns that add up to the total; guest time, which follows, is part of user time."""

_CUTTING = ("max_sectors_kb", "max_segments", "chunk_sectors")
"""Limits in a device's `queue` at which the kernel splits an operation."""
_PAGE = 4096
_SECTOR_BYTES = 512
_KIBIBYTE = 1024
_MEGABIT = 10**6 // 8
_LOOPBACK = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that an interface has received and sent."""

    received: int
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCounters:
    """Counters of a block device (the kernel's `block/stat`).

    Attributes:
        read_sectors: sectors of 512 bytes.
        reads: completed reads.
        writes: completed writes, without discards and flushes.
        busy: milliseconds with at least one operation in flight.
        waiting: milliseconds of all operations, added up.

    """

    read_sectors: int
    written_sectors: int
    reads: int
    writes: int
    busy: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """All counters at one time.

    Attributes:
        at: Unix nanoseconds, to find the time that a tool reports; this clock may be set meanwhile.
        monotonic: nanoseconds of the monotonic clock; durations are differences of it.
        busy: clock ticks that the node's processors worked, or that a hypervisor stole from them.
        idle: clock ticks that they idled; the kernel's count may decrease slightly.
        interfaces: traffic by interface, without the loopback.
        cgroup: counters of the client's own group; all None if it has none.
        disk: counters of the disk that the device is a part of; None for a whole device.
        tool: the tool's I/O; None if it is not visible.

    """

    at: int
    monotonic: int
    busy: int
    idle: int
    memory_total: int
    memory_available: int
    interfaces: Mapping[str, Traffic]
    cgroup: CgroupCounters
    device: DeviceCounters | None
    disk: DeviceCounters | None = None
    tool: ToolCounters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits that apply to a client during a trial.

    Attributes:
        processors: number of the node's processors.
        usable: number of processors that the client may use; None for all.
        memory: bytes that it may use; None without a limit.
        physical: names of the hardware interfaces.
        speeds: bytes per second of each of those in one direction, if known.

    """

    processors: int
    usable: float | None
    memory: int | None
    physical: frozenset[str]
    speeds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This host, through its `/proc` and `/sys`."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def cgroup(self) -> Cgroup | None:
        """Return the control group of this process."""
        return find_cgroup(self.proc, self.sys)

    def bounds(self, cgroup: Cgroup | None) -> Bounds | None:
        """Return the limits of this process; None if they cannot be read."""
        with suppress(OSError, ValueError, IndexError):
            stat = (self.proc / "stat").read_text().splitlines()
            processors = sum(line.startswith("cpu") for line in stat) - 1
            pinned = self._processors_allowed()
            quota = cgroup.processors() if cgroup else None
            limits = [quota, pinned if pinned != processors else None]
            physical = self._physical_interfaces()
            speeds = {name: self._speed(name) for name in physical}
            return Bounds(
                processors=processors,
                usable=min((limit for limit in limits if limit is not None), default=None),
                memory=cgroup.memory_limit() if cgroup else None,
                physical=physical,
                speeds={name: speed * _MEGABIT for name, speed in speeds.items() if speed is not None},
            )
        return None

    def disk_of(self, device: str) -> str | None:
        """Return `major:minor` of the disk that a block device is a part of; None for a whole device.

        A device on several others, such as a RAID, counts as a whole device.
        """
        with suppress(OSError):
            place = (self.sys / "dev/block" / device).resolve(strict=True)
            while below := _below(place):
                place = below
            number = (place / "dev").read_text().strip()
            return number if number != device else None
        return None

    def uncut_bytes(self, device: str) -> int | None:
        """Return the largest operation in bytes that reaches a disk, or a partition of one, unsplit.

        None if unknown: the layers of a logical volume, dm-crypt or a RAID have their own limits.
        """
        with suppress(OSError, ValueError):
            place = (self.sys / "dev/block" / device).resolve(strict=True)
            place = place.parent if (place / "partition").exists() else place
            if [*(place / "slaves").glob("*")]:
                return None
            limits = {name: int((place / "queue" / name).read_text()) for name in _CUTTING}
            # A segment holds at least a page, and memory is rarely contiguous.
            piece = min(_KIBIBYTE * limits["max_sectors_kb"], _PAGE * limits["max_segments"])
            if piece and (boundary := _SECTOR_BYTES * limits["chunk_sectors"]):
                # The kernel splits each stretch between two boundaries separately; its last piece may be small.
                piece = max(boundary // math.ceil(boundary / piece), _PAGE)
            return piece or None
        return None

    def snapshot(
        self,
        *,
        cgroup: Cgroup | None,
        device: str | None,
        disk: str | None = None,
        tool: ToolCounters | None = None,
    ) -> HostSnapshot | None:
        """Return all counters; None if one that every Linux has cannot be read.

        Args:
            cgroup: the client's own groups.
            device: `major:minor` of the block device of the data set.
            disk: `major:minor` of the disk that the device is a part of.
            tool: the tool's I/O so far.

        """
        with suppress(OSError, ValueError, LookupError):
            busy, idle = self._processor_times()
            memory = self._memory()
            return HostSnapshot(
                at=time.time_ns(),
                monotonic=time.monotonic_ns(),
                busy=busy,
                idle=idle,
                memory_total=memory["MemTotal"],
                memory_available=memory["MemAvailable"],
                interfaces=self._interfaces(),
                cgroup=cgroup.read() if cgroup else CgroupCounters(),
                device=self._device(device) if device else None,
                disk=self._device(disk) if disk else None,
                tool=tool,
            )
        return None

    def _processor_times(self) -> tuple[int, int]:
        with (self.proc / "stat").open() as file:
            ticks = [int(text) for text in file.readline().split()[1 : 1 + _ACCOUNTED]]
        idle = sum(ticks[column] for column in _IDLE)
        return sum(ticks) - idle, idle

    def _processors_allowed(self) -> int | None:
        """Return the number of processors in this process's affinity mask, which a static CPU manager sets."""
        lines = (self.proc / "self/status").read_text().splitlines()
        masks = (line.split()[1] for line in lines if line.startswith("Cpus_allowed:"))
        return next((int(mask.replace(",", ""), 16).bit_count() for mask in masks), None)

    def _memory(self) -> Mapping[str, int]:
        with (self.proc / "meminfo").open() as file:
            # MemTotal, MemFree and MemAvailable come first.
            lines = (file.readline().split() for _ in range(3))
            return {line[0].rstrip(":"): int(line[1]) * _KIBIBYTE for line in lines}

    def _interfaces(self) -> Mapping[str, Traffic]:
        _, _, *lines = (self.proc / "net/dev").read_text().splitlines()
        named = ((name.strip(), counters.split()) for name, _, counters in (line.partition(":") for line in lines))
        return {
            name: Traffic(received=int(counters[0]), sent=int(counters[8]))
            for name, counters in named
            if name != _LOOPBACK
        }

    def _device(self, number: str) -> DeviceCounters | None:
        with suppress(OSError, ValueError, IndexError):
            counters = [int(text) for text in (self.sys / "dev/block" / number / "stat").read_text().split()]
            return DeviceCounters(
                read_sectors=counters[2],
                written_sectors=counters[6],
                reads=counters[0],
                writes=counters[4],
                busy=counters[9],
                waiting=counters[10],
            )
        return None

    def _physical_interfaces(self) -> frozenset[str]:
        """Return the interfaces with a device: a veth, bridge or bond only forwards their traffic."""
        return frozenset(path.parent.name for path in (self.sys / "class/net").glob("*/device"))

    def _speed(self, interface: str) -> int | None:
        """Return megabits per second; None if unknown or without a link."""
        with suppress(OSError, ValueError):
            speed = int((self.sys / "class/net" / interface / "speed").read_text())
            return speed if speed > 0 else None
        return None


def _below(place: Path) -> Path | None:
    """Return the only device that a device is part of or built on; None if there is none or more than one."""
    if (place / "partition").exists():
        return place.parent
    carriers = [*(place / "slaves").glob("*")]
    return carriers[0].resolve(strict=True) if len(carriers) == 1 else None
