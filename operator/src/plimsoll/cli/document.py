"""Reads and checks the file of a BenchmarkRun or BenchmarkSuite."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.manifest import MAX_TEXT_BYTES
from plimsoll.api.run import BenchmarkRun, load_run
from plimsoll.api.suite import BenchmarkSuite, load_suite
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import check_fits_deadline
from plimsoll.plan.expand import make_plan
from plimsoll.suite.children import variant_plans

_SEED_BITS = 63

T = TypeVar("T")


def read_run(path: Path) -> BenchmarkRun:
    """Read a `BenchmarkRun` file; exits with all its errors."""
    return _read(path, load_run)


def read_suite(path: Path) -> BenchmarkSuite:
    """Read a `BenchmarkSuite` file; exits with all its errors, except those that its variants have as runs."""
    return _read(path, load_suite)


def freeze(path: Path, run: BenchmarkRun, seed: int | None) -> Plan:
    """Return the plan of a run, with a random seed by default; exits if the run cannot be planned."""
    try:
        plan = make_plan(run, seed=chosen_seed(seed))
        check_fits_deadline(plan)
    except SpecError as error:
        _refuse(path, error)
    return plan


def freeze_variants(path: Path, suite: BenchmarkSuite, seed: int) -> dict[str, Plan]:
    """Return a plan of each variant, by its name; exits with all errors if the suite cannot be measured."""
    try:
        return variant_plans(suite, seed=seed)
    except SpecError as error:
        _refuse(path, error)


def chosen_seed(seed: int | None) -> int:
    """Return the given seed, or a random one."""
    return secrets.randbits(_SEED_BITS) if seed is None else seed


def _read(path: Path, load: Callable[[str], T]) -> T:
    try:
        with path.open("rb") as file:
            # Just enough of an endless file to reject it.
            content = file.read(MAX_TEXT_BYTES + 1)
        return load(content.decode(errors="strict" if len(content) <= MAX_TEXT_BYTES else "replace"))
    except UnicodeDecodeError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"is not UTF-8 text (byte {error.start})")]))
    except OSError as error:
        _refuse(path, SpecError([Problem(field="", remedy=f"cannot be read: {error.strerror}")]))
    except SpecError as error:
        _refuse(path, error)


def _refuse(path: Path, error: Exception) -> NoReturn:
    lines = "\n".join(f"  {line}" for line in str(error).splitlines())
    message = f"{path} is invalid:\n{lines}"
    raise click.ClickException(message) from error
