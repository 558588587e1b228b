"""`plimsoll suite`: several variants of one run, measured in turn."""

import click

from plimsoll.cli import LazyGroup

_MODULES = {name: f"plimsoll.cli.suite_{name}" for name in ("plan", "run", "watch", "wait", "results", "report")}


@click.group(cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure variants of a run in turn, and compare them.

    A BenchmarkSuite file describes what all variants share, what each of them changes, and what their results are to
    show.
    """
