"""Write docs/reference/cli.md from the help of the commands; with --check, fail if it is out of date."""

# ruff: noqa: INP001 - a script, run by path
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner
from generated import update

from plimsoll.cli import main as plimsoll

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "cli.md"
INTRODUCTION = Path(__file__).with_suffix(".md")
COLUMNS = 100


def document() -> str:
    """Return the whole document."""
    return "\n".join([INTRODUCTION.read_text(), *(line for name in commands() for line in _section(name))])


def commands() -> Iterator[str]:
    """Yield the commands that users run; a group precedes its commands."""
    yield from _commands(plimsoll, "")


def _commands(group: click.Group, prefix: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield f"{prefix}{name}"
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix}{name} ")


def _section(name: str) -> Iterator[str]:
    options = {"prog_name": "plimsoll", "terminal_width": COLUMNS, "max_content_width": COLUMNS}
    shown = CliRunner().invoke(plimsoll, [*name.split(), "--help"], catch_exceptions=False, **options)
    yield f"## {name}\n"
    yield f"```\n$ plimsoll {name} --help\n{shown.output.rstrip()}\n```\n"


if __name__ == "__main__":
    sys.exit(update([(DOCUMENT, document())]))
