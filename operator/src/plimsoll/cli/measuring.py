"""Measures a run on this machine, with conductor and agents as local processes, and shows its progress."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

import click
from rich.console import Console

from plimsoll.api.names import Verdict
from plimsoll.api.run import BenchmarkRun
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.launch import Launch, Launcher, free_port
from plimsoll.cli.machine import Target
from plimsoll.cli.place import DevicePlace, DirectoryPlace, Place, SharedPlace, make_directory
from plimsoll.cli.progress import LocalProgress
from plimsoll.cli.run_view import Lines, Screen, view_on
from plimsoll.cli.table import results_tables
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.secret import write_session
from plimsoll.conductor.sink import read_results, read_state, replace_file
from plimsoll.lifecycle.render.ceph import tools_of
from plimsoll.plan.document import Plan
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS

EXIT_INVALID = 2
_PLACE_FILE = "place.json"


def measure(
    run: BenchmarkRun, plan: Plan, target: Target, *, results: Path, fio: str, raw_output: Path | None = None
) -> int:
    """Run with a temporary data directory and session secret, print the results, and return the exit code."""
    _remove_leftovers(results)
    data = make_directory(target.directory, plan) if target.directory is not None else None
    secret = Path(tempfile.mkdtemp(prefix="plimsoll-session-"))
    try:
        if data is not None:
            replace_file(results / _PLACE_FILE, json.dumps({"data": str(data)}), sync=False)
        write_session(secret, plan.clients)
        launch = Launch(
            results=results,
            secret=secret,
            scratch=secret / "scratch",
            place=_place(plan, data, target.devices),
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
    for table in results_tables(found) if found else ():
        stdout_console().print(table)
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
    return EXIT_INVALID if code == EXIT_COMPLETE and invalid else code
