"""`plimsoll results RESULT...`: the results of runs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.source import load_results, selected_points
from plimsoll.cli.tables import (
    PROBE_COLUMNS,
    Row,
    line_sentences,
    links_tables,
    probe_rows,
    probes_table,
    results_tables,
    rows,
    stdout_console,
)
from plimsoll.measure.checks.check import verdict_of
from plimsoll.report.view import first_few


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
    named = [(source, selected_points(load_results(source), points)) for source in results]
    if probes:
        _output_probes(named, output)
        return
    found = [one for _, of_source in named for one in of_source]
    match output:
        case "table":
            _show(named)
        case "csv":
            write_csv([field.name for field in fields(Row)], map(asdict, rows(found)))
        case _:
            write_document([one.model_dump(mode="json") for one in found], output)


def _output_probes(named: Sequence[tuple[str, Sequence[BenchmarkResult]]], output: str) -> None:
    searches = [result for _, found in named for result in found if result.spec.line is not None]
    if not searches:
        message = "no search for the line is among these results; omit --probes to see them"
        raise click.ClickException(message)
    if output == CSV:
        write_csv(PROBE_COLUMNS, probe_rows(searches))
    elif output != TABLE:
        write_document([*probe_rows(searches)], output)
    else:
        _show_probes(searches)


def _show_probes(searches: Sequence[BenchmarkResult]) -> None:
    console = stdout_console()
    for number, result in enumerate(searches):
        title = f"{result.spec.run}-{result.spec.point}: {result.spec.label}"
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold"))
        if table := probes_table(result):
            console.print(table)
        for sentence in line_sentences([result]):
            console.print(Text(sentence), soft_wrap=True)


def _show(named: Sequence[tuple[str, Sequence[BenchmarkResult]]]) -> None:
    console = stdout_console()
    for number, (source, found) in enumerate(named):
        if len(named) > 1:
            console.print(Text(f"{chr(10) if number else ''}{source}", style="bold"))
        show_results(console, found)


def show_results(console: Console, results: Sequence[BenchmarkResult]) -> None:
    """Print results as tables, the matrices of those that have one, what searches found, and reasons of verdicts."""
    for table in results_tables(results):
        console.print(table)
    for links in links_tables(results):
        console.print(links)
    for line in (*line_sentences(results), *explanations(results)):
        console.print(Text(line), soft_wrap=True)


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield every reason once, with its points and the message of the first one with the worst verdict."""
    found: dict[str, list[tuple[str, Finding]]] = {}
    for result in results:
        for finding in result.status.findings:
            found.setdefault(finding.reason, []).append((result.spec.point, finding))
    for reason, cases in found.items():
        verdict = verdict_of(finding for _, finding in cases)
        point, worst = next(case for case in cases if case[1].verdict is verdict)
        points = [*dict.fromkeys([point, *(name for name, _ in cases)])]
        yield f"{reason} ({verdict}) at {first_few(points)}: {worst.message}"
