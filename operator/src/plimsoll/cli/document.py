"""Reading a user's file, and telling the user what is wrong with it."""

import secrets
from pathlib import Path
from typing import NoReturn

import click

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.manifest import MAX_TEXT_BYTES
from plimsoll.api.run import BenchmarkRun, load_run
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import refuse_if_hopeless
from plimsoll.plan.expand import make_plan

_SEED_BITS = 63


def read_run(path: Path) -> BenchmarkRun:
    """Read a `BenchmarkRun` file; exits with what is wrong with it."""
    try:
        with path.open("rb") as file:
            # No more of an endless file than it takes to refuse it.
            content = file.read(MAX_TEXT_BYTES + 1)
        return load_run(content.decode(errors="strict" if len(content) <= MAX_TEXT_BYTES else "replace"))
    except UnicodeDecodeError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"is not UTF-8 text (byte {error.start})")]))
    except OSError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"cannot be read: {error.strerror}")]))
    except SpecError as error:
        _refuse(path, error)


def freeze(path: Path, run: BenchmarkRun, seed: int | None) -> Plan:
    """Make the plan of a run, with a new seed if none is given; exits with what is wrong with it."""
    try:
        plan = make_plan(run, seed=secrets.randbits(_SEED_BITS) if seed is None else seed)
        refuse_if_hopeless(plan)
    except SpecError as error:
        _refuse(path, error)
    return plan


def _refuse(path: Path, error: Exception) -> NoReturn:
    lines = "\n".join(f"  {line}" for line in str(error).splitlines())
    message = f"{path} cannot be used:\n{lines}"
    raise click.ClickException(message) from error
