"""The mount table (`proc_pid_mountinfo(5)`)."""

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
        root: directory of the file system that is mounted at `point`.
        point: absolute path of the mount point.
        file_system: type: `ext4`, `cgroup2`, ...
        source: a device, an export, or an arbitrary word; empty for none.
        options: options of the file system, not of this mount.

    """

    root: PurePosixPath
    point: PurePosixPath
    file_system: str
    source: str
    options: tuple[str, ...]


def read_mounts(table: Path) -> tuple[Mount, ...]:
    """Return all mounts in the order of mounting; OSError if the table cannot be read."""
    found = (_mount(line) for line in table.read_text(errors="replace").splitlines())
    return tuple(mount for mount in found if mount is not None)


def mount_of(path: PurePosixPath, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount that contains an absolute path without symbolic links; a later mount hides an earlier one."""
    candidates = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(candidates), key=lambda mount: len(mount.point.parts), default=None)


def _mount(line: str) -> Mount | None:
    fields = line.split()
    if _SEPARATOR not in fields[_FIELDS_BEFORE_OPTIONAL:]:
        return None
    end = fields.index(_SEPARATOR, _FIELDS_BEFORE_OPTIONAL)
    # An empty source leaves no field.
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
