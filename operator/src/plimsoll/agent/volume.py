"""The client's volume: a data file in a directory, or a block device or part of one."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.agent.host.mounts import mount_of, read_mounts
from plimsoll.tools.target import VolumeKind, VolumeTarget

ALIGNMENT = 2**20
"""Data sets are whole mebibytes."""

_BLOCK_BYTES = 512
_UNSUPPORTED = 2
_WRITTEN_SHARE = 0.99
"""A file with fewer allocated blocks than this share of its size has holes; file systems round slightly."""


class VolumeError(Exception):
    """The volume cannot be used; the message contains the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVolume:
    """A file in a mounted file system.

    Attributes:
        path: path of the data file.
        capacity: bytes that the client may use; None for all free space.
        mount_table: the mount table that must list the file's directory; None if it need not be a mount point.

    """

    path: Path
    capacity: int | None = None
    mount_table: Path | None = None

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the data set: that share of the capacity, or of the free space if that is less.

        Raises:
            VolumeError: the directory does not exist, is not the volume, or has too little free space.

        """
        if self.mount_table is not None:
            check_mounted(self.path.parent, self.mount_table)
        try:
            free = os.statvfs(self.path.parent)
        except OSError as error:
            raise VolumeError(f"{self.path.parent}: {error.strerror}") from error
        available = free.f_bavail * free.f_frsize + occupied_bytes(self.path)
        size = aligned(min(available, self.capacity or available) * fill_percent // 100)
        if size <= 0:
            raise VolumeError(f"{self.path.parent} has {available} bytes free; a data set needs at least 1 MiB")
        return VolumeTarget(kind=VolumeKind.FILE, path=str(self.path), size=size)

    def create(self, _: VolumeTarget) -> None:
        """Do nothing: the prefill creates the data file."""

    def clear(self) -> None:
        """Remove an old data file, so that the new one gets new blocks."""
        self.path.unlink(missing_ok=True)

    def lay_out(self, target: VolumeTarget) -> None:
        """Create a sparse data file; results of reading it are never `Valid`."""
        with self.path.open("wb") as file:
            file.truncate(target.size)

    def check_written(self, target: VolumeTarget) -> None:
        """Raise VolumeError if the data file is too short or has holes."""
        status = self.path.stat()
        if status.st_size != target.size or status.st_blocks * _BLOCK_BYTES < target.size * _WRITTEN_SHARE:
            message = (
                f"{self.path} has {status.st_size} bytes and blocks for {status.st_blocks * _BLOCK_BYTES}, "
                f"but {target.size} were written; does the file system compress or deduplicate?"
            )
            raise VolumeError(message)

    def discard_command(self, _: VolumeTarget) -> tuple[str, ...] | None:
        """Return None: `clear` has removed the file, which discards it."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceVolume:
    """A block device, or the part of it from `offset` on; `size` None means the rest."""

    path: Path
    offset: int = 0
    size: int | None = None

    def target(self, _: int) -> VolumeTarget:
        """Return the data set: every whole MiB of the volume. VolumeError if the device is none or too small."""
        try:
            is_device = stat.S_ISBLK(self.path.stat().st_mode)
            whole = device_size(self.path) if is_device else 0
        except OSError as error:
            raise VolumeError(f"{self.path}: {error.strerror}") from error
        if not is_device:
            raise VolumeError(f"{self.path} is not a block device; nothing has been written")
        size = aligned(whole - self.offset if self.size is None else self.size)
        if size <= 0 or self.offset + size > whole:
            raise VolumeError(f"{self.path} has {whole} bytes; {size} bytes at offset {self.offset} do not fit")
        return VolumeTarget(kind=VolumeKind.DEVICE, path=str(self.path), size=size, offset=self.offset)

    def create(self, _: VolumeTarget) -> None:
        """Do nothing: a device exists."""

    def clear(self) -> None:
        """Do nothing: see `discard_command`."""

    def lay_out(self, _: VolumeTarget) -> None:
        """Do nothing: a device has a fixed size."""

    def check_written(self, _: VolumeTarget) -> None:
        """Do nothing: the prefill counts its bytes."""

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...] | None:
        """Return the command that discards the data set."""
        # Without --force, blkdiscard opens the device exclusively, which clients that share one cannot.
        force = () if self.size is None else ("--force",)
        return ("blkdiscard", *force, "--offset", str(target.offset), "--length", str(target.size), str(self.path))


def discard_is_unsupported(exit_code: int, stderr: str) -> bool:
    """Whether `discard_command` failed because the storage does not support discard (`blkdiscard(8)`)."""
    # Before util-linux 2.39 the exit code was the same as for any other error.
    return exit_code == _UNSUPPORTED or (exit_code != 0 and os.strerror(errno.EOPNOTSUPP) in stderr)


def device_size(path: Path) -> int:
    """Return a block device's size in bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def check_mounted(directory: Path, table: Path) -> None:
    """Raise VolumeError unless the directory is a mount point.

    Device numbers do not show that: a hostPath volume may be on the same device as the container's root.
    """
    place = PurePosixPath(os.path.realpath(directory))
    mount = mount_of(place, read_mounts(table))
    if mount is None or mount.point != place:
        location = f"it is a directory of {mount.point} ({mount.file_system})" if mount else "no mount contains it"
        message = (
            f"no volume is mounted at {directory}: {location}; nothing has been written. "
            "Check the pod's volumeMounts and the log of the CSI driver on its node"
        )
        raise VolumeError(message)


def allocated_bytes(path: Path) -> int:
    """Return how many bytes a file occupies; 0 if it does not exist."""
    return path.stat().st_blocks * _BLOCK_BYTES if path.exists() else 0


def occupied_bytes(path: Path, client: str = "*") -> int:
    """Return how many bytes a data file occupies, and files that a killed tool has left (`StepContext.own_directory`).

    The next trial replaces both, so the data set keeps its size when an agent is replaced.
    """
    left = (file for directory in path.parent.glob(f"{path.name}.{client}.files") for file in directory.rglob("*"))
    return allocated_bytes(path) + sum(map(allocated_bytes, left))


def aligned(size: int) -> int:
    """Return a size rounded down to whole MiB."""
    return size // ALIGNMENT * ALIGNMENT
