"""Output formats of commands: table, JSON, YAML and CSV."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click
import yaml

TABLE, JSON, YAML, CSV = "table", "json", "yaml", "csv"
_LINE_COLUMNS = 120

F = TypeVar("F", bound=Callable[..., Any])


def output_option(*forms: str) -> Callable[[F], F]:
    """Add the option `-o` with these formats; the first one is the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True)


def write_document(document: object, form: str) -> None:
    """Print a JSON document as JSON or YAML, in its own order."""
    text = json.dumps(document, indent=1)
    if form == YAML:
        # From JSON, because the YAML dumper does not support StrEnum.
        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True, width=_LINE_COLUMNS).rstrip("\n")
    click.echo(text)


def write_csv(names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows with a header: base units, plain numbers, empty cells for unknown values."""
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
