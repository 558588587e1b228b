"""`plimsoll suite watch SUITE`: follow a suite in a cluster until a round has ended."""

import sys

import click

from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.source import SuiteInCluster, find_in_cluster
from plimsoll.cli.suite_results import show_findings
from plimsoll.cli.suite_rounds import load_rounds
from plimsoll.cli.suite_view import suite_view_on
from plimsoll.cli.suite_waiting import EXIT_NOT_ENDED, conclude, follow_round, is_evaluated
from plimsoll.cli.watch import Duration


@click.command()
@click.argument("suite")
@click.option(
    "--round", "request", metavar="TEXT", help="Follow the round that annotation request-round=TEXT requests."
)
@click.option("--timeout", type=Duration(), metavar="TIME", help="Stop after this time, such as 90s, 15m or 1h30m.")
@cluster_options
def command(*, suite: str, request: str | None, timeout: int | None) -> None:
    """Follow a SUITE in a cluster until its round has ended, and show its progress and what the round shows.

    SUITE is NAME or NAMESPACE/NAME. The round is the active one, or else the one that is due because of a change or a
    request, or else the last one. If a change replaces the round, its successor is followed. A terminal shows a live
    picture; other outputs get a line for every change. Watching does not affect the suite.

    Exits with 0 if the round shows no regression, or was accepted; 3 if it regressed; 4 if it is inconclusive; 1 if it
    was not evaluated, or the suite cannot measure or be watched; 5 if the round continues after Ctrl-C or --timeout; 2
    for a usage error.
    """
    place = find_in_cluster(suite, SuiteInCluster)
    console = stdout_console()
    with suite_view_on(console, str(place)) as view:
        ending = follow_round(place, view, request, timeout)
    if ending is None:
        click.echo(f"The round continues; `{program()} suite watch {place}` follows it again.", err=True)
        sys.exit(EXIT_NOT_ENDED)
    if is_evaluated(ending):
        found = load_rounds([str(place)], ())
        show_findings(console, found.findings, found.course)
    sys.exit(conclude(place, ending))
