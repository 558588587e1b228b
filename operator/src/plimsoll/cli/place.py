"""Where `plimsoll run` may do its I/O, a directory or block devices that nobody else uses, and keep raw output."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.agent.volume import device_size
from plimsoll.plan.document import Plan

_BLKID_NOTHING_FOUND = 2


class PlaceError(Exception):
    """A directory or device may not be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryPlace:
    """A file per client below a directory of the run's own."""

    directory: Path
    clients: int
    volume_size: int

    def agent_options(self, client: int) -> list[str]:
        """Return how an agent is told of its volume.

        The clients share one file system: each may take an equal part of it, at most the size of its volume.
        """
        free = os.statvfs(self.directory)
        share = free.f_bavail * free.f_frsize // self.clients
        file = self.directory / f"client-{client}.data"
        return ["--file", str(file), "--capacity", str(min(self.volume_size, share))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlace:
    """Block devices, each cut into equal parts if there are more clients than devices."""

    devices: tuple[Path, ...]
    clients: int

    def agent_options(self, client: int) -> list[str]:
        """Return how an agent is told of its volume."""
        device = self.devices[client % len(self.devices)]
        sharers = len(range(client % len(self.devices), self.clients, len(self.devices)))
        part = device_size(device) // sharers // 2**20 * 2**20
        offset = client // len(self.devices) * part
        return ["--device", str(device), "--offset", str(offset), "--size", str(part)]


Place = DirectoryPlace | DevicePlace


def make_directory(parent: Path, plan: Plan) -> Path:
    """Make a new directory for the run's data below one that the user named.

    Raises:
        PlaceError: if that cannot be done.

    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"plimsoll-{plan.run.name}-", dir=parent))
    except OSError as error:
        message = f"--directory {parent}: {error.strerror}"
        raise PlaceError(message) from error


def make_raw_directory(path: Path, *, resume: bool) -> Path:
    """Return where raw output is kept; a run that is resumed adds to its own.

    Raises:
        PlaceError: it cannot be made, or holds something already.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not resume and any(path.iterdir()):
            message = f"--raw-output {path} is not empty; name another directory, or add --resume to go on with its run"
            raise PlaceError(message)
    except OSError as error:
        message = f"--raw-output {path}: {error.strerror}; name a directory that can be written"
        raise PlaceError(message) from error
    return path.absolute()


def check_devices(devices: Sequence[Path], *, destroy: bool) -> None:
    """Refuse what must not be overwritten.

    Raises:
        PlaceError: without the user's word, or if a device is mounted, held by another driver, carries a signature
            of a file system, partition table or the like, or is no block device.

    """
    if not destroy:
        message = "--device destroys everything on the device; add --destroy-data to say that this is meant"
        raise PlaceError(message)
    if len({device.resolve() for device in devices}) != len(devices):
        message = "--device names a device twice; its clients would overwrite each other's part"
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
    """Open it exclusively: the kernel refuses that while it, or a partition of it, is mounted or held (`open(2)`)."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL))
    except OSError as error:
        message = f"--device {device} is in use or cannot be written: {error.strerror}; unmount or release it first"
        raise PlaceError(message) from error


def _check_unsigned(device: Path) -> None:
    """Probe the device itself, not a cache, for anything that looks like data."""
    probe = subprocess.run(["blkid", "--probe", str(device)], capture_output=True, text=True, check=False, timeout=30)
    if probe.returncode != _BLKID_NOTHING_FOUND:
        found = (probe.stdout or probe.stderr).strip()
        message = f"--device {device} carries data ({found}); run `wipefs --all {device}` if nobody needs it"
        raise PlaceError(message)
