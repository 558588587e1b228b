"""The rounds of a suite, from directories of this machine or from a cluster, with what the last one shows."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from plimsoll.api.errors import SpecError
from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite, SuiteSpec, decode_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus, EndedRound, RoundVerdict
from plimsoll.cli.cluster import ask, program
from plimsoll.cli.compare import EXIT_OF
from plimsoll.cli.source import RUN, SuiteInCluster, find_suite, no_such_object, results_of_run
from plimsoll.cli.suite_round import (
    Findings,
    PlannedRun,
    Round,
    RoundResults,
    findings_of,
    read_round,
    results_of_round,
)
from plimsoll.cli.tables import FittedColumn, FittedTable, text_of
from plimsoll.kube.port import Kube, Object
from plimsoll.measure.compare.comparison import change_text, quantity_text
from plimsoll.measure.compare.sides import ratios_of
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.compare.values import operation_text
from plimsoll.report.suite import baseline_text, found_interval_text, found_place, is_notable, ratios, started_text
from plimsoll.report.view import count_text
from plimsoll.suite.children import child_name, turns_of
from plimsoll.suite.evaluation import rule_of
from plimsoll.suite.history.changes import Found
from plimsoll.suite.history.judging import History, JudgedRound, RoundJudgement, VariantJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.rounds.turns import LABEL_SUITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The rounds of a suite.

    Attributes:
        rounds: in the order of time.
        history: of all these rounds.
        conclusions: of each round; None if the suite compares no rounds.
        judgements: of the last round, by the name of the comparison.

    """

    rounds: Sequence[RoundResults]
    history: History
    conclusions: Sequence[Conclusion | None]
    judgements: Mapping[str, RoundJudgement]


def in_order(rounds: Sequence[Round]) -> list[Round]:
    """Return rounds by the time of their start; exits if they are not rounds of one suite on the same targets."""
    ordered = sorted(rounds, key=lambda one: one.start.minute)
    for earlier, later in pairwise(ordered):
        if message := _conflict(earlier, later):
            raise click.ClickException(message)
    return ordered


def accepted_minutes(rounds: Sequence[Round], chosen: Sequence[str]) -> list[int]:
    """Return the minutes of the rounds that `--accept` names by minute or directory.

    Raises:
        click.UsageError: it names none of the rounds, or one that lacks runs.

    """
    return [_accepted_minute(rounds, name) for name in chosen]


def course_of(rounds: Sequence[RoundResults], accepted: Collection[int]) -> Course:
    """Judge rounds one after the other by the comparisons of the last one; the accepted minutes start a baseline.

    Raises:
        click.UsageError: a run of an accepted round has no results.

    """
    spec = rounds[-1].suite.spec
    history = History()
    conclusions: list[Conclusion | None] = []
    judgements: Mapping[str, RoundJudgement] = {}
    for one in rounds:
        measured = one.measured
        judgements = judgements_of(spec, history, measured)
        conclusions.append(_worst(judgements))
        history = history.extended(measured, judgements.values())
        if one.minute in accepted:
            _check_has_results(one, measured)
            history = history.accept(one.minute)
    return Course(rounds=rounds, history=history, conclusions=conclusions, judgements=judgements)


def _check_has_results(one: RoundResults, measured: MeasuredRound) -> None:
    if not measured.is_complete:
        message = (
            f"--accept {one.minute}: a run of the round in {one.directory} has no results, although it is "
            "complete; restore them, or accept another round"
        )
        raise click.UsageError(message)


def judgements_of(spec: SuiteSpec, history: History, measured: MeasuredRound) -> dict[str, RoundJudgement]:
    """Judge a round by the accepted ones of a history, for each comparison with those, by its name."""
    names = [variant.name for variant in spec.variants]
    return {
        comparison.name: judge(history.accepted, history.pinned, measured, names, rule_of(comparison.allow))
        for comparison in spec.comparisons
        if comparison.baseline.rounds is not None
    }


def _worst(judgements: Mapping[str, RoundJudgement]) -> Conclusion | None:
    found = {one.conclusion for one in judgements.values()}
    order = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)
    return next((one for one in order if one in found), None)


def _conflict(earlier: Round, later: Round) -> str:
    """Return why two rounds are not rounds of the same suite; empty if they are."""
    both = f"{earlier.directory} and {later.directory}"
    names = earlier.suite.metadata.name, later.suite.metadata.name
    if names[0] != names[1]:
        return f"{both} contain rounds of different suites, {names[0]} and {names[1]}; give the rounds of one suite"
    if earlier.start.minute == later.start.minute:
        return f"{both} contain rounds that started in the same minute, {later.start.minute}; give one of them"
    for variant, paths in later.start.targets.items():
        before = earlier.start.targets.get(variant, paths)
        if before != paths:
            targets = f"{', '.join(before)} and {', '.join(paths)}"
            return f"{both} measured variant {variant} on different targets, {targets}; give rounds of the same targets"
    return ""


def _accepted_minute(rounds: Sequence[Round], name: str) -> int:
    found = [one for one in rounds if name == str(one.start.minute) or Path(name).resolve() == one.directory.resolve()]
    if not found:
        known = ", ".join(f"{one.start.minute} ({one.directory})" for one in rounds)
        message = f"--accept {name}: is none of the rounds; they are {known}"
        raise click.UsageError(message)
    if not all(found[0].is_complete(child) for child in found[0].children):
        message = f"--accept {name}: the round lacks runs; complete it with plimsoll suite run --resume"
        raise click.UsageError(message)
    return found[0].start.minute


_AT_ONCE = 8
"""Requests at the same time."""

_CONCLUSIONS = {
    RoundVerdict.REGRESSED: Conclusion.REGRESSION,
    RoundVerdict.NO_REGRESSION: Conclusion.NO_REGRESSION,
    RoundVerdict.INCONCLUSIVE: Conclusion.INCONCLUSIVE,
}
"""Of the rounds that were evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRounds:
    """The rounds of a suite that were evaluated and are still kept.

    Attributes:
        ended: what the status says of each, in the order of time; at least one.
        rounds: their results.

    """

    suite: BenchmarkSuite
    ended: Sequence[EndedRound]
    rounds: Sequence[RoundResults]

    @property
    def course(self) -> Course:
        """The rounds as the operator judged them, with the judgements of the last one.

        These are made again: the status has only their outcomes.
        """
        judged = tuple(
            JudgedRound(
                measured=one.measured,
                regressed=ended.verdict is RoundVerdict.REGRESSED,
                accepted=ended.accepted,
                pinned=ended.pinned,
            )
            for one, ended in zip(self.rounds, self.ended, strict=True)
        )
        before = History(rounds=judged[:-1])
        return Course(
            rounds=self.rounds,
            history=History(rounds=judged),
            conclusions=[_CONCLUSIONS[one.verdict] for one in self.ended],
            judgements=judgements_of(self.suite.spec, before, judged[-1].measured),
        )


def rounds_in_cluster(place: SuiteInCluster) -> ClusterRounds:
    """Read the rounds of a suite.

    Raises:
        click.ClickException: if they cannot be read, or if no round has been evaluated.

    """
    return ask(place.access, lambda kube: read_rounds(kube, place))


async def read_rounds(kube: Kube, place: SuiteInCluster) -> ClusterRounds:
    """Read the rounds of a suite; see `rounds_in_cluster`."""
    document = await kube.get(place.kind, place.name, place.namespace)
    if document is None:
        raise await no_such_object(kube, place)
    uid = str(document["metadata"]["uid"])
    try:
        suite = decode_suite(dict(document))
        status = BenchmarkSuiteStatus.model_validate(document.get("status") or {})
    except (SpecError, ValidationError) as error:
        message = f"suite {place} cannot be read; is it of a later version than this program? {error}"
        raise click.ClickException(message) from error
    ended = [one for one in reversed(status.rounds) if one.verdict in _CONCLUSIONS]
    if not ended:
        message = f"no round of suite {place} has been evaluated yet; `{program()} suite watch {place}` follows one"
        raise click.ClickException(message)
    results = await _results(kube, place, uid)
    return ClusterRounds(suite=suite, ended=ended, rounds=[_round(suite, uid, one, results) for one in ended])


async def _results(kube: Kube, place: SuiteInCluster, uid: str) -> Mapping[str, list[BenchmarkResult]]:
    """Return the results of all runs of a suite that succeeded, by the name of the run."""
    runs = await kube.list(RUN, namespace=place.namespace, labels={LABEL_SUITE: place.name})
    names = [str(run["metadata"]["name"]) for run in runs if _is_owned(run, uid) and _has_succeeded(run)]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def of_run(name: str) -> list[BenchmarkResult]:
        async with limit:
            return await results_of_run(kube, place.namespace, name)

    try:
        found = await asyncio.gather(*map(of_run, names))
    except SpecError as error:
        message = f"the results of suite {place} cannot be read: {error}"
        raise click.ClickException(message) from error
    return dict(zip(names, found, strict=True))


def _round(
    suite: BenchmarkSuite, uid: str, ended: EndedRound, results: Mapping[str, list[BenchmarkResult]]
) -> RoundResults:
    # The status does not keep the seed of a former round; the order of its runs does not matter any more.
    planned = [
        PlannedRun(turn=turn, name=child_name(suite, turn, ended.minute, uid))
        for turn in turns_of(suite.spec, ended.minute)
    ]
    return RoundResults(
        suite=suite,
        minute=ended.minute,
        digest=ended.digest,
        planned=planned,
        results={one.name: results[one.name] for one in planned if one.name in results},
    )


def _is_owned(run: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in run["metadata"].get("ownerReferences", ()))


def _has_succeeded(run: Object) -> bool:
    conditions = (run.get("status") or {}).get("conditions", ())
    return any(one["type"] == ConditionType.SUCCEEDED and one["status"] == ConditionStatus.TRUE for one in conditions)


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRounds:
    """The rounds of a suite.

    Attributes:
        label: what a report calls the suite.
        findings: of the last round.
        course: of all rounds.
        conclusion: of the last round, over all comparisons; None if there is no comparison.

    """

    label: str
    findings: Findings
    course: Course
    conclusion: Conclusion | None

    @property
    def exit_code(self) -> int:
        """The exit code of commands that show the last round."""
        return EXIT_OF[self.conclusion] if self.conclusion else 0


def accept_option(function: F) -> F:
    """Add the option `--accept` for rounds in directories."""
    return click.option(
        "--accept",
        "accepted",
        multiple=True,
        metavar="MINUTE|DIR",
        help="Accept this round whatever it showed, such as a regression that is intended: the baseline starts with "
        "it. May be repeated. Only for directories; in a cluster, an annotation of the suite accepts a round.",
    )(function)


def load_rounds(sources: Sequence[str], accepted: Sequence[str]) -> SuiteRounds:
    """Read directories of rounds, or one suite in a cluster.

    Raises:
        click.ClickException: a round cannot be read.
        click.UsageError: the sources or the accepted rounds do not fit together.

    """
    places = [find_suite(source) for source in sources]
    directories = [place for place in places if isinstance(place, Path)]
    if len(directories) == len(places):
        return _of_directories(directories, accepted)
    if len(places) > 1:
        message = "name one suite in a cluster, or directories of rounds"
        raise click.UsageError(message)
    if accepted:
        message = "--accept is for directories; in a cluster, annotate the suite with plimsoll.dev/accept-round"
        raise click.UsageError(message)
    return _of_cluster(next(place for place in places if isinstance(place, SuiteInCluster)))


def _of_directories(directories: Sequence[Path], accepted: Sequence[str]) -> SuiteRounds:
    rounds = in_order([read_round(directory) for directory in directories])
    minutes = accepted_minutes(rounds, accepted)
    course = course_of([results_of_round(one) for one in rounds], minutes)
    findings = findings_of(course.rounds[-1])
    return SuiteRounds(
        label=findings.suite.metadata.name,
        findings=findings,
        course=course,
        conclusion=_conclusion(findings, course),
    )


def _of_cluster(place: SuiteInCluster) -> SuiteRounds:
    found = rounds_in_cluster(place)
    course = found.course
    last = found.ended[-1]
    # What the operator concluded counts, also if its version differs from this program's.
    is_intended = course.conclusions[-1] is Conclusion.REGRESSION and last.accepted
    return SuiteRounds(
        label=str(place),
        findings=findings_of(course.rounds[-1]),
        course=course,
        conclusion=None if is_intended else course.conclusions[-1],
    )


def _conclusion(findings: Findings, course: Course) -> Conclusion | None:
    """Return the conclusion of the last round; accepting it makes its regression from accepted rounds intended."""
    last = course.history.rounds[-1]
    intended = last.accepted and last.regressed
    conclusions = {
        *(one.conclusion for one in findings.comparisons),
        *(one.conclusion for one in course.judgements.values() if not intended),
    }
    worst = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)
    return next((one for one in worst if one in conclusions), None)


_COLOUR = {Conclusion.REGRESSION: "red", Conclusion.NO_REGRESSION: "green", Conclusion.INCONCLUSIVE: "yellow"}


def show_rounds(console: Console, course: Course) -> None:
    """Print the rounds, and which of them are the baseline of the next one."""
    lines = [*zip(course.history.rounds, course.conclusions, strict=True)]
    console.print(Text("\nRounds", style="bold"))
    console.print(FittedTable(rows=lines, layouts=[_ROUND_COLUMNS], missed=(), remedy=""))


def show_judgement(console: Console, name: str, judgement: RoundJudgement, *, is_local: bool) -> None:
    """Print whether each variant of a round is worse than its accepted rounds, and why."""
    baseline = count_text(judgement.accepted, "accepted round")
    console.print(Text(f"\n{name}: is round {judgement.minute} worse than {baseline}?", style="bold"))
    lines = [one for variant in judgement.variants for one in variant.found if is_notable(one)]
    if lines:
        console.print(FittedTable(rows=lines, layouts=_LAYOUTS, missed=(_INTERVAL, _AGAINST), remedy="-o json"))
    for change in judgement.changes:
        words = f"changed since the last accepted round: {change.key}: {change.baseline} -> {change.candidate}"
        console.print(Text(words), soft_wrap=True)
    for variant in judgement.variants:
        for text in _lines(variant):
            console.print(text, soft_wrap=True)
    if judgement.conclusion is Conclusion.REGRESSION:
        how = "add --accept " if is_local else "annotate the suite with plimsoll.dev/accept-round="
        remedy = f"If this is intended, {how}{judgement.minute}: the baseline then starts with this round."
        console.print(Text(remedy, style="dim"), soft_wrap=True)


def history_document(course: Course) -> dict[str, object]:
    """Return the rounds, and the judgements of the last one."""
    return {
        "rounds": [
            {
                "minute": one.measured.minute,
                "directory": None if round_.directory is None else str(round_.directory),
                "digest": one.measured.digest,
                "verdict": conclusion,
                "accepted": one.accepted,
                "pinned": one.pinned,
            }
            for one, round_, conclusion in zip(course.history.rounds, course.rounds, course.conclusions, strict=True)
        ],
        "judgements": [_judgement(name, one) for name, one in course.judgements.items()],
    }


def _verdict(conclusion: Conclusion | None) -> Text:
    return Text(conclusion, style=_COLOUR[conclusion]) if conclusion else Text("-")


def _verdict_of(found: Found) -> Text:
    return _verdict(found.judgement.conclusion).append(", improved" if found.judgement.improved else "")


_RoundLine = tuple[JudgedRound, Conclusion | None]
_RoundColumn = FittedColumn[_RoundLine]
_ROUND_COLUMNS = (
    _RoundColumn(heading="Round", cell=text_of(lambda line: str(line[0].measured.minute))),
    _RoundColumn(heading="Started", cell=text_of(lambda line: started_text(line[0].measured.minute))),
    _RoundColumn(heading="Verdict", cell=lambda line: _verdict(line[1])),
    _RoundColumn(heading="Baseline", cell=text_of(lambda line: baseline_text(line[0]))),
)

_Column = FittedColumn[Found]
_VARIANT = _Column(heading="Variant", cell=text_of(lambda one: one.group[0]))
_OF = _Column(heading="Point", cell=text_of(found_place), folded=True)
_METRIC = _Column(heading="Metric", cell=text_of(lambda one: quantity_text(one.group[2], one.metric)))
_AGAINST = _Column(heading="Against", cell=text_of(lambda one: one.against.value))
_CHANGE = _Column(heading="Change", cell=text_of(lambda one: change_text(ratios(one).ratio)), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=text_of(found_interval_text), right=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict_of)
_LAYOUTS = (
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _INTERVAL, _VERDICT),
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _VERDICT),
    (_VARIANT, _OF, _METRIC, _CHANGE, _VERDICT),
)


def _lines(variant: VariantJudgement) -> Iterator[Text]:
    for reason in variant.reasons:
        yield Text(f"{variant.variant}: {reason}", style="yellow")
    drift = f"; drift from the pinned rounds: {variant.drift}" if variant.drift else ""
    change = f", but {variant.change} against the accepted rounds" if variant.is_drift else ""
    yield Text(f"{variant.variant}: {variant.conclusion}{drift}{change}", style=_COLOUR[variant.conclusion])


def _judgement(name: str, judgement: RoundJudgement) -> Mapping[str, object]:
    return {
        "name": name,
        "acceptedRounds": judgement.accepted,
        "conclusion": judgement.conclusion,
        "changes": [asdict(one) for one in judgement.changes],
        "variants": [
            {
                "variant": one.variant,
                "conclusion": one.conclusion,
                "againstAccepted": one.change,
                "drift": one.drift,
                "isDrift": one.is_drift,
                "reasons": [*one.reasons],
                "found": [_found(each) for each in one.found],
            }
            for one in judgement.variants
        ],
    }


def _found(found: Found) -> Mapping[str, object]:
    _, workload, operation, metric = found.group
    ratios = ratios_of(metric, found.change)
    return {
        "against": found.against,
        "workload": workload,
        "point": found.point or None,
        "points": found.points,
        "operation": operation_text(operation, metric),
        "metric": metric,
        "ratio": ratios.ratio,
        "low": ratios.low,
        "high": ratios.high,
        "rounds": found.rounds,
        "conclusion": found.judgement.conclusion,
        "improved": found.judgement.improved,
        "suspected": found.judgement.suspected,
    }
