"""When a round starts, and why."""

import pytest

from plimsoll.suite.rounds.observed import LONGEST_WAIT_SECONDS, DryRun
from support.pretend_suites import START_MINUTE, PretendSuites

DAILY = {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"}
REQUEST = "plimsoll.dev/request-round"


@pytest.fixture
def world() -> PretendSuites:
    """Return a suite whose first round has ended."""
    world = PretendSuites(spec={"repeat": 1, "schedule": DAILY})
    world.measure_round()
    return world


def causes(world: PretendSuites) -> list[str]:
    """Return the causes of the rounds, oldest first."""
    return [one["cause"] for one in reversed(world.rounds)]


def test_new_suite_starts_a_round_at_once() -> None:
    world = PretendSuites()
    world.settle()
    active = world.status["round"]
    assert (active["minute"], active["seed"], active["cause"]) == (START_MINUTE, START_MINUTE, "Change")
    assert active["children"] == {"done": 0, "total": 6}


def test_change_of_what_is_measured_starts_a_round_and_other_changes_do_not(world: PretendSuites) -> None:
    world.change(keep=5, gate=True, hypotheses=[], comparisons=[])
    world.measure_round()
    assert causes(world) == ["Change"]
    world.change(repeat=2)
    world.measure_round()
    assert causes(world) == ["Change", "Change"]


def test_each_text_of_the_annotation_requests_one_round(world: PretendSuites) -> None:
    for text in ("a", "a", "b", "", "b"):
        world.annotations[REQUEST] = text
        world.measure_round()
    assert causes(world) == ["Change", "Requested", "Requested"]
    assert (world.status["requestedRound"], world.status["requestedMinute"]) == ("b", world.rounds[0]["minute"])


def test_request_during_a_round_starts_one_after_it(world: PretendSuites) -> None:
    world.annotations[REQUEST] = "a"
    world.settle()
    world.annotations[REQUEST] = "b"
    world.measure_round()
    assert causes(world) == ["Change", "Requested", "Requested"]


def test_round_answers_everything_that_is_due(world: PretendSuites) -> None:
    world.pass_time(days=1)
    world.annotations[REQUEST] = "a"
    world.change(repeat=2)
    world.measure_round()
    assert causes(world) == ["Change", "Change"]
    assert (world.status["requestedRound"], world.status["requestedMinute"]) == ("a", world.rounds[0]["minute"])
    assert world.status["lastScheduleTime"] == "2026-11-26T02:00:00Z"


def test_status_names_the_round_that_answered_a_request_whatever_follows(world: PretendSuites) -> None:
    assert "requestedMinute" not in world.status
    world.annotations[REQUEST] = "a"
    world.settle()
    answer = world.status["round"]["minute"]
    for repeat in (2, 3):
        world.change(repeat=repeat)
        world.measure_round()
    assert [one["verdict"] for one in reversed(world.rounds)] == ["NoRegression", "Superseded", *["NoRegression"] * 2]
    assert world.status["requestedMinute"] == answer == world.rounds[2]["minute"]


def test_schedule_time_starts_a_round_and_the_operator_waits_for_the_next_one(world: PretendSuites) -> None:
    assert world.status["nextScheduleTime"] == "2026-11-26T02:00:00Z"
    assert world.settle().again_after == LONGEST_WAIT_SECONDS
    world.pass_time(hours=13, minutes=59)
    assert world.settle().again_after == 30
    world.pass_time(seconds=30)
    world.measure_round()
    assert causes(world) == ["Change", "Scheduled"]
    assert world.status["nextScheduleTime"] == "2026-11-27T02:00:00Z"


def test_missed_schedule_times_are_caught_up_once(world: PretendSuites) -> None:
    world.pass_time(days=7)
    world.measure_round()
    assert causes(world) == ["Change", "Scheduled"]
    assert world.status["lastScheduleTime"] == "2026-12-02T02:00:00Z"
    assert world.status["nextScheduleTime"] == "2026-12-03T02:00:00Z"


def test_schedule_time_that_was_missed_for_too_long_is_skipped_with_an_event(world: PretendSuites) -> None:
    world.change(schedule={**DAILY, "startingDeadlineSeconds": 3600})
    world.settle()
    world.pass_time(hours=15, minutes=0)
    world.settle()
    assert causes(world) == ["Change"]
    assert world.reasons()[-1] == "ScheduleMissed"
    assert world.status["nextScheduleTime"] == "2026-11-27T02:00:00Z"


def test_schedule_time_within_the_deadline_is_caught_up(world: PretendSuites) -> None:
    world.change(schedule={**DAILY, "startingDeadlineSeconds": 3600})
    world.settle()
    world.pass_time(hours=14, minutes=30)
    world.measure_round()
    assert causes(world) == ["Change", "Scheduled"]


def test_schedule_time_during_a_round_is_answered_after_it(world: PretendSuites) -> None:
    world.annotations[REQUEST] = "a"
    world.settle()
    world.pass_time(days=1)
    world.settle()
    assert world.status["round"]["cause"] == "Requested"
    world.measure_round()
    assert causes(world) == ["Change", "Requested", "Scheduled"]


def test_schedule_that_is_added_or_changed_does_not_make_a_former_time_due(world: PretendSuites) -> None:
    world.pass_time(hours=10)
    world.change(schedule={"cron": "0 * * * *"})
    world.measure_round()
    world.change(schedule=None)
    world.settle()
    assert "nextScheduleTime" not in world.status
    world.pass_time(days=3)
    world.change(schedule=DAILY)
    world.measure_round()
    assert causes(world) == ["Change"]


def test_clock_that_is_set_back_repeats_no_round_and_no_minute(world: PretendSuites) -> None:
    world.pass_time(hours=14)
    world.measure_round()
    world.pass_time(minutes=-5)
    world.settle()
    world.pass_time(minutes=5)
    world.measure_round()
    assert causes(world) == ["Change", "Scheduled"]
    world.pass_time(minutes=-30)
    world.annotations[REQUEST] = "a"
    world.measure_round()
    assert world.rounds[0]["minute"] == world.rounds[1]["minute"] + 1


def test_clock_that_was_far_ahead_does_not_stop_the_schedule(world: PretendSuites) -> None:
    world.pass_time(days=400)
    world.measure_round()
    world.pass_time(days=-400)
    world.settle()
    assert world.status["nextScheduleTime"] == "2026-11-26T02:00:00Z"


def test_another_version_of_ceph_starts_a_round_if_asked_to() -> None:
    world = PretendSuites(spec={"repeat": 1, "triggers": {"cephVersion": True}}, ceph_version="18.2.1")
    for version in ("18.2.1", "", "18.2.1", "18.2.7", "18.2.7"):
        world.ceph_version = version
        world.measure_round()
    assert causes(world) == ["Change", "CephVersion"]
    assert world.status["cephVersion"] == "18.2.7"


def test_another_version_of_ceph_is_only_recorded_otherwise(world: PretendSuites) -> None:
    for version in ("18.2.1", "18.2.7"):
        world.ceph_version = version
        world.measure_round()
    world.change(triggers={"cephVersion": True})
    world.measure_round()
    assert causes(world) == ["Change"]
    assert world.status["cephVersion"] == "18.2.7"


def test_suspended_suite_starts_no_round_until_it_is_resumed(world: PretendSuites) -> None:
    world.change(suspend=True, repeat=2)
    world.pass_time(days=2)
    decision = world.settle()
    assert decision.again_after == LONGEST_WAIT_SECONDS
    assert "round" not in world.status
    world.change(suspend=False)
    world.measure_round()
    assert causes(world) == ["Change", "Change"]


def test_every_variant_is_checked_before_a_round_of_a_changed_suite_only(world: PretendSuites) -> None:
    assert world.dry_runs == 1
    world.annotations[REQUEST] = "a"
    world.measure_round()
    assert world.dry_runs == 1
    world.change(repeat=2)
    decision = world.look()
    (check,) = [one for one in decision.actions if isinstance(one, DryRun)]
    assert check.runs.keys() == {"small", "large"}
    assert check.runs["large"]["metadata"]["ownerReferences"][0]["name"] == "sizes"
    assert "round" not in world.status


def test_refused_variant_keeps_the_round_from_starting_until_the_api_server_accepts_it(world: PretendSuites) -> None:
    world.refuses = {"large": "admission webhook denied the request"}
    world.change(repeat=2)
    decision = world.settle()
    assert decision.again_after == 300
    assert "round" not in world.status
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "VariantRefused"
    assert stalled["message"].startswith("variant large: admission webhook denied the request; change the variant")
    world.pass_time(seconds=299)
    assert not world.look().actions
    world.refuses = {}
    world.pass_time(seconds=1)
    world.settle()
    assert world.status["round"]["cause"] == "Change"
    assert not world.condition("Stalled")
    assert world.reasons().count("VariantRefused") == 1


def test_refusal_is_still_reported_while_a_restarted_operator_checks_again(world: PretendSuites) -> None:
    world.refuses = {"large": "denied"}
    world.change(repeat=2)
    world.settle()
    before = world.status
    world.restart()
    assert [type(one) for one in world.look().actions] == [DryRun]
    world.settle()
    assert world.status == before
