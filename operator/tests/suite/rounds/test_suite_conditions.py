"""The conditions of a suite, as kstatus reads them."""

from datetime import timedelta

import pytest

from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.suite_status import ComparisonOutcome, Conclusion, RoundVerdict, round_name
from support.pretend_suites import START_MINUTE, PretendSuites

REQUEST = "plimsoll.dev/request-round"


def summary(world: PretendSuites) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition."""
    return {one["type"]: (one["status"], one["reason"]) for one in world.status["conditions"]}


def with_verdict(verdict: RoundVerdict, *, gate: bool = False) -> PretendSuites:
    world = PretendSuites(spec={"repeat": 1, "gate": gate}, verdicts=[verdict])
    world.measure_round()
    return world


def test_round_of_a_change_makes_the_suite_in_progress() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.settle()
    assert summary(world) == {
        "Reconciling": ("True", "Measuring"),
        "Ready": ("False", "Measuring"),
        "Regressed": ("Unknown", "NotEvaluated"),
    }
    assert world.condition("Ready")["message"] == f"round {round_name(START_MINUTE)}: run 1 of 2"
    world.measure_round()
    assert summary(world) == {"Ready": ("True", "Idle"), "Regressed": ("False", "NoRegression")}


def test_a_round_without_comparisons_does_not_claim_to_be_as_good_as_another() -> None:
    world = with_verdict(RoundVerdict.NO_REGRESSION)
    assert (
        world.condition("Regressed")["message"]
        == f"round {round_name(START_MINUTE)} was measured; the suite compares no rounds"
    )
    outcome = ComparisonOutcome(name="c", variant="a", verdict=Conclusion.NO_REGRESSION)
    world = PretendSuites(spec={"repeat": 1}, comparisons=(outcome,))
    world.measure_round()
    assert world.condition("Regressed")["message"] == f"round {round_name(START_MINUTE)} is not worse than its baseline"


def test_other_rounds_leave_the_suite_ready() -> None:
    world = with_verdict(RoundVerdict.NO_REGRESSION)
    world.annotations[REQUEST] = "again"
    world.settle()
    assert summary(world) == {"Ready": ("True", "Measuring"), "Regressed": ("False", "NoRegression")}


def test_regression_is_a_condition_and_does_not_stall_the_suite() -> None:
    world = with_verdict(RoundVerdict.REGRESSED)
    assert summary(world) == {"Ready": ("True", "Idle"), "Regressed": ("True", "Regressed")}


def test_regression_names_the_worst_comparison_of_rounds() -> None:
    outcomes = (
        ComparisonOutcome(name="costs", variant="b", verdict=Conclusion.REGRESSION, estimate=-0.9),
        ComparisonOutcome(name="up", variant="a", verdict=Conclusion.REGRESSION, drift=False, message="reads -9.0 %"),
    )
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.REGRESSED], comparisons=outcomes)
    world.measure_round()
    words = f"round {round_name(START_MINUTE)} is worse than its baseline: comparison up, variant a: reads -9.0 %; fix"
    assert world.condition("Regressed")["message"].startswith(words)


def test_regression_stalls_a_suite_that_is_a_gate_until_a_round_does_not_regress() -> None:
    world = with_verdict(RoundVerdict.REGRESSED, gate=True)
    assert summary(world) == {
        "Stalled": ("True", "Regressed"),
        "Ready": ("False", "Regressed"),
        "Regressed": ("True", "Regressed"),
    }
    assert world.condition("Stalled")["message"] == (
        f"round {round_name(START_MINUTE)} is worse than its baseline; fix the cause and request a round, or "
        "accept one with annotation plimsoll.dev/accept-round"
    )
    world.annotations[REQUEST] = "again"
    world.settle()
    assert "Stalled" in summary(world)
    world.measure_round()
    assert summary(world) == {"Ready": ("True", "Idle"), "Regressed": ("False", "NoRegression")}


def test_change_opens_a_closed_gate_while_it_is_measured() -> None:
    world = with_verdict(RoundVerdict.REGRESSED, gate=True)
    world.change(repeat=2)
    world.settle()
    assert summary(world)["Reconciling"] == ("True", "Measuring")
    assert "Stalled" not in summary(world)


@pytest.mark.parametrize("cause", ["change", "request"])
def test_a_change_or_request_that_could_not_be_measured_stalls_the_suite_until_a_round_is_evaluated(cause: str) -> None:
    world = PretendSuites(spec={"repeat": 1})
    if cause == "request":
        world.measure_round()
        world.annotations[REQUEST] = "again"
    world.measure_round(succeeded=False)
    assert summary(world)["Stalled"] == ("True", "RoundFailed")
    assert f", of a {cause}, measured too little" in world.condition("Ready")["message"]
    world.annotations[REQUEST] = "repaired"
    world.settle()
    assert "Stalled" in summary(world)
    world.measure_round()
    assert summary(world) == {"Ready": ("True", "Idle"), "Regressed": ("False", "NoRegression")}


def test_a_failed_round_of_the_schedule_leaves_the_suite_as_it_was() -> None:
    for asked in (False, True):
        world = PretendSuites(spec={"repeat": 1, "schedule": {"cron": "0 3 * * *"}})
        world.measure_round(succeeded=not asked)
        world.now += timedelta(days=1)
        world.measure_round(succeeded=False)
        assert [one["cause"] for one in world.rounds] == ["Scheduled", "Change"]
        assert ("Stalled" in summary(world)) == asked


def test_accepted_regression_opens_the_gate() -> None:
    world = with_verdict(RoundVerdict.REGRESSED, gate=True)
    world.annotations["plimsoll.dev/accept-round"] = round_name(START_MINUTE)
    world.settle()
    assert summary(world) == {"Ready": ("True", "Idle"), "Regressed": ("False", "Accepted")}


@pytest.mark.parametrize("succeeded", [True, False])
def test_regression_is_not_forgotten_because_a_later_round_failed(*, succeeded: bool) -> None:
    world = with_verdict(RoundVerdict.REGRESSED)
    world.annotations[REQUEST] = "again"
    world.verdicts = [RoundVerdict.INCONCLUSIVE]
    world.measure_round(succeeded=succeeded)
    assert summary(world)["Regressed"] == ("True", "Regressed")
    later = f", and round {round_name(START_MINUTE + 1)} does not show that the regression is gone" if succeeded else ""
    assert world.condition("Regressed")["message"].startswith(
        f"round {round_name(START_MINUTE)} is worse than its baseline{later};"
    )


@pytest.mark.parametrize("unclear", [1, 4])
def test_inconclusive_round_does_not_open_a_closed_gate(unclear: int) -> None:
    world = PretendSuites(spec={"repeat": 1, "gate": True, "keep": 1}, verdicts=[RoundVerdict.REGRESSED])
    world.measure_round()
    for number in range(unclear):
        world.annotations[REQUEST] = str(number)
        world.verdicts = [RoundVerdict.INCONCLUSIVE]
        world.measure_round()
        assert summary(world)["Stalled"] == ("True", "Regressed")
    assert len(world.rounds) >= 2
    world.annotations[REQUEST] = "repaired"
    world.measure_round()
    assert "Stalled" not in summary(world)


def test_change_whose_round_is_inconclusive_does_not_open_a_closed_gate() -> None:
    world = with_verdict(RoundVerdict.REGRESSED, gate=True)
    world.change(repeat=2)
    world.verdicts = [RoundVerdict.INCONCLUSIVE]
    world.measure_round()
    assert summary(world)["Stalled"] == ("True", "Regressed")


def test_later_round_that_is_accepted_opens_the_gate_and_an_earlier_one_closes_it_again() -> None:
    world = PretendSuites(spec={"repeat": 1, "gate": True})
    verdicts = [RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE]
    for number, verdict in enumerate(verdicts):
        world.annotations[REQUEST] = str(number)
        world.verdicts = [verdict]
        world.measure_round()
    first, _, last = (round_name(one["minute"]) for one in reversed(world.rounds))
    assert "Stalled" in summary(world)
    world.annotations["plimsoll.dev/accept-round"] = last
    world.settle()
    assert summary(world)["Regressed"] == ("Unknown", "Inconclusive")
    world.annotations["plimsoll.dev/accept-round"] = first
    world.settle()
    assert summary(world)["Stalled"] == ("True", "Regressed")


def test_suspended_suite_is_ready() -> None:
    world = PretendSuites(spec={"suspend": True})
    world.settle()
    assert summary(world) == {"Ready": ("True", "Suspended"), "Regressed": ("Unknown", "NotEvaluated")}


def test_time_of_a_condition_is_that_of_its_last_change() -> None:
    world = with_verdict(RoundVerdict.NO_REGRESSION)
    before = world.condition("Ready")["lastTransitionTime"]
    world.pass_time(hours=1)
    world.annotations[REQUEST] = "again"
    world.measure_round()
    assert world.condition("Ready")["lastTransitionTime"] == before
    assert world.condition("Ready")["observedGeneration"] == 1


def test_every_warning_has_a_remedy_or_messages_with_their_own() -> None:
    without = {reason for reason in SuiteReason if reason.entry.severity == "Warning" and not reason.entry.remedy}
    assert without == {SuiteReason.INVALID_SPEC, SuiteReason.STATUS_LOST}
