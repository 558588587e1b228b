"""What the documentation and decisions know about a reason."""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any, Self

from plimsoll.api.names import Cause


class Severity(StrEnum):
    """The type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes event about a transition of a run or a suite."""

    severity: Severity
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A row of the documentation, in Markdown: what happened, and what to do about it."""

    meaning: str
    advice: str = "nothing"


@dataclass(frozen=True, slots=True)
class AttemptExplanation(Explanation):
    """The row of a reason why an attempt has no numbers."""

    cause: Cause = Cause.HARNESS


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """A reason, with its explanations and what decisions derive from it."""

    conditions: tuple[str, ...]  # those with this reason while the run is active or being cleaned up
    name: str
    meaning: str = ""  # of these conditions; empty if only a finished run has the reason
    advice: str = "nothing"  # what to do about them
    _: KW_ONLY
    ended: Explanation | None = None  # explanation for a finished run; None if no run ends with the reason
    succeeded: bool = False  # whether a run that ends with it succeeded
    own_remedy: str | None = None  # the last clause of a message, if it is not the advice; empty if messages have one
    severity: Severity = Severity.WARNING  # of an event about a condition that is not True
    load_is_gone: bool = False  # whether, as the reason of CleanedUp, the run no longer loads its target
    is_passed_by: bool = False  # whether the queue skips a run that is not admitted yet
    is_refusal: bool = False  # whether the API server, or something that it consults, refused a request
    event: str = ""  # name of the event, if the reason is unclear without its condition; empty to use the reason

    @property
    def under_way(self) -> Explanation | None:
        """The explanation for an active run; None if only a finished run has the reason."""
        return Explanation(self.meaning, self.advice) if self.meaning else None

    @property
    def remedy(self) -> str:
        if self.own_remedy is not None:
            return self.own_remedy
        return self.advice.replace("`", "") if self.advice != "nothing" else ""


class ExplainedReason(StrEnum):
    """A vocabulary of reasons, in the order of the documentation; each member is made from its entry."""

    entry: ReasonEntry

    def __new__(cls, entry: Any) -> Self:  # noqa: ANN401 - an entry here, and a text where a reason is looked up
        reason = str.__new__(cls, entry.name)
        reason._value_ = entry.name
        reason.entry = entry
        return reason
