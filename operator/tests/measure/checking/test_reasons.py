import pytest

from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Abort, Finding, ResultStatus, Trial
from plimsoll.measure.checks.check import Check
from plimsoll.measure.checks.judge import CHECKS, main_reasons, reasons_of, remedy_of
from plimsoll.measure.text import quote_finding

STALLED = Finding(reason="Stalled", verdict=Verdict.SUSPECT, message="")
LATE = Finding(reason="LateClient", verdict=Verdict.SUSPECT, message="")
FAILED = Finding(reason="ToolFailed", verdict=Verdict.INVALID, message="")
UNEVEN = Finding(reason="ClientsUneven", verdict=Verdict.INVALID, message="")
NOTHING_COUNTS = Finding(reason="NoTrialCounts", verdict=Verdict.INVALID, message="")


def trial(*findings: Finding, abort: AbortReason | None = None) -> Trial:
    return Trial(
        pass_number=0,
        attempt=0,
        epoch="e",
        clients=(0,),
        outcome=Outcome.ABORTED if abort else Outcome.MEASURED,
        started_at="2026-01-31T12:00:00Z",
        finished_at="2026-01-31T12:01:00Z",
        abort=Abort(reason=abort, message="m") if abort else None,
        verdict=Verdict.SUSPECT,
        findings=findings,
    )


def final(*findings: Finding, trials: tuple[Trial, ...] = ()) -> ResultStatus:
    return ResultStatus(trials=trials, findings=findings, final=True)


def test_a_good_point_has_no_reasons() -> None:
    assert reasons_of(final(trials=(trial(),))) == ()


def test_the_worst_come_first_and_else_their_order_stays() -> None:
    assert reasons_of(final(STALLED, FAILED, LATE)) == ("ToolFailed", "Stalled", "LateClient")


def test_before_the_verdict_they_are_those_of_the_last_attempt() -> None:
    assert reasons_of(ResultStatus()) == ()
    assert reasons_of(ResultStatus(trials=(trial(FAILED), trial(LATE)))) == ("LateClient",)
    assert reasons_of(ResultStatus(trials=(trial(FAILED), trial()))) == ()
    aborted = trial(abort=AbortReason.CLIENT_LOST)
    assert reasons_of(ResultStatus(trials=(trial(FAILED), aborted))) == ("ClientLost",)


def test_after_the_verdict_the_attempts_do_not_matter() -> None:
    assert reasons_of(final(LATE, trials=(trial(FAILED),))) == ("LateClient",)
    assert reasons_of(final(trials=(trial(FAILED),))) == ()


def test_that_nothing_counts_is_named_only_without_a_cause() -> None:
    assert reasons_of(final(NOTHING_COUNTS, LATE)) == ("LateClient",)
    assert reasons_of(final(NOTHING_COUNTS)) == ("NoTrialCounts",)
    assert reasons_of(final(NOTHING_COUNTS, trials=(trial(),))) == ("NoTrialCounts",)
    aborted = trial(abort=AbortReason.TOOL_OVERRAN)
    assert reasons_of(final(NOTHING_COUNTS, trials=(trial(FAILED), aborted))) == ("ToolOverran", "ToolFailed")


def test_where_nothing_counts_the_reason_that_most_attempts_share_comes_first() -> None:
    attempts = (trial(FAILED), trial(FAILED, STALLED), trial(UNEVEN, FAILED, LATE), trial(UNEVEN, LATE))
    ranked = ("ToolFailed", "ClientsUneven", "LateClient", "Stalled")
    assert reasons_of(final(NOTHING_COUNTS, trials=attempts)) == ranked
    doubted_then_refused = (trial(STALLED), trial(STALLED.model_copy(update={"verdict": Verdict.INVALID})))
    assert reasons_of(final(NOTHING_COUNTS, trials=doubted_then_refused)) == ("Stalled",), "each reason once"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.reason}: {check.what[:40]}")
def test_a_remedy_is_that_of_the_check_that_failed_although_others_share_its_reason(check: Check) -> None:
    verdict = Verdict.INVALID if check.suspect is None else Verdict.SUSPECT
    message = quote_finding(f"pass 1: {'long ' * 200}; {check.remedy}")
    found = Finding(reason=check.reason, verdict=verdict, message=message)
    assert remedy_of(check.reason, final(found)) == check.remedy
    assert remedy_of(check.reason, final(trials=(trial(found),))) == check.remedy


def test_a_reason_without_a_finding_has_a_remedy_unless_only_another_version_has_it() -> None:
    for reason in ("Drifting", AbortReason.CLIENT_LOST):
        assert remedy_of(reason, final())
    assert remedy_of("Later", final()) == ""


def test_main_reasons_are_counted_and_causes_precede_effects() -> None:
    assert main_reasons([]) == ""
    assert main_reasons(["", ""]) == ""
    points = ["LateClient", "ToolFailed", "Stalled", "", "Stalled"]
    assert main_reasons(points) == "Stalled (2 points), ToolFailed, LateClient"


def test_of_many_main_reasons_the_rest_is_counted() -> None:
    assert main_reasons(f"R{number}" for number in range(5)) == "R0, R1, R2 and 2 more"
