"""The limits and the usage of this process's control group.

Supports both versions of the interface: the kernel's `admin-guide/cgroup-v2` and `admin-guide/cgroup-v1`. In a pod the
group is the container's. Elsewhere it often contains other processes too; then its usage does not describe the client
(see `Group.is_own`), but its throttling does: a quota stops every process in the group and in the groups within it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.agent.host.mounts import Mount, read_mounts

_MICROSECOND = 1000
_UNIFIED = "cgroup2"
_SYS = PurePosixPath("/sys")
_UNLIMITED_BYTES = 2**60
"""Version 1 shows "no limit" as the largest number of bytes in whole pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """This process's group in one hierarchy. `top` is the highest visible directory of the hierarchy."""

    directory: Path
    top: Path

    def levels(self) -> Iterator[Path]:
        """Yield the group and its ancestors, each of which limits it."""
        yield self.directory
        if self.directory != self.top:
            for parent in self.directory.parents:
                yield parent
                if parent == self.top:
                    return

    def is_own(self, proc: Path) -> bool:
        """Whether the group contains only this process, its descendants and its ancestors.

        Ancestors only wait: an init process in a container. A local run's conductor is not an ancestor of its agents.
        """
        with suppress(OSError, ValueError, IndexError):
            own = int((proc / "self/stat").read_text().split(maxsplit=1)[0])
            ancestors = set(_lineage(proc, own))
            members = [int(line) for line in (self.directory / "cgroup.procs").read_text().split()]
            return bool(members) and all(pid in ancestors or own in _lineage(proc, pid) for pid in members)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupCounters:
    """A group's counters at one time: nanoseconds of processor time, bytes; None if unreadable.

    Attributes:
        throttled_periods: periods in which its quota or an ancestor's stopped it; sum over these groups.
        throttled: duration of these stops; likewise.

    """

    cpu: int | None = None
    throttled_periods: int | None = None
    throttled: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """This process's group for each controller, if any.

    Attributes:
        unified: version 2 of the interface; all three groups are the same.
        cpu: the group whose quota, with those of its ancestors, limits this process.
        accounting: the group that counts its processor time.

    """

    unified: bool
    cpu: Group | None = None
    accounting: Group | None = None
    memory: Group | None = None

    def own(self, proc: Path) -> "Cgroup":
        """Return the groups whose usage is this process's own. `cpu` stays: its quota applies in any case."""

        def own(group: Group | None) -> Group | None:
            return group if group is not None and group.is_own(proc) else None

        return Cgroup(unified=self.unified, cpu=self.cpu, accounting=own(self.accounting), memory=own(self.memory))

    def processors(self) -> float | None:
        """Return the number of processors that the quota allows; None without a quota."""
        quota = _unified_quota if self.unified else _quota
        return min(_limits(self.cpu, quota), default=None)

    def memory_limit(self) -> int | None:
        """Return the memory limit in bytes; None without a limit."""
        name = "memory.max" if self.unified else "memory.limit_in_bytes"
        limits = _limits(self.memory, lambda level: _number(level / name))
        return min((int(limit) for limit in limits if limit < _UNLIMITED_BYTES), default=None)

    def read(self) -> CgroupCounters:
        """Read the counters."""
        seconds = "throttled_usec" if self.unified else "throttled_time"
        stats = [_table(level / "cpu.stat") for level in self.cpu.levels()] if self.cpu else []
        throttled = _sum(stat.get(seconds) for stat in stats)
        memory = self.memory.directory if self.memory else None
        name = "memory.current" if self.unified else "memory.usage_in_bytes"
        return CgroupCounters(
            cpu=self._used(),
            throttled_periods=_sum(stat.get("nr_throttled") for stat in stats),
            throttled=_scaled(throttled) if self.unified else throttled,
            memory=_number(memory / name) if memory else None,
        )

    def _used(self) -> int | None:
        if self.accounting is None:
            return None
        if self.unified:
            return _scaled(_table(self.accounting.directory / "cpu.stat").get("usage_usec"))
        return _number(self.accounting.directory / "cpuacct.usage")


def find_cgroup(proc: Path, sys: Path) -> Cgroup | None:
    """Return this process's group, or None if none is visible. `sys` is the mount point of /sys.

    If both versions are in use, version 1 takes precedence for the controllers that it has.
    """
    try:
        paths = _paths((proc / "self/cgroup").read_text())
        mounts = read_mounts(proc / "self/mountinfo")
    except (OSError, ValueError):
        return None
    found = {name: _find(name, paths, mounts, sys) for name in ("cpu", "cpuacct", "memory")}
    if any(found.values()):
        return Cgroup(unified=False, cpu=found["cpu"], accounting=found["cpuacct"], memory=found["memory"])
    group = _find("", paths, mounts, sys)
    return Cgroup(unified=True, cpu=group, accounting=group, memory=group) if group else None


def _paths(text: str) -> Mapping[str, PurePosixPath]:
    """Return this process's path in each controller's hierarchy; version 2's hierarchy has an empty name."""
    lines = (line.split(":", maxsplit=2) for line in text.splitlines() if line.count(":") > 1)
    return {name: PurePosixPath(path) for _, names, path in lines for name in names.split(",")}


def _find(controller: str, paths: Mapping[str, PurePosixPath], mounts: Iterable[Mount], sys: Path) -> Group | None:
    path = paths.get(controller)
    mount = next((mount for mount in mounts if _is_hierarchy(mount, controller)), None)
    if path is None or mount is None:
        return None
    top = sys / mount.point.relative_to(_SYS)
    inside = path.is_relative_to(mount.root) and ".." not in path.parts
    # A container may see only its own group: then the mounted directory is the group, whatever its path outside.
    return Group(directory=top / path.relative_to(mount.root) if inside else top, top=top)


def _is_hierarchy(mount: Mount, controller: str) -> bool:
    if not mount.point.is_relative_to(_SYS):
        return False
    if controller:
        return mount.file_system == "cgroup" and controller in mount.options
    return mount.file_system == _UNIFIED


def _limits(group: Group | None, limit: Callable[[Path], float | None]) -> list[float]:
    found = (limit(level) for level in group.levels()) if group else ()
    return [value for value in found if value is not None]


def _unified_quota(level: Path) -> float | None:
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (level / "cpu.max").read_text().split()
        return int(quota) / int(period)
    return None


def _quota(level: Path) -> float | None:
    quota, period = _number(level / "cpu.cfs_quota_us"), _number(level / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _sum(counters: Iterable[int | None]) -> int | None:
    """Return the sum of the known counters; None if none is known."""
    known = [counter for counter in counters if counter is not None]
    return sum(known) if known else None


def _scaled(microseconds: int | None) -> int | None:
    return None if microseconds is None else microseconds * _MICROSECOND


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
