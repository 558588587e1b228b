"""Reads and checks a BenchmarkRun file."""

import secrets
from pathlib import Path
from typing import NoReturn

import click

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.manifest import MAX_TEXT_BYTES
from plimsoll.api.run import BenchmarkRun, load_run
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import check_fits_deadline
from plimsoll.plan.expand import make_plan

_SEED_BITS = 63


def read_run(path: Path) -> BenchmarkRun:
    """Read a `BenchmarkRun` file; exits with all its errors."""
    try:
        with path.open("rb") as file:
            # Just enough of an endless file to reject it.
            content = file.read(MAX_TEXT_BYTES + 1)
        return load_run(content.decode(errors="strict" if len(content) <= MAX_TEXT_BYTES else "replace"))
    except UnicodeDecodeError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"is not UTF-8 text (byte {error.start})")]))
    except OSError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"cannot be read: {error.strerror}")]))
    except SpecError as error:
        _refuse(path, error)


def freeze(path: Path, run: BenchmarkRun, seed: int | None) -> Plan:
    """Return the plan of a run, with a random seed by default; exits if the run cannot be planned."""
    try:
        plan = make_plan(run, seed=secrets.randbits(_SEED_BITS) if seed is None else seed)
        check_fits_deadline(plan)
    except SpecError as error:
        _refuse(path, error)
    return plan


def _refuse(path: Path, error: Exception) -> NoReturn:
    lines = "\n".join(f"  {line}" for line in str(error).splitlines())
    message = f"{path} is invalid:\n{lines}"
    raise click.ClickException(message) from error
