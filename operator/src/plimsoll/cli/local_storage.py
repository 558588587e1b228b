"""Where `plimsoll run` does its I/O, a directory or unused block devices, and where it keeps raw output."""

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from plimsoll.agent.page_cache import SWITCH, may_drop_caches
from plimsoll.agent.volume import device_size, file_name
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import Storage, StorageClassStorage
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import BlockDevice, DataFile, SharedDirectory
from plimsoll.tools.base import AnyTool
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import TargetKind

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


LOCK_FILE = ".plimsoll.lock"
_UNKNOWN_HOLDER = "which one is unknown"
_HOLDER_BYTES = 200
_PROBE_SECONDS = 3.0
"""udev locks a device briefly after a program has closed it."""
_POLL_SECONDS = 0.1


@contextmanager
def claimed_directory(directory: Path, name: str) -> Iterator[None]:
    """Lock a directory for a run. The kernel releases the lock when the process ends.

    Raises:
        PlaceError: if another run holds the lock, or the lock file cannot be created.

    """
    path = directory / LOCK_FILE
    try:
        descriptor = _locked_file(path)
    except BlockingIOError as error:
        message = (
            f"--directory {directory} is being measured by another run ({_holder(path)}); "
            "wait until it has ended: two runs would share the throughput"
        )
        raise PlaceError(message) from error
    except OSError as error:
        message = f"--directory {directory} cannot be locked: {path}: {error.strerror}"
        raise PlaceError(message) from error
    try:
        with suppress(OSError):
            os.truncate(descriptor, 0)
            os.write(descriptor, f"run {name}, process {os.getpid()}\n".encode())
        yield
    finally:
        # `_locked_file` notices that the file was removed.
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def claimed_devices(devices: Sequence[Path]) -> Iterator[None]:
    """Lock devices as other programs that write to whole devices do; udev respects this lock.

    Raises:
        PlaceError: if another program holds one of them.

    """
    with ExitStack() as stack:
        for device in devices:
            try:
                descriptor = os.open(device, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                _lock_in_time(descriptor)
            except BlockingIOError as error:
                message = (
                    f"--device {device} is locked by another program, possibly another run; wait until it has ended"
                )
                raise PlaceError(message) from error
            except OSError as error:
                message = f"--device {device}: {error.strerror}"
                raise PlaceError(message) from error
        yield


def _locked_file(path: Path) -> int:
    """Return a descriptor that locks the file that currently has this name.

    Raises:
        BlockingIOError: if another process holds the lock.
        OSError: if the file cannot be opened or locked.

    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(descriptor, path):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        # A run that just ended removed the file between the two calls.
        os.close(descriptor)


def _lock_in_time(descriptor: int) -> None:
    """Lock a file that another process may hold briefly.

    Raises:
        BlockingIOError: if it is held for longer.

    """
    deadline = time.monotonic() + _PROBE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        else:
            return
        time.sleep(_POLL_SECONDS)


def _is_named(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _holder(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HOLDER_BYTES).decode(errors="replace").strip() or _UNKNOWN_HOLDER
    return _UNKNOWN_HOLDER


_LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is measured: a directory, or block devices."""

    directory: Path | None = None
    devices: tuple[Path, ...] = ()

    @property
    def mode(self) -> Literal["Block", "Filesystem"]:
        """The mode of volumes on it."""
        return "Filesystem" if self.directory is not None else "Block"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The directory, or the devices."""
        return self.devices if self.directory is None else (self.directory,)

    @contextmanager
    def claimed(self, name: str, *, destroy: bool) -> Iterator[None]:
        """Keep other runs from the target while the run `name` uses it.

        Raises:
            PlaceError: another run uses it, or a device is in use or has data that may not be destroyed.

        """
        if self.directory is not None:
            with claimed_directory(self.directory, name):
                yield
            return
        with claimed_devices(self.devices):
            check_devices(self.devices, destroy=destroy)
            yield


def fit_to_machine(file: Path, run: BenchmarkRun, target: Target) -> BenchmarkRun:
    """Return the run with local storage; exits if it needs a cluster, a program or rights that are not there."""
    fitted = _on_this_machine(file, run, target.mode)
    _check_caches(file, fitted)
    _check_programs(file, fitted)
    return fitted


def _on_this_machine(file: Path, run: BenchmarkRun, mode: Literal["Block", "Filesystem"]) -> BenchmarkRun:
    """Return the run with local storage; exits if it needs a cluster."""
    for workload in run.spec.workloads:
        tool = TOOLS.get(workload.tool)
        needs = _needs_elsewhere(tool) if tool is not None else ""
        if needs:
            message = (
                f"{file} cannot be run on this machine: workload {workload.name} runs {workload.tool}, which requires "
                f"{needs}; remove the workload, or apply the run to a cluster"
            )
            raise click.ClickException(message)
    storage = run.spec.storage
    if storage is None or storage.volume is None:
        return run
    if storage.volume.is_shared and mode == "Block":
        message = f"{file} has volume.sharing Shared, which clients need a directory for; use --directory"
        raise click.ClickException(message)
    volume = storage.volume.model_copy(update={"mode": mode, "access": "PVC", "rbd_cache": False})
    local = Storage(storage_class=StorageClassStorage(name=_LOCAL), volume=volume)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"storage": local})})


def _needs_elsewhere(tool: AnyTool) -> str:
    """Return what a tool needs that one machine does not have; empty if there is nothing."""
    if tool.target is TargetKind.PEER:
        return "a network between nodes"
    if tool.creates_claims:
        return "a cluster to create PVCs in"
    return "a Ceph cluster" if tool.target.is_of_ceph else ""


def _check_caches(file: Path, run: BenchmarkRun) -> None:
    """Exit if the run drops caches and this user may not: it would measure warm caches."""
    if run.spec.prepare.drop_caches and not may_drop_caches():
        message = (
            f"{file} cannot be run as this user: spec.prepare.dropCaches is true, and dropping the caches of this "
            f"machine requires root (/proc/{SWITCH} is not writable); run as root, or set it to false"
        )
        raise click.ClickException(message)


def _check_programs(file: Path, run: BenchmarkRun) -> None:
    """Exit if the program of a tool other than fio, which has an option of its own, is not installed."""
    for workload in run.spec.workloads:
        tool = TOOLS.get(workload.tool)
        if tool is not None and tool.key != DATA_SET_TOOL and shutil.which(tool.program) is None:
            message = (
                f"{file} cannot be run on this machine: {tool.program} of workload {workload.name} cannot be run; "
                f"install {tool.program}, or remove the workload"
            )
            raise click.ClickException(message)
