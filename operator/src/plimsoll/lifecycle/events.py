"""Kubernetes events about changes of a run's conditions."""

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.reasons.entry import Severity
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.reasons.table import REFUSALS, event_name, severity_of
from plimsoll.api.status import Condition
from plimsoll.lifecycle.actions import Event
from plimsoll.lifecycle.run import Run

_CONSEQUENCES = frozenset({Reason.ENDED, Reason.SUSPENDED})
"""Reasons of conditions that became False because of another condition, which has its own event."""

_BEGINNINGS = frozenset({Reason.STARTING, Reason.CONDUCTOR_STARTING})
"""After these reasons every client is briefly missing: the conductor is new, and no client has registered yet."""

_ORDER = (
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
"""Order of the events about simultaneous changes: causes before their consequences."""


def events_of(run: Run, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return an event for every condition that changes with this status."""
    return tuple(_events(run, status))


def _events(run: Run, status: Mapping[str, Any]) -> Iterator[Event]:
    conditions = [Condition.model_validate(entry) for entry in status["conditions"]]
    for condition in sorted(conditions, key=lambda condition: _ORDER.index(condition.type)):
        before = run.conditions.get(condition.type)
        changed = before is None or (before.status, before.reason) != (condition.status, condition.reason)
        if changed and _is_news(condition, before):
            yield _event(condition)


def _is_news(condition: Condition, before: Condition | None) -> bool:
    """Whether a change needs an event, and is not covered by that of another condition."""
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
    """Whether the change follows from an earlier one."""
    beginning = before is not None and before.reason in _BEGINNINGS
    return condition.reason in _CONSEQUENCES or (beginning and condition.reason == Reason.CLIENTS_MISSING)


def _event(condition: Condition) -> Event:
    """Return the event, named after a condition that holds, or after the reason of one that does not."""
    holds = condition.status is ConditionStatus.TRUE
    name = condition.type.value if holds else condition.reason
    if condition.type is ConditionType.RECONCILING:
        name, holds = condition.reason, False
    severity = Severity.NORMAL if holds else severity_of(condition.reason)
    return Event(kind=severity, reason=event_name(name), message=condition.message or condition.reason)
