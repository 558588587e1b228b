"""A request that the API server, or something that it consults, refused."""

from dataclasses import dataclass

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.reasons.table import remedy_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refused request.

    Attributes:
        asked: the request, beginning with the verb: `create Job bench/run-client-0-0`.
        reason: one of `plimsoll.api.reasons.table.REFUSALS`.
        words: the API server's answer.

    """

    asked: str
    reason: Reason
    words: str

    @property
    def blocks_removal(self) -> bool:
        """Whether a deletion was refused, not a creation."""
        return self.asked.startswith("delete ")

    def is_permanent(self, namespace: str) -> bool:
        """Whether nothing can be created any more for a run in that namespace, because it is being deleted."""
        return self.reason is Reason.NAMESPACE_TERMINATING and f" {namespace}/" in self.asked

    @property
    def message(self) -> str:
        """Return it for people, with the remedy."""
        return f"could not {self.asked}: {self.words}; {remedy_of(self.reason)}"


def reason_of_words(words: str, *, passing: bool = False) -> Reason:
    """Return the reason for the message of an API server or a controller. `passing`: a retry may succeed."""
    if "exceeded quota" in words:
        return Reason.QUOTA_EXCEEDED
    if "because it is being terminated" in words:
        return Reason.NAMESPACE_TERMINATING
    return Reason.API_UNAVAILABLE if passing else Reason.API_REFUSED
