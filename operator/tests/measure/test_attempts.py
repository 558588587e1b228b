"""Which attempts come first, what spoiled them, and what is left of a result if they count."""

import pytest

from plimsoll.api.line import Line, Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, Cause, Outcome, Verdict
from plimsoll.api.reasons.runs import ATTEMPT_REASONS
from plimsoll.api.result import Finding, Trial
from plimsoll.measure.attempts import (
    counts,
    first_attempts,
    on_first_attempts,
    reasons_text,
    repeated_too_often,
    spoiled_attempts,
    why_not_counted,
)
from plimsoll.measure.checks.judge import CHECKS, cause_of
from support.results import aborted, measured, result, trial

HANG = AbortReason.TOOL_OVERRAN


def spoiled(number: int, *reasons: str, attempt: int = 0, iops: float = 400) -> Trial:
    findings = tuple(Finding(reason=reason, verdict=Verdict.INVALID, message="m") for reason in reasons)
    return trial(number, measured(iops), attempt=attempt, verdict=Verdict.INVALID, findings=findings)


def numbers(trials: list[Trial]) -> list[tuple[int, int]]:
    return [(attempt.pass_number, attempt.attempt) for attempt in first_attempts(trials)]


def test_every_reason_has_a_cause() -> None:
    storage = {"ClientNotStaged", "ToolOverran"}
    assert {reason for reason in AbortReason if ATTEMPT_REASONS[reason].cause is Cause.STORAGE} == storage
    harness = {check.reason for check in CHECKS if check.invalid is not None and check.cause is Cause.HARNESS}
    assert harness == {
        "OutputUnreadable",
        "ClientMissing",
        "LateClient",
        "EarlyClient",
        "LowOverlap",
        "ClockOffset",
        "HistogramMismatch",
        "ClientThrottled",
        "FasterThanNetwork",
        "WrongDevice",
        "DeviceBypassed",
        "ForeignLoad",
        "CephOptionsDiffer",
    }
    for reason in ("Stalled", "ClientStalled", "LostIo", "ToolFailed", "OsdsChanged", "GroupsNotClean", "ToolOverran"):
        assert cause_of(reason) is Cause.STORAGE
    assert cause_of("OfAnotherVersion") is Cause.STORAGE
    # A check and the reason of an abort with the same name have the same cause.
    assert cause_of("LateClient") is Cause.HARNESS


def test_the_first_attempt_is_the_first_one_without_a_harness_cause() -> None:
    trials = [
        trial(0, measured(1000)),
        aborted(1),
        spoiled(1, "Stalled", attempt=1),
        trial(1, measured(1000), attempt=2),
        spoiled(2, "Stalled", "ClockOffset"),
        trial(2, measured(1000), attempt=1),
        aborted(3, reason=HANG),
        trial(3, measured(1000), attempt=1),
        *(aborted(4, attempt=number) for number in range(3)),
    ]
    assert numbers(trials) == [(0, 0), (1, 1), (2, 1), (3, 0)]
    assert numbers(trials[::-1]) == numbers(trials)
    assert [why_not_counted(attempt) for attempt in spoiled_attempts([result(trials)])] == [("Stalled",), (HANG,)]


def test_a_result_whose_first_attempts_count_is_left_alone() -> None:
    good = result([trial(0, measured(1000)), aborted(1), trial(1, measured(1000), attempt=1)])
    assert on_first_attempts(good) is good


def test_first_attempts_count_with_their_numbers_and_a_hang_counts_without() -> None:
    attempts = [
        spoiled(0, "Stalled", iops=400),
        trial(0, measured(1000), attempt=1),
        aborted(1, reason=HANG),
        trial(1, measured(1000), attempt=1),
        trial(2, measured(1000)),
    ]
    first = on_first_attempts(result(attempts)).status
    assert [counts(attempt) for attempt in first.trials] == [True] * 3
    assert [[each.rates.iops for each in attempt.operations] for attempt in first.trials] == [[400], [], [1000]]
    assert [attempt.outcome for attempt in first.trials] == [Outcome.MEASURED] * 3


def test_a_point_without_numbers_has_those_of_its_first_attempts() -> None:
    lost = result([spoiled(n, "Stalled", attempt=a) for n in range(2) for a in range(3)])
    assert lost.status.verdict is Verdict.INVALID
    first = on_first_attempts(lost).status
    assert (first.verdict, len(first.trials)) == (Verdict.SUSPECT, 2)


def test_in_a_search_an_attempt_that_the_storage_spoiled_is_a_probe_that_broke() -> None:
    probe = Probe(offered=500, outcome=ProbeOutcome.UNKNOWN)
    line, lower = Line(probes=1, counted=1, estimate=900), Line(probes=1, counted=1, estimate=600)
    search = result([spoiled(0, "Stalled").model_copy(update={"probe": probe}), trial(0, measured(1000), attempt=1)])
    status = search.status.model_copy(update={"line": line, "first_line": lower})
    first = on_first_attempts(search.model_copy(update={"status": status})).status
    assert first.line == lower
    assert first.trials[0].probe is not None
    assert first.trials[0].probe.outcome is ProbeOutcome.LATE


@pytest.mark.parametrize(("replaced", "is_often"), [(1, False), (2, True)])
def test_more_than_a_fifth_of_the_attempts_is_too_many(replaced: int, is_often: bool) -> None:  # noqa: FBT001
    attempts = [spoiled(number, "Stalled") for number in range(replaced)]
    trials = [trial(number, measured(1000), attempt=number < replaced) for number in range(5)]
    reasons = [*repeated_too_often("the run", [result([*attempts, *trials])])]
    assert bool(reasons) == is_often
    said = "2 of 7 attempts of the run were replaced or do not count (limit 20 %): Stalled (2); find the cause"
    assert all(reason.startswith(said) for reason in reasons)


def test_the_most_frequent_reason_comes_first() -> None:
    attempts = [aborted(0), spoiled(1, "Stalled"), spoiled(2, "Stalled", "LostIo"), spoiled(3, "Stalled")]
    assert reasons_text(attempts) == "Stalled (2); ClientLost; Stalled, LostIo"
