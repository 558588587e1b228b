"""The rounds of a suite, in directories of this machine or in a cluster, and the evaluation of the last one."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.model import Count, Model
from plimsoll.api.names import RunPhase
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.status import format_time
from plimsoll.api.suite import BenchmarkSuite, decode_suite, load_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus, Cause, EndedRound, RoundVerdict, minute_of_round, round_name
from plimsoll.cli import Exit, exit_on
from plimsoll.cli.cluster import ask, program
from plimsoll.cli.layers import device_problem, layers_of, with_layers
from plimsoll.cli.local_storage import Target, make_results_directory
from plimsoll.cli.options import chosen_seed
from plimsoll.cli.source import ROUND_FILE, RUN, SUITE_FILE, InCluster, find, no_such_object, results_of_run
from plimsoll.conductor.sink import read_results, read_state, replace_file
from plimsoll.kube.port import Kube
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.values import RepeatsError
from plimsoll.report.figure import ReportedRun, ReportedSuite
from plimsoll.studies.library import STUDY_NAMES, load_study
from plimsoll.studies.model import compare_with_study
from plimsoll.suite.children import Turn, has_numbers, suite_digest, turns_by_name
from plimsoll.suite.evaluation import Evaluation, RoundResults, evaluate_round
from plimsoll.suite.measured import MeasuredRound
from plimsoll.suite.rounds.observed import JUDGED, State
from plimsoll.suite.rounds.turns import ACCEPT_ROUND, LABEL_SUITE, settle_baseline, start_baseline

_EXIT_OF = {
    RoundVerdict.NO_REGRESSION: Exit.DONE,
    RoundVerdict.REGRESSED: Exit.REGRESSION,
    RoundVerdict.INCONCLUSIVE: Exit.NOT_ENOUGH_EVIDENCE,
}

_AT_ONCE = 8  # requests at the same time


class RoundStart(Model):
    """What identifies a round."""

    minute: Count  # of its start, since the epoch
    seed: Count  # of its order
    digest: str  # of the run, variants and repeat of the suite when it began
    targets: dict[str, tuple[str, ...]]  # variant -> absolute paths of its targets


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRound:
    """A round on this machine that has begun."""

    directory: Path
    suite: BenchmarkSuite
    start: RoundStart

    @property
    def turns(self) -> Mapping[str, Turn]:
        """The turns in their order, by the names of their runs, which also name the results directories."""
        return turns_by_name(self.suite, minute=self.start.minute, seed=self.start.seed)

    @property
    def unfinished(self) -> Mapping[str, Turn]:
        states = {name: read_state(self.directory / name) for name in self.turns}
        complete = {name for name, state in states.items() if state is not None and state.phase is RunPhase.COMPLETE}
        return {name: turn for name, turn in self.turns.items() if name not in complete}

    def results(self) -> RoundResults:
        unfinished = self.unfinished
        complete = {name: read_results(self.directory / name) for name in self.turns if name not in unfinished}
        return round_results(self.suite, self.turns, complete, minute=self.start.minute, digest=self.start.digest)


def round_results(
    suite: BenchmarkSuite,
    turns: Mapping[str, Turn],
    results: Mapping[str, list[BenchmarkResult]],
    *,
    minute: int,
    digest: str,
) -> RoundResults:
    """Return the results of a round; `turns` and the results of complete runs are by the names of the runs."""
    runs: dict[str, dict[str, list[BenchmarkResult]]] = {variant.name: {} for variant in suite.spec.variants}
    for name, turn in turns.items():
        runs[turn.variant][name] = results.get(name, [])
    return RoundResults(minute=minute, digest=digest, repeat=suite.spec.repeat, runs=runs)


def begin_round(
    directory: Path, file: Path, suite: BenchmarkSuite, targets: Mapping[str, Target], seed: int | None
) -> LocalRound:
    """Begin a round in a new directory; exits if it has one already."""
    if (directory / ROUND_FILE).exists():
        message = f"{directory} contains a round of a suite; add --resume to continue it, or choose another --results"
        raise click.ClickException(message)
    start = RoundStart(
        minute=int(time.time()) // 60, seed=chosen_seed(seed), digest=suite_digest(suite.spec), targets=_paths(targets)
    )
    make_results_directory(directory)
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    replace_file(directory / ROUND_FILE, f"{start.model_dump_json()}\n", sync=True)
    return LocalRound(directory=directory, suite=suite, start=start)


def resume_round(directory: Path, file: Path, suite: BenchmarkSuite, targets: Mapping[str, Target]) -> LocalRound:
    """Return the round of a directory; exits if there is none, or if it would measure something else now."""
    start = read_round(directory).start
    if suite_digest(suite.spec) != start.digest:
        raise click.ClickException(
            f"{file} has changed since the round in {directory} began: its run, variants or repeat differ; restore "
            "it, or choose another --results"
        )
    changed = [name for name, paths in _paths(targets).items() if paths != start.targets.get(name)]
    if changed:
        before = ", ".join(start.targets.get(changed[0], ()))
        message = f"the round in {directory} measures variant {changed[0]} on {before}; name the same target"
        raise click.ClickException(message)
    replace_file(directory / SUITE_FILE, file.read_text(), sync=True)
    return LocalRound(directory=directory, suite=suite, start=start)


def read_round(directory: Path) -> LocalRound:
    with exit_on(OSError, SpecError, ValidationError, what=f"{directory} contains no round of a suite: "):
        suite = load_suite((directory / SUITE_FILE).read_text())
        start = RoundStart.model_validate_json((directory / ROUND_FILE).read_text())
    if suite_digest(suite.spec) != start.digest:
        raise click.ClickException(
            f"{directory / SUITE_FILE} has other variants, or another run or repeat, than the round measured; restore "
            "it, and change only its comparisons and hypotheses"
        )
    return LocalRound(directory=directory, suite=suite, start=start)


def _paths(targets: Mapping[str, Target]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(str(path.absolute()) for path in target.paths) for name, target in targets.items()}


@dataclass(frozen=True, kw_only=True)
class SuiteRounds(ReportedSuite):
    """The rounds of a suite, with what a report does not need."""

    suite: BenchmarkSuite
    directories: Mapping[int, Path]  # of the rounds by their minutes; empty if they were measured in a cluster
    results: RoundResults  # of the last round

    @property
    def last(self) -> EndedRound:
        return self.rounds[-1][0]

    @property
    def last_results(self) -> Sequence[BenchmarkResult]:
        """The results of all runs of the last round that have numbers."""
        return [result for runs in self.results.complete.values() for run in runs for result in run]


def _suite_rounds(
    label: str,
    suite: BenchmarkSuite,
    rounds: Sequence[tuple[EndedRound, MeasuredRound]],
    results: RoundResults,
    evaluation: Evaluation,
    *,
    directories: Mapping[int, Path] | None = None,
    failed: str = "",
) -> SuiteRounds:
    first_runs = {variant: runs[0] for variant, runs in results.complete.items() if runs}
    variants: list[ReportedRun] = []
    for name, first in first_runs.items():
        # The first run alone if there is no other, or if the runs of the variant measured different things.
        reported = first
        with suppress(RepeatsError):
            reported = as_one_run(results.complete[name]) if len(results.complete[name]) > 1 else first
        variants.append(with_layers(ReportedRun(label=name, results=reported), first))
    study = None
    if suite.metadata.study in STUDY_NAMES:
        study = compare_with_study(
            load_study(suite.metadata.study),
            [variant.name for variant in suite.spec.variants],
            results.measured_runs(),
            first_runs,
            # Only results of devices outside Ceph set a limit.
            lambda own, devices: layers_of(own, [result for result in devices if device_problem(result) is None]),
        )
    return SuiteRounds(
        label=label,
        suite=suite,
        rounds=rounds,
        variants=variants,
        directories=directories or {},
        results=results,
        evaluation=evaluation,
        study=study,
        failed=failed,
    )


def exit_code(ended: EndedRound) -> Exit:
    """Return the exit code of a round; the regression of an accepted one is intended."""
    if ended.verdict is RoundVerdict.REGRESSED and ended.accepted:
        return Exit.DONE
    return _EXIT_OF.get(ended.verdict, Exit.ERROR)


accept_option = click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="START|DIR",
    help=(
        "For a suite: accept this round regardless of its verdict, such as an intended regression; the baseline then "
        "starts with it. START is the start of the round, such as 2026-03-01T03:00Z. May be repeated. Only for "
        "directories; in a cluster, an annotation of the suite accepts a round."
    ),
)


def load_rounds(sources: Sequence[str], accepted: Sequence[str]) -> SuiteRounds:
    """Read directories of rounds, or one suite in a cluster; exits if they cannot be read, or do not fit together."""
    places = [find(source) for source in sources]
    directories = [place for place in places if isinstance(place, Path)]
    suites = [place for place in places if isinstance(place, InCluster)]
    if not suites:
        return evaluate_rounds([read_round(directory) for directory in directories], accepted)
    if len(places) > 1:
        raise click.UsageError("name one suite in a cluster, or directories of rounds")
    if accepted:
        raise click.UsageError(f"--accept is for directories; in a cluster, annotate the suite with {ACCEPT_ROUND}")
    suite = suites[0]
    return ask(suite.access, lambda kube: read_rounds(kube, suite))


def evaluate_rounds(rounds: Sequence[LocalRound], accepted: Sequence[str] = ()) -> SuiteRounds:
    """Evaluate rounds on this machine one after the other by the comparisons of the last one.

    `accepted` has the starts or directories of rounds that start a new baseline, each in its turn. Exits if they are
    not rounds of one suite on the same targets, or if an accepted one lacks runs.
    """
    ordered = sorted(rounds, key=lambda round_: round_.start.minute)
    for earlier, later in pairwise(ordered):
        if message := _conflict(earlier, later):
            raise click.ClickException(f"{earlier.directory} and {later.directory} {message}")
    chosen = _accepted_minutes(ordered, accepted)
    suite, state = ordered[-1].suite, State()
    measured: dict[int, MeasuredRound] = {}
    for round_ in ordered:
        results = round_.results()
        former = [ended for ended in reversed(state.rounds) if ended.accepted]
        evaluation = evaluate_round(
            suite.spec,
            results,
            accepted=[measured[ended.minute] for ended in former],
            pinned=[measured[ended.minute] for ended in former if ended.pinned],
        )
        start = format_time(datetime.fromtimestamp(round_.start.minute * 60, UTC))
        runs = (run for of_variant in results.runs.values() for run in of_variant.values())
        trials = (trial for run in runs for result in run for trial in result.status.trials)
        # As the status of a suite records it; the user requested the round by measuring it.
        ended = EndedRound(
            minute=round_.start.minute,
            cause=Cause.REQUESTED,
            start_time=start,
            completion_time=max((trial.finished_at for trial in trials), default=start),
            verdict=evaluation.verdict,
            complete=evaluation.measured.is_complete,
            accepted=evaluation.is_acceptable,
            digest=round_.start.digest,
            comparisons=evaluation.counts,
        )
        measured[ended.minute] = evaluation.measured
        state = settle_baseline(state.model_copy(update={"rounds": (ended, *state.rounds)}))
        if ended.minute in chosen:
            if not ended.complete:
                raise click.UsageError(
                    f"--accept {ended.name}: a run of the round in {round_.directory} has no results, although it is "
                    "complete; restore them, or accept another round"
                )
            state = settle_baseline(start_baseline(state, state.rounds[0]))
    return _suite_rounds(
        suite.metadata.name,
        suite,
        [(ended, measured[ended.minute]) for ended in reversed(state.rounds)],
        results,
        evaluation,
        directories={round_.start.minute: round_.directory for round_ in ordered},
    )


def _accepted_minutes(rounds: Sequence[LocalRound], chosen: Sequence[str]) -> set[int]:
    minutes = set()
    for text in chosen:
        minute, directory = minute_of_round(text), Path(text).resolve()
        named = [
            round_ for round_ in rounds if minute == round_.start.minute or directory == round_.directory.resolve()
        ]
        if not named:
            listed = ", ".join(f"{round_name(round_.start.minute)} ({round_.directory})" for round_ in rounds)
            raise click.UsageError(f"--accept {text}: is none of the rounds; they are {listed}")
        if named[0].unfinished:
            raise click.UsageError(f"--accept {text}: the round lacks runs; complete it with plimsoll run --resume")
        minutes.add(named[0].start.minute)
    return minutes


def _conflict(earlier: LocalRound, later: LocalRound) -> str:
    names = earlier.suite.metadata.name, later.suite.metadata.name
    if names[0] != names[1]:
        return f"contain rounds of different suites, {names[0]} and {names[1]}; give the rounds of one suite"
    if earlier.start.minute == later.start.minute:
        return f"contain rounds that started in the same minute, {round_name(later.start.minute)}; give one of them"
    for variant, paths in later.start.targets.items():
        before = earlier.start.targets.get(variant, paths)
        if before != paths:
            targets = f"{', '.join(before)} and {', '.join(paths)}"
            return f"measured variant {variant} on different targets, {targets}; give rounds of the same targets"
    return ""


async def read_suite(kube: Kube, place: InCluster) -> tuple[BenchmarkSuite, BenchmarkSuiteStatus, str]:
    """Return a suite in a cluster, its status and its UID; exits if they cannot be read."""
    document = await kube.get(place.kind, place.name, place.namespace)
    if document is None:
        raise await no_such_object(kube, place)
    what = f"suite {place} cannot be read; is it of a later version than this program? "
    with exit_on(SpecError, ValidationError, what=what):
        status = BenchmarkSuiteStatus.model_validate(document.get("status") or {})
        return decode_suite(dict(document)), status, str(document["metadata"]["uid"])


async def read_rounds(kube: Kube, place: InCluster) -> SuiteRounds:
    """Return the rounds of a suite that were evaluated and are still kept, as the operator judged them.

    The last one is evaluated again: the status has only its outcomes. Exits if the rounds cannot be read, or if none
    has been evaluated.
    """
    suite, status, uid = await read_suite(kube, place)
    evaluated = [ended for ended in reversed(status.rounds) if ended.verdict in JUDGED]
    if not evaluated:
        raise click.ClickException(
            f"no round of suite {place} has been evaluated yet; `{program()} watch {place.source}` follows one"
        )
    of_runs = await _results(kube, place, uid)
    results = [
        round_results(
            suite,
            # The status does not keep the seed of a former round; the order of its runs does not matter any more.
            turns_by_name(suite, minute=ended.minute, seed=ended.minute, uid=uid),
            of_runs,
            minute=ended.minute,
            digest=ended.digest,
        )
        for ended in evaluated
    ]
    rounds = [(ended, round_.measured()) for ended, round_ in zip(evaluated, results, strict=True)]
    latest = status.rounds[0]
    failed = f"round {latest.name} measured too little to be evaluated; round {evaluated[-1].name} is shown"
    evaluation = evaluate_round(
        suite.spec,
        results[-1],
        accepted=[measured for ended, measured in rounds[:-1] if ended.accepted],
        pinned=[measured for ended, measured in rounds[:-1] if ended.pinned],
    )
    failed = failed if latest.verdict is RoundVerdict.FAILED else ""
    return _suite_rounds(str(place), suite, rounds, results[-1], evaluation, failed=failed)


async def _results(kube: Kube, place: InCluster, uid: str) -> Mapping[str, list[BenchmarkResult]]:
    runs = await kube.list(RUN, namespace=place.namespace, labels={LABEL_SUITE: place.name})
    names = [
        str(run["metadata"]["name"])
        for run in runs
        if any(owner["uid"] == uid for owner in run["metadata"].get("ownerReferences", ())) and has_numbers(run)
    ]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def of_run(name: str) -> list[BenchmarkResult]:
        async with limit:
            return await results_of_run(kube, place.namespace, name)

    with exit_on(SpecError, what=f"the results of suite {place} cannot be read: "):
        return dict(zip(names, await asyncio.gather(*map(of_run, names)), strict=True))
