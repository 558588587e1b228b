"""Where `plimsoll run` does its I/O, a directory or unused block devices, and where it keeps raw output."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.agent.volume import device_size, file_name
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import BlockDevice, DataFile, SharedDirectory

_BLKID_NOTHING_FOUND = 2


class PlaceError(Exception):
    """A directory or device cannot be used; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryPlace:
    """A file per client in a directory of the run."""

    directory: Path
    clients: int
    volume_size: int

    def volume(self, client: int) -> DataFile:
        """Return a client's volume.

        The clients share one file system: each uses at most an equal part of it and the size of its volume.
        """
        free = os.statvfs(self.directory)
        share = free.f_bavail * free.f_frsize // self.clients
        file = self.directory / file_name(client)
        return DataFile(path=str(file), capacity=min(self.volume_size, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPlace:
    """A directory of the run in which each client has a part, or a region of one file."""

    directory: Path
    clients: int
    part: int
    one_file: bool

    def volume(self, _: int) -> SharedDirectory:
        """Return the volume, which is the same for all clients."""
        path, one_file = str(self.directory), self.one_file
        return SharedDirectory(path=path, part=self.part, clients=self.clients, one_file=one_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlace:
    """Block devices, each split into equal parts if there are more clients than devices."""

    devices: tuple[Path, ...]
    clients: int

    def volume(self, client: int) -> BlockDevice:
        """Return a client's volume."""
        device = self.devices[client % len(self.devices)]
        sharers = len(range(client % len(self.devices), self.clients, len(self.devices)))
        part = device_size(device) // sharers // 2**20 * 2**20
        offset = client // len(self.devices) * part
        return BlockDevice(path=str(device), offset=offset, size=part)


Place = DirectoryPlace | SharedPlace | DevicePlace


def make_directory(parent: Path, plan: Plan) -> Path:
    """Create a directory for the run's data in the one given by the user.

    Raises:
        PlaceError: if it cannot be created.

    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"plimsoll-{plan.run.name}-", dir=parent))
    except OSError as error:
        message = f"--directory {parent}: {error.strerror}"
        raise PlaceError(message) from error


def make_raw_directory(path: Path, *, resume: bool) -> Path:
    """Create the directory for raw output; a resumed run reuses its own.

    Raises:
        PlaceError: if it cannot be created, or is not empty.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not resume and any(path.iterdir()):
            message = f"--raw-output {path} is not empty; choose another directory, or add --resume to continue its run"
            raise PlaceError(message)
    except OSError as error:
        message = f"--raw-output {path}: {error.strerror}; choose a writable directory"
        raise PlaceError(message) from error
    return path.absolute()


def check_devices(devices: Sequence[Path], *, destroy: bool) -> None:
    """Refuse devices that must not be overwritten.

    Raises:
        PlaceError: without --destroy-data, or if a device is mounted, in use by another driver, has a signature such as
            that of a file system or partition table, or is not a block device.

    """
    if not destroy:
        message = "--device destroys all data on the device; add --destroy-data to confirm"
        raise PlaceError(message)
    if len({device.resolve() for device in devices}) != len(devices):
        message = "--device is given twice for the same device; give each device once"
        raise PlaceError(message)
    for device in devices:
        _check_device(device)


def _check_device(device: Path) -> None:
    try:
        is_device = stat.S_ISBLK(device.stat().st_mode)
    except OSError as error:
        message = f"--device {device}: {error.strerror}"
        raise PlaceError(message) from error
    if not is_device:
        message = f"--device {device} is not a block device; use --directory for files"
        raise PlaceError(message)
    _check_unused(device)
    _check_unsigned(device)


def _check_unused(device: Path) -> None:
    """Open the device exclusively, which fails while it or a partition of it is mounted or in use (`open(2)`)."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL))
    except OSError as error:
        message = f"--device {device} is in use or cannot be written: {error.strerror}; unmount or release it first"
        raise PlaceError(message) from error


def _check_unsigned(device: Path) -> None:
    """Probe the device itself, not a cache, for signatures."""
    probe = subprocess.run(["blkid", "--probe", str(device)], capture_output=True, text=True, check=False, timeout=30)
    if probe.returncode != _BLKID_NOTHING_FOUND:
        found = (probe.stdout or probe.stderr).strip()
        message = f"--device {device} contains data ({found}); run `wipefs --all {device}` if it is not needed"
        raise PlaceError(message)
