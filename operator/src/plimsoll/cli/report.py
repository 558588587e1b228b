"""`plimsoll report`: runs or the rounds of a suite as one HTML file."""

from pathlib import Path

import click

from plimsoll.cli import exit_on
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.layers import with_layers
from plimsoll.cli.source import are_suites, load_results
from plimsoll.cli.suite_rounds import accept_option, load_rounds
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.measure.text import count_text
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.figure import runs_of
from plimsoll.report.page import make_page, make_suite_page
from plimsoll.report.view import ReportPage
from plimsoll.suite.evaluation import Compared

MOST_RUNS = 8  # of a report; the number of distinguishable colours


page_option = click.option(
    "--html",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="File to write; an existing one is replaced.",
)


@click.command(short_help="Write a report as a single HTML file.")
@click.argument("sources", nargs=-1, required=True, metavar="RUN...|ROUND...|bsuite/SUITE")
@accept_option
@page_option
@cluster_options
def command(*, sources: tuple[str, ...], accepted: tuple[str, ...], file: Path) -> None:
    """Write a report of one or several runs, or of a suite, as a single HTML file that needs no network.

    Each RUN is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    The first of several is the baseline of the comparisons.

    ROUND is a directory with a round of a suite that `plimsoll run` has measured; SUITE is a suite in a cluster, NAME
    or NAMESPACE/NAME. Its report has the rounds with their verdicts, every point over the rounds with marks where Ceph,
    the kernel or nodes changed, and for the last round the variants side by side, the comparisons and the hypotheses. A
    suite with the annotation plimsoll.dev/study (kit, ornl, utsa, ctu or blog) is compared with that published study.

    Requires plotly and Jinja2: pip install plotly jinja2.
    """
    if are_suites(sources):
        suite = load_rounds(sources, accepted)
        write_page(make_suite_page(suite), file)
        click.echo(f"{file}: {count_text(len(suite.rounds), 'round')} of suite {suite.label}; open it in a browser")
        return
    if accepted:
        raise click.UsageError("--accept is for rounds of a suite")
    reported = runs_of([result for source in sources for result in load_results(source)])
    for run in reported:
        points = [result.spec.point for result in run.results]
        if len(points) != len(set(points)):
            raise click.ClickException(f"run {run.place} is given more than once; name each run once")
    if len(reported) > MOST_RUNS:
        raise click.ClickException(f"{len(reported)} runs are too many for one report; name at most {MOST_RUNS}")
    reported = [with_layers(run, run.results) for run in reported]
    baseline, *candidates = reported
    compared: list[Compared] = []
    for candidate in candidates:
        # By the default rule of `plimsoll compare`.
        matching = match_points(baseline.results, candidate.results)
        comparison = compare(matching, RegressionRule()) if matching.pairs else None
        likeness = likeness_of(matching.pairs)
        compared.append(
            Compared(baseline=baseline.label, candidate=candidate.label, comparison=comparison, likeness=likeness)
        )
    write_page(make_page(reported, compared), file)
    count = count_text(sum(len(run.results) for run in reported), "point")
    click.echo(f"{file}: {count} of {', '.join(run.label for run in reported)}; open it in a browser")


def write_page(page: ReportPage, file: Path) -> None:
    """Write a page to a file; exits if the libraries for reports are not installed, or it cannot be written."""
    try:
        # Imported here because plimsoll works without them, and importing them is slow.
        from plimsoll.report.render import render  # noqa: PLC0415
    except ImportError as error:
        message = f"a report requires {error.name}, which is not installed; run pip install plotly jinja2"
        raise click.ClickException(message) from error
    text = render(page)
    with exit_on(OSError, what=f"{file} cannot be written: "):
        file.write_text(text, encoding="utf-8")
