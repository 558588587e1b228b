"""The outcome of one look at a run: actions, its situation with conditions, and events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.reasons import REFUSALS, event_name, severity_of
from plimsoll.api.reasons.entry import Event, Severity
from plimsoll.api.reasons.reason import Reason, UnknownReason
from plimsoll.api.status import Condition
from plimsoll.lifecycle.children import Child, Object
from plimsoll.lifecycle.run import Run

_CONSEQUENCES = frozenset({Reason.ENDED, Reason.SUSPENDED})  # of another condition, which has its own event
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object; keep one that exists."""

    obj: Object
    wave: int = 0  # it begins once the creations of lower waves are done, because it refers to their objects


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecret:
    """Create the session secret with new keys and the metadata of `obj`; keep one that exists."""

    obj: Object
    clients: int  # how many clients get a token


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyKeyring:
    """Create a Secret with the metadata of `obj` and a keyring from another Secret; keep one that exists."""

    obj: Object
    user: str  # without `client.`
    namespace: str  # of the Secret with the key, as `secret` and `field`
    secret: str
    field: str
    # Whether a user names that Secret, with a keyring file and the annotation for benchmarks, rather than with a key.
    is_keyring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSecret:
    """Check that a Secret which a run names, and its pods mount, is annotated as being for benchmarks."""

    namespace: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object if it still has that UID."""

    child: Child
    foreground: bool = False


Action = Create | CreateSecret | CopyKeyring | CheckSecret | Delete


def deletions(children: Iterable[Child], *, foreground: bool = False) -> tuple[Delete, ...]:
    return tuple(Delete(child=child, foreground=foreground) for child in children if not child.deleting)


class Stage(StrEnum):
    """Where a run is, derived from every observation. The status shows it until the run ends; nothing reads it back."""

    SUSPENDED = "Suspended"
    WAITING = "Waiting"
    PROVISIONING = "Provisioning"
    MEASURING = "Measuring"
    CLEANING_UP = "CleaningUp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One condition: whether it holds (None: unknown), its reason and its message."""

    holds: bool | None
    reason: Reason | UnknownReason
    message: str = ""

    @classmethod
    def true(cls, reason: Reason | UnknownReason, message: str = "") -> Self:
        return cls(holds=True, reason=reason, message=message)

    @classmethod
    def false(cls, reason: Reason | UnknownReason, message: str = "") -> Self:
        return cls(holds=False, reason=reason, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding(Fact):
    """The condition Succeeded of a run that has ended: Valid, Suspect, InvalidResults, or why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """The next step of removing a run's objects, and the progress."""

    actions: tuple[Action, ...]
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """An assessed run."""

    stage: Stage
    reason: Reason | UnknownReason  # why the run is in this stage, or what it waits for
    message: str  # the same for people, with what to do next
    actions: tuple[Action, ...] = ()
    plan_sha256: str = ""  # of the plan that is being frozen; empty if none is
    ending: RunEnding | None = None  # how it ended; None while it is active
    facts: Mapping[str, Fact] = field(default_factory=dict)  # conditions by type
    requeue_seconds: float | None = None  # when to look again without any event; None if that could not change anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do for a run, and the status to write."""

    actions: tuple[Action, ...] = ()
    status: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    requeue_seconds: float | None = None


def events_of(run: Run, status: Mapping[str, Any]) -> tuple[Event, ...]:
    events = []
    conditions = [Condition.model_validate(entry) for entry in status["conditions"]]
    for condition in sorted(conditions, key=lambda condition: _ORDER.index(condition.type)):
        before = run.conditions.get(condition.type)
        if before is not None and (before.status, before.reason) == (condition.status, condition.reason):
            continue
        if not _is_news(condition, before):
            continue
        # Named after a condition that holds, or after the reason of one that does not.
        holds = condition.status is ConditionStatus.TRUE and condition.type is not ConditionType.RECONCILING
        severity = Severity.NORMAL if holds else severity_of(condition.reason)
        name = event_name(condition.type.value if holds else condition.reason)
        events.append(Event(severity=severity, reason=name, message=condition.message or condition.reason))
    return tuple(events)


def _is_news(condition: Condition, before: Condition | None) -> bool:
    """Whether a change needs an event, and is not covered by the event of another condition."""
    if condition.status is ConditionStatus.FALSE:
        is_beginning = condition.reason == Reason.CLIENTS_MISSING and before and before.reason in _BEGINNINGS
        if is_beginning or condition.reason in _CONSEQUENCES:
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
