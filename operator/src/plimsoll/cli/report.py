"""`plimsoll report RUN... -o report.html`: a report as one HTML file."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.layers import layers_of, write_amplification
from plimsoll.cli.source import load_results
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.inputs import Compared, ReportedRun, runs_of
from plimsoll.report.page import make_page
from plimsoll.report.view import ReportPage, count_text

MOST_RUNS = 8
"""The number of distinguishable colours."""


F = TypeVar("F", bound=Callable[..., Any])


def output_file_option(function: F) -> F:
    """Add the option for the file to write."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path("report.html"),
        show_default=True,
        help="File to write; an existing one is replaced.",
    )(function)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@output_file_option
@cluster_options
def command(*, runs: tuple[str, ...], output: Path) -> None:
    """Write a report of one or several runs as a single HTML file that needs no network.

    Each RUN is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    The first of several is the baseline of the comparisons.

    Requires plotly and Jinja2: pip install 'plimsoll[report]'.
    """
    reported = _load(runs)
    write_page(make_page(reported, [_compared(reported[0], other) for other in reported[1:]]), output)
    points = count_text(sum(len(run.results) for run in reported), "point")
    click.echo(f"{output}: {points} of {', '.join(run.label for run in reported)}; open it in a browser")


def write_page(page: ReportPage, output: Path) -> None:
    """Write a page to a file; exits if the libraries for reports are not installed, or it cannot be written."""
    try:
        # Imported here because plimsoll works without them, and importing them is slow.
        from plimsoll.report.render import render  # noqa: PLC0415
    except ImportError as error:
        message = f"a report requires {error.name}, which is not installed; run pip install 'plimsoll[report]'"
        raise click.ClickException(message) from error
    text = render(page)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from error


def _load(sources: Sequence[str]) -> list[ReportedRun]:
    """Return the runs, with the layers of those on a Ceph cluster."""
    runs = runs_of([result for source in sources for result in load_results(source)])
    for run in runs:
        points = [result.spec.point for result in run.results]
        if len(points) != len(set(points)):
            raise click.ClickException(f"run {run.place} is given more than once; name each run once")
    if len(runs) > MOST_RUNS:
        raise click.ClickException(f"{len(runs)} runs are too many for one report; name at most {MOST_RUNS}")
    return [
        replace(run, layers=layers_of(run.results), write_amplification=write_amplification(run.results))
        if any(result.status.environment.ceph is not None for result in run.results)
        else run
        for run in runs
    ]


def _compared(baseline: ReportedRun, candidate: ReportedRun) -> Compared:
    """Compare two runs by the default rule of `plimsoll compare`."""
    matching = match_points(baseline.results, candidate.results)
    return Compared(
        baseline=baseline.label,
        candidate=candidate.label,
        comparison=compare(matching, RegressionRule()) if matching.pairs else None,
        likeness=likeness_of(matching.pairs),
    )
