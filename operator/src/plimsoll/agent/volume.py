"""The client's volume: a directory with a data file, or a (part of a) block device."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.agent.host.mounts import mount_of, read_mounts
from plimsoll.tools.base import VolumeKind, VolumeTarget

ALIGNMENT = 2**20
"""Data sets are whole mebibytes."""

_BLOCK_BYTES = 512
_UNSUPPORTED = 2
_WRITTEN_SHARE = 0.99
"""Allocated blocks below this share of a file's size mean holes; file systems round a little."""


class VolumeError(Exception):
    """The volume cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVolume:
    """A file in a mounted file system.

    Attributes:
        path: of the data file.
        capacity: bytes that this client may take as its volume; None for all that is free.
        mount_table: where to see that the file's directory is a mount point; None if it need not be one.

    """

    path: Path
    capacity: int | None = None
    mount_table: Path | None = None

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the data set: that share of the capacity, or of the free space if that is less.

        Raises:
            VolumeError: if the directory is not there or not the volume, or too little is free.

        """
        if self.mount_table is not None:
            _check_mounted(self.path.parent, self.mount_table)
        try:
            free = os.statvfs(self.path.parent)
        except OSError as error:
            message = f"{self.path.parent}: {error.strerror}"
            raise VolumeError(message) from error
        held = self.path.stat().st_blocks * _BLOCK_BYTES if self.path.exists() else 0
        available = free.f_bavail * free.f_frsize + held
        size = aligned(min(available, self.capacity or available) * fill_percent // 100)
        if size <= 0:
            message = f"{self.path.parent} has {available} bytes free, less than a data set of one MiB needs"
            raise VolumeError(message)
        return VolumeTarget(kind=VolumeKind.FILE, path=str(self.path), size=size)

    def clear(self) -> None:
        """Remove an old data file, so that the new one owns fresh blocks."""
        self.path.unlink(missing_ok=True)

    def lay_out(self, target: VolumeTarget) -> None:
        """Make an unwritten data file: sparse, never to be read for a `Valid` result."""
        with self.path.open("wb") as file:
            file.truncate(target.size)

    def check_written(self, target: VolumeTarget) -> None:
        """Check that the data file has blocks for every byte.

        Raises:
            VolumeError: if it is shorter than it should be, or has holes.

        """
        status = self.path.stat()
        if status.st_size != target.size or status.st_blocks * _BLOCK_BYTES < target.size * _WRITTEN_SHARE:
            message = (
                f"{self.path} has {status.st_size} bytes and blocks for {status.st_blocks * _BLOCK_BYTES}, "
                f"but {target.size} were written; does the file system compress or deduplicate?"
            )
            raise VolumeError(message)

    def discard_command(self, _: VolumeTarget) -> tuple[str, ...] | None:
        """Return None: removing the file is all that can be discarded."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceVolume:
    """A block device, or the part of it from `offset` on; `size` None is all the rest."""

    path: Path
    offset: int = 0
    size: int | None = None

    def target(self, _: int) -> VolumeTarget:
        """Return the data set: every byte of the volume.

        Raises:
            VolumeError: if this is not a block device of that size.

        """
        try:
            is_device = stat.S_ISBLK(self.path.stat().st_mode)
            whole = device_size(self.path) if is_device else 0
        except OSError as error:
            message = f"{self.path}: {error.strerror}"
            raise VolumeError(message) from error
        if not is_device:
            message = f"{self.path} is not a block device; nothing was written"
            raise VolumeError(message)
        size = aligned(whole - self.offset if self.size is None else self.size)
        if size <= 0 or self.offset + size > whole:
            message = f"{self.path} has {whole} bytes; {size} from {self.offset} on do not fit"
            raise VolumeError(message)
        return VolumeTarget(kind=VolumeKind.DEVICE, path=str(self.path), size=size, offset=self.offset)

    def clear(self) -> None:
        """Do nothing: see `discard_command`."""

    def lay_out(self, _: VolumeTarget) -> None:
        """Do nothing: a device has its size."""

    def check_written(self, _: VolumeTarget) -> None:
        """Do nothing: the prefill's own count of bytes is the proof."""

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...] | None:
        """Return the command that discards the data set."""
        # It wants the device to itself unless forced, which clients that share one cannot all have.
        force = () if self.size is None else ("--force",)
        return ("blkdiscard", *force, "--offset", str(target.offset), "--length", str(target.size), str(self.path))


LocalVolume = FileVolume | DeviceVolume
"""What the kernel of this host does the I/O for."""


def discard_is_unsupported(exit_code: int, stderr: str) -> bool:
    """Tell whether `discard_command` ended so because the storage knows no discard (`blkdiscard(8)`)."""
    # Before util-linux 2.39 the exit code is that of any other error.
    return exit_code == _UNSUPPORTED or (exit_code != 0 and os.strerror(errno.EOPNOTSUPP) in stderr)


def device_size(path: Path) -> int:
    """Return a block device's size in bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _check_mounted(directory: Path, table: Path) -> None:
    """Check that nothing but a volume of its own is behind a directory.

    A comparison of device numbers would not do: a volume that is a directory of the node may share its device with
    the container's root.
    """
    place = PurePosixPath(os.path.realpath(directory))
    mount = mount_of(place, read_mounts(table))
    if mount is None or mount.point != place:
        below = f"a directory of {mount.point} ({mount.file_system})" if mount else "on nothing that is mounted"
        message = (
            f"no volume is mounted at {directory}: it is {below}; nothing was written. "
            "Look at the pod's volumeMounts, and at the log of the CSI driver on its node"
        )
        raise VolumeError(message)


def aligned(size: int) -> int:
    """Return the bytes of all whole data-set units in a size."""
    return size // ALIGNMENT * ALIGNMENT
