"""`plimsoll run FILE`: a conductor and agents as local processes, against a directory or devices."""

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

from plimsoll.api.errors import SpecError
from plimsoll.api.names import Verdict
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
    check_devices,
    make_directory,
    make_raw_directory,
)
from plimsoll.cli.progress import ProgressView
from plimsoll.cli.table import results_table
from plimsoll.conductor.conduct import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.secret import write_session
from plimsoll.conductor.sink import PLAN_FILE, read_plan, read_results, read_state, replace_file
from plimsoll.plan.document import Plan
from plimsoll.plan.refusals import OF_CEPH
from plimsoll.tools.registry import TOOLS

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
    help="Measure this block device; may be given more than once. DESTROYS ITS CONTENT.",
)
@click.option("--destroy-data", is_flag=True, help="Confirm that the content of the devices may be destroyed.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Results [plimsoll-results/NAME].")
@click.option(
    "--raw-output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep all that the tools write in this directory, so that any number can be checked with other programs.",
)
@click.option("--resume", is_flag=True, help="Go on with the first trial that the output directory does not have.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order and the load; random if not given.")
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

    Its storage is replaced by a directory or by block devices; everything else is as in a cluster. Exits with 0
    if every result may be believed, 2 if one is Invalid, 3 if interrupted, 1 or more than 3 if it could not be
    measured.
    """
    run = read_run(file)
    results = output or Path("plimsoll-results") / run.metadata.name
    if (directory is None) == (not devices):
        message = "say what to measure: either --directory DIR or --device DEV"
        raise click.UsageError(message)
    run = _on_this_machine(file, run, "Block" if devices else "Filesystem")
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
    """Return the run with this machine in place of its storage; exits if a tool needs more than that."""
    for workload in run.spec.workloads:
        tool = TOOLS.get(workload.tool)
        if tool is not None and tool.target in OF_CEPH:
            message = (
                f"{file} cannot be run on this machine: workload {workload.name} runs {tool.key}, which needs a Ceph "
                "cluster; leave it out, or run it with kubectl apply"
            )
            raise click.ClickException(message)
    storage = run.spec.storage
    if storage is None or storage.volume is None:
        return run
    volume = storage.volume.model_copy(update={"mode": mode, "access": "PVC", "rbd_cache": False})
    local = Storage(storage_class=StorageClassStorage(name=_LOCAL), volume=volume)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"storage": local})})


def _new_plan(file: Path, run: BenchmarkRun, results: Path, seed: int | None) -> Plan:
    if (results / PLAN_FILE).exists():
        message = f"{results} has the results of a run; add --resume to go on with it, or choose another --output"
        raise click.ClickException(message)
    named = run.model_copy(update={"metadata": run.metadata.model_copy(update={"uid": str(uuid.uuid4())})})
    plan = freeze(file, named, seed)
    replace_file(results / PLAN_FILE, plan.model_dump_json(indent=1), sync=True)
    return plan


def _resumed_plan(file: Path, run: BenchmarkRun, results: Path) -> Plan:
    """Return the frozen plan of a results directory, if it is still what the file says."""
    try:
        plan = read_plan(results)
    except (OSError, SpecError) as error:
        message = f"{results} has no run to resume: {error}"
        raise click.ClickException(message) from error
    now = freeze(file, run, plan.seed)
    if now.model_copy(update={"run": plan.run, "runner_image": plan.runner_image}) != plan:
        message = f"{file} is not what {results} was begun with; restore it, or start anew with another --output"
        raise click.ClickException(message)
    return plan


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
    """Run with a data directory and a session secret that are gone afterwards."""
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
            fio=shutil.which(fio) or fio,
            raw_output=raw_output,
            port=free_port(),
        )
        return _conclude(asyncio.run(_follow(launch, plan)), results)
    finally:
        shutil.rmtree(secret, ignore_errors=True)
        if run.spec.cleanup == "Never" and data is not None:
            click.echo(f"The data stays in {data} (cleanup: Never).", err=True)
        else:
            _remove_leftovers(results)


def _place(plan: Plan, data: Path | None, devices: tuple[Path, ...]) -> Place:
    if data is None:
        return DevicePlace(devices=tuple(device.absolute() for device in devices), clients=plan.clients)
    size = plan.volume.size if plan.volume else 0
    return DirectoryPlace(directory=data.absolute(), clients=plan.clients, volume_size=size)


def _remove_leftovers(results: Path) -> None:
    """Remove the data directory that this results directory says is its own."""
    path = results / _PLACE_FILE
    if path.exists():
        shutil.rmtree(json.loads(path.read_text())["data"], ignore_errors=True)
        path.unlink()


async def _follow(launch: Launch, plan: Plan) -> int:
    """Run the processes and show how they get on. The first Ctrl-C ends in good order, the second at once."""
    launcher = Launcher(launch)
    loop = asyncio.get_running_loop()
    console = Console(stderr=True)
    with ProgressView(console, plan, launch.results) as view:
        task = asyncio.ensure_future(launcher.run(view.update))

        def interrupt() -> None:
            view.say("interrupted: recording the trial in flight as aborted; once more to kill")
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
    """Show what there is, and say how to go on."""
    found = read_results(results)
    if found:
        stdout_console().print(results_table(found))
    state = read_state(results)
    if state is not None and state.failure is not None:
        click.echo(f"not measured: {state.failure.reason}: {state.failure.message}", err=True)
    if code == EXIT_INTERRUPTED and state is not None:
        click.echo(
            f"interrupted with {state.trials_done} of {state.trials_total} trials recorded; "
            f"the same command with --resume goes on",
            err=True,
        )
    click.echo(f"results in {os.path.relpath(results)}", err=True)
    invalid = any(result.status.verdict is Verdict.INVALID for result in found)
    return _EXIT_INVALID if code == EXIT_COMPLETE and invalid else code
