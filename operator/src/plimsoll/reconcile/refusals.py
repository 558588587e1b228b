"""Errors of performing actions, and the refusal that a status shows for any error.

They extend `ApiError`, as those of `plimsoll.kube.errors` do:

    ├── TakenError            an object of that name exists and does not belong to the run
    └── KeyringError          a Secret with a Ceph key does not exist, or has no key
        └── KeyringRefusedError    it is not annotated as being for benchmarks
"""

from plimsoll.api.reasons.reason import Reason
from plimsoll.kube.errors import ApiError, ConflictError, TerminatingError, TransientError
from plimsoll.lifecycle.decision import Refusal, reason_of_words


class TakenError(ApiError):
    """Another owner's object occupies the name of one to be created. `departing`: it will disappear by itself."""

    def __init__(self, asked: str, reason: str, *, departing: bool) -> None:
        """Record whether waiting helps."""
        self.departing = departing
        super().__init__(asked, reason)


class KeyringError(ApiError):
    """A Secret with a Ceph key does not exist, or has no key. The message never quotes its content."""


class KeyringRefusedError(KeyringError):
    """A Secret that a user names is not annotated as being for benchmarks."""


def refusal_of(error: ApiError) -> Refusal:
    """Return the refusal that a status shows for an error."""
    return Refusal(asked=error.asked, reason=_reason_of(error), words=error.reason)


def _reason_of(error: ApiError) -> Reason:
    match error:
        case TakenError():
            return Reason.WAITING_FOR_EARLIER_RUN if error.departing else Reason.NAME_TAKEN
        case KeyringRefusedError():
            return Reason.KEYRING_NOT_ALLOWED
        case KeyringError():
            return Reason.KEYRING_NOT_FOUND
        case TerminatingError():
            return Reason.NAMESPACE_TERMINATING
        case _:
            return reason_of_words(error.reason, passing=isinstance(error, TransientError | ConflictError))
