"""An entry of the table of reasons."""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.reason import Reason


class Severity(StrEnum):
    """The type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A row of the documentation, in Markdown: what happened, and what to do about it."""

    meaning: str
    advice: str = "nothing"


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """A reason, with its explanations and what decisions derive from it.

    Attributes:
        conditions: those with this reason while the run is active or being cleaned up.
        under_way: explanation for an active run; None if only a finished run has the reason.
        ended: explanation for a finished run; None if no run ends with the reason.
        succeeded: whether a run that ends with it succeeded.
        remedy: what to do, as the last clause of a message; empty if the messages with this reason have their own.
        severity: of an event about a condition that is not True.
        load_is_gone: whether, as the reason of CleanedUp, the run no longer loads its target.
        is_passed_by: whether the queue skips a run that is not admitted yet.
        is_refusal: whether the API server, or something that it consults, refused a request.
        event: name of the event, if the reason is unclear without its condition; empty to use the reason.

    """

    reason: Reason
    _: KW_ONLY
    conditions: tuple[ConditionType, ...] = ()
    under_way: Explanation | None = None
    ended: Explanation | None = None
    succeeded: bool = False
    remedy: str = ""
    severity: Severity = Severity.WARNING
    load_is_gone: bool = False
    is_passed_by: bool = False
    is_refusal: bool = False
    event: str = ""
