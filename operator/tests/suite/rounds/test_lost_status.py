"""A status that was lost or set back: nothing that the suite measured is deleted, and nothing is measured."""

import copy

import pytest

from plimsoll.suite.rounds.actions import PatchStatus
from support.pretend_suites import NAME, START_MINUTE, PretendSuites

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
    assert stalled["message"] == (
        f"rounds {START_MINUTE}, {START_MINUTE + 1}, {START_MINUTE + 2} have runs, but the status does not have them, "
        "because it was lost or set back; nothing is measured or deleted until the status is restored from a backup, "
        f"or these runs are deleted: kubectl delete benchmarkruns -n bench -l plimsoll.dev/suite={NAME},"
        f"plimsoll.dev/round={START_MINUTE}"
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
    assert world.condition("Stalled")["message"].startswith(f"round {START_MINUTE + 3} has runs, but")


def test_run_that_is_measured_when_the_status_is_lost_continues() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.settle()
    world.status = {}
    world.settle()
    assert len(world.runs) == 1
    world.finish()
    world.settle()
    assert len(world.created) == 1
