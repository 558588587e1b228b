"""Every case file, and the completeness of the corpus. README.md describes how to read and add cases."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from corpus import case as case_file
from corpus.case import Case, ExpectedAttempt, Reason, Setting, worst
from corpus.search_case import search
from corpus.session_case import conduct
from corpus.trial_case import SECOND, Measured, measure
from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, Summary, Trial
from plimsoll.measure.attempts import counts, spoiled_by
from plimsoll.measure.checks.judge import CHECKS, NO_TRIAL_COUNTS, UNREPLICATED
from plimsoll.measure.steadiness import LEAST_ROUNDS
from plimsoll.measure.trial import TrialNumbers
from plimsoll.tools.registry import TOOLS

PATHS = case_file.paths()
CASES = {path.stem: case_file.load(path) for path in PATHS}
TRIALS = [case for case in CASES.values() if case.trial]
SESSIONS = [case for case in CASES.values() if case.session]
SEARCHES = [case for case in CASES.values() if case.search]
LEAST_CASES = 40
TOO_SHORT = "is too short to show whether the rate was steady"


def slug(case: Case) -> str:
    return case.slug


@pytest.mark.parametrize("case", TRIALS, ids=slug)
def test_trial_gets_its_verdict_for_exactly_its_reasons(case: Case) -> None:
    measured = measure(case)
    for number, trial in measured.trials.items():
        assert_findings(trial.findings, reasons_of(case, number))
        assert trial.verdict is worst(reasons_of(case, number))
        assert_warnings(trial, case)
        if case.expect.steadiness is not None:
            assert trial.steadiness is not None
            assert trial.steadiness.state is case.expect.steadiness
        assert (trial.probe.outcome if trial.probe else None) is case.expect.outcome
    assert_point(measured, case)
    assert_numbers(measured.point.summary, case)
    assert_sums(measured, case)
    if case.expect.spoiled_by is not None:
        spoiled = [spoiled_by(trial, measured.recorded) for trial in measured.recorded if not counts(trial)]
        assert set(spoiled) == {case.expect.spoiled_by}


@pytest.mark.parametrize("case", SESSIONS, ids=slug)
def test_session_records_exactly_its_attempts(case: Case) -> None:
    assert case.session is not None
    course = conduct(case.session)
    assert course.simulation.phase is case.expect.phase
    failure = course.simulation.state.failure
    message = failure.message if failure else ""
    assert bool(message) == bool(case.expect.failure)
    assert [words for words in case.expect.failure if words not in message] == []
    assert len(course.trials) == len(case.expect.attempts), [trial.abort for trial in course.trials]
    for trial, expected in zip(course.trials, case.expect.attempts, strict=True):
        assert_attempt(trial, expected)
    assert course.status.verdict is case.expect.verdict
    assert_numbers(course.status.summary, case)


@pytest.mark.parametrize("case", SEARCHES, ids=slug)
def test_search_ends_with_its_verdict(case: Case) -> None:
    assert case.search is not None
    status = search(case.search)
    assert status.line is not None
    assert status.line.ending is case.expect.ending
    assert_findings(status.findings, case.expect.point)
    assert status.verdict is case.expect.verdict is worst(case.expect.point)
    if case.expect.line is not None:
        assert (status.line.low or 0) < case.expect.line < (status.line.high or 0)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_file_is_named_after_its_case(path: Path) -> None:
    assert path.stem == case_file.load(path).slug


def test_names_differ_over_all_directories() -> None:
    assert [stem for stem, count in Counter(path.stem for path in PATHS).items() if count > 1] == []


def test_nothing_is_wrong_with_the_trial_that_all_others_start_from() -> None:
    good = CASES["good-trial"]
    assert (good.trial, good.faults, good.expect.verdict) == (Setting(), (), Verdict.VALID)


def test_corpus_is_large_enough() -> None:
    assert len(PATHS) >= LEAST_CASES


def test_every_check_has_a_case_for_every_verdict_it_can_come_to() -> None:
    possible = {(check.reason, verdict) for check in CHECKS for verdict in limits_of(check.suspect, check.invalid)}
    shown = {(reason.reason, reason.verdict) for case in [*TRIALS, *SEARCHES] for reason in all_reasons(case)}
    assert shown == possible


ROWS = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", (case_file.DIRECTORY / "README.md").read_text(), re.MULTILINE))
"""Tool -> the other columns of its row."""

OLDER_TOOLS = {"fio", "radosBench", "rbdBench", "osdBench"}
"""Tools whose cases are not listed."""


def test_every_later_tool_has_a_row_of_cases() -> None:
    assert ROWS.keys() == TOOLS.keys() - OLDER_TOOLS


@pytest.mark.parametrize("tool", ROWS)
def test_cases_that_every_tool_has_are_of_that_tool_and_never_valid(tool: str) -> None:
    columns = ROWS[tool].split("|")
    named = [re.findall(r"`([a-z0-9-]+)`", column) for column in columns]
    assert len(named) == 4
    assert all(names or "none" in column for names, column in zip(named, columns, strict=True))
    cases = [CASES[name] for names in named for name in names]
    assert {case.trial.tool for case in cases if case.trial} == {tool}
    assert all(case.expect.verdict is not Verdict.VALID for case in cases)


def limits_of(suspect: float | None, invalid: float | None) -> set[Verdict]:
    limits = {Verdict.SUSPECT: suspect, Verdict.INVALID: invalid}
    return {verdict for verdict, limit in limits.items() if limit is not None}


def all_reasons(case: Case) -> Sequence[Reason]:
    listed = (reason for reasons in case.expect.passes.values() for reason in reasons)
    return (*case.expect.reasons, *listed, *case.expect.point)


def reasons_of(case: Case, pass_number: int) -> Sequence[Reason]:
    return case.expect.passes.get(pass_number, case.expect.reasons)


def assert_findings(findings: Sequence[Finding], expected: Sequence[Reason]) -> None:
    found = {finding.reason: (finding.verdict, finding.clients) for finding in findings}
    assert found == {reason.reason: (reason.verdict, reason.clients) for reason in expected}, findings
    messages = {finding.reason: finding.message for finding in findings}
    for reason in expected:
        for words in reason.says:
            assert words in messages[reason.reason]


def assert_warnings(trial: TrialNumbers, case: Case) -> None:
    """Every expected warning exists, and no other one but that a window is short, which is no fault."""
    for words in case.expect.warnings:
        assert any(words in warning for warning in trial.warnings), trial.warnings
    others = [warning for warning in trial.warnings if TOO_SHORT not in warning]
    if len(others) < len(trial.warnings):
        assert trial.window is not None
        assert trial.window.seconds < LEAST_ROUNDS
    for warning in others:
        assert any(words in warning for words in case.expect.warnings), warning


def assert_point(measured: Measured, case: Case) -> None:
    """The point has the findings of its trials that count, or of all if none does, and its own."""
    own = {check.reason for check in CHECKS[CHECKS.index(NO_TRIAL_COUNTS) :]}
    trials = [reasons_of(case, number) for number in measured.trials]
    counted = [reasons for reasons in trials if worst(reasons) is not Verdict.INVALID]
    rolled_up = [reason for reasons in counted or trials for reason in reasons]
    alone = case.expect.point
    if len(trials) == 1 and not alone:
        only = (UNREPLICATED, Verdict.SUSPECT) if counted else (NO_TRIAL_COUNTS, Verdict.INVALID)
        alone = (Reason(reason=only[0].reason, verdict=only[1]),)
    assert_findings([finding for finding in measured.point.findings if finding.reason in own], alone)
    assert {finding.reason for finding in measured.point.findings} - own == {reason.reason for reason in rolled_up}
    assert measured.point.verdict is worst([*alone, *rolled_up])


def assert_numbers(summary: Summary | None, case: Case) -> None:
    """Without a trial that counts there is no summary at all."""
    operations = summary.operations if summary else ()
    rates = {operation.operation: operation.iops.mean for operation in operations}
    assert rates == pytest.approx(case.expect.headline, rel=0.01)
    slowest = {operation.operation: (operation.latency.max_nanoseconds or 0) / SECOND for operation in operations}
    for operation, seconds in case.expect.slowest_seconds.items():
        assert slowest[operation] == pytest.approx(seconds, rel=0.01)


def assert_sums(measured: Measured, case: Case) -> None:
    """The sum of rates that other tools print is recorded, even without a headline."""
    operations = [operation for trial in measured.trials.values() for operation in trial.operations]
    sums = {operation.operation: operation.sum_of_rates.iops for operation in operations}
    for operation, rate in case.expect.others_print.items():
        assert sums[operation] == pytest.approx(rate, rel=0.01)


def assert_attempt(trial: Trial, expected: ExpectedAttempt) -> None:
    assert (trial.outcome, trial.verdict) == (expected.outcome, expected.verdict)
    assert (trial.abort.reason if trial.abort else None) == expected.abort
    assert {finding.reason for finding in trial.findings} == set(expected.reasons)
    message = trial.abort.message if trial.abort else ""
    for words in expected.says:
        assert words in message
