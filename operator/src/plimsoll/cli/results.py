"""What the results of runs show: as tables or documents, and as a report."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.layers import layers_of, write_amplification
from plimsoll.cli.options import CSV, TABLE, output_option, write_csv, write_document
from plimsoll.cli.source import load_results, selected_points
from plimsoll.cli.tables import Terminal, fitted, links_tables, print_line, results_tables
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.measure.line.summary import headline_text
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.figure import ReportedRun, runs_of
from plimsoll.report.overview import worst_cases
from plimsoll.report.page import make_page
from plimsoll.report.points import (
    RESULT_COLUMNS,
    ending_sentence_of,
    line_rows,
    named,
    objective_rows,
    point_label,
    probe_columns,
    probe_rows,
    result_rows,
)
from plimsoll.report.view import ReportPage, csv_rows
from plimsoll.suite.evaluation import Compared

MOST_RUNS = 8  # of a report; the number of distinguishable colours


@click.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--probes", is_flag=True, help="Show all probes of the searches for the line instead of what they found.")
@output_option
@cluster_options
def command(*, results: tuple[str, ...], points: tuple[str, ...], probes: bool, output: str) -> None:
    """Show results as a table, as BenchmarkResult documents, or as CSV in base units.

    RESULT is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Several are shown one after the other, or as one list of documents or rows.

    A search for the line has one row, with the line and its interval. It is Valid or Suspect even if it ended
    with NeverBroke or BrokenAtFirst: then the line is a bound. --probes shows each trial of it: the offered and the
    achieved load, the percentiles of its objectives, and the outcome.
    """
    of_sources = [(source, selected_points(load_results(source), points)) for source in results]
    selected = [result for _, results_of_source in of_sources for result in results_of_source]
    if probes:
        _output_probes([result for result in selected if result.spec.line is not None], output)
    elif output == CSV:
        write_csv(RESULT_COLUMNS, result_rows(named(selected)))
    elif output != TABLE:
        write_document([result.model_dump(mode="json") for result in selected], output)
    else:
        console = Terminal()
        for number, (source, results_of_source) in enumerate(of_sources):
            if len(of_sources) > 1:
                console.print(Text(f"{chr(10) if number else ''}{source}", style="bold"))
            show_results(console, results_of_source)


def _output_probes(searches: Sequence[BenchmarkResult], output: str) -> None:
    if not searches:
        raise click.ClickException("no search for the line is among these results; omit --probes to see them")
    if output != TABLE:
        columns, rows = probe_columns(), objective_rows(probe_rows(named(searches)))
        if output == CSV:
            write_csv(columns, rows)
        else:
            write_document([*csv_rows(columns, rows)], output)
        return
    console = Terminal()
    for number, result in enumerate(searches):
        title = f"{result.spec.run}-{result.spec.point}: {point_label(result)}"
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold"))
        console.print(fitted(probe_columns(result.spec.line), [*probe_rows(named([result]))], remedy="--probes -o csv"))
        for sentence in line_sentences([result]):
            print_line(console, sentence)


def show_results(console: Console, results: Sequence[BenchmarkResult]) -> None:
    """Print results as tables, the matrices of those that have one, what searches found, and reasons of verdicts."""
    for table in (*results_tables(results), *links_tables(results)):
        console.print(table)
    for line in (*line_sentences(results), *explanations(results)):
        print_line(console, line)


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for row in line_rows(named(results)):
        yield f"{row.result.spec.point} {headline_text(row.line, row.search)}. {ending_sentence_of(row)}"


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield every reason once, with its points and the message of the first one with the worst verdict."""
    for case in worst_cases((result.spec.point, result) for result in results):
        yield f"{case.reason} ({case.verdict}) at {first_few(case.points, 1)}: {case.message}"


page_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="File to write; an existing one is replaced.",
)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@page_option
@cluster_options
def report_command(*, runs: tuple[str, ...], output: Path) -> None:
    """Write a report of one or several runs as a single HTML file that needs no network.

    Each RUN is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    The first of several is the baseline of the comparisons.

    Requires plotly and Jinja2: pip install 'plimsoll[report]'.
    """
    reported = runs_of([result for source in runs for result in load_results(source)])
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
    write_page(make_page(reported, compared), output)
    count = count_text(sum(len(run.results) for run in reported), "point")
    click.echo(f"{output}: {count} of {', '.join(run.label for run in reported)}; open it in a browser")


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


def with_layers(run: ReportedRun, results: Sequence[BenchmarkResult]) -> ReportedRun:
    """Return a run with the layers of these results, if they were measured on a Ceph cluster."""
    if all(result.status.environment.ceph is None for result in results):
        return run
    return replace(run, layers=layers_of(results), write_amplification=write_amplification(results))
