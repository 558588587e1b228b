"""Whether the tool works on its data set, judged by its open files (`proc_pid_fd(5)`)."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.agent.host.processes import with_descendants
from plimsoll.tools.target import VolumeKind, VolumeTarget

_NEVER_DATA = (PurePosixPath("/proc"), PurePosixPath("/sys"), PurePosixPath("/dev/shm"))  # noqa: S108 - nothing is written there
_MAX_CHARACTERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetIdentity:
    """How the kernel identifies a data set.

    Attributes:
        path: path without symbolic links; of a directory, if the tool writes files of its own there.
        file: device and inode number; None for a block device.
        device: number of the block device, or of the device that contains the file.

    """

    path: str
    file: tuple[int, int] | None
    device: int

    def contains(self, path: str) -> bool:
        """Whether a path without symbolic links is the data set, or a file in its directory."""
        return path == self.path or path.startswith(f"{self.path}/")

    def matches(self, status: os.stat_result) -> bool:
        """Whether this is the status of the data set."""
        if self.file is None:
            return stat.S_ISBLK(status.st_mode) and status.st_rdev == self.device
        return (status.st_dev, status.st_ino) == self.file

    @property
    def block_device(self) -> str | None:
        """`major:minor` of the underlying block device; None if there is none, as for NFS, overlay and tmpfs."""
        major = os.major(self.device)
        return f"{major}:{os.minor(self.device)}" if major else None


def identify(target: VolumeTarget) -> DataSetIdentity:
    """Return the identity of a data set; OSError if it does not exist."""
    status = Path(target.path).stat()
    is_device = target.kind is VolumeKind.DEVICE
    return DataSetIdentity(
        path=os.path.realpath(target.path),
        file=None if is_device else (status.st_dev, status.st_ino),
        device=status.st_rdev if is_device else status.st_dev,
    )


class OpenFiles:
    """Looks repeatedly at a tool's open files until the data set is among them."""

    def __init__(self, identity: DataSetIdentity, *, work_directory: str, proc: Path) -> None:
        self._identity = identity
        self._not_data = (*_NEVER_DATA, PurePosixPath(os.path.realpath(work_directory)))
        self._proc = proc
        self._has_data_set = False
        self._open_before: frozenset[str] = frozenset()
        self._instead = ""

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
        processes = with_descendants(self._proc, pid)
        names = {name for process in processes for link in self._links(process) if (name := self._data_behind(link))}
        self._has_data_set = self._identity.path in names
        # A file counts if two looks in a row see it, and the last such file wins: a slow library comes before the data.
        self._instead = min(names & self._open_before, default=self._instead)
        self._open_before = frozenset(names)

    def _links(self, pid: int) -> list[Path]:
        with suppress(OSError):
            return list((self._proc / str(pid) / "fd").iterdir())
        return []

    def _data_behind(self, link: Path) -> str:
        """Return the path of the data behind a file descriptor, the same for all links to the data set; else empty."""
        with suppress(OSError):
            name = str(link.readlink())
            # The name is nearly always enough; a stat may block for as long as the storage does not answer.
            if self._identity.contains(name):
                return self._identity.path
            if not name.startswith("/") or any(PurePosixPath(name).is_relative_to(place) for place in self._not_data):
                return ""
            status = link.stat()
            if stat.S_ISBLK(status.st_mode) or stat.S_ISREG(status.st_mode):
                return self._identity.path if self._identity.matches(status) else name
        return ""
