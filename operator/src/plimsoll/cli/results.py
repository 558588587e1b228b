"""`plimsoll results DIR`: what a run measured."""

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import click

from plimsoll.api.errors import SpecError
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.rows import Row, rows
from plimsoll.cli.table import results_table, stdout_console
from plimsoll.conductor.sink import read_results


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
def command(*, directory: Path, output: str) -> None:
    """Show the results in DIRECTORY: as a table, as the BenchmarkResult documents, or as CSV in base units."""
    try:
        found = read_results(directory)
    except (SpecError, ValueError, OSError) as error:
        message = f"the results in {directory} cannot be read: {error}"
        raise click.ClickException(message) from error
    if not found:
        message = f"{directory} holds no results; is it the --output of a run that has recorded a trial?"
        raise click.ClickException(message)
    match output:
        case "json":
            click.echo(json.dumps([result.model_dump(mode="json") for result in found], indent=1))
        case "csv":
            _write_csv(found)
        case _:
            stdout_console().print(results_table(found))


def _write_csv(results: Sequence[BenchmarkResult]) -> None:
    """Print one row per operation of every point; nanoseconds, bytes per second, ratios as numbers."""
    writer = csv.DictWriter(sys.stdout, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows(results))
