"""Errors of requests to an API server.

    ApiError
    ├── NotFoundError         404  the object, or the namespace to create it in, does not exist
    ├── ConflictError         409  the object or its quota changed meanwhile: a retry may succeed
    ├── ForbiddenError        403
    │   ├── UnauthorizedError 401  the credentials are invalid or expired
    │   └── TerminatingError  403  the namespace is being deleted and accepts no new objects
    ├── InvalidError          400, 413, 422  with the API server's message
    ├── UnknownKindError      the API server does not serve the kind: its CRD may be missing
    ├── TooLargeError         the answer is larger than the client reads
    ├── CredentialsError      no API server or credentials are configured
    └── TransientError        429, 5xx, timeouts, broken connections: a retry may succeed

Every message begins with the request.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_before_delay, wait_exponential

_NAMESPACE_TERMINATING = "NamespaceTerminating"  # a cause of the API server's
_SHOWN_CHARACTERS = 300
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ApiError(Exception):
    """A request failed. `asked` is the request, `reason` why it failed."""

    def __init__(self, asked: str, reason: str) -> None:
        self.asked = asked
        self.reason = reason
        super().__init__(f"{asked}: {reason}")


class NotFoundError(ApiError):
    """The object or the namespace does not exist."""


class ConflictError(ApiError):
    """The object changed meanwhile, or an object of that name exists."""

    def __init__(self, asked: str, reason: str, *, already_exists: bool = False) -> None:
        self.already_exists = already_exists
        super().__init__(asked, reason)


class ForbiddenError(ApiError):
    """The credentials do not permit the request."""


class UnauthorizedError(ForbiddenError):
    """The credentials are invalid or expired."""


class TerminatingError(ForbiddenError):
    """The namespace is being deleted and accepts no new objects."""


class InvalidError(ApiError):
    """The object or the request is invalid."""


class UnknownKindError(ApiError):
    """The API server does not serve this kind or subresource."""


class TooLargeError(ApiError):
    """The answer is larger than the client reads."""


class CredentialsError(ApiError):
    """No API server or credentials are configured."""


class TransientError(ApiError):
    """The API server could not answer now. `retry_after`: seconds to wait before a retry."""

    def __init__(self, asked: str, reason: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after
        super().__init__(asked, reason)


_ERROR_OF_STATUS: Mapping[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: InvalidError,
    HTTPStatus.UNAUTHORIZED: UnauthorizedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidError,
}


def error_of(asked: str, status: int, body: str, headers: Mapping[str, str]) -> ApiError:
    """Return the error for the answer to a failed request, whose body is usually a `Status` object."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    answer: Mapping[str, Any] = document if isinstance(document, dict) else {}
    details, words = answer.get("details") or {}, answer.get("message") or body.strip()[:_SHOWN_CHARACTERS]
    reason = f"{words} (status {status})" if words else f"status {status}"
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # The API server never sends a date.
        pause = headers.get("Retry-After", "")
        return TransientError(asked, reason, retry_after=float(pause) if pause.isdecimal() else 0.0)
    # For a missing object, the details have its name.
    if status == HTTPStatus.NOT_FOUND and not details.get("name"):
        return UnknownKindError(asked, f"not served by the API server ({reason})")
    if any(cause.get("reason") == _NAMESPACE_TERMINATING for cause in details.get("causes") or ()):
        return TerminatingError(asked, reason)
    if status == HTTPStatus.CONFLICT:
        return ConflictError(asked, reason, already_exists=answer.get("reason") == "AlreadyExists")
    return _ERROR_OF_STATUS.get(status, ApiError)(asked, reason)


async def persist(ask: Callable[[], Awaitable[T]], *, seconds: float) -> T:
    """Retry an idempotent request with growing pauses, and return its answer.

    ApiError: one that a retry cannot fix, or the last one when another pause would exceed `seconds`.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception_type((TransientError, ConflictError)),
        wait=_pause,
        stop=stop_before_delay(seconds),
        before_sleep=_log_failure,
        reraise=True,
    )

    async def answer() -> T:  # the library awaits only what is declared a coroutine function
        return await ask()

    return await retrying(answer)


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next request: at least as many as the API server asked for."""
    growing = wait_exponential(multiplier=_FIRST_PAUSE_SECONDS, max=_LONGEST_PAUSE_SECONDS)(state)
    error = state.outcome.exception() if state.outcome else None
    return max(growing, error.retry_after) if isinstance(error, TransientError) else growing


def _log_failure(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    _log.warning("%s; retrying in %.1f s", error, state.upcoming_sleep)
