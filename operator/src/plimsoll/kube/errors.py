"""What can go wrong between Plimsoll and an API server.

    ApiError
    ├── NotFoundError         404  there is no such object, or no such namespace to put it into
    ├── ConflictError         409  somebody else changed it meanwhile, or its quota: asking anew may help
    ├── TakenError            another object of that name exists, which is not of the run that it was to be made for
    ├── KeyringError          a Secret that is to hold a Ceph key is not there, or holds none
    │   └── KeyringRefusedError    it does not say that it is for benchmarks
    ├── ForbiddenError        403
    │   ├── UnauthorizedError 401  the credentials are not, or no longer, accepted
    │   └── TerminatingError  403  the namespace is being deleted and takes nothing new
    ├── InvalidError          400, 413, 422  in the API server's own words
    ├── UnknownKindError      the API server serves no such kind: is its CRD installed?
    ├── CredentialsError      nothing says which API server to ask, or as whom
    └── TransientError        429, 5xx, time-outs, broken connections: asking again may help

Every message begins with what was asked.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from plimsoll.lifecycle.refusal import NAMESPACE_TERMINATING, Refusal, reason_of_words

_SHOWN_CHARACTERS = 300
_NAMESPACE_TERMINATING = "NamespaceTerminating"


class ApiError(Exception):
    """A request failed. `asked` says which, `reason` why."""

    def __init__(self, asked: str, reason: str) -> None:
        """Make the message of both."""
        self.asked = asked
        self.reason = reason
        super().__init__(f"{asked}: {reason}")


class NotFoundError(ApiError):
    """There is no such object, or no such namespace."""


class ConflictError(ApiError):
    """Somebody else changed what was to be changed."""


class TakenError(ApiError):
    """A stranger's object stands where one was to be created. `departing`: it goes by itself."""

    def __init__(self, asked: str, reason: str, *, departing: bool) -> None:
        """Keep whether waiting helps."""
        self.departing = departing
        super().__init__(asked, reason)


class KeyringError(ApiError):
    """A Secret that is to hold a Ceph key is not there, or holds none. Never says what it holds."""


class KeyringRefusedError(KeyringError):
    """A Secret that a user names does not say that it is for benchmarks."""


class ForbiddenError(ApiError):
    """The API server does not let these credentials do that."""


class UnauthorizedError(ForbiddenError):
    """The API server does not know, or no longer, whose credentials these are."""


class TerminatingError(ForbiddenError):
    """The namespace is being deleted and takes nothing new."""


class InvalidError(ApiError):
    """The API server does not accept the object or the request."""


class UnknownKindError(ApiError):
    """The API server does not serve this kind, or not this part of it."""


class CredentialsError(ApiError):
    """Nothing says which API server to ask, or as whom."""


class TransientError(ApiError):
    """The API server could not answer now. `retry_after` is how many seconds it wants to be left alone."""

    def __init__(self, asked: str, reason: str, *, retry_after: float = 0.0) -> None:
        """Keep what the API server said of trying again."""
        self.retry_after = retry_after
        super().__init__(asked, reason)


def refusal_of(error: ApiError) -> Refusal:
    """Return what a status says of an error."""
    if isinstance(error, TakenError):
        reason = "WaitingForEarlierRun" if error.departing else "NameTaken"
        return Refusal(asked=error.asked, reason=reason, words=error.reason)
    if isinstance(error, KeyringRefusedError):
        return Refusal(asked=error.asked, reason="KeyringNotAllowed", words=error.reason)
    if isinstance(error, KeyringError):
        return Refusal(asked=error.asked, reason="KeyringNotFound", words=error.reason)
    if isinstance(error, TerminatingError):
        return Refusal(asked=error.asked, reason=NAMESPACE_TERMINATING, words=error.reason)
    passing = isinstance(error, TransientError | ConflictError)
    reason = reason_of_words(error.reason, passing=passing)
    return Refusal(asked=error.asked, reason=reason, words=error.reason)


_ERROR_OF_STATUS: Mapping[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: InvalidError,
    HTTPStatus.UNAUTHORIZED: UnauthorizedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidError,
}


class Answer:
    """An answer that is no success: a `Status` object, as a rule."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        """Read it as far as it can be read."""
        self.status = status
        self.document = _object(body)
        self._body = body
        self._headers = headers

    @property
    def already_exists(self) -> bool:
        """Tell whether an object of that name exists; other conflicts have the same status code."""
        return self.status == HTTPStatus.CONFLICT and self.document.get("reason") == "AlreadyExists"

    @property
    def is_expired(self) -> bool:
        """Tell whether the rest of a list is not to be had any more."""
        return self.status == HTTPStatus.GONE

    @property
    def is_unknown_path(self) -> bool:
        """Tell whether the path means nothing to the API server; a missing object is named in the details."""
        return self.status == HTTPStatus.NOT_FOUND and not self._details.get("name")

    def error(self, asked: str) -> ApiError:
        """Return the error that this answer is."""
        if self.status == HTTPStatus.TOO_MANY_REQUESTS or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return TransientError(asked, self._reason, retry_after=self._retry_after)
        if self.is_unknown_path:
            return UnknownKindError(asked, f"not served by the API server ({self._reason})")
        if any(cause.get("reason") == _NAMESPACE_TERMINATING for cause in self._details.get("causes") or ()):
            return TerminatingError(asked, self._reason)
        return _ERROR_OF_STATUS.get(self.status, ApiError)(asked, self._reason)

    @property
    def _details(self) -> Mapping[str, Any]:
        return self.document.get("details") or {}

    @property
    def _reason(self) -> str:
        words = self.document.get("message") or self._body.strip()[:_SHOWN_CHARACTERS]
        return f"{words} (status {self.status})" if words else f"status {self.status}"

    @property
    def _retry_after(self) -> float:
        """Return the seconds of the `Retry-After` header; the API server never sends a date."""
        text = self._headers.get("Retry-After", "")
        return float(text) if text.isdecimal() else 0.0


def _object(body: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
