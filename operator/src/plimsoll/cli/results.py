"""`plimsoll results RESULT`: what a run measured."""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields

import click
from rich.text import Text

from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.rows import Row, rows
from plimsoll.cli.source import load_results
from plimsoll.cli.table import results_table
from plimsoll.measure.checking.check import verdict_of


@click.command()
@click.argument("result")
@click.option("-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
def command(*, result: str, output: str) -> None:
    """Show results: as a table, as the BenchmarkResult documents, or as CSV in base units.

    RESULT is a results directory, a file of BenchmarkResult documents, or NAMESPACE/RUN in the cluster of KUBECONFIG.
    """
    found = load_results(result)
    match output:
        case "json":
            click.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=1))
        case "csv":
            _write_csv(found)
        case _:
            console = stdout_console()
            console.print(results_table(found))
            for line in explanations(found):
                console.print(Text(line), soft_wrap=True)


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield every reason once, with the points that have it and the words of the first at its worst."""
    found: dict[str, list[tuple[str, Finding]]] = {}
    for result in results:
        for finding in result.status.findings:
            found.setdefault(finding.reason, []).append((result.spec.point, finding))
    for reason, cases in found.items():
        verdict = verdict_of(finding for _, finding in cases)
        point, worst = next(case for case in cases if case[1].verdict is verdict)
        points = len({point for point, _ in cases})
        more = f" and {points - 1} more" if points > 1 else ""
        yield f"{reason} ({verdict}) at {point}{more}: {worst.message}"


def _write_csv(results: Sequence[BenchmarkResult]) -> None:
    """Print one row per operation of every point; nanoseconds, bytes per second, ratios as numbers."""
    writer = csv.DictWriter(sys.stdout, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows(results))
