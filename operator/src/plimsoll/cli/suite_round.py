"""A round of a suite: its directory on this machine, and what its results show, wherever it was measured."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.model import Count, Model
from plimsoll.api.names import RunPhase
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite, load_suite
from plimsoll.cli.layers import device_problem, layers_of
from plimsoll.cli.local_storage import Target
from plimsoll.cli.options import chosen_seed
from plimsoll.conductor.sink import read_results, read_state, replace_file
from plimsoll.measure.hypotheses.decide import Decision, decide_all
from plimsoll.measure.hypotheses.select import measured_run
from plimsoll.measure.limits import LayerRow
from plimsoll.studies.library import STUDY_NAMES, load_study
from plimsoll.studies.model import StudyComparison, compare_with_study
from plimsoll.suite.children import Child, Turn, children_of, suite_digest
from plimsoll.suite.evaluation import VariantComparison, comparisons_of
from plimsoll.suite.history.rounds import MeasuredRound, measured_round

SUITE_FILE = "suite.yaml"
_ROUND_FILE = "round.json"


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
        minute=int(time.time()) // 60,
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
        raise click.ClickException(
            f"{file} has changed since the round in {directory} began: its run, variants or repeat are others; restore "
            "it, or choose another --output"
        )
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
        raise click.ClickException(f"{directory / SUITE_FILE} is invalid: {error}") from error
    except ValidationError as error:
        message = f"{directory / _ROUND_FILE} is invalid: {'; '.join(map(str, problems_of(error)))}"
        raise click.ClickException(message) from error
    if suite_digest(suite.spec) != start.digest:
        raise click.ClickException(
            f"{directory / SUITE_FILE} has other variants, or another run or repeat, than the round measured; restore "
            "it, and change only its comparisons and hypotheses"
        )
    return _round(directory, suite, start)


def unfinished(round_: Round) -> Sequence[Child]:
    """Return the runs that are still to be measured or continued, in their order."""
    return [child for child in round_.children if not round_.is_complete(child)]


def _round(directory: Path, suite: BenchmarkSuite, start: RoundStart) -> Round:
    children = children_of(suite, minute=start.minute, seed=start.seed)
    return Round(directory=directory, suite=suite, start=start, children=children)


def _paths(targets: Mapping[str, Target]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(str(path.absolute()) for path in target.paths) for name, target in targets.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResults:
    """The results of a round."""

    suite: BenchmarkSuite
    minute: int  # of its start, since the epoch
    digest: str  # of what the suite measured
    planned: Mapping[str, Turn]  # the turns of its runs, in their order, by the name of the run
    results: Mapping[str, list[BenchmarkResult]]  # of the complete runs, by the name of the run
    directory: Path | None = None  # None if the round was measured in a cluster

    @property
    def by_variant(self) -> Mapping[str, Sequence[list[BenchmarkResult]]]:
        """The results of the complete runs of each variant, in the order of the repeats."""
        runs: dict[str, list[list[BenchmarkResult]]] = {variant.name: [] for variant in self.suite.spec.variants}
        for name, turn in sorted(self.planned.items(), key=lambda planned: planned[1].repeat):
            if name in self.results:
                runs[turn.variant].append(self.results[name])
        return runs

    @property
    def measured(self) -> MeasuredRound:
        """The round as comparisons with other rounds see it."""
        return measured_round(
            minute=self.minute, digest=self.digest, repeat=self.suite.spec.repeat, runs=self.by_variant
        )


def results_of_round(round_: Round) -> RoundResults:
    """Read what a round on this machine has measured so far."""
    complete = [child for child in round_.children if round_.is_complete(child)]
    return RoundResults(
        suite=round_.suite,
        minute=round_.start.minute,
        digest=round_.start.digest,
        planned={child.name: child for child in round_.children},
        results={child.name: read_results(round_.directory_of(child)) for child in complete},
        directory=round_.directory,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a round shows."""

    suite: BenchmarkSuite
    # Variant -> the results of its complete runs, in the order of the repeats.
    runs: Mapping[str, Sequence[list[BenchmarkResult]]]
    comparisons: Sequence[VariantComparison]
    decisions: Sequence[Decision]
    # The numbers beside those of the study that the suite repeats; None if it names none that is known.
    study: StudyComparison | None = None


def findings_of(round_: RoundResults) -> Findings:
    """Return what a round has measured so far."""
    suite, runs = round_.suite, round_.by_variant
    # A hypothesis is undecided if a run is missing.
    measured = [measured_run(turn.variant, name, round_.results.get(name, [])) for name, turn in round_.planned.items()]
    study = suite.metadata.study
    return Findings(
        suite=suite,
        runs=runs,
        comparisons=comparisons_of(suite.spec, runs),
        decisions=decide_all(suite.spec.hypotheses, measured),
        study=compare_with_study(
            load_study(study),
            [variant.name for variant in suite.spec.variants],
            measured,
            {variant: results[0] for variant, results in runs.items() if results},
            _rows,
        )
        if study in STUDY_NAMES
        else None,
    )


def _rows(results: Sequence[BenchmarkResult], devices: Sequence[BenchmarkResult]) -> Sequence[LayerRow]:
    """Return the layers of a run; what was not measured on devices of its own sets no limit."""
    return layers_of(results, [result for result in devices if device_problem(result) is None])
