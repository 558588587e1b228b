"""Which round a user waits for, and when it has ended."""

from typing import Any

import click
import pytest

from plimsoll.api.suite_status import EndedRound, RoundVerdict, round_name
from plimsoll.cli.suite_rounds import exit_code
from plimsoll.cli.watched import AwaitedRound, Ending, watched_suite
from support.command_line import MINUTE, active_round, ended_round, suite, suite_condition
from support.pretend_suites import START_MINUTE, PretendSuites, suite_object, suite_stages

RECONCILING = [suite_condition("Reconciling", "Measuring", "round 1: run 1 of 6")]
REFUSED = [suite_condition("Stalled", "RunRefused", "quota")]
GATED = [suite_condition("Stalled", "Regressed", "worse"), suite_condition("Regressed", "Regressed", "worse")]


def endings(awaited: AwaitedRound, *documents: dict[str, Any]) -> list[Ending | None]:
    return [awaited.ending(watched_suite(document)) for document in documents]


def minute_of(ending: Ending | None) -> int | None:
    return ending.minute - MINUTE if isinstance(ending, EndedRound) else None


def answered(number: int) -> dict[str, Any]:
    """Return the part of a status that says which round answered the request `now`."""
    return {"requestedRound": "now", "requestedMinute": MINUTE + number}


def test_the_active_round_is_waited_for() -> None:
    before = [ended_round(0)]
    found = endings(
        AwaitedRound(),
        suite(round=active_round(1), rounds=before),
        suite(round=active_round(1, done=6), rounds=before),
        suite(rounds=[ended_round(1, "Regressed"), *before]),
    )
    assert found[:2] == [None, None]
    assert minute_of(found[2]) == 1


def test_without_an_active_or_due_round_the_last_one_counts() -> None:
    (found,) = endings(AwaitedRound(), suite(rounds=[ended_round(3), ended_round(2)]))
    assert minute_of(found) == 3


@pytest.mark.parametrize(
    "due",
    [
        suite(generation=2, rounds=[ended_round(0)]),
        suite(conditions=RECONCILING, rounds=[ended_round(0)]),
        suite(request="now", rounds=[ended_round(0)], requestedRound="earlier"),
        suite(observedGeneration=-1),
    ],
    ids=["a change that the operator has not seen", "a change", "a request", "a suite that it has not seen"],
)
def test_a_round_that_is_due_is_waited_for(due: dict[str, Any]) -> None:
    awaited = AwaitedRound()
    later = suite(rounds=[ended_round(1), ended_round(0)])
    found = endings(awaited, due, suite(round=active_round(1), rounds=[ended_round(0)]), later)
    assert found[:2] == [None, None]
    assert minute_of(found[2]) == 1


def test_a_suite_that_neither_measures_nor_has_measured_has_no_round_to_wait_for() -> None:
    (found,) = endings(AwaitedRound(), suite())
    assert found == "no round is active or due, and none has ended"


def test_a_round_that_a_change_replaces_is_followed_by_that_of_the_change() -> None:
    superseded = ended_round(1, "Superseded")
    found = endings(
        AwaitedRound(),
        suite(round=active_round(1)),
        suite(conditions=RECONCILING, rounds=[superseded]),
        suite(round=active_round(2), rounds=[superseded]),
        suite(rounds=[ended_round(2), superseded]),
    )
    assert found[:3] == [None, None, None]
    assert minute_of(found[3]) == 2


def test_a_round_that_is_abandoned_for_good_is_the_end() -> None:
    (found,) = endings(AwaitedRound(), suite(rounds=[ended_round(1, "Superseded")]))
    assert minute_of(found) == 1


def test_a_requested_round_is_waited_for_even_while_another_one_is_measured() -> None:
    found = endings(
        AwaitedRound("now"),
        suite(request="now", round=active_round(1)),
        suite(request="now", rounds=[ended_round(1)]),
        suite(request="now", **answered(2), round=active_round(2, cause="Requested"), rounds=[ended_round(1)]),
        suite(request="now", **answered(2), rounds=[ended_round(2, cause="Requested"), ended_round(1)]),
    )
    assert found[:3] == [None, None, None]
    assert minute_of(found[3]) == 2


@pytest.mark.parametrize("cause", ["Change", "Requested", "Scheduled"])
def test_a_requested_round_that_ended_before_is_found_whatever_its_cause_and_those_of_others(cause: str) -> None:
    rounds = [ended_round(4, cause="Scheduled"), ended_round(3, "Regressed", cause), ended_round(2, cause="Requested")]
    (found,) = endings(AwaitedRound("now"), suite(request="now", **answered(3), rounds=rounds))
    assert minute_of(found) == 3
    assert isinstance(found, EndedRound)
    assert exit_code(found) == 3


def test_a_requested_round_that_ended_before_is_not_the_active_one() -> None:
    rounds = [ended_round(2, "Regressed", "Requested"), ended_round(1)]
    status = {**answered(2), "round": active_round(3, cause="Scheduled"), "rounds": rounds}
    (found,) = endings(AwaitedRound("now"), suite(request="now", **status))
    assert minute_of(found) == 2


def test_a_requested_round_that_is_no_longer_kept_is_not_another_one() -> None:
    rounds = [ended_round(3), ended_round(1, cause="Requested")]
    (found,) = endings(AwaitedRound("now"), suite(request="now", **answered(2), rounds=rounds, dropped=[MINUTE + 2]))
    assert found == f"round {round_name(MINUTE + 2)} is no longer in the suite's status"


def test_a_requested_round_is_followed_when_another_one_is_requested_meanwhile() -> None:
    found = endings(
        AwaitedRound("now"),
        suite(request="now", **answered(1), round=active_round(1)),
        suite(request="later", **answered(1), round=active_round(1)),
        suite(request="later", requestedRound="later", requestedMinute=MINUTE + 2, rounds=[ended_round(1)]),
    )
    assert found[:2] == [None, None]
    assert minute_of(found[2]) == 1


def test_a_status_without_the_round_that_answered_a_request_names_none() -> None:
    status: dict[str, Any] = {"requestedRound": "now", "rounds": [ended_round(1, cause="Requested")]}
    (found,) = endings(AwaitedRound("now"), suite(request="now", **status))
    problem = "the status does not say which round answered 'now'; request one with another text"
    assert found == problem


def test_the_round_that_replaced_a_requested_one_is_found_below_later_ones() -> None:
    rounds = [ended_round(4), ended_round(3, "Regressed", "Change"), ended_round(2, "Superseded", "Requested")]
    status = {**answered(2), "round": active_round(5, cause="Scheduled"), "rounds": rounds}
    (found,) = endings(AwaitedRound("now"), suite(request="now", **status))
    assert minute_of(found) == 3


def test_the_round_that_replaced_a_requested_one_and_is_no_longer_kept_is_not_another_one() -> None:
    status = {**answered(2), "rounds": [ended_round(4), ended_round(2, "Superseded")], "dropped": [MINUTE + 3]}
    (found,) = endings(AwaitedRound("now"), suite(request="now", **status))
    assert found == f"round {round_name(MINUTE + 3)} is no longer in the suite's status"


def test_a_change_that_cannot_be_measured_is_why_there_is_no_successor() -> None:
    superseded = [ended_round(1, "Superseded")]
    found = endings(
        AwaitedRound(), suite(round=active_round(1)), suite(generation=1, conditions=REFUSED, rounds=superseded)
    )
    assert found == [None, "RunRefused: quota"]


def test_a_round_that_ended_counts_whatever_has_kept_the_suite_from_measuring_since() -> None:
    status = {**answered(1), "conditions": REFUSED, "rounds": [ended_round(1, "Regressed")]}
    (found,) = endings(AwaitedRound("now"), suite(request="now", **status))
    assert minute_of(found) == 1


@pytest.mark.parametrize(("present", "words"), [("", "there is none"), ("later", "it is 'later'")])
def test_a_round_that_nobody_requested_is_refused(present: str, words: str) -> None:
    (found,) = endings(AwaitedRound("now"), suite(request=present, rounds=[ended_round(1)]))
    assert isinstance(found, str)
    assert found.endswith(words)


def test_long_requests_are_compared_as_the_status_remembers_them() -> None:
    text = "x" * 300
    status = {**answered(1), "requestedRound": text[:256], "rounds": [ended_round(1, cause="Requested")]}
    (found,) = endings(AwaitedRound(text), suite(request=text, **status))
    assert minute_of(found) == 1


def test_a_suite_that_cannot_measure_ends_waiting() -> None:
    (found,) = endings(AwaitedRound(), suite(conditions=REFUSED, round=active_round(1)))
    assert found == "RunRefused: quota"


def test_an_obstacle_of_a_former_specification_may_be_gone() -> None:
    assert endings(AwaitedRound(), suite(generation=2, conditions=REFUSED)) == [None]


def test_a_closed_gate_is_no_obstacle() -> None:
    found = endings(AwaitedRound(), suite(conditions=GATED, round=active_round(1)))
    assert found == [None]


@pytest.mark.parametrize("status", [{"round": {"minute": "soon"}}, {"rounds": [ended_round(0, "OfALaterVersion")]}])
def test_a_status_of_a_later_version_is_refused(status: dict[str, Any]) -> None:
    with pytest.raises(click.ClickException, match="the status of suite bench/weekly cannot be read; is it of a later"):
        watched_suite(suite(**status))


def test_what_the_operator_really_writes_ends_waiting_with_the_round_and_not_before() -> None:
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.INCONCLUSIVE])
    *before, last = endings(AwaitedRound(), *suite_stages(world))
    assert set(before) == {None}
    assert isinstance(last, EndedRound)
    assert (last.minute, last.verdict) == (START_MINUTE, "Inconclusive")


def test_a_request_that_the_operator_really_handles_is_waited_for() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.measure_round()
    world.annotations["plimsoll.dev/request-round"] = "again"
    *before, last = endings(AwaitedRound("again"), *suite_stages(world))
    assert set(before) == {None}
    assert isinstance(last, EndedRound)
    assert (last.minute, last.cause) == (START_MINUTE + 1, "Requested")


@pytest.mark.parametrize("starts", ["before", "after"])
def test_a_request_with_a_change_is_answered_by_the_round_of_the_change(starts: str) -> None:
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.NO_REGRESSION] * 2 + [RoundVerdict.REGRESSED])
    world.measure_round()
    world.annotations["plimsoll.dev/request-round"] = "earlier"
    world.measure_round()
    world.annotations["plimsoll.dev/request-round"] = "again"
    world.change(repeat=2)
    stages = [*suite_stages(world)]
    *_, last = endings(AwaitedRound("again"), *(stages if starts == "before" else stages[-1:]))
    assert isinstance(last, EndedRound)
    assert (last.cause, exit_code(last)) == ("Change", 3)


@pytest.mark.parametrize("starts", ["before", "after"])
def test_a_request_that_a_change_supersedes_is_answered_by_the_round_of_the_change(starts: str) -> None:
    world, awaited = PretendSuites(spec={"repeat": 1}), AwaitedRound("again")
    world.measure_round()
    world.annotations["plimsoll.dev/request-round"] = "again"
    world.settle()
    if starts == "before":
        assert endings(awaited, suite_object(world)) == [None]
    world.change(repeat=2)
    world.measure_round()
    world.pass_time(minutes=1)
    (last,) = endings(awaited, suite_object(world))
    assert isinstance(last, EndedRound)
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "Superseded", "NoRegression"]
    assert (last.minute, last.cause) == (world.rounds[0]["minute"], "Change")


def test_a_change_during_a_round_is_waited_for_as_the_operator_really_handles_it() -> None:
    world, awaited = PretendSuites(spec={"repeat": 1}), AwaitedRound()
    world.settle()
    assert endings(awaited, suite_object(world)) == [None]
    world.change(repeat=2)
    *before, last = endings(awaited, *suite_stages(world))
    assert set(before) == {None}
    assert isinstance(last, EndedRound)
    assert (last.minute, last.verdict) == (START_MINUTE + 1, "NoRegression")


@pytest.mark.parametrize(
    ("verdict", "accepted", "code"),
    [
        ("NoRegression", True, 0),
        ("Regressed", False, 3),
        ("Regressed", True, 0),
        ("Inconclusive", True, 4),
        ("Failed", False, 1),
        ("Superseded", False, 1),
    ],
)
def test_every_verdict_has_its_exit_code(verdict: str, accepted: bool, code: int) -> None:  # noqa: FBT001
    assert exit_code(EndedRound.model_validate(ended_round(1, verdict, accepted=accepted))) == code
