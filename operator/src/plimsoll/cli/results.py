"""`plimsoll results RESULT...`: the results of runs."""

from collections.abc import Iterable, Iterator, Sequence

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.source import load_results, selected_points
from plimsoll.cli.tables import fitted, links_tables, results_tables, stdout_console
from plimsoll.measure.checks.check import first_few, verdict_of
from plimsoll.measure.line.summary import headline_text
from plimsoll.report.points import (
    RESULT_COLUMNS,
    ending_sentence_of,
    line_rows,
    named,
    objective_rows,
    probe_columns,
    probe_rows,
    result_rows,
)
from plimsoll.report.view import csv_names, csv_rows


@click.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--probes", is_flag=True, help="Show all probes of the searches for the line instead of what they found.")
@output_option(TABLE, JSON, YAML, CSV)
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
        write_csv(csv_names(RESULT_COLUMNS), csv_rows(RESULT_COLUMNS, result_rows(named(selected))))
    elif output != TABLE:
        write_document([result.model_dump(mode="json") for result in selected], output)
    else:
        console = stdout_console()
        for number, (source, results_of_source) in enumerate(of_sources):
            if len(of_sources) > 1:
                console.print(Text(f"{chr(10) if number else ''}{source}", style="bold"))
            show_results(console, results_of_source)


def _output_probes(searches: Sequence[BenchmarkResult], output: str) -> None:
    if not searches:
        raise click.ClickException("no search for the line is among these results; omit --probes to see them")
    if output != TABLE:
        columns = probe_columns()
        rows = csv_rows(columns, objective_rows(probe_rows(named(searches))))
        if output == CSV:
            write_csv(csv_names(columns), rows)
        else:
            write_document([*rows], output)
        return
    console = stdout_console()
    for number, result in enumerate(searches):
        title = f"{result.spec.run}-{result.spec.point}: {result.spec.label}"
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold"))
        console.print(fitted(probe_columns(result.spec.line), [*probe_rows(named([result]))], remedy="--probes -o csv"))
        for sentence in line_sentences([result]):
            console.print(Text(sentence), soft_wrap=True)


def show_results(console: Console, results: Sequence[BenchmarkResult]) -> None:
    """Print results as tables, the matrices of those that have one, what searches found, and reasons of verdicts."""
    for table in (*results_tables(results), *links_tables(results)):
        console.print(table)
    for line in (*line_sentences(results), *explanations(results)):
        console.print(Text(line), soft_wrap=True)


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for row in line_rows(named(results)):
        yield f"{row.result.spec.point} {headline_text(row.line, row.search)}. {ending_sentence_of(row)}"


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield every reason once, with its points and the message of the first one with the worst verdict."""
    reasons: dict[str, list[tuple[str, Finding]]] = {}
    for result in results:
        for finding in result.status.findings:
            reasons.setdefault(finding.reason, []).append((result.spec.point, finding))
    for reason, cases in reasons.items():
        verdict = verdict_of(finding for _, finding in cases)
        point, worst = next(case for case in cases if case[1].verdict is verdict)
        points = [*dict.fromkeys([point, *(name for name, _ in cases)])]
        yield f"{reason} ({verdict}) at {first_few(points, 1)}: {worst.message}"
