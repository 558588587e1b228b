"""`plimsoll suite wait SUITE`: wait until a round of a suite in a cluster has ended."""

import sys

import click

from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.options import timeout_option
from plimsoll.cli.source import SuiteInCluster, find_in_cluster
from plimsoll.cli.suite_watch import EXIT_NOT_ENDED, Silence, conclude, follow_round


@click.command()
@click.argument("suite")
@click.option(
    "--round",
    "request",
    metavar="TEXT",
    help="Wait for the round that annotation plimsoll.dev/request-round=TEXT requests, even if it has not started.",
)
@timeout_option("Stop after this time")
@cluster_options
def command(*, suite: str, request: str | None, timeout: int | None) -> None:
    """Wait until a round of a SUITE in a cluster has ended, and print its verdict; for scripts and pipelines.

    SUITE is NAME or NAMESPACE/NAME. The round is the active one, or else the one that is due because of a change or a
    request, or else the last one. If a change replaces the round, its successor is waited for.

    Exits with 0 if the round shows no regression, or was accepted; 3 if it regressed; 4 if it is inconclusive; 1 if it
    was not evaluated, or the suite cannot measure or be read; 5 if the round continues after Ctrl-C or --timeout; 2 for
    a usage error.
    """
    place = find_in_cluster(suite, SuiteInCluster)
    silence = Silence()
    ending = follow_round(place, silence, request, timeout)
    if ending is None:
        click.echo(f"The round of suite {place} has not ended yet: {silence.last}", err=True)
        sys.exit(EXIT_NOT_ENDED)
    sys.exit(conclude(place, ending))
