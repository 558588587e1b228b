"""Events of a run: what whoever watches it is told of a change of its conditions."""

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.status import Condition
from plimsoll.lifecycle.actions import Event
from plimsoll.lifecycle.refusal import REASONS as REFUSALS
from plimsoll.lifecycle.run import Run

_NAMES = {"NotSuspended": "Resumed", "InProgress": "CleaningUp", "Starting": "ClientsStarting"}
"""What an event is called where the condition's reason says too little without the condition."""

_USUAL = frozenset(
    {
        "WaitingForTurn",
        "SuspendedTooLong",
        "PoolNotReady",
        "UserNotReady",
        "ClaimsNotBound",
        "Starting",
        "ConductorStarting",
        "InProgress",
        "StorageKept",
        "NotSuspended",
        "NamespaceTerminating",
    }
)
"""Reasons for which a condition does not hold though nothing is wrong."""

_CONSEQUENCES = frozenset({"Ended", "Suspended"})
"""Reasons for which a condition does not hold any more because of what another condition tells."""

_BEGINNINGS = frozenset({"Starting", "ConductorStarting"})
"""After these every client is missing for a moment: a conductor has just taken over, and nobody has registered yet."""

_STORY = (
    ConditionType.SUSPENDED,
    ConditionType.ADMITTED,
    ConditionType.RECONCILING,
    ConditionType.STALLED,
    ConditionType.STORAGE_READY,
    ConditionType.CLIENTS_READY,
    ConditionType.MEASURED,
    ConditionType.SUCCEEDED,
    ConditionType.CLEANED_UP,
)
"""In which order changes that come at once are told: causes before what follows from them."""


def events_of(run: Run, said: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return an event for every condition that changes with this status; nothing for what is merely repeated."""
    return tuple(_events(run, said))


def _events(run: Run, said: Mapping[str, Any]) -> Iterator[Event]:
    conditions = [Condition.model_validate(entry) for entry in said["conditions"]]
    for condition in sorted(conditions, key=lambda condition: _STORY.index(condition.type)):
        before = run.conditions.get(condition.type)
        changed = before is None or (before.status, before.reason) != (condition.status, condition.reason)
        if changed and _is_news(condition, before):
            yield _event(condition)


def _is_news(condition: Condition, before: Condition | None) -> bool:
    """Tell whether a change is worth an event, and not told by that of another condition."""
    if condition.status is ConditionStatus.FALSE and _follows(condition, before):
        return False
    match condition.type:
        case ConditionType.RECONCILING:
            return condition.reason in REFUSALS
        case ConditionType.STALLED:
            return False
        case ConditionType.MEASURED:
            return condition.status is ConditionStatus.TRUE
        case ConditionType.SUSPENDED:
            return condition.status is ConditionStatus.TRUE or before is not None
    return condition.status is not ConditionStatus.UNKNOWN


def _follows(condition: Condition, before: Condition | None) -> bool:
    """Tell whether it had to come to this, after what was told before."""
    beginning = before is not None and before.reason in _BEGINNINGS
    return condition.reason in _CONSEQUENCES or (beginning and condition.reason == "ClientsMissing")


def _event(condition: Condition) -> Event:
    """Name it after the condition if that holds, and after the reason if it does not."""
    holds = condition.status is ConditionStatus.TRUE
    name = condition.type.value if holds else condition.reason
    if condition.type is ConditionType.RECONCILING:
        name, holds = condition.reason, False
    kind = "Normal" if holds or condition.reason in _USUAL else "Warning"
    return Event(kind=kind, reason=_NAMES.get(name, name), message=condition.message or condition.reason)
