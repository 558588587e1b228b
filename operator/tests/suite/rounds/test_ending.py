"""How a round ends, and what its verdict needs."""

import pytest

from plimsoll.api.suite_status import RoundVerdict, round_name
from plimsoll.suite.rounds.observed import Judge
from support.pretend_suites import START_MINUTE, PretendSuites

NO_REGRESSION, REGRESSED, INCONCLUSIVE = (
    RoundVerdict.NO_REGRESSION,
    RoundVerdict.REGRESSED,
    RoundVerdict.INCONCLUSIVE,
)


def measured(verdict: RoundVerdict, outcomes: str) -> PretendSuites:
    """Return a suite after a round of two variants, each of them twice, whose runs have numbers (+) or not (-)."""
    world = PretendSuites(spec={"repeat": 2}, verdicts=[verdict])
    for outcome in outcomes:
        world.settle()
        world.finish(succeeded=outcome == "+")
    world.settle()
    return world


@pytest.mark.parametrize("verdict", [NO_REGRESSION, REGRESSED, INCONCLUSIVE])
def test_round_has_the_verdict_of_its_evaluation_and_is_accepted_unless_it_regressed(verdict: RoundVerdict) -> None:
    world = measured(verdict, "++++")
    (ended,) = world.rounds
    assert (ended["verdict"], ended["accepted"]) == (verdict, verdict is not REGRESSED)
    assert world.events[-1].reason == f"Round{verdict}"
    assert world.events[-1].message == f"round {round_name(START_MINUTE)}: it is {verdict}"


def test_evaluation_gets_the_runs_with_numbers_and_the_accepted_rounds() -> None:
    world = measured(NO_REGRESSION, "++++")
    world.annotations["plimsoll.dev/request-round"] = "again"
    world.settle()
    world.finish(succeeded=False)
    world.measure_round()
    judge = world.judged[-1]
    failed = world.created[4]
    assert judge.round.minute == START_MINUTE + 1
    runs = judge.round.runs
    assert sorted(name for of_variant in runs.values() for name in of_variant) == sorted(
        set(world.created[4:]) - {failed}
    )
    assert runs.keys() == {"small", "large"}
    assert [one.minute for one in judge.baseline] == [*judge.pinned] == [START_MINUTE]
    assert {name for of_variant in judge.baseline[0].runs.values() for name in of_variant} == set(world.created[:4])


def test_round_without_numbers_failed_and_is_not_evaluated() -> None:
    world = measured(NO_REGRESSION, "----")
    assert world.rounds[0]["verdict"] == "Failed"
    assert not world.judged
    message = f"round {round_name(START_MINUTE)}: none of its 4 runs has numbers"
    assert message in [event.message for event in world.events]


def test_round_with_a_variant_without_numbers_failed() -> None:
    world = PretendSuites(spec={"repeat": 2})
    for _ in range(4):
        world.settle()
        world.finish(succeeded="-small-" in world.created[-1])
    world.settle()
    assert (world.rounds[0]["verdict"], world.rounds[0]["accepted"]) == ("Failed", False)


@pytest.mark.parametrize(
    ("judged", "verdict"), [(NO_REGRESSION, INCONCLUSIVE), (INCONCLUSIVE, INCONCLUSIVE), (REGRESSED, REGRESSED)]
)
def test_missing_run_hides_no_regression_and_proves_none(judged: RoundVerdict, verdict: RoundVerdict) -> None:
    world = measured(judged, "+++-")
    assert (world.rounds[0]["verdict"], world.rounds[0]["accepted"]) == (verdict, False)
    assert "1 of its 4 runs have no numbers" in world.events[-1].message


def test_evaluation_is_requested_again_after_a_restart() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.measure_round()
    world.annotations["plimsoll.dev/request-round"] = "again"
    for _ in range(2):
        world.settle()
        world.finish()
    assert isinstance(world.look().actions[-1], Judge)
    world.restart()
    assert isinstance(world.look().actions[-1], Judge)
    world.settle()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "NoRegression"]
    assert world.status["display"]["verdict"] == "Measured"


def test_suspended_suite_evaluates_a_measured_round() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.settle()
    world.finish()
    world.settle()
    world.change(suspend=True)
    world.finish()
    world.settle()
    assert world.rounds[0]["verdict"] == "NoRegression"
