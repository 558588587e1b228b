"""The client's volume: a data file in a directory, or a block device or part of one."""

import errno
import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from plimsoll.api.json_reader import JsonNode, OutputError
from plimsoll.api.quantity import format_quantity
from plimsoll.tools.base import Command
from plimsoll.tools.target import ImageTarget, VolumeKind, VolumeTarget

OWN_TABLE = Path("/proc/self/mountinfo")

_MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) \S+(?: \S+)*? - (\S+) (\S*) (\S*)$", re.MULTILINE)
_OCTAL = re.compile(r"\\([0-7]{3})")

ALIGNMENT = 2**20  # data sets are whole mebibytes
SECTOR_BYTES = 512  # in which the kernel counts, whatever a device's own blocks are
_UNSUPPORTED = 2
_WRITTEN_SHARE = 0.99  # a file with fewer allocated blocks has holes; file systems round slightly
_MOST_PERCENT = 95  # a data set never takes more of the free space than this, unless `fillPercent` is higher
SHARED_FILE = "shared.data"
_OTHERS_SECONDS = 15.0
_PAUSE_SECONDS = 0.2
LOOK_UP_SECONDS = 60.0  # librados tries for 300 s to reach a monitor; a reachable one answers within a second
_DISCARD_SECONDS = 600.0
_DISCARD_BYTES_PER_SECOND = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mounted file system."""

    root: PurePosixPath  # directory of the file system that is mounted at `point`
    point: PurePosixPath  # absolute path of the mount point
    file_system: str  # type: `ext4`, `cgroup2`, ...
    source: str  # a device, an export, or an arbitrary word; empty for none
    options: tuple[str, ...]  # options of the file system, not of this mount


def read_mounts(table: Path) -> tuple[Mount, ...]:
    """Return all mounts in the order of mounting; OSError if the table cannot be read."""
    return tuple(
        Mount(
            root=PurePosixPath(_unescaped(root)),
            point=PurePosixPath(_unescaped(point)),
            file_system=file_system,
            source=_unescaped(source),
            options=tuple(options.split(",")),
        )
        for root, point, file_system, source, options in _MOUNT.findall(table.read_text(errors="replace"))
    )


def mount_of(path: PurePosixPath, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount that contains an absolute path without symbolic links; later mounts hide earlier ones."""
    candidates = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(candidates), key=lambda mount: len(mount.point.parts), default=None)


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


class VolumeError(Exception):
    """The volume cannot be used; the message contains the reason and the remedy."""


class LocalVolume:
    """A volume whose I/O goes through this host's kernel. By default its data set exists and needs no steps."""

    __slots__ = ()

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the client's data set; VolumeError if the volume cannot be used."""
        raise NotImplementedError

    def create(self, target: VolumeTarget) -> None:
        """Create the data set as far as other clients need it before the prefill."""

    def clear(self, target: VolumeTarget) -> None:
        """Remove an old data set as far as `discard_command` does not discard it."""

    def lay_out(self, target: VolumeTarget) -> None:
        """Give the data set its size, without writing it. Reads of unwritten parts are never `Valid`."""

    def check_written(self, target: VolumeTarget) -> None:
        """Raise VolumeError if the data set is too short or has holes."""

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...] | None:  # noqa: ARG002
        """Return the command that discards the data set; None if `clear` does."""
        return None


class _OwnFile(LocalVolume):
    """A volume in which the data set is a file of this client alone."""

    __slots__ = ()

    def clear(self, target: VolumeTarget) -> None:
        Path(target.path).unlink(missing_ok=True)

    def lay_out(self, target: VolumeTarget) -> None:
        with Path(target.path).open("ab") as file:
            file.truncate(target.size)

    def check_written(self, target: VolumeTarget) -> None:
        status = Path(target.path).stat()
        if status.st_size != target.size or status.st_blocks * SECTOR_BYTES < target.size * _WRITTEN_SHARE:
            raise VolumeError(
                f"{target.path} has {status.st_size} bytes and blocks for {status.st_blocks * SECTOR_BYTES}, "
                f"but {target.size} were written; does the file system compress or deduplicate?"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVolume(_OwnFile):
    """A file in a mounted file system."""

    path: Path  # path of the data file
    capacity: int | None = None  # bytes that the client may use; None for all free space
    # The mount table that must list the file's directory; None if it need not be a mount point.
    mount_table: Path | None = None

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the data set: that share of the capacity, or of the free space if less than 5 % of it would remain."""
        check_usable(self.path.parent, self.mount_table)
        available = available_bytes(self.path.parent, occupied_bytes(self.path))
        planned = (self.capacity or available) * fill_percent // 100
        size = aligned(planned if planned <= available * _MOST_PERCENT // 100 else available * fill_percent // 100)
        if size <= 0:
            raise VolumeError(f"{self.path.parent} has {available} bytes free; a data set needs at least 1 MiB")
        return VolumeTarget(kind=VolumeKind.FILE, path=str(self.path), size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceVolume(LocalVolume):
    """A block device, or the part of it from `offset` on; `size` None means the rest."""

    path: Path
    offset: int = 0
    size: int | None = None

    def target(self, _: int) -> VolumeTarget:
        """Return the data set: every whole MiB of the volume."""
        try:
            if not stat.S_ISBLK(self.path.stat().st_mode):
                raise VolumeError(f"{self.path} is not a block device; nothing has been written")
            whole = device_size(self.path)
        except OSError as error:
            raise VolumeError(f"{self.path}: {error.strerror}") from error
        size = aligned(whole - self.offset if self.size is None else self.size)
        if size <= 0 or self.offset + size > whole:
            raise VolumeError(f"{self.path} has {whole} bytes; {size} bytes at offset {self.offset} do not fit")
        return VolumeTarget(kind=VolumeKind.DEVICE, path=str(self.path), size=size, offset=self.offset)

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...] | None:
        # Without --force, blkdiscard opens the device exclusively, which clients that share one cannot.
        force = () if self.size is None else ("--force",)
        return ("blkdiscard", *force, "--offset", str(target.offset), "--length", str(target.size), str(self.path))


def discard_is_unsupported(exit_code: int, stderr: str) -> bool:
    """Whether `discard_command` failed because the storage does not support discard (`blkdiscard(8)`)."""
    # Before util-linux 2.39 the exit code was the same as for any other error.
    return exit_code == _UNSUPPORTED or (exit_code != 0 and os.strerror(errno.EOPNOTSUPP) in stderr)


def device_size(path: Path) -> int:
    """Return a block device's size in bytes."""
    with path.open("rb") as file:
        return file.seek(0, os.SEEK_END)


def check_usable(directory: Path, table: Path | None) -> None:
    """Raise VolumeError unless the directory is writable and, with a mount table, a mount point."""
    if table is not None:
        place = PurePosixPath(os.path.realpath(directory))
        mount = mount_of(place, read_mounts(table))
        if mount is None or mount.point != place:
            location = f"it is a directory of {mount.point} ({mount.file_system})" if mount else "no mount contains it"
            raise VolumeError(
                f"no volume is mounted at {directory}: {location}; nothing has been written. "
                "Check the pod's volumeMounts and the log of the CSI driver on its node"
            )
    try:
        found = directory.stat()
    except OSError as error:
        raise VolumeError(f"{directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        remedy = "Choose another directory, or make it writable"
        if table is not None:
            remedy = (
                "fsGroup has no effect on this volume: set csi.storage.k8s.io/fstype in the StorageClass, or "
                "fsGroupPolicy: File in the CSIDriver; volume.mode Block needs no directory"
            )
        raise VolumeError(
            f"user {os.getuid()} cannot write to {directory}, which belongs to user {found.st_uid} and group "
            f"{found.st_gid} with mode {stat.S_IMODE(found.st_mode):o}; nothing has been written. {remedy}"
        )


def available_bytes(directory: Path, occupied: int) -> int:
    """Return the bytes that data sets may use: the free space, and the bytes `occupied` by those that they replace."""
    free = os.statvfs(directory)
    return free.f_bavail * free.f_frsize + occupied


def occupied_bytes(path: Path) -> int:
    """Return the bytes that a data file and a killed tool's files occupy; the next trial replaces both."""
    return _allocated_bytes(path) + _left_bytes(path)


def _allocated_bytes(path: Path) -> int:
    return path.stat().st_blocks * SECTOR_BYTES if path.exists() else 0


def _left_bytes(path: Path, client: str = "*") -> int:
    """Return how many bytes the files of a killed tool occupy; see `StepContext.own_directory`."""
    left = (file for directory in path.parent.glob(f"{path.name}.{client}.files") for file in directory.rglob("*"))
    return sum(map(_allocated_bytes, left))


def aligned(size: int) -> int:
    return size // ALIGNMENT * ALIGNMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVolume(_OwnFile):
    """One client's part of a shared volume: a file of its own, in a place that all clients compute alike."""

    directory: Path
    client: int
    clients: int
    part: int  # bytes of each client's part
    # The mount table that must list the directory; None if it need not be a mount point.
    mount_table: Path | None = None

    def target(self, fill_percent: int) -> VolumeTarget:
        """Return the client's data set: that share of its part."""
        check_usable(self.directory, self.mount_table)
        target = self.place_of(self.client, aligned(self.part * fill_percent // 100))
        left = _left_bytes(Path(target.path), str(self.client))
        available = available_bytes(self.directory, self.occupied_bytes(target) + left)
        if target.size <= 0:
            raise VolumeError(f"{self.part} bytes for each client are too few; a data set needs at least 1 MiB")
        if available < target.size:
            raise VolumeError(
                f"{self.directory} has {available} bytes free, but a data set of {format_quantity(target.size)} was "
                "planned for each client; lower prepare.fillPercent or volume.size, or use larger storage"
            )
        return target

    def place_of(self, client: int, size: int) -> VolumeTarget:
        """Return the data set of a client; all have the same size."""
        path = str(self.directory / file_name(client))
        return VolumeTarget(kind=VolumeKind.FILE, path=path, size=size, shared=True)

    def occupied_bytes(self, target: VolumeTarget) -> int:
        return _allocated_bytes(Path(target.path))


class SharedFileVolume(SharedVolume):
    """One client's part of a shared volume: a region of one file."""

    __slots__ = ()

    def place_of(self, client: int, size: int) -> VolumeTarget:
        path = str(self.directory / SHARED_FILE)
        return VolumeTarget(kind=VolumeKind.FILE, path=path, size=size, offset=client * size, shared=True)

    def occupied_bytes(self, target: VolumeTarget) -> int:
        """Return how many bytes of this client's region are not holes."""
        offset, end, occupied = target.offset, target.offset + target.size, 0
        try:
            with Path(target.path).open("rb") as file:
                while offset < end:
                    start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
                    offset = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                    occupied += max(0, min(offset, end) - start)
        except OSError as error:
            # There is no file, or no data after the offset.
            if error.errno not in {errno.ENOENT, errno.ENXIO}:
                raise
        return occupied

    def create(self, target: VolumeTarget) -> None:
        """Create the file with the size of all regions: a tool would replace one that is too short."""
        deadline, size = time.monotonic() + _OTHERS_SECONDS, self.clients * target.size
        # CephFS may count another client's extension, to the same size, against the quota before this client sees it.
        with Path(target.path).open("ab") as file:
            while os.fstat(file.fileno()).st_size != size:
                try:
                    os.truncate(file.fileno(), size)
                except OSError as error:
                    if error.errno != errno.EDQUOT or time.monotonic() >= deadline:
                        raise
                    time.sleep(_PAUSE_SECONDS)

    def clear(self, target: VolumeTarget) -> None:
        """Do nothing: `discard_command` frees the region."""

    def lay_out(self, target: VolumeTarget) -> None:
        """Do nothing: the file has its size."""

    def check_written(self, target: VolumeTarget) -> None:
        end = target.offset + target.size
        with Path(target.path).open("rb") as file:
            hole = file.seek(0, os.SEEK_END)
            if target.offset < hole:
                hole = os.lseek(file.fileno(), target.offset, os.SEEK_HOLE)
        if hole < end:
            raise VolumeError(
                f"{target.path} has a hole at byte {hole}, but the bytes from {target.offset} to {end} were written; "
                "does another program truncate the file?"
            )

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...]:
        return ("fallocate", "--punch-hole", "--offset", str(target.offset), "--length", str(target.size), target.path)


def file_name(client: int) -> str:
    return f"client-{client}.data"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageVolume(ImageTarget):
    """One client's RBD image, with its planned size."""

    def target(self) -> ImageTarget:
        """Return the data set: every whole MiB of the image. VolumeError if there is none."""
        size = aligned(self.size)
        if size <= 0:
            raise VolumeError(f"image {self.name} is planned with {self.size} bytes; a data set needs at least 1 MiB")
        return ImageTarget(pool=self.pool, image=self.image, user=self.user, size=size, cache=self.cache)

    def look_up_command(self) -> Command:
        image = ("--pool", self.pool, "--image", self.image)
        # Untranslated, because its messages are parsed.
        return Command(argv=("rbd", "--id", self.user, "info", "--format", "json", *image), environment={"LC_ALL": "C"})

    def check_found(self, exit_code: int, stdout: str, stderr: str) -> None:
        """Check the result of `look_up_command`; VolumeError if the image cannot be used."""
        if exit_code != 0:
            raise VolumeError(f"{self._problem(stderr)} (rbd ended with exit code {exit_code}: {stderr.strip()})")
        try:
            size = JsonNode.parse(stdout, document="rbd info")["size"].count()
        except OutputError as error:
            raise VolumeError(f"image {self.name}: {error}") from error
        if size < aligned(self.size):
            shortage = f"{size} bytes, but {self.size} were planned"
            raise VolumeError(f"image {self.name} has {shortage}; resize or recreate it")

    @property
    def unreachable(self) -> str:
        """The message for a cluster that does not answer."""
        return (
            f"cannot reach image {self.name} as client.{self.user}. Check that "
            f"{os.environ.get('CEPH_CONF', '/etc/ceph/ceph.conf')} names monitors and a keyring with the key of "
            f"client.{self.user}, that this host reaches the monitors and OSDs (NetworkPolicies, firewalls), and that "
            f"the placement groups of pool {self.pool} are active"
        )

    @property
    def stuck(self) -> str:
        """The remedy when I/O fails on an image that was found."""
        return (
            f"it ran as client.{self.user}. Check in `ceph status` that the placement groups of pool {self.pool} "
            f"are active and nothing is full, and in `ceph auth get client.{self.user}` that its caps cover the "
            "image's data pool too"
        )

    @property
    def discard_seconds(self) -> float:
        """Time limit of a discard, which sends too little for a stall watch."""
        return _DISCARD_SECONDS + self.size / _DISCARD_BYTES_PER_SECOND

    def _problem(self, stderr: str) -> str:
        if "couldn't connect" in stderr:
            return self.unreachable
        if os.strerror(errno.EPERM) in stderr or os.strerror(errno.EACCES) in stderr:
            return (
                f"client.{self.user} may not use image {self.name}. Check that its caps are "
                "mon 'allow service osd r' ('profile simple-rados-client' before Ceph 20.2.4) and "
                f"osd 'profile rbd pool={self.pool}', with one more for a data pool"
            )
        if "error opening pool" in stderr:
            return f"client.{self.user} does not see pool {self.pool}. Check its name, and whether it was removed"
        if os.strerror(errno.ENOENT) in stderr:
            return f"image {self.name} does not exist. It is created before agents prepare: check who removed it"
        return f"image {self.name} cannot be opened as client.{self.user}"
