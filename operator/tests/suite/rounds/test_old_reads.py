"""Lists that lag behind, a suite that was read before it changed, and judgements of other data."""

import pytest

from plimsoll.api.suite_status import RoundVerdict, round_name
from plimsoll.suite.rounds.observed import (
    CreateRun,
    Decision,
    DeleteRun,
    GetRun,
    Judge,
    Memory,
    PatchStatus,
)
from plimsoll.suite.rounds.step import step
from support.pretend_suites import KilledError, PretendSuites

REQUEST = "plimsoll.dev/request-round"
_ACTIONS_UNTIL_A_RUN = 5
"""Status, dry run, status, event, and the creation of the first run."""


@pytest.fixture
def world() -> PretendSuites:
    """Return a suite whose first run is being measured."""
    world = PretendSuites(spec={"repeat": 2})
    world.settle()
    return world


def requests(decision: Decision) -> list[type]:
    return [type(decision.request)] if decision.request else []


def test_run_that_a_list_lacks_is_neither_gone_nor_created_again(world: PretendSuites) -> None:
    world.listed = ()
    assert requests(world.look()) == [GetRun]
    assert not world.look().actions
    assert len(world.created) == 1
    assert world.status["round"]["children"]["done"] == 0


def test_run_is_asked_for_once_each_time_the_operator_wakes(world: PretendSuites) -> None:
    world.listed = ()
    looks = [requests(world.look()) for _ in range(6)]
    assert looks == [[GetRun], []] * 3


def test_run_that_finished_while_a_list_lags_is_over(world: PretendSuites) -> None:
    world.listed = ()
    world.finish()
    world.settle()
    assert len(world.created) == 2
    assert world.status["round"]["children"]["done"] == 1


def test_run_that_the_api_server_does_not_find_is_gone(world: PretendSuites) -> None:
    world.listed = ()
    world.runs.clear()
    world.settle()
    assert len(set(world.created)) == 2


def test_round_that_was_measured_behind_an_old_list_has_all_of_its_runs(world: PretendSuites) -> None:
    world.listed = ()
    world.measure_round()
    assert [(one["verdict"], one["complete"]) for one in world.rounds] == [("NoRegression", True)]
    (judge,) = world.judged
    assert {name for of_variant in judge.round.runs.values() for name in of_variant} == set(world.created)


def test_old_list_lets_no_round_start_beside_the_run_of_an_abandoned_one(world: PretendSuites) -> None:
    world.listed = ()
    world.stuck = True
    world.change(repeat=1)
    world.settle()
    assert "round" not in world.status
    assert [run.is_deleting for run in world.runs.values()] == [True]
    assert world.condition("Reconciling")["reason"] == "WaitingForRun"
    assert world.status["abandonedRun"] in world.condition("Reconciling")["message"]
    world.settle()
    assert "round" not in world.status
    world.vanish()
    world.settle()
    assert world.status["round"]["cause"] == "Change"
    assert "abandonedRun" not in world.status


@pytest.mark.parametrize("is_performed", [True, False])
def test_round_of_a_run_that_was_created_by_a_killed_operator_is_abandoned(*, is_performed: bool) -> None:
    world = PretendSuites(spec={"repeat": 2}, kill_in=_ACTIONS_UNTIL_A_RUN, kill_after=is_performed)
    with pytest.raises(KilledError):
        world.settle()
    assert "round" in world.status
    assert len(world.created) == is_performed
    world.restart()
    world.listed = ()
    world.stuck = True
    world.change(repeat=1)
    world.settle()
    assert ("round" in world.status) is not is_performed


def test_invalid_suite_does_not_ask_for_its_abandoned_run_again_and_again(world: PretendSuites) -> None:
    world.change(repeat=1)
    world.look()
    assert "abandonedRun" in world.status
    world.runs.clear()
    world.change(schedule={"cron": "no cron"})
    world.settle()
    world.change(schedule=None)
    world.settle()
    assert world.status["round"]["cause"] == "Change"


def test_deletion_is_not_repeated_because_a_list_is_old(world: PretendSuites) -> None:
    world.listed = world.existing()
    world.stuck = True
    world.change(repeat=1)
    assert requests(world.look()) == [DeleteRun]
    assert requests(world.look()) == []


def test_run_of_an_ended_round_is_not_deleted_because_a_list_shows_it_unfinished(world: PretendSuites) -> None:
    before = world.existing()
    world.measure_round()
    world.listed = before
    world.annotations[REQUEST] = "again"
    world.settle()
    assert len(world.runs) == 4
    assert "round" not in world.status


def test_operator_that_read_the_suite_before_another_wrote_it_changes_nothing(world: PretendSuites) -> None:
    world.finish()
    decisions = [step(world.observe())]
    world.measure_round()
    world.annotations[REQUEST] = "again"
    decisions.append(step(world.observe()))
    world.measure_round()
    status, runs = world.status, dict(world.runs)
    for decision in decisions:
        assert isinstance(decision.actions[0], PatchStatus)
        world.perform(decision)
    assert (world.status, world.runs) == (status, runs)


def test_old_operator_creates_no_run_even_if_it_has_no_status_to_write(world: PretendSuites) -> None:
    world.refuses = {"small": "exceeded quota", "large": "exceeded quota"}
    world.finish()
    world.settle()
    world.pass_time(minutes=1)
    late = step(world.observe())
    assert [type(one) for one in late.actions] == [PatchStatus, CreateRun]
    world.refuses = {}
    world.measure_round()
    world.runs.clear()
    world.perform(late)
    assert not world.runs


def test_judgement_of_other_data_is_not_used(world: PretendSuites) -> None:
    while not world.judged:
        world.finish()
        world.look()
    last = world.runs[world.created[-1]]
    last.uid = "made by a user"
    world.memory = world.memory.woken(())
    assert requests(world.look()) == [Judge]
    assert not world.rounds
    world.settle()
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_run_that_somebody_touches_is_not_judged_again(world: PretendSuites) -> None:
    while not world.judged:
        world.finish()
        world.look()
    world.runs[world.created[-1]].version += 1
    world.memory = world.memory.woken(())
    world.settle()
    assert len(world.judged) == 1
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_judgement_before_the_baseline_or_the_questions_changed_is_not_used() -> None:
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.REGRESSED])
    world.measure_round()
    world.annotations[REQUEST] = "again"
    while len(world.judged) < 2:
        world.finish()
        world.look()
    world.annotations["plimsoll.dev/accept-round"] = round_name(world.rounds[0]["minute"])
    world.look()
    assert len(world.judged) == 2
    assert len(world.rounds) == 2


def test_comparison_that_is_added_while_a_round_is_judged_is_judged(world: PretendSuites) -> None:
    while not world.judged:
        world.finish()
        world.look()
    world.change(comparisons=[{"name": "upgrade", "baseline": {"rounds": "Accepted"}}])
    assert requests(world.look()) == [Judge]
    assert world.judged[0].questions != world.judged[1].questions


def test_after_a_pause_only_deletions_of_listed_runs_are_remembered() -> None:
    assert Memory(absent=frozenset({"a"}), deleting=frozenset({"u"})).woken(()) == Memory()
