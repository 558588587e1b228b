"""`plimsoll report RUN... -o report.html`: one file to read and to hand on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.layers import network_rate, write_amplification
from plimsoll.cli.likeness import likeness_of
from plimsoll.cli.source import load_results
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.matching import match_points
from plimsoll.measure.compare.metrics import Rule
from plimsoll.measure.limits import layers
from plimsoll.report.page import make_page
from plimsoll.report.runs import Compared, Run, runs_of

MOST_RUNS = 8
"""As many as there are colours that can be told apart."""


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="File to write; one that is there is replaced.",
)
@cluster_options
def command(*, runs: tuple[str, ...], output: Path) -> None:
    """Write a report of one or several runs as a single HTML file, which opens without a network.

    Each RUN is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Of several, the first is the baseline with which the others are compared.

    Needs plotly and Jinja2: pip install 'plimsoll[report]'.
    """
    try:
        # Only here: plimsoll works without them, and importing them takes long.
        from plimsoll.report.render import render  # noqa: PLC0415
    except ImportError as error:
        message = f"a report needs {error.name}, which is not installed: pip install 'plimsoll[report]'"
        raise click.ClickException(message) from error
    found = _load(runs)
    text = render(make_page(found, _compared(found)))
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{output} cannot be written: {error.strerror}"
        raise click.ClickException(message) from error
    points = sum(len(run.results) for run in found)
    click.echo(f"{output}: {points} points of {', '.join(run.label for run in found)}; open it in a browser")


def _load(sources: Sequence[str]) -> list[Run]:
    found = runs_of([result for source in sources for result in load_results(source)])
    for run in found:
        points = [result.spec.point for result in run.results]
        if len(points) != len(set(points)):
            message = f"the run {run.place} is given more than once; name every run once"
            raise click.ClickException(message)
    if len(found) > MOST_RUNS:
        message = f"{len(found)} runs are too many for one report; name at most {MOST_RUNS}"
        raise click.ClickException(message)
    return [_with_layers(run) for run in found]


def _with_layers(run: Run) -> Run:
    """Add what the layers give, if the run was measured on a Ceph cluster: fio elsewhere is no layer of one."""
    if not any("ceph" in result.status.environment for result in run.results):
        return run
    copies = write_amplification(run.results)
    rows = layers(run.results, write_amplification=copies, network_rate=network_rate(run.results))
    return replace(run, layers=rows, write_amplification=copies)


def _compared(runs: Sequence[Run]) -> list[Compared]:
    """Compare the first run with each of the others, by the rule that `plimsoll compare` has by default."""
    return [_pair(runs[0], other) for other in runs[1:]]


def _pair(baseline: Run, candidate: Run) -> Compared:
    matching = match_points(baseline.results, candidate.results)
    likeness = likeness_of(matching.pairs)
    return Compared(
        baseline=baseline.label,
        candidate=candidate.label,
        comparison=compare(matching, Rule()) if matching.pairs else None,
        differences=likeness.differences,
        unknown=likeness.unknown,
    )
