"""`plimsoll watch RUN`: follows a run in a cluster until it has ended."""

import asyncio
import re
import signal
import sys

import click

from plimsoll.api.names import ConditionStatus
from plimsoll.cli.cluster import ask, cluster_options, explain, program
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.following import Following, View
from plimsoll.cli.results import show_results
from plimsoll.cli.source import RunInCluster, find_run, results_of_run
from plimsoll.cli.watch_view import view_on
from plimsoll.cli.watched import Seen
from plimsoll.kube.errors import ApiError

EXIT_FAILED = 1
EXIT_NOT_ENDED = 3

_DURATION = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s?)?")
_UNIT_SECONDS = (3600, 60, 1)


class Duration(click.ParamType[int]):
    """A time that a user writes, in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds of `90`, `90s`, `15m` or `1h30m`."""
        match = _DURATION.fullmatch(str(value))
        parts = match.groups() if match else ()
        seconds = sum(int(part or 0) * unit for part, unit in zip(parts, _UNIT_SECONDS, strict=False))
        if not seconds:
            self.fail(f"{value!r} is no time; write it as 90s, 15m or 1h30m", param, ctx)
        return seconds


@click.command()
@click.argument("run")
@click.option("--timeout", type=Duration(), metavar="TIME", help="Stop after this time, such as 90s, 15m or 1h30m.")
@cluster_options
def command(*, run: str, timeout: int | None) -> None:
    """Follow a RUN in a cluster until it has ended: what it does, what it waits for, and its results.

    RUN is NAME or NAMESPACE/NAME. On a terminal it is one picture that changes; elsewhere every change is a line. The
    run does not notice: whoever stops watching may begin again.

    Exits with 0 if the run succeeded, its numbers Valid or Suspect; 1 if it failed, was aborted or deleted, has Invalid
    numbers, or cannot be watched; 3 if it goes on after Ctrl-C or --timeout; 2 for a command that cannot be understood.
    """
    place = find_run(run)
    console = stdout_console()
    try:
        with view_on(console, place) as view:
            seen = asyncio.run(_unless_stopped(place, view, timeout))
    except ApiError as error:
        raise click.ClickException(explain(error, place.access)) from error
    if seen is None:
        click.echo(f"Run {place} goes on; `{program()} watch {place}` follows it again.", err=True)
        sys.exit(EXIT_NOT_ENDED)
    if any(point.iops for point in seen.points):
        show_results(console, ask(place.access, lambda kube: results_of_run(kube, place.namespace, place.name)))
    sys.exit(_conclude(place, seen))


async def _unless_stopped(run: RunInCluster, view: View, seconds: int | None) -> Seen | None:
    """Return what is seen when the run has ended; None after a signal, or when the time is over."""
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with asyncio.timeout(seconds):
            return await Following(run, view).to_the_end()
    except (TimeoutError, asyncio.CancelledError):
        return None


def _conclude(run: RunInCluster, seen: Seen) -> int:
    """Say how it ended; returns the exit code."""
    if seen.ending is None:
        raise ValueError("a run that goes on has no conclusion")
    succeeded = seen.ending.status == ConditionStatus.TRUE
    words = "succeeded" if succeeded else "did not succeed"
    click.echo(f"Run {run} {words}: {seen.ending.reason}: {seen.ending.message}")
    if seen.remains:
        click.echo(f"What it made is not removed yet: {seen.remains}")
    return 0 if succeeded else EXIT_FAILED
