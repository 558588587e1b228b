"""The rounds of a suite, from directories or from a cluster, and the tables that show them."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from plimsoll.api.suite import SuiteSpec, decode_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus, Conclusion, RoundVerdict
from plimsoll.cli.cluster import ask, program
from plimsoll.cli.compare import CONCLUSION_COLOUR
from plimsoll.cli.source import RUN, SuiteInCluster, find_suite, no_such_object, results_of_run
from plimsoll.cli.suite_round import (
    Findings,
    Round,
    RoundResults,
    findings_of,
    read_round,
    results_of_round,
    unfinished,
)
from plimsoll.cli.tables import FittedColumn, FittedTable
from plimsoll.kube.port import Kube, Object
from plimsoll.measure.compare.comparison import change_text, quantity_text
from plimsoll.measure.compare.values import operation_text
from plimsoll.report.suite import baseline_text, found_interval_text, found_place, is_notable, ratios, started_text
from plimsoll.report.view import count_text
from plimsoll.suite.children import child_name, turns_of
from plimsoll.suite.evaluation import rule_of
from plimsoll.suite.history.changes import Found
from plimsoll.suite.history.judging import History, JudgedRound, RoundJudgement, VariantJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.rounds.turns import LABEL_SUITE

_AT_ONCE = 8
"""Requests at the same time."""

_WORST_FIRST = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)
_CONCLUSIONS = {
    RoundVerdict.REGRESSED: Conclusion.REGRESSION,
    RoundVerdict.NO_REGRESSION: Conclusion.NO_REGRESSION,
    RoundVerdict.INCONCLUSIVE: Conclusion.INCONCLUSIVE,
}
"""Of the rounds that were evaluated."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The rounds of a suite."""

    rounds: Sequence[RoundResults]  # in the order of time
    history: History  # of all these rounds
    conclusions: Sequence[Conclusion | None]  # of each round; None if the suite compares no rounds
    judgements: Mapping[str, RoundJudgement]  # of the last round, by the name of the comparison


def in_order(rounds: Sequence[Round]) -> list[Round]:
    """Return rounds by the time of their start; exits if they are not rounds of one suite on the same targets."""
    ordered = sorted(rounds, key=lambda each: each.start.minute)
    for earlier, later in pairwise(ordered):
        if message := _conflict(earlier, later):
            raise click.ClickException(f"{earlier.directory} and {later.directory} {message}")
    return ordered


def accepted_minutes(rounds: Sequence[Round], chosen: Sequence[str]) -> list[int]:
    """Return the minutes of the rounds that `--accept` names by minute or directory; exits if one lacks runs."""
    minutes = []
    for name in chosen:
        directory = Path(name).resolve()
        accepted = [each for each in rounds if name == str(each.start.minute) or directory == each.directory.resolve()]
        if not accepted:
            listed = ", ".join(f"{each.start.minute} ({each.directory})" for each in rounds)
            raise click.UsageError(f"--accept {name}: is none of the rounds; they are {listed}")
        if unfinished(accepted[0]):
            raise click.UsageError(
                f"--accept {name}: the round lacks runs; complete it with plimsoll suite run --resume"
            )
        minutes.append(accepted[0].start.minute)
    return minutes


def course_of(rounds: Sequence[RoundResults], accepted: Collection[int]) -> Course:
    """Judge rounds one after the other by the comparisons of the last one; the accepted minutes start a baseline.

    Exits if a run of an accepted round has no results.
    """
    spec = rounds[-1].suite.spec
    history = History()
    conclusions: list[Conclusion | None] = []
    judgements: Mapping[str, RoundJudgement] = {}
    for round_ in rounds:
        measured = round_.measured
        judgements = judgements_of(spec, history, measured)
        conclusions.append(_worst(judgement.conclusion for judgement in judgements.values()))
        history = history.extended(measured, judgements.values())
        if round_.minute in accepted:
            if not measured.is_complete:
                raise click.UsageError(
                    f"--accept {round_.minute}: a run of the round in {round_.directory} has no results, although it "
                    "is complete; restore them, or accept another round"
                )
            history = history.accept(round_.minute)
    return Course(rounds=rounds, history=history, conclusions=conclusions, judgements=judgements)


def judgements_of(spec: SuiteSpec, history: History, measured: MeasuredRound) -> dict[str, RoundJudgement]:
    """Judge a round by the accepted ones of a history, for each comparison with those, by its name."""
    names = [variant.name for variant in spec.variants]
    return {
        comparison.name: judge(history.accepted, history.pinned, measured, names, rule_of(comparison.allow))
        for comparison in spec.comparisons
        if comparison.baseline.rounds is not None
    }


def _worst(conclusions: Iterable[Conclusion]) -> Conclusion | None:
    return min(conclusions, key=_WORST_FIRST.index, default=None)


def _conflict(earlier: Round, later: Round) -> str:
    """Return why two rounds are not rounds of the same suite; empty if they are."""
    names = earlier.suite.metadata.name, later.suite.metadata.name
    if names[0] != names[1]:
        return f"contain rounds of different suites, {names[0]} and {names[1]}; give the rounds of one suite"
    if earlier.start.minute == later.start.minute:
        return f"contain rounds that started in the same minute, {later.start.minute}; give one of them"
    for variant, paths in later.start.targets.items():
        before = earlier.start.targets.get(variant, paths)
        if before != paths:
            targets = f"{', '.join(before)} and {', '.join(paths)}"
            return f"measured variant {variant} on different targets, {targets}; give rounds of the same targets"
    return ""


async def read_rounds(kube: Kube, place: SuiteInCluster) -> Course:
    """Return the rounds of a suite that were evaluated and are still kept, as the operator judged them.

    The judgements of the last one are made again: the status has only their outcomes. Exits if the rounds cannot be
    read, or if none has been evaluated.
    """
    document = await kube.get(place.kind, place.name, place.namespace)
    if document is None:
        raise await no_such_object(kube, place)
    uid = str(document["metadata"]["uid"])
    try:
        suite = decode_suite(dict(document))
        status = BenchmarkSuiteStatus.model_validate(document.get("status") or {})
    except (SpecError, ValidationError) as error:
        raise click.ClickException(
            f"suite {place} cannot be read; is it of a later version than this program? {error}"
        ) from error
    evaluated = [ended for ended in reversed(status.rounds) if ended.verdict in _CONCLUSIONS]
    if not evaluated:
        raise click.ClickException(
            f"no round of suite {place} has been evaluated yet; `{program()} suite watch {place}` follows one"
        )
    results = await _results(kube, place, uid)
    rounds, judged = [], []
    for ended in evaluated:
        # The status does not keep the seed of a former round; the order of its runs does not matter any more.
        turns = turns_of(suite.spec, ended.minute)
        planned = {child_name(suite, turn, ended.minute, uid): turn for turn in turns}
        round_ = RoundResults(
            suite=suite,
            minute=ended.minute,
            digest=ended.digest,
            planned=planned,
            results={name: results[name] for name in planned if name in results},
        )
        rounds.append(round_)
        regressed = ended.verdict is RoundVerdict.REGRESSED
        judged.append(
            JudgedRound(measured=round_.measured, regressed=regressed, accepted=ended.accepted, pinned=ended.pinned)
        )
    return Course(
        rounds=rounds,
        history=History(rounds=tuple(judged)),
        conclusions=[_CONCLUSIONS[ended.verdict] for ended in evaluated],
        judgements=judgements_of(suite.spec, History(rounds=tuple(judged[:-1])), judged[-1].measured),
    )


async def _results(kube: Kube, place: SuiteInCluster, uid: str) -> Mapping[str, list[BenchmarkResult]]:
    """Return the results of all runs of a suite that succeeded, by the name of the run."""
    runs = await kube.list(RUN, namespace=place.namespace, labels={LABEL_SUITE: place.name})
    names = [
        str(run["metadata"]["name"])
        for run in runs
        if _has_succeeded(run) and any(owner["uid"] == uid for owner in run["metadata"].get("ownerReferences", ()))
    ]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def of_run(name: str) -> list[BenchmarkResult]:
        async with limit:
            return await results_of_run(kube, place.namespace, name)

    try:
        results = await asyncio.gather(*map(of_run, names))
    except SpecError as error:
        raise click.ClickException(f"the results of suite {place} cannot be read: {error}") from error
    return dict(zip(names, results, strict=True))


def _has_succeeded(run: Object) -> bool:
    conditions = (run.get("status") or {}).get("conditions", ())
    succeeded = ConditionType.SUCCEEDED, ConditionStatus.TRUE
    return any((condition["type"], condition["status"]) == succeeded for condition in conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRounds:
    """The rounds of a suite."""

    label: str  # what a report calls the suite
    findings: Findings  # of the last round
    course: Course  # of all rounds
    conclusion: Conclusion | None  # of the last round, over all comparisons; None if there is no comparison


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
    """Read directories of rounds, or one suite in a cluster; exits if they cannot be read, or do not fit together."""
    places = [find_suite(source) for source in sources]
    directories = [place for place in places if isinstance(place, Path)]
    suites = [place for place in places if isinstance(place, SuiteInCluster)]
    if not suites:
        return _of_directories(directories, accepted)
    if len(places) > 1:
        raise click.UsageError("name one suite in a cluster, or directories of rounds")
    if accepted:
        raise click.UsageError(
            "--accept is for directories; in a cluster, annotate the suite with plimsoll.dev/accept-round"
        )
    suite = suites[0]
    course = ask(suite.access, lambda kube: read_rounds(kube, suite))
    # What the operator concluded counts, also if its version differs from this program's.
    conclusion = course.conclusions[-1]
    is_intended = conclusion is Conclusion.REGRESSION and course.history.rounds[-1].accepted
    return SuiteRounds(
        label=str(suite),
        findings=findings_of(course.rounds[-1]),
        course=course,
        conclusion=None if is_intended else conclusion,
    )


def _of_directories(directories: Sequence[Path], accepted: Sequence[str]) -> SuiteRounds:
    rounds = in_order([read_round(directory) for directory in directories])
    minutes = accepted_minutes(rounds, accepted)
    course = course_of([results_of_round(round_) for round_ in rounds], minutes)
    findings = findings_of(course.rounds[-1])
    conclusions = [compared.conclusion for compared in findings.comparisons]
    last = course.history.rounds[-1]
    # Accepting a round makes its regression from accepted rounds intended.
    if not (last.accepted and last.regressed):
        conclusions += [judgement.conclusion for judgement in course.judgements.values()]
    return SuiteRounds(
        label=findings.suite.metadata.name, findings=findings, course=course, conclusion=_worst(conclusions)
    )


def show_rounds(console: Console, course: Course) -> None:
    """Print the rounds, and which of them are the baseline of the next one."""
    lines = [*zip(course.history.rounds, course.conclusions, strict=True)]
    console.print(Text("\nRounds", style="bold"))
    console.print(FittedTable(rows=lines, layouts=[_ROUND_COLUMNS], missed=(), remedy=""))


def show_judgement(console: Console, name: str, judgement: RoundJudgement, *, is_local: bool) -> None:
    """Print whether each variant of a round is worse than its accepted rounds, and why."""
    baseline = count_text(judgement.accepted, "accepted round")
    console.print(Text(f"\n{name}: is round {judgement.minute} worse than {baseline}?", style="bold"))
    lines = [change for variant in judgement.variants for change in variant.found if is_notable(change)]
    if lines:
        console.print(FittedTable(rows=lines, layouts=_LAYOUTS, missed=(_INTERVAL, _AGAINST), remedy="-o json"))
    for change in judgement.changes:
        words = f"changed since the last accepted round: {change.key}: {change.baseline} -> {change.candidate}"
        console.print(Text(words), soft_wrap=True)
    for variant in judgement.variants:
        for reason in variant.reasons:
            console.print(Text(f"{variant.variant}: {reason}", style="yellow"), soft_wrap=True)
        drift = f"; drift from the pinned rounds: {variant.drift}" if variant.drift else ""
        against = f", but {variant.change} against the accepted rounds" if variant.is_drift else ""
        words = f"{variant.variant}: {variant.conclusion}{drift}{against}"
        console.print(Text(words, style=CONCLUSION_COLOUR[variant.conclusion]), soft_wrap=True)
    if judgement.conclusion is Conclusion.REGRESSION:
        how = "add --accept " if is_local else "annotate the suite with plimsoll.dev/accept-round="
        remedy = f"If this is intended, {how}{judgement.minute}: the baseline then starts with this round."
        console.print(Text(remedy, style="dim"), soft_wrap=True)


def history_document(course: Course) -> dict[str, object]:
    """Return the rounds, and the judgements of the last one."""
    return {
        "rounds": [
            {
                "minute": judged.measured.minute,
                "directory": None if round_.directory is None else str(round_.directory),
                "digest": judged.measured.digest,
                "verdict": conclusion,
                "accepted": judged.accepted,
                "pinned": judged.pinned,
            }
            for judged, round_, conclusion in zip(course.history.rounds, course.rounds, course.conclusions, strict=True)
        ],
        "judgements": [
            {
                "name": name,
                "acceptedRounds": judgement.accepted,
                "conclusion": judgement.conclusion,
                "changes": [asdict(change) for change in judgement.changes],
                "variants": [_variant_document(variant) for variant in judgement.variants],
            }
            for name, judgement in course.judgements.items()
        ],
    }


def _verdict(conclusion: Conclusion | None) -> Text:
    return Text(conclusion, style=CONCLUSION_COLOUR[conclusion]) if conclusion else Text("-")


def _verdict_of(found: Found) -> Text:
    return _verdict(found.judgement.conclusion).append(", improved" if found.judgement.improved else "")


_RoundColumn = FittedColumn[tuple[JudgedRound, Conclusion | None]]
_ROUND_COLUMNS = (
    _RoundColumn(heading="Round", cell=lambda line: str(line[0].measured.minute)),
    _RoundColumn(heading="Started", cell=lambda line: started_text(line[0].measured.minute)),
    _RoundColumn(heading="Verdict", cell=lambda line: _verdict(line[1])),
    _RoundColumn(heading="Baseline", cell=lambda line: baseline_text(line[0])),
)

_Column = FittedColumn[Found]
_VARIANT = _Column(heading="Variant", cell=lambda change: change.group[0])
_OF = _Column(heading="Point", cell=found_place, folded=True)
_METRIC = _Column(heading="Metric", cell=lambda change: quantity_text(change.group[2], change.metric))
_AGAINST = _Column(heading="Against", cell=lambda change: change.against.value)
_CHANGE = _Column(heading="Change", cell=lambda change: change_text(ratios(change).ratio), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=found_interval_text, right=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict_of)
_LAYOUTS = (
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _INTERVAL, _VERDICT),
    (_VARIANT, _OF, _METRIC, _AGAINST, _CHANGE, _VERDICT),
    (_VARIANT, _OF, _METRIC, _CHANGE, _VERDICT),
)


def _variant_document(variant: VariantJudgement) -> Mapping[str, object]:
    return {
        "variant": variant.variant,
        "conclusion": variant.conclusion,
        "againstAccepted": variant.change,
        "drift": variant.drift,
        "isDrift": variant.is_drift,
        "reasons": [*variant.reasons],
        "found": [_found_document(found) for found in variant.found],
    }


def _found_document(found: Found) -> Mapping[str, object]:
    _, workload, operation, metric = found.group
    change = ratios(found)
    return {
        "against": found.against,
        "workload": workload,
        "point": found.point or None,
        "points": found.points,
        "operation": operation_text(operation, metric),
        "metric": metric,
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "rounds": found.rounds,
        "conclusion": found.judgement.conclusion,
        "improved": found.judgement.improved,
        "suspected": found.judgement.suspected,
    }
