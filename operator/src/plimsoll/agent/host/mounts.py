"""What is mounted where: the table that `proc_pid_mountinfo(5)` describes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

OWN_TABLE = Path("/proc/self/mountinfo")

_FIELDS_BEFORE_OPTIONAL = 6
_SEPARATOR = "-"
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of the table.

    Attributes:
        root: directory of the file system that appears at `point`.
        point: absolute path.
        file_system: its type: `ext4`, `cgroup2`, ...
        source: as the file system names it: a device, an export, or any word at all.
        options: those of the file system itself, not of this one mount.

    """

    root: PurePosixPath
    point: PurePosixPath
    file_system: str
    source: str
    options: tuple[str, ...]


def read_mounts(table: Path) -> tuple[Mount, ...]:
    """Return all mounts, in the order in which they were made.

    Raises:
        OSError: the table cannot be read.

    """
    found = (_mount(line) for line in table.read_text(errors="replace").splitlines())
    return tuple(mount for mount in found if mount is not None)


def mount_of(path: PurePosixPath, mounts: Iterable[Mount]) -> Mount | None:
    """Return what an absolute path without symbolic links lies on; of two on one point the later hides the other."""
    around = [mount for mount in mounts if path.is_relative_to(mount.point)]
    deepest = max((len(mount.point.parts) for mount in around), default=0)
    return next((mount for mount in reversed(around) if len(mount.point.parts) == deepest), None)


def _mount(line: str) -> Mount | None:
    fields = line.split()
    if _SEPARATOR not in fields[_FIELDS_BEFORE_OPTIONAL:]:
        return None
    end = fields.index(_SEPARATOR, _FIELDS_BEFORE_OPTIONAL)
    # A source may be empty, and then leaves no field behind.
    file_system, *rest = fields[end + 1 :]
    return Mount(
        root=PurePosixPath(_unescaped(fields[3])),
        point=PurePosixPath(_unescaped(fields[4])),
        file_system=file_system,
        source=_unescaped(rest[0]) if len(rest) > 1 else "",
        options=tuple(rest[-1].split(",")) if rest else (),
    )


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
