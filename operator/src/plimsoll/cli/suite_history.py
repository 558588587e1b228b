"""The rounds of a suite in several directories, in the order of time, and the judgement of the last one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click

from plimsoll.api.suite import SuiteSpec
from plimsoll.cli.suite_measured import RoundResults
from plimsoll.cli.suite_round import Round
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.suite.compared import rule_of
from plimsoll.suite.history.history import History
from plimsoll.suite.history.judging import RoundJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound


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
