"""Why the API server refuses what a run needs: the words of its answer as one of the reasons `REFUSALS`.

It refuses a request of the operator (`operator.execute.refusal_of`), or of the Job controller, which the newest warning
about a Job without a pod shows. `waiting` says when that ends the run.
"""

import re
from dataclasses import dataclass

from plimsoll.api.reasons import remedy_of
from plimsoll.api.reasons.reason import Reason

_NAME = re.compile(r"""["'][^"' ]*["']""")
_LIMITED = re.compile(
    r"\b(exceeded|failed|insufficient|status unknown for) quota\b"  # failed: a pod has no limit
    r"|\b(minimum|maximum) \S+ usage per "
    r"|\bmax limit to request ratio per "
    # A pod's request above the default limit of a LimitRange; a Job's template has both from the run.
    r"|^(?!.*spec\.template\.).*must be less than or equal to \S+ limit\b",
    re.IGNORECASE,
)
"""Words of ResourceQuotas and LimitRanges. Source: Kubernetes 1.34 to 1.37, its admission plugins and validation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request of the operator that failed."""

    asked: str  # the request, beginning with the verb: `create Job bench/run-client-0-0`
    reason: Reason  # one of `plimsoll.api.reasons.REFUSALS`
    words: str  # the API server's answer

    @property
    def blocks_removal(self) -> bool:
        """Whether a deletion was refused, not a creation."""
        return self.asked.startswith("delete ")

    def concerns(self, namespace: str) -> bool:
        return f" {namespace}/" in self.asked

    def is_permanent(self, namespace: str) -> bool:
        """Whether nothing can be created any more for a run in that namespace, because it is being deleted."""
        return self.reason is Reason.NAMESPACE_TERMINATING and self.concerns(namespace)

    @property
    def message(self) -> str:
        remedy = remedy_of(self.reason)
        if self.blocks_removal and self.reason is Reason.API_REFUSED:
            remedy = "delete it yourself, or change what refuses it: an admission policy, the operator's ClusterRole"
        return f"could not {self.asked}: {self.words}; {remedy}"


def reason_of_words(words: str, *, passing: bool = False) -> Reason:
    """Return the reason for the API server's answer. `passing`: a retry may succeed."""
    if "because it is being terminated" in words:
        return Reason.NAMESPACE_TERMINATING
    # Quotes enclose names, for example of a run or a webhook.
    if _LIMITED.search(_NAME.sub("", words)):
        return Reason.QUOTA_EXCEEDED
    return Reason.API_UNAVAILABLE if passing else Reason.API_REFUSED


def refused_pod(warning: str) -> Reason | None:
    """Return why a Job's pod is refused, from the newest warning about the Job; None if it is about something else."""
    return reason_of_words(warning) if warning.startswith("FailedCreate: ") else None
