"""A round of a suite on this machine: its directory, with the suite's file, when it began, and a directory per run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.model import Count, Model
from plimsoll.api.names import RunPhase
from plimsoll.api.suite import BenchmarkSuite, load_suite
from plimsoll.cli.document import chosen_seed
from plimsoll.cli.machine import Target
from plimsoll.conductor.sink import read_state, replace_file
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
        targets: variant -> absolute paths of what it is measured on.

    """

    minute: Count
    seed: Count
    digest: str
    targets: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that has begun; `children` are its runs, in their order."""

    directory: Path
    suite: BenchmarkSuite
    start: RoundStart
    children: tuple[Child, ...]

    def directory_of(self, child: Child) -> Path:
        """Return the results directory of a run."""
        return self.directory / child.name

    def is_complete(self, child: Child) -> bool:
        """Whether every trial of a run is recorded."""
        state = read_state(self.directory_of(child))
        return state is not None and state.phase is RunPhase.COMPLETE


def begin(directory: Path, file: Path, suite: BenchmarkSuite, targets: Mapping[str, Target], seed: int | None) -> Round:
    """Begin a round in a new directory; exits if it has one already."""
    if (directory / _ROUND_FILE).exists():
        message = f"{directory} contains a round of a suite; add --resume to continue it, or choose another --output"
        raise click.ClickException(message)
    start = RoundStart(
        minute=int(time.time()) // _SECONDS_PER_MINUTE,
        seed=chosen_seed(seed),
        digest=suite_digest(suite.spec),
        targets=_paths(targets),
    )
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    replace_file(directory / _ROUND_FILE, f"{start.model_dump_json()}\n", sync=True)
    return _round(directory, suite, start)


def resume(directory: Path, file: Path, suite: BenchmarkSuite, targets: Mapping[str, Target]) -> Round:
    """Return the round of a directory; exits if there is none, or if it would measure something else now."""
    start = read_round(directory).start
    if suite_digest(suite.spec) != start.digest:
        message = (
            f"{file} has changed since the round in {directory} began: its run, variants or repeat are others; restore "
            "it, or choose another --output"
        )
        raise click.ClickException(message)
    changed = [name for name, paths in _paths(targets).items() if paths != start.targets.get(name)]
    if changed:
        before = ", ".join(start.targets.get(changed[0], ()))
        message = f"the round in {directory} measures variant {changed[0]} on {before}; name the same --target"
        raise click.ClickException(message)
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    return _round(directory, suite, start)


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
    return _round(directory, suite, start)


def unfinished(round_: Round) -> Sequence[Child]:
    """Return the runs that are still to be measured or continued, in their order."""
    return [child for child in round_.children if not round_.is_complete(child)]


def _round(directory: Path, suite: BenchmarkSuite, start: RoundStart) -> Round:
    children = children_of(suite, minute=start.minute, seed=start.seed)
    return Round(directory=directory, suite=suite, start=start, children=children)


def _paths(targets: Mapping[str, Target]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(str(path.absolute()) for path in target.paths) for name, target in targets.items()}
