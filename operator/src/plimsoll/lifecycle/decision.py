"""The outcome of one look at a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

from plimsoll.api.reasons.reason import Reason, UnknownReason
from plimsoll.lifecycle.actions import Action, Event

A = TypeVar("A")


class Stage(StrEnum):
    """Where a run is, derived from every observation; shown, never read back."""

    REFUSED = "Refused"
    SUSPENDED = "Suspended"
    WAITING = "Waiting"
    PROVISIONING = "Provisioning"
    MEASURING = "Measuring"
    CLEANING_UP = "CleaningUp"
    FINISHED = "Finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended. `reason` is `Valid`, `Suspect`, `InvalidResults`, or why it failed."""

    succeeded: bool
    reason: Reason | UnknownReason
    message: str

    @classmethod
    def failure(cls, reason: Reason | UnknownReason, message: str) -> Self:
        """Return the end of a run that failed."""
        return cls(succeeded=False, reason=reason, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One condition: whether it holds (None: unknown), its reason and its message."""

    holds: bool | None
    reason: Reason | UnknownReason
    message: str = ""

    @classmethod
    def true(cls, reason: Reason | UnknownReason, message: str = "") -> Self:
        """Return a condition that holds."""
        return cls(holds=True, reason=reason, message=message)

    @classmethod
    def false(cls, reason: Reason | UnknownReason, message: str = "") -> Self:
        """Return a condition that does not hold."""
        return cls(holds=False, reason=reason, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """The next step of removing a run's objects, and the progress."""

    actions: tuple[Action, ...]
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """An assessed run.

    Attributes:
        reason: why the run is in this stage, or what it waits for.
        message: the same for people, with what to do next.
        plan_sha256: of the plan that is being frozen; empty if none is.
        ending: how it ended; None while it is active.
        facts: conditions by type.
        requeue_seconds: when to look again without any event; None if that could not change anything.

    """

    stage: Stage
    reason: Reason | UnknownReason
    message: str
    actions: tuple[Action, ...] = ()
    plan_sha256: str = ""
    ending: Ending | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    requeue_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOf(Generic[A]):
    """What to do for an object of any kind, and the status to write."""

    actions: tuple[A, ...] = ()
    status: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    requeue_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(DecisionOf[Action]):
    """What to do for a run, and its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What to do for a run that is being deleted, and its status. `cleaned_up`: whether the finalizer can go."""

    actions: tuple[Action, ...]
    status: Mapping[str, Any]
    cleaned_up: Fact
