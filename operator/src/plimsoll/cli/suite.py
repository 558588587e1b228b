"""`plimsoll suite`: several variants of one run, measured in turn."""

import click

from plimsoll.cli.lazy import LazyGroup

_COMMANDS = {
    "plan": "plimsoll.cli.suite_plan",
    "run": "plimsoll.cli.suite_run",
    "watch": "plimsoll.cli.suite_watch",
    "wait": "plimsoll.cli.suite_wait",
    "results": "plimsoll.cli.suite_results",
    "report": "plimsoll.cli.suite_report",
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def command() -> None:
    """Measure variants of a run in turn, and compare them.

    A BenchmarkSuite file describes what all variants share, what each of them changes, and what their results are to
    show.
    """
