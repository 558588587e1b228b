"""Whether the tool does its I/O on the data set it was given: what its processes have open (`proc_pid_fd(5)`)."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.agent.host.processes import with_descendants
from plimsoll.tools.base import VolumeKind, VolumeTarget

_NEVER_DATA = (PurePosixPath("/proc"), PurePosixPath("/sys"), PurePosixPath("/dev/shm"))  # noqa: S108 - nothing is written there
_MAX_CHARACTERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetIdentity:
    """What the kernel knows a data set by.

    Attributes:
        path: without symbolic links.
        file: device and inode number; None for a block device.
        device: of a block device, or of the one that the file lies on.

    """

    path: str
    file: tuple[int, int] | None
    device: int

    def is_of(self, status: os.stat_result) -> bool:
        """Tell whether what has this status is the data set."""
        if self.file is None:
            return stat.S_ISBLK(status.st_mode) and status.st_rdev == self.device
        return (status.st_dev, status.st_ino) == self.file

    @property
    def block_device(self) -> str | None:
        """Return `major:minor` of the block device below; None if there is none, as below NFS, overlay and tmpfs."""
        major = os.major(self.device)
        return f"{major}:{os.minor(self.device)}" if major else None


def identify(target: VolumeTarget) -> DataSetIdentity:
    """Return the identity of a data set that is there.

    Raises:
        OSError: it is not there.

    """
    status = Path(target.path).stat()
    is_device = target.kind is VolumeKind.DEVICE
    return DataSetIdentity(
        path=os.path.realpath(target.path),
        file=None if is_device else (status.st_dev, status.st_ino),
        device=status.st_rdev if is_device else status.st_dev,
    )


class OpenFiles:
    """Looks again and again at what a tool has open, until it has seen the data set."""

    def __init__(self, identity: DataSetIdentity, *, work_directory: str, proc: Path) -> None:
        """Expect a data set; what the tool has in its work directory is its output."""
        self._identity = identity
        self._not_data = (*_NEVER_DATA, PurePosixPath(os.path.realpath(work_directory)))
        self._proc = proc
        self._found = False
        self._others: frozenset[str] = frozenset()
        self._instead = ""

    @property
    def foreign_target(self) -> str:
        """What the tool had open instead of the data set; empty if it had that, or nothing was seen."""
        if self._found or not self._instead:
            return ""
        instead = os.fsencode(self._instead).decode(errors="replace")[:_MAX_CHARACTERS]
        return f"the tool had {instead} open, and never {self._identity.path}"

    def look(self, pid: int) -> None:
        """Look at a process and all below it, unless the data set has been seen."""
        if self._found:
            return
        processes = with_descendants(self._proc, pid)
        names = {name for process in processes for link in self._links(process) if (name := self._data_behind(link))}
        self._found = self._identity.path in names
        # What is open for a moment is not what the tool works on. A library that loads slowly is open for longer, but
        # before anything else: the last file counts.
        self._instead = min(names & self._others, default=self._instead)
        self._others = frozenset(names)

    def _links(self, pid: int) -> list[Path]:
        with suppress(OSError):
            return list((self._proc / str(pid) / "fd").iterdir())
        return []

    def _data_behind(self, link: Path) -> str:
        """Return the path of the data that a file descriptor is of, for the data set always the same; empty if none."""
        with suppress(OSError):
            name = str(link.readlink())
            # The name decides nearly always. To ask the file itself may take as long as its storage does not answer.
            if name == self._identity.path:
                return name
            if not name.startswith("/") or any(PurePosixPath(name).is_relative_to(place) for place in self._not_data):
                return ""
            status = link.stat()
            if stat.S_ISBLK(status.st_mode) or stat.S_ISREG(status.st_mode):
                return self._identity.path if self._identity.is_of(status) else name
        return ""
