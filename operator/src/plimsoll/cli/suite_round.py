"""A round of a suite on this machine: its directory, with the suite's file, when it began, and a directory per run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.model import Count, Model
from plimsoll.api.names import RunPhase
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite, load_suite
from plimsoll.cli.document import chosen_seed
from plimsoll.conductor.sink import read_results, read_state, replace_file
from plimsoll.measure.hypotheses.samples import MeasuredRun, measured_run
from plimsoll.suite.children import Child, children_of
from plimsoll.suite.digest import suite_digest

SUITE_FILE = "suite.yaml"
_ROUND_FILE = "round.json"
_SECONDS_PER_MINUTE = 60


class RoundStart(Model):
    """What makes a round another one.

    Attributes:
        minute: of its start, since the epoch.
        seed: of its order.
        digest: of what the suite measured when it began.

    """

    minute: Count
    seed: Count
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that has begun."""

    directory: Path
    suite: BenchmarkSuite
    start: RoundStart

    @property
    def children(self) -> tuple[Child, ...]:
        """Its runs, in their order."""
        return children_of(self.suite, minute=self.start.minute, seed=self.start.seed)

    def directory_of(self, child: Child) -> Path:
        """Return the results directory of a run."""
        return self.directory / child.name

    def is_complete(self, child: Child) -> bool:
        """Whether every trial of a run is recorded."""
        state = read_state(self.directory_of(child))
        return state is not None and state.phase is RunPhase.COMPLETE

    def results_of(self, child: Child) -> list[BenchmarkResult]:
        """Return what a run has measured so far."""
        directory = self.directory_of(child)
        return read_results(directory) if directory.is_dir() else []

    @property
    def measured(self) -> list[MeasuredRun]:
        """All runs with their results; without those of runs that are not complete."""
        return [
            measured_run(child.variant, child.name, self.results_of(child) if self.is_complete(child) else [])
            for child in self.children
        ]

    def runs_of(self, variant: str) -> list[list[BenchmarkResult]]:
        """Return the results of each complete run of a variant, in the order of the repeats."""
        of_variant = sorted((one for one in self.children if one.variant == variant), key=lambda one: one.repeat)
        return [self.results_of(child) for child in of_variant if self.is_complete(child)]


def begin(directory: Path, file: Path, suite: BenchmarkSuite, seed: int | None) -> Round:
    """Begin a round in a new directory; exits if it has one already."""
    if (directory / _ROUND_FILE).exists():
        message = f"{directory} contains a round of a suite; add --resume to continue it, or choose another --output"
        raise click.ClickException(message)
    start = RoundStart(
        minute=int(time.time()) // _SECONDS_PER_MINUTE,
        seed=chosen_seed(seed),
        digest=suite_digest(suite.spec),
    )
    round_ = Round(directory=directory, suite=suite, start=start)
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    replace_file(directory / _ROUND_FILE, f"{start.model_dump_json()}\n", sync=True)
    return round_


def resume(directory: Path, file: Path, suite: BenchmarkSuite) -> Round:
    """Return the round of a directory; exits if there is none, or if the file measures something else now."""
    begun = read_round(directory)
    if suite_digest(suite.spec) != begun.start.digest:
        message = (
            f"{file} has changed since the round in {directory} began: its run, variants or repeat are others; restore "
            "it, or choose another --output"
        )
        raise click.ClickException(message)
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    return replace(begun, suite=suite)


def read_round(directory: Path) -> Round:
    """Return the round of a directory; exits if there is none."""
    try:
        suite = load_suite((directory / SUITE_FILE).read_text())
        start = RoundStart.model_validate_json((directory / _ROUND_FILE).read_text())
    except OSError as error:
        message = f"{directory} contains no round of a suite: {error.strerror}: {error.filename}"
        raise click.ClickException(message) from error
    except SpecError as error:
        message = f"{directory / SUITE_FILE} is invalid: {error}"
        raise click.ClickException(message) from error
    except ValidationError as error:
        message = f"{directory / _ROUND_FILE} is invalid: {'; '.join(map(str, problems_of(error)))}"
        raise click.ClickException(message) from error
    if suite_digest(suite.spec) != start.digest:
        message = (
            f"{directory / SUITE_FILE} has other variants, or another run or repeat, than the round measured; restore "
            "it, and change only its comparisons and hypotheses"
        )
        raise click.ClickException(message)
    return Round(directory=directory, suite=suite, start=start)


def unfinished(round_: Round) -> Sequence[Child]:
    """Return the runs that are still to be measured or continued, in their order."""
    return [child for child in round_.children if not round_.is_complete(child)]
