"""Whether a run can be measured on this machine, and with which storage."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from plimsoll.agent.caches import SWITCH, may_drop_caches
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import Storage, StorageClassStorage
from plimsoll.cli.claim import claimed_devices, claimed_directory
from plimsoll.cli.place import check_devices
from plimsoll.tools.base import AnyTool
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import TargetKind

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
