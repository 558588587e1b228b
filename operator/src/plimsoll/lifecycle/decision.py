"""What one look at a run leads to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from plimsoll.lifecycle.actions import Action, Event


class Stage(StrEnum):
    """Where a run is, derived from what is observed at every look; shown, never read back."""

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
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One condition: whether something holds, in a word and in a sentence. `holds` None is not known yet."""

    holds: bool | None
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """What is to be done now to take a run's objects away, and how far that is."""

    actions: tuple[Action, ...]
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A run, assessed.

    Attributes:
        stage: where it is.
        reason: why it is there or what it waits for, CamelCase.
        message: the same for people, with what to do next.
        actions: what is to be done now.
        plan_sha256: of the plan that is frozen now; empty if none is.
        ending: how it ended; None while it goes on.
        facts: conditions by type.
        requeue_seconds: when to look again even if nothing happens; None if nothing can come of that.

    """

    stage: Stage
    reason: str
    message: str
    actions: tuple[Action, ...] = ()
    plan_sha256: str = ""
    ending: Ending | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    requeue_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done and said."""

    actions: tuple[Action, ...] = ()
    status: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    requeue_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What is to be done and said of a run that is being deleted. `cleaned_up`: whether it may go, and if not why."""

    actions: tuple[Action, ...]
    status: Mapping[str, Any]
    cleaned_up: Fact
