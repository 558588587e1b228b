"""What the API server, or somebody it asks, does not let happen: in its words, with a reason and a remedy."""

from dataclasses import dataclass

from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS

NAMESPACE_TERMINATING = "NamespaceTerminating"

_REMEDIES = {
    "QuotaExceeded": "raise the namespace's ResourceQuota, or lower clients.count, clients.resources or volume.size",
    "ApiRefused": (
        "change the run, or what refuses it: an admission policy, LimitRange, Pod Security, the operator's ClusterRole"
    ),
    "KeyringNotFound": "make that Secret, with a keyring file of the CephX user in that field; with Rook, look at Rook",
    "KeyringNotAllowed": (
        "whoever is responsible for it may say so with `kubectl annotate secret NAME "
        f'{ALLOW_BENCHMARKS}="true"` in its namespace'
    ),
    "NameTaken": "delete that object and the run, or rename the run",
    "WaitingForEarlierRun": "nothing has to be done; if it lasts, look at that object's finalizers",
    NAMESPACE_TERMINATING: (
        "nothing more is made in a namespace that is being deleted; a run of that namespace goes with it, so nothing "
        "has to be done"
    ),
    "ApiUnavailable": "look at the API server and at the admission webhooks that it asks",
}

REASONS = frozenset(_REMEDIES)
"""Why something is refused, in one word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refusal.

    Attributes:
        asked: what was asked, beginning with the verb: `create Job bench/run-client-0-0`.
        reason: one of `REASONS`.
        words: what the API server answered.

    """

    asked: str
    reason: str
    words: str

    @property
    def hinders_removal(self) -> bool:
        """Tell whether it keeps something from being deleted, and not from being made."""
        return self.asked.startswith("delete ")

    def is_for_good(self, namespace: str) -> bool:
        """Whether nothing can be made any more for a run of that namespace, because the namespace is being deleted."""
        return self.reason == NAMESPACE_TERMINATING and f" {namespace}/" in self.asked

    @property
    def message(self) -> str:
        """Return it for people, with the remedy."""
        return f"the API server did not {self.asked}: {self.words}; {remedy_of(self.reason)}"


def reason_of_words(words: str, *, passing: bool = False) -> str:
    """Return the reason that an API server's or a controller's words give. `passing`: asking again may help."""
    if "exceeded quota" in words:
        return "QuotaExceeded"
    if "because it is being terminated" in words:
        return NAMESPACE_TERMINATING
    return "ApiUnavailable" if passing else "ApiRefused"


def remedy_of(reason: str) -> str:
    """Return what to do about a refusal, as a clause."""
    return _REMEDIES[reason]
