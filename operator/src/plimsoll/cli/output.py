"""The forms in which commands give what they found: for people, for programs, for spreadsheets."""

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
    """Add `-o` with these forms, the first of which is the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True)


def write_document(document: object, form: str) -> None:
    """Print what JSON can say, as JSON or YAML, in the order in which it is given."""
    text = json.dumps(document, indent=1)
    if form == YAML:
        # Read back, because a StrEnum is text to JSON and unknown to YAML.
        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True, width=_LINE_COLUMNS).rstrip("\n")
    click.echo(text)


def write_csv(names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows under a heading: base units, plain numbers, nothing where nothing is known."""
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
