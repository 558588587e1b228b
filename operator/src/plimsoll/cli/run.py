"""`plimsoll run FILE`: run a benchmark on this machine, with conductor and agents as local processes."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import click
from rich.console import Console

from plimsoll.agent.host.page_cache import SWITCH, may_drop_caches
from plimsoll.api.errors import SpecError
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import Storage, StorageClassStorage
from plimsoll.cli.claim import claimed_devices, claimed_directory
from plimsoll.cli.document import freeze, read_run
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.launch import Launch, Launcher, LaunchError, free_port
from plimsoll.cli.place import (
    DevicePlace,
    DirectoryPlace,
    Place,
    PlaceError,
    SharedPlace,
    check_devices,
    make_directory,
    make_raw_directory,
)
from plimsoll.cli.progress import LocalProgress
from plimsoll.cli.run_view import Lines, Screen, view_on
from plimsoll.cli.table import results_table
from plimsoll.conductor.conduct import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.secret import write_session
from plimsoll.conductor.sink import PLAN_FILE, read_plan, read_results, read_state, replace_file
from plimsoll.lifecycle.render.ceph import tools_of
from plimsoll.plan.document import Plan
from plimsoll.tools.base import AnyTool, TargetKind
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS

_PLACE_FILE = "place.json"
_LOCAL = "local"
_EXIT_INVALID = 2


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--directory", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Measure files here.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure this block device; may be repeated. DESTROYS ITS DATA.",
)
@click.option("--destroy-data", is_flag=True, help="Confirm that the data on the devices may be destroyed.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Results [plimsoll-results/NAME].")
@click.option(
    "--raw-output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the raw output of the tools in this directory, to check numbers with other programs.",
)
@click.option("--resume", is_flag=True, help="Continue with the first trial that is missing in the results directory.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order and the load; random by default.")
@click.option("--fio", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.  [env: PLIMSOLL_FIO]")
def command(
    *,
    file: Path,
    directory: Path | None,
    devices: tuple[Path, ...],
    destroy_data: bool,
    output: Path | None,
    raw_output: Path | None,
    resume: bool,
    seed: int | None,
    fio: str,
) -> None:
    """Run a BenchmarkRun FILE on this machine, without a cluster.

    A directory or block devices replace its storage; everything else is as in a cluster. Exits with 0 if no result is
    Invalid, 2 if one is, 3 if interrupted, 1 or more than 3 if the run could not be measured.
    """
    run = read_run(file)
    results = output or Path("plimsoll-results") / run.metadata.name
    if (directory is None) == (not devices):
        message = "nothing to measure; give either --directory DIR or --device DEV"
        raise click.UsageError(message)
    run = _on_this_machine(file, run, "Block" if devices else "Filesystem")
    _check_caches(file, run)
    _check_programs(file, run)
    try:
        with _claimed(run, directory, devices):
            if devices:
                check_devices(devices, destroy=destroy_data)
            raw = None if raw_output is None else make_raw_directory(raw_output, resume=resume)
            plan = _resumed_plan(file, run, results) if resume else _new_plan(file, run, results, seed)
            sys.exit(
                _run_in_place(run, plan, results=results, directory=directory, devices=devices, fio=fio, raw_output=raw)
            )
    except (PlaceError, LaunchError) as error:
        raise click.ClickException(str(error)) from error


def _claimed(run: BenchmarkRun, directory: Path | None, devices: tuple[Path, ...]) -> AbstractContextManager[None]:
    return claimed_devices(devices) if directory is None else claimed_directory(directory, run.metadata.name)


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


def _new_plan(file: Path, run: BenchmarkRun, results: Path, seed: int | None) -> Plan:
    if (results / PLAN_FILE).exists():
        message = f"{results} contains the results of a run; add --resume to continue it, or choose another --output"
        raise click.ClickException(message)
    named = run.model_copy(update={"metadata": run.metadata.model_copy(update={"uid": str(uuid.uuid4())})})
    plan = freeze(file, named, seed)
    replace_file(results / PLAN_FILE, plan.model_dump_json(indent=1), sync=True)
    return plan


def _resumed_plan(file: Path, run: BenchmarkRun, results: Path) -> Plan:
    """Return the frozen plan of a results directory, if it still matches the file."""
    try:
        plan = read_plan(results)
    except (OSError, SpecError) as error:
        message = f"{results} contains no run to resume: {error}"
        raise click.ClickException(message) from error
    now = freeze(file, run, plan.seed).model_copy(update={"run": plan.run, "runner_image": plan.runner_image})
    if not _is_same(now, plan):
        message = f"{file} has changed since the run in {results} started; restore it, or choose another --output"
        raise click.ClickException(message)
    if plan.prepare.drop_caches and _has_warm_trials(results):
        message = (
            f"the trials in {results} were measured with warm caches, by a version that ignored prepare.dropCaches; "
            "choose another --output"
        )
        raise click.ClickException(message)
    return plan


def _has_warm_trials(results: Path) -> bool:
    trials = (trial for result in read_results(results) for trial in result.status.trials)
    return any(trial.outcome is Outcome.MEASURED and trial.caches is None for trial in trials)


def _is_same(now: Plan, plan: Plan) -> bool:
    try:
        return _with_all_parameters(now) == _with_all_parameters(plan)
    except (KeyError, ValueError):
        # A tool or a parameter of another version.
        return False


def _with_all_parameters(plan: Plan) -> Plan:
    """Return a plan with the defaults of parameters that its version did not have yet."""
    points = tuple(
        point.model_copy(
            update={"parameters": TOOLS[point.tool].parameters.model_validate(point.parameters).model_dump(mode="json")}
        )
        for point in plan.points
    )
    return plan.model_copy(update={"points": points})


def _run_in_place(
    run: BenchmarkRun,
    plan: Plan,
    *,
    results: Path,
    directory: Path | None,
    devices: tuple[Path, ...],
    fio: str,
    raw_output: Path | None,
) -> int:
    """Run with a temporary data directory and session secret."""
    _remove_leftovers(results)
    data = make_directory(directory, plan) if directory is not None else None
    secret = Path(tempfile.mkdtemp(prefix="plimsoll-session-"))
    try:
        if data is not None:
            replace_file(results / _PLACE_FILE, json.dumps({"data": str(data)}), sync=False)
        write_session(secret, plan.clients)
        launch = Launch(
            results=results,
            secret=secret,
            scratch=secret / "scratch",
            place=_place(plan, data, devices),
            clients=plan.clients,
            tools=tools_of(plan),
            programs={TOOLS[DATA_SET_TOOL].program: shutil.which(fio) or fio},
            raw_output=raw_output,
            drops_caches=plan.prepare.drop_caches,
            port=free_port(),
        )
        shown_results = os.path.relpath(results)
        with view_on(Console(stderr=True), plan.run.name, shown_results, waiting="starting") as view:
            code = asyncio.run(_follow(Launcher(launch), view, LocalProgress(view, plan, results)))
        return _conclude(code, results)
    finally:
        shutil.rmtree(secret, ignore_errors=True)
        if run.spec.cleanup == "Never" and data is not None:
            click.echo(f"The data is kept in {data} (cleanup: Never).", err=True)
        else:
            _remove_leftovers(results)


def _place(plan: Plan, data: Path | None, devices: tuple[Path, ...]) -> Place:
    if data is None:
        return DevicePlace(devices=tuple(device.absolute() for device in devices), clients=plan.clients)
    size = plan.volume.size if plan.volume else 0
    if plan.volume is not None and plan.volume.is_shared:
        one_file = plan.has_shared_file
        return SharedPlace(directory=data.absolute(), clients=plan.clients, part=size, one_file=one_file)
    return DirectoryPlace(directory=data.absolute(), clients=plan.clients, volume_size=size)


def _remove_leftovers(results: Path) -> None:
    """Remove the data directory that the results directory refers to."""
    path = results / _PLACE_FILE
    if path.exists():
        shutil.rmtree(json.loads(path.read_text())["data"], ignore_errors=True)
        path.unlink()


async def _follow(launcher: Launcher, view: Screen | Lines, progress: LocalProgress) -> int:
    """Run the processes and show their progress. The first Ctrl-C stops the run in order, the second kills it."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(launcher.run(progress.update))

    def interrupt() -> None:
        view.note("interrupted: recording the current trial as aborted; press Ctrl-C again to kill the run")
        launcher.interrupt()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED


def _conclude(code: int, results: Path) -> int:
    """Print the results and how to continue."""
    found = read_results(results)
    if found:
        stdout_console().print(results_table(found))
    state = read_state(results)
    if state is not None and state.failure is not None:
        click.echo(f"not measured: {state.failure.reason}: {state.failure.message}", err=True)
    if code == EXIT_INTERRUPTED and state is not None:
        click.echo(
            f"interrupted with {state.trials_done} of {state.trials_total} trials recorded; "
            f"run the same command with --resume to continue",
            err=True,
        )
    click.echo(f"results in {os.path.relpath(results)}", err=True)
    invalid = any(result.status.verdict is Verdict.INVALID for result in found)
    return _EXIT_INVALID if code == EXIT_COMPLETE and invalid else code
