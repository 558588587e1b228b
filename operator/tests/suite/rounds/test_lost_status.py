"""A status that was lost or set back: nothing that the suite measured is deleted, and nothing is measured."""

import copy

import pytest

from plimsoll.api.suite_status import round_name
from plimsoll.suite.rounds.observed import PatchStatus
from support.pretend_suites import HASH, NAME, START_MINUTE, PretendRun, PretendSuites

REQUEST = "plimsoll.dev/request-round"


@pytest.fixture
def world() -> PretendSuites:
    """Return a suite after three rounds."""
    world = PretendSuites(spec={"repeat": 1, "keep": 3})
    for number in range(3):
        world.annotations[REQUEST] = str(number)
        world.measure_round()
        world.pass_time(minutes=1)
    return world


def test_nothing_is_deleted_or_measured_after_the_status_was_lost(world: PretendSuites) -> None:
    world.status = {}
    runs = dict(world.runs)
    decision = world.look()
    assert [type(one) for one in decision.actions if not hasattr(one, "severity")] == [PatchStatus]
    world.measure_round()
    assert world.runs == runs
    assert not world.rounds
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "StatusLost"
    rounds = ", ".join(map(round_name, range(START_MINUTE, START_MINUTE + 3)))
    first = " ".join(sorted(runs, key=lambda name: (runs[name].minute, name))[:3])
    assert stalled["message"] == (
        f"there are runs of rounds that the status does not have ({rounds}), because it was lost or set back; nothing "
        "is measured or deleted until the status is restored from a backup, "
        f"or these runs are deleted: kubectl delete benchmarkruns -n bench {first} and 3 more"
    )
    assert world.reasons().count("StatusLost") == 1


def test_status_that_is_restored_continues(world: PretendSuites) -> None:
    backup = copy.deepcopy(world.status)
    world.status = {}
    world.settle()
    world.status = backup
    world.annotations[REQUEST] = "again"
    world.measure_round()
    assert len(world.rounds) == 4
    assert not world.condition("Stalled")


def test_suite_starts_anew_when_the_unknown_runs_are_deleted(world: PretendSuites) -> None:
    world.status = {}
    world.settle()
    world.runs.clear()
    world.measure_round()
    assert [one["cause"] for one in world.rounds] == ["Change"]


def test_status_that_was_set_back_keeps_the_later_rounds(world: PretendSuites) -> None:
    backup = copy.deepcopy(world.status)
    world.annotations[REQUEST] = "again"
    world.measure_round()
    world.status = backup
    runs = dict(world.runs)
    world.measure_round()
    assert world.runs == runs
    assert f" does not have ({round_name(START_MINUTE + 3)}), because" in world.condition("Stalled")["message"]


def forged(world: PretendSuites, minute: int, *, is_finished: bool) -> str:
    """Have somebody create a run with the suite as owner."""
    name = f"{NAME}-small-{HASH}-{minute}-7"
    world.runs[name] = PretendRun(
        name=name, uid="forged", variant="small", minute=minute, created=world.now, is_finished=is_finished
    )
    return name


def test_run_of_a_far_later_minute_is_reported_and_loses_no_status(world: PretendSuites) -> None:
    name = forged(world, START_MINUTE + 10**6, is_finished=True)
    world.annotations[REQUEST] = "again"
    world.measure_round()
    assert not world.condition("Stalled")
    assert world.rounds[0]["minute"] == START_MINUTE + 3
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("True", "Idle")
    assert ready["message"].endswith(f"cannot have created them before their time: {name}")
    world.pass_time(days=10**3)
    world.settle()
    assert not world.condition("Stalled"), "its minute has come, and it is still not of the suite"


def test_rounds_that_are_ahead_of_a_clock_that_was_set_back_are_lost_too(world: PretendSuites) -> None:
    world.pass_time(minutes=-30)
    world.annotations[REQUEST] = "again"
    world.measure_round()
    world.status = {}
    world.settle()
    assert world.condition("Stalled")["reason"] == "StatusLost"


@pytest.mark.parametrize("is_active", [False, True])
def test_run_that_never_ends_stalls_the_suite_after_ten_minutes(world: PretendSuites, *, is_active: bool) -> None:
    world.annotations[REQUEST] = "again"
    if is_active:
        world.settle()
    name = forged(world, world.rounds[-1]["minute"], is_finished=False)
    if is_active:
        next(run for run in world.runs.values() if not run.is_finished and run.uid != "forged").end(succeeded=True)
    world.settle()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "WaitingForRun")
    assert world.condition("Reconciling")["message"] == ready["message"]
    world.pass_time(minutes=9)
    world.settle()
    assert not world.condition("Stalled")
    world.pass_time(minutes=1)
    world.settle()
    assert name in world.condition("Stalled")["message"]
    assert world.reasons()[-1] == "WaitingForRun"
    world.restart()
    world.settle()
    assert world.condition("Stalled")["reason"] == "WaitingForRun"
    world.runs = {name: run for name, run in world.runs.items() if run.uid != "forged"}
    world.measure_round()
    assert world.rounds[0]["verdict"] == "NoRegression"
    assert world.condition("Ready")["status"] == "True"


def test_run_that_is_measured_when_the_status_is_lost_continues() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.settle()
    world.status = {}
    world.settle()
    assert len(world.runs) == 1
    world.finish()
    world.settle()
    assert len(world.created) == 1
