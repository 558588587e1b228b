"""`plimsoll watch RUN`: follow a run in a cluster until it has ended."""

import sys

import click

from plimsoll.api.names import ConditionStatus
from plimsoll.cli.cluster import ask, cluster_options, program
from plimsoll.cli.live_view import view_on
from plimsoll.cli.options import timeout_option
from plimsoll.cli.results import show_results
from plimsoll.cli.source import RunInCluster, find_in_cluster, results_of_run
from plimsoll.cli.tables import stdout_console
from plimsoll.cli.watched import Following, follow

EXIT_FAILED = 1
EXIT_NOT_ENDED = 3


@click.command()
@click.argument("run")
@timeout_option("Stop after this time")
@cluster_options
def command(*, run: str, timeout: int | None) -> None:
    """Follow a RUN in a cluster until it has ended, and show its progress, what it waits for, and its results.

    RUN is NAME or NAMESPACE/NAME. A terminal shows a live picture; other outputs get a line for every change.
    Watching does not affect the run, and can be stopped and started again at any time.

    Of a search for the line, it shows the interval as it closes. A line that is only a bound, because the search ended
    with NeverBroke or BrokenAtFirst, is a Valid result.

    Exits with 0 if the run succeeded with Valid or Suspect numbers; 1 if it failed, was aborted or deleted, has Invalid
    numbers, or cannot be watched; 3 if it continues after Ctrl-C or --timeout; 2 for a usage error.
    """
    place = find_in_cluster(run, RunInCluster)
    console = stdout_console()
    with view_on(console, str(place), str(place), waiting="asking the cluster") as view:
        last = follow(Following(place, view), timeout)
    if last is None:
        click.echo(f"Run {place} continues; `{program()} watch {place}` follows it again.", err=True)
        sys.exit(EXIT_NOT_ENDED)
    if any(point.iops or point.line for point in last.points):
        show_results(console, ask(place.access, lambda kube: results_of_run(kube, place.namespace, place.name)))
    if last.ending is None:
        raise ValueError("an active run has no ending")
    succeeded = last.ending.status == ConditionStatus.TRUE
    words = "succeeded" if succeeded else "did not succeed"
    click.echo(f"Run {place} {words}: {last.ending.reason}: {last.ending.message}")
    if last.leftovers:
        click.echo(f"Its objects are not all removed yet: {last.leftovers}")
    sys.exit(0 if succeeded else EXIT_FAILED)
