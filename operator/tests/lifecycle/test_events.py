"""What `kubectl describe` tells of a run's transitions."""

import re
from typing import Any

import pytest

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.reasons.entry import Event, Severity
from plimsoll.api.status import Condition
from plimsoll.lifecycle.decision import _ORDER, events_of
from plimsoll.lifecycle.run import run_of
from support.pretend_rook import ROOK
from support.pretend_world import CLAIMS, ERASURE_CODED, LIBRBD, PretendWorld, make_run
from support.specs import SETTINGS

NOON = "2026-01-31T12:00:00Z"
DOUBLED = re.compile(r"(.{4,})\1")


def entry(kind: str, status: str, reason: str, message: str = "because") -> dict[str, Any]:
    condition = Condition(
        type=ConditionType(kind),
        status=ConditionStatus(status),
        reason=reason,
        message=message,
        last_transition_time=NOON,
    )
    return condition.model_dump(mode="json")


def told(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return kind and reason of the events of a change."""
    body = make_run("a")
    metadata = {**body["metadata"], "uid": "u", "creationTimestamp": NOON}
    run = run_of({**body, "metadata": metadata, "status": {"conditions": before}}, SETTINGS)
    return [(event.severity, event.reason) for event in events_of(run, {"conditions": after})]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (entry("Admitted", "True", "Admitted"), [("Normal", "Admitted")]),
        (entry("Admitted", "False", "WaitingForTurn"), [("Normal", "WaitingForTurn")]),
        (entry("StorageReady", "True", "Bound"), [("Normal", "StorageReady")]),
        (entry("ClientsReady", "True", "Registered"), [("Normal", "ClientsReady")]),
        (entry("ClientsReady", "False", "Unschedulable"), [("Warning", "Unschedulable")]),
        (entry("ClientsReady", "False", "Starting"), [("Normal", "ClientsStarting")]),
        (entry("Measured", "True", "AllFinal"), [("Normal", "Measured")]),
        (entry("Measured", "False", "Incomplete"), []),
        (entry("Succeeded", "True", "Suspect"), [("Normal", "Succeeded")]),
        (entry("Succeeded", "False", "InvalidResults"), [("Warning", "InvalidResults")]),
        (entry("Succeeded", "Unknown", "Measuring"), []),
        (entry("Stalled", "True", "InvalidResults"), []),
        (entry("Reconciling", "True", "Measuring"), []),
        (entry("Reconciling", "True", "QuotaExceeded"), [("Warning", "QuotaExceeded")]),
        (entry("CleanedUp", "False", "InProgress"), [("Normal", "CleaningUp")]),
        (entry("CleanedUp", "False", "StorageKept"), [("Normal", "StorageKept")]),
        (entry("CleanedUp", "False", "NodeGone"), [("Warning", "NodeGone")]),
        (entry("CleanedUp", "True", "Removed"), [("Normal", "CleanedUp")]),
        (entry("Suspended", "True", "Suspended"), [("Normal", "Suspended")]),
        (entry("Suspended", "False", "NotSuspended"), []),
    ],
)
def test_an_event_is_named_after_what_has_come_true_or_after_what_is_in_the_way(
    condition: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert told([], [condition]) == expected
    assert told([condition], [condition | {"message": "in other words"}]) == []


@pytest.mark.parametrize("before", ["Starting", "ConductorStarting", "Registered", "Unschedulable"])
def test_clients_that_have_not_registered_yet_when_a_conductor_begins_are_no_news(before: str) -> None:
    earlier = entry("ClientsReady", "True" if before == "Registered" else "False", before)
    missing = told([earlier], [entry("ClientsReady", "False", "ClientsMissing")])
    assert missing == ([] if before in {"Starting", "ConductorStarting"} else [("Warning", "ClientsMissing")])


def test_resuming_is_told() -> None:
    before, after = entry("Suspended", "True", "Suspended"), entry("Suspended", "False", "NotSuspended")
    assert told([before], [after]) == [("Normal", "Resumed")]


def test_an_event_has_the_words_of_its_condition_or_at_least_the_reason() -> None:
    body = make_run("a")
    run = run_of({**body, "metadata": {**body["metadata"], "uid": "u", "creationTimestamp": NOON}}, SETTINGS)
    said = {"conditions": [entry("Admitted", "True", "Admitted", ""), entry("Measured", "True", "AllFinal", "2 of 2")]}
    assert events_of(run, said) == (
        Event(severity=Severity.NORMAL, reason="Admitted", message="Admitted"),
        Event(severity=Severity.NORMAL, reason="Measured", message="2 of 2"),
    )


def posted_by(world: PretendWorld) -> list[Any]:
    """Return the events that an operator has posted since the last call."""
    return [world.operator.events.get_nowait() for _ in range(world.operator.events.qsize())]


def test_the_story_of_a_run_reads_well(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until_settled(uid)
    reasons = [event.reason for event in posted_by(world)]
    assert reasons[0] == "Admitted"
    assert [reason for reason in reasons if reason in {"Succeeded", "Measured", "CleanedUp"}][-1] == "CleanedUp"
    assert {"StorageReady", "ClientsReady", "Succeeded", "Measured"} <= set(reasons)
    assert not [reason for reason in reasons if DOUBLED.search(reason)]


STORAGES: tuple[Any, ...] = (
    {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}},
    {"rook": ROOK, "volume": LIBRBD},
    {"rook": ERASURE_CODED, "volume": CLAIMS},
)


@pytest.mark.parametrize("storage", STORAGES, ids=["StorageClass", "images", "claims of Rook's"])
def test_a_run_that_goes_well_warns_of_nothing(world: PretendWorld, storage: Any) -> None:
    timeouts = {"provisionSeconds": 300, "readySeconds": 60, "totalSeconds": 600}
    uid = world.create("a", storage=storage, timeouts=timeouts)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["reason"] == "Valid"
    assert [(event.reason, event.message) for event in posted_by(world) if event.type != "Normal"] == []


@pytest.mark.parametrize("restarts", [False, True], ids=["one operator", "an operator that is restarted all the time"])
def test_every_transition_of_a_life_is_told_once_however_often_it_is_looked_at(
    world: PretendWorld, *, restarts: bool
) -> None:
    uid = world.create("a")
    reasons: list[str] = []

    def live(until: str) -> None:
        while until not in reasons:
            world.round()
            for _ in range(3):
                world.look(uid)
            reasons.extend(event.reason for event in posted_by(world))
            if restarts:
                world.restart_operator()

    live("ClientsReady")
    world.change(uid, suspend=True)
    live("Suspended")
    world.until_settled(uid)
    world.change(uid, suspend=False)
    live("CleanedUp")
    assert reasons == [
        "Admitted",
        "ClaimsNotBound",
        "ClientsStarting",
        "StorageReady",
        "ClientsReady",
        "Suspended",
        "Resumed",
        "ClientsStarting",
        "ClientsReady",
        "Measured",
        "Succeeded",
        "CleaningUp",
        "CleanedUp",
    ]


def test_every_condition_has_its_place_in_the_story() -> None:
    assert sorted(_ORDER) == sorted(ConditionType)
