"""Where `plimsoll run` does its I/O on this machine, what this machine can run, and locks against a second run."""

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from plimsoll.agent.caches import SWITCH, may_drop_caches
from plimsoll.agent.volume import available_bytes, device_size, file_name, occupied_bytes
from plimsoll.api.errors import SpecError
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import Storage, StorageClassStorage
from plimsoll.cli import exit_on
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.assignment import BlockDevice, DataFile, SharedDirectory
from plimsoll.tools.base import AnyTool
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import TargetKind

LOCK_FILE = ".plimsoll.lock"
_WRITABLE = "; choose a writable directory"
_BLKID_NOTHING_FOUND = 2
_PROBE_SECONDS = 3.0  # udev locks a device briefly after a program has closed it


class PlaceError(click.ClickException):
    """A directory or device cannot be used; the message has the reason and the remedy."""


def client_volume(
    plan: Plan, client: int, *, data: Path | None, devices: Sequence[Path]
) -> DataFile | SharedDirectory | BlockDevice:
    """Return a client's volume in the run's directory `data`, or on one of the block devices without a directory.

    In a directory it is a file of the client, or the whole directory for all clients if they share their volume. Block
    devices are split into equal parts if there are more clients than devices.
    """
    if data is None:
        number, index = divmod(client, len(devices))
        device = devices[index].absolute()
        sharers = len(range(index, plan.clients, len(devices)))
        part = device_size(device) // sharers // 2**20 * 2**20
        return BlockDevice(path=str(device), offset=number * part, size=part)
    directory, size = data.absolute(), plan.volume.size if plan.volume else 0
    if plan.volume is not None and plan.volume.is_shared:
        one_file = plan.has_shared_file
        return SharedDirectory(path=str(directory), part=size, clients=plan.clients, one_file=one_file)
    # The clients share one file system: each uses at most an equal part of it and the size of its volume.
    files = [directory / file_name(number) for number in range(plan.clients)]
    share = available_bytes(directory, sum(map(occupied_bytes, files))) // plan.clients
    return DataFile(path=str(files[client]), capacity=min(size, share))


def make_directory(parent: Path, plan: Plan) -> Path:
    """Create a directory for the run's data in the user's directory; PlaceError on failure."""
    with exit_on(OSError, what=f"--directory {parent}: ", kind=PlaceError):
        return Path(tempfile.mkdtemp(prefix=f"plimsoll-{plan.run.name}-", dir=parent))


def make_results_directory(path: Path) -> None:
    """Create the directory for results; a PlaceError if nothing can be written there."""
    with exit_on(OSError, what=f"--results {path}: ", remedy=_WRITABLE, kind=PlaceError):
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()


def make_raw_directory(path: Path, *, resume: bool) -> Path:
    """Create the directory for raw output; a PlaceError if it is not empty, unless the run is resumed."""
    with exit_on(OSError, what=f"--raw-output {path}: ", remedy=_WRITABLE, kind=PlaceError):
        path.mkdir(parents=True, exist_ok=True)
        is_used = not resume and any(path.iterdir())
    if is_used:
        remedy = "choose another directory, or add --resume to continue its run"
        raise PlaceError(f"--raw-output {path} is not empty; {remedy}")
    return path.absolute()


def check_devices(devices: Sequence[Path]) -> None:
    """Refuse devices that must not be overwritten.

    A PlaceError if one is mounted, in use by another driver, has a signature (of a file system or a partition table,
    for example), or is not a block device.
    """
    if len({device.resolve() for device in devices}) != len(devices):
        raise PlaceError("--device is given twice for the same device; give each device once")
    for device in devices:
        with exit_on(OSError, what=f"--device {device}: ", kind=PlaceError):
            is_device = stat.S_ISBLK(device.stat().st_mode)
        if not is_device:
            raise PlaceError(f"--device {device} is not a block device; use --directory for files")
        what, remedy = f"--device {device} is in use or cannot be written: ", "; unmount or release it first"
        with exit_on(OSError, what=what, remedy=remedy, kind=PlaceError):
            # Exclusive, which fails while it or a partition of it is mounted or in use (`open(2)`).
            os.close(os.open(device, os.O_RDWR | os.O_EXCL))
        # The device itself, not a cache of signatures.
        command = ["blkid", "--probe", str(device)]
        probe = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        if probe.returncode != _BLKID_NOTHING_FOUND:
            data = (probe.stdout or probe.stderr).strip()
            remedy = f"run `wipefs --all {device}` if it is not needed"
            raise PlaceError(f"--device {device} contains data ({data}); {remedy}")


@contextmanager
def claimed_directory(directory: Path, name: str) -> Iterator[None]:
    """Lock a directory for a run, until the process ends; a PlaceError if another run holds the lock."""
    path = directory / LOCK_FILE
    try:
        descriptor = _locked_file(path)
    except BlockingIOError as error:
        holder = ""
        with suppress(OSError), path.open("rb") as file:
            holder = file.read(200).decode(errors="replace").strip()
        run = f"{directory} is being measured by another run ({holder or 'which one is unknown'})"
        remedy = "wait until it has ended: two runs would share the throughput"
        raise PlaceError(f"--directory {run}; {remedy}") from error
    except OSError as error:
        raise PlaceError(f"--directory {directory} cannot be locked: {path}: {error.strerror}") from error
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
    """Lock devices as other programs that write to whole devices do; a PlaceError if one is locked already."""
    with ExitStack() as stack:
        for device in devices:
            with exit_on(OSError, what=f"--device {device}: ", kind=PlaceError):
                descriptor = os.open(device, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                try:
                    # Another program may hold it briefly.
                    waiting = Retrying(
                        retry=retry_if_exception_type(BlockingIOError),
                        stop=stop_after_delay(_PROBE_SECONDS),
                        wait=wait_fixed(0.1),
                        reraise=True,
                    )
                    waiting(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    holder = "another program, possibly another run; wait until it has ended"
                    raise PlaceError(f"--device {device} is locked by {holder}") from error
        yield


def _locked_file(path: Path) -> int:
    """Return a descriptor that locks the file that currently has this name; a BlockingIOError if another has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        # A run that just ended removed the file between the two calls.
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The directory or the block devices to measure."""

    directory: Path | None = None
    devices: tuple[Path, ...] = ()

    @property
    def mode(self) -> Literal["Block", "Filesystem"]:
        return "Filesystem" if self.directory is not None else "Block"

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.devices if self.directory is None else (self.directory,)

    @contextmanager
    def claimed(self, name: str) -> Iterator[None]:
        """Keep other runs from the target while the run `name` uses it; a PlaceError if it cannot be used."""
        if self.directory is not None:
            with claimed_directory(self.directory, name):
                yield
            return
        with claimed_devices(self.devices):
            check_devices(self.devices)
            yield


def fit_to_machine(file: Path, run: BenchmarkRun, target: Target, fio: str) -> BenchmarkRun:
    """Return the run with local storage; exits if it needs a cluster, a program or rights that are not there."""
    fitted, refused = _on_this_machine(file, run, target.mode), f"{file} cannot be run"
    try:
        plan = make_plan(fitted, seed=0)
    except SpecError as error:
        option = "--device" if target.devices else "--directory"
        raise click.ClickException(f"{refused} with {option}: {error}") from error
    is_filled = plan.volume is not None and plan.prepare.prefill
    # Otherwise it would measure warm caches.
    if fitted.spec.prepare.drop_caches and not may_drop_caches():
        cause = f"dropping the caches of this machine requires root ({SWITCH} is not writable)"
        message = (
            f"{refused} as this user: spec.prepare.dropCaches is true, and {cause}; run as root, or set it to false"
        )
        raise click.ClickException(message)
    prefill = [("spec.prepare.prefill", DATA_SET_TOOL)] if is_filled else []
    workloads = [(f"workload {workload.name}", workload.tool) for workload in fitted.spec.workloads]
    for user, tool in [*workloads, *prefill]:
        name, is_fio = TOOLS[tool].program, tool == DATA_SET_TOOL
        program = fio if is_fio else name
        if shutil.which(program) is None:
            remedy = f"install {name}, or name it with --fio" if is_fio else f"install {name}, or remove the workload"
            raise click.ClickException(f"{refused} on this machine: {program} of {user} cannot be run; {remedy}")
    return fitted


def needs_of(tool: AnyTool) -> str:
    """Return the tool's needs that one machine cannot meet; empty if it runs anywhere."""
    if tool.target is TargetKind.PEER:
        return "a network between nodes"
    if tool.creates_claims:
        return "a cluster to create PVCs in"
    return "a Ceph cluster" if tool.target.is_of_ceph else ""


def _on_this_machine(file: Path, run: BenchmarkRun, mode: Literal["Block", "Filesystem"]) -> BenchmarkRun:
    refused = f"{file} cannot be run on this machine:"
    for number, workload in enumerate(run.spec.workloads):
        tool = TOOLS.get(workload.tool)
        if tool and (needs := needs_of(tool)):
            problem = f"workload {workload.name} runs {workload.tool}, which requires {needs}"
            raise click.ClickException(f"{refused} {problem}; remove the workload, or apply the run to a cluster")
        if workload.disturb:
            problem = f"spec.workloads[{number}].disturb takes OSDs of a Ceph cluster away"
            raise click.ClickException(f"{refused} {problem}; remove it, or apply the run to a cluster")
    storage = run.spec.storage
    if storage is None or storage.volume is None:
        return run
    if storage.volume.is_shared and mode == "Block":
        message = f"{file} has volume.sharing Shared, which clients need a directory for; use --directory"
        raise click.ClickException(message)
    volume = storage.volume.model_copy(update={"mode": mode, "access": "PVC", "rbd_cache": False})
    local = Storage(storage_class=StorageClassStorage(name="local"), volume=volume)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"storage": local})})
