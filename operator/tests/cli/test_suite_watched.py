"""Which round a user waits for, and when it has ended."""

from collections.abc import Mapping, Sequence
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


def answered(number: int) -> dict[str, Any]:
    """Return the part of a status that says which round answered the request `now`."""
    return {"requestedRound": "now", "requestedMinute": MINUTE + number}


def asked(**status: Any) -> dict[str, Any]:
    """Return a suite whose annotation requests the round `now`."""
    return suite(request="now", **status)


SUPERSEDED = ended_round(1, "Superseded")
GONE = "round {} is no longer in the suite's status"
AWAITED: Mapping[str, tuple[str | None, Sequence[dict[str, Any]], int | str | None]] = {
    "the active round": (
        None,
        [
            suite(round=active_round(1), rounds=[ended_round(0)]),
            suite(round=active_round(1, done=6), rounds=[ended_round(0)]),
            suite(rounds=[ended_round(1, "Regressed"), ended_round(0)]),
        ],
        1,
    ),
    "without an active or due round the last one": (None, [suite(rounds=[ended_round(3), ended_round(2)])], 3),
    "a suite that neither measures nor has measured": (
        None,
        [suite()],
        "no round is active or due, and none has ended",
    ),
    "the round of the change that replaced one": (
        None,
        [
            suite(round=active_round(1)),
            suite(conditions=RECONCILING, rounds=[SUPERSEDED]),
            suite(round=active_round(2), rounds=[SUPERSEDED]),
            suite(rounds=[ended_round(2), SUPERSEDED]),
        ],
        2,
    ),
    "a round that is abandoned for good": (None, [suite(rounds=[SUPERSEDED])], 1),
    "a requested round, even while another one is measured": (
        "now",
        [
            asked(round=active_round(1)),
            asked(rounds=[ended_round(1)]),
            asked(**answered(2), round=active_round(2, cause="Requested"), rounds=[ended_round(1)]),
            asked(**answered(2), rounds=[ended_round(2, cause="Requested"), ended_round(1)]),
        ],
        2,
    ),
    **{
        f"a requested round that ended before, because of {cause}, not those of others": (
            "now",
            [asked(**answered(3), rounds=[ended_round(4), ended_round(3, cause=cause), ended_round(2)])],
            3,
        )
        for cause in ("Change", "Requested", "Scheduled")
    },
    "a requested round that ended before, not the active one": (
        "now",
        [asked(**answered(2), round=active_round(3), rounds=[ended_round(2, cause="Requested"), ended_round(1)])],
        2,
    ),
    "a requested round that is no longer kept, not another one": (
        "now",
        [asked(**answered(2), rounds=[ended_round(3), ended_round(1, cause="Requested")], dropped=[MINUTE + 2])],
        GONE.format(round_name(MINUTE + 2)),
    ),
    "a requested round while another one is requested": (
        "now",
        [
            asked(**answered(1), round=active_round(1)),
            suite(request="later", **answered(1), round=active_round(1)),
            suite(request="later", requestedRound="later", requestedMinute=MINUTE + 2, rounds=[ended_round(1)]),
        ],
        1,
    ),
    "no round if the status does not say which one answered": (
        "now",
        [asked(requestedRound="now", rounds=[ended_round(1, cause="Requested")])],
        "the status does not say which round answered 'now'; request one with another text",
    ),
    "the round that replaced a requested one, below later ones": (
        "now",
        [
            asked(
                **answered(2),
                round=active_round(5),
                rounds=[ended_round(4), ended_round(3, "Regressed", "Change"), ended_round(2, "Superseded")],
            )
        ],
        3,
    ),
    "the round that replaced a requested one and is no longer kept, not another one": (
        "now",
        [asked(**answered(2), rounds=[ended_round(4), ended_round(2, "Superseded")], dropped=[MINUTE + 3])],
        GONE.format(round_name(MINUTE + 3)),
    ),
    "no successor of a change that cannot be measured": (
        None,
        [suite(round=active_round(1)), suite(generation=1, conditions=REFUSED, rounds=[SUPERSEDED])],
        "RunRefused: quota",
    ),
    "a round that ended, whatever keeps the suite from measuring since": (
        "now",
        [asked(**answered(1), conditions=REFUSED, rounds=[ended_round(1, "Regressed")])],
        1,
    ),
    **{
        f"no round if nobody requested it, {words}": (
            "now",
            [suite(request=present, rounds=[ended_round(1)])],
            f"no round 'now' was requested by annotation plimsoll.dev/request-round: {words}",
        )
        for present, words in (("", "there is none"), ("later", "it is 'later'"))
    },
    "a long request, as the status remembers it": (
        "x" * 300,
        [suite(request="x" * 300, **answered(1) | {"requestedRound": "x" * 256}, rounds=[ended_round(1)])],
        1,
    ),
    "none if the suite cannot measure": (
        None,
        [suite(conditions=REFUSED, round=active_round(1))],
        "RunRefused: quota",
    ),
    "an obstacle of a former specification, which may be gone": (
        None,
        [suite(generation=2, conditions=REFUSED)],
        None,
    ),
    "a closed gate, which is no obstacle": (None, [suite(conditions=GATED, round=active_round(1))], None),
    **{
        f"a round that is due because of {cause}": (
            None,
            [
                due,
                suite(round=active_round(1), rounds=[ended_round(0)]),
                suite(rounds=[ended_round(1), ended_round(0)]),
            ],
            1,
        )
        for cause, due in (
            ("a change that the operator has not seen", suite(generation=2, rounds=[ended_round(0)])),
            ("a change", suite(conditions=RECONCILING, rounds=[ended_round(0)])),
            ("a request", suite(request="now", rounds=[ended_round(0)], requestedRound="earlier")),
            ("a suite that the operator has not seen", suite(observedGeneration=-1)),
        )
    },
}
"""What is awaited, the request, what is seen of the suite, and how waiting ends: the round, why not, or not yet."""


@pytest.mark.parametrize(("request_text", "looks", "expected"), AWAITED.values(), ids=[*AWAITED])
def test_a_user_waits_for(
    request_text: str | None, looks: Sequence[dict[str, Any]], expected: int | str | None
) -> None:
    *before, last = endings(AwaitedRound(request_text), *looks)
    assert set(before) <= {None}
    assert (last.minute - MINUTE if isinstance(last, EndedRound) else last) == expected


@pytest.mark.parametrize("status", [{"round": {"minute": "soon"}}, {"rounds": [ended_round(0, "OfALaterVersion")]}])
def test_a_status_of_a_later_version_is_refused(status: dict[str, Any]) -> None:
    with pytest.raises(click.ClickException, match="the status of bench/weekly cannot be read; is it of a later"):
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
