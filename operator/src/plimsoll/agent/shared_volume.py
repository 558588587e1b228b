"""A client's part of a volume that all clients mount: a file of its own, or a region of one file."""

import errno
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from plimsoll.agent.volume import (
    DeviceVolume,
    FileVolume,
    VolumeError,
    aligned,
    check_mounted,
    occupied_bytes,
)
from plimsoll.api.quantity import format_quantity
from plimsoll.tools.target import VolumeKind, VolumeTarget

SHARED_FILE = "shared.data"

_MODE = 0o644

_OTHERS_SECONDS = 15.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVolume:
    """One client's part of a shared volume.

    All clients compute the same sizes and places from the specification, so that each can find the others' data sets.

    Attributes:
        part: bytes of each client's part.
        one_file: whether the data sets are regions of one file.
        mount_table: the mount table that must list the directory; None if it need not be a mount point.

    """

    directory: Path
    client: int
    clients: int
    part: int
    one_file: bool = False
    mount_table: Path | None = None

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the client's data set: that share of its part.

        Raises:
            VolumeError: the directory does not exist, is not the volume, or has too little free space.

        """
        if self.mount_table is not None:
            check_mounted(self.directory, self.mount_table)
        size = aligned(self.part * fill_percent // 100)
        target = self._target(self.client, size)
        try:
            free = os.statvfs(self.directory)
            available = free.f_bavail * free.f_frsize + occupied_bytes(Path(target.path), str(self.client))
        except OSError as error:
            raise VolumeError(f"{self.directory}: {error.strerror}") from error
        if size <= 0:
            raise VolumeError(f"{self.part} bytes for each client are too few; a data set needs at least 1 MiB")
        if available < size:
            message = (
                f"{self.directory} has {available} bytes free, but a data set of {format_quantity(size)} was planned "
                "for each client; lower prepare.fillPercent or volume.size, or use larger storage"
            )
            raise VolumeError(message)
        return target

    def target_of(self, client: int, own: VolumeTarget) -> VolumeTarget:
        """Return the data set of another client, which is as large as this one's own."""
        return self._target(client, own.size)

    def create(self, target: VolumeTarget) -> None:
        """Create the shared file with the size of all regions: a tool would replace one that is too short."""
        if not self.one_file:
            return
        descriptor = os.open(target.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _MODE)
        try:
            _extend(descriptor, self.clients * target.size)
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Remove an old data file; a region is discarded by `discard_command`."""
        if not self.one_file:
            self._file.clear()

    def lay_out(self, target: VolumeTarget) -> None:
        """Create a sparse data file; results of reading it are never `Valid`."""
        if not self.one_file:
            self._file.lay_out(target)

    def check_written(self, target: VolumeTarget) -> None:
        """Raise VolumeError if the data set is too short or has holes."""
        if not self.one_file:
            self._file.check_written(target)
            return
        end, hole = target.offset + target.size, _first_hole(Path(target.path), target.offset)
        if hole < end:
            message = (
                f"{target.path} has a hole at byte {hole}, but the bytes from {target.offset} to {end} were written; "
                "does another program truncate the file?"
            )
            raise VolumeError(message)

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...] | None:
        """Return the command that frees the region; None for a file, which `clear` has removed."""
        if not self.one_file:
            return None
        return ("fallocate", "--punch-hole", "--offset", str(target.offset), "--length", str(target.size), target.path)

    @property
    def _file(self) -> FileVolume:
        return FileVolume(path=self.directory / file_name(self.client))

    def _target(self, client: int, size: int) -> VolumeTarget:
        name = SHARED_FILE if self.one_file else file_name(client)
        whole = VolumeTarget(kind=VolumeKind.FILE, path=str(self.directory / name), size=size, shared=True)
        return replace(whole, offset=client * size) if self.one_file else whole


def file_name(client: int) -> str:
    """Return the name of a client's own data file."""
    return f"client-{client}.data"


def _extend(descriptor: int, size: int) -> None:
    """Give a file its size, the same for all clients, so that none truncates what another one has written.

    Where all do so at once, CephFS may count the file that another client has just extended against the quota before it
    shows its size here; so a full quota is final only after some time.
    """
    deadline = time.monotonic() + _OTHERS_SECONDS
    while os.fstat(descriptor).st_size != size:
        try:
            os.truncate(descriptor, size)
        except OSError as error:
            if error.errno != errno.EDQUOT or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _first_hole(path: Path, offset: int) -> int:
    """Return the first byte from `offset` on without data; the size of the file if there is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(descriptor, offset, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return os.fstat(descriptor).st_size
        raise
    finally:
        os.close(descriptor)


LocalVolume = FileVolume | SharedVolume | DeviceVolume
"""A volume whose I/O goes through this host's kernel."""
