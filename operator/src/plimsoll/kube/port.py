"""The Kubernetes API as Plimsoll uses it: verbs on plain dictionaries, which keep unknown fields, and their errors."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol, Self, TypedDict, TypeVar, Unpack

import msgspec

_NAMESPACE_TERMINATING = "NamespaceTerminating"  # a cause of the API server's
_SHOWN_CHARACTERS = 300
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_MAX_ATTEMPTS = 20

READ_SECONDS, READ_ATTEMPTS = 10.0, 5
"""For how long and how often at most the operator asks for the same page or object within one look."""

T = TypeVar("T")

_log = logging.getLogger(__name__)

Object = Mapping[str, Any]  # a Kubernetes object as JSON


Shape = type[msgspec.Struct]  # the fields of an object that are decoded, however many it has


class Selection(TypedDict, total=False):
    """Which objects: in a namespace (None for all), with these labels and selectable fields. Only `shape` is read."""

    namespace: str | None
    labels: Mapping[str, str] | None
    fields: Mapping[str, str] | None
    shape: Shape | None


Keep = Callable[[Object], bool]  # which objects of a list to return, asked page by page


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object: `apiVersion` and `kind`."""

    api_version: str
    kind: str

    @classmethod
    def of(cls, obj: Object) -> Self:
        return cls(api_version=obj["apiVersion"], kind=obj["kind"])


class Version(msgspec.Struct, frozen=True, kw_only=True, rename={"version": "resourceVersion"}):
    """A version of an object: the part of its metadata that identifies both."""

    uid: str
    namespace: str = ""
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Listed:
    """All existing objects."""

    versions: Sequence[Version]


@dataclass(frozen=True, slots=True)
class Changed:
    """An object was created or modified, or deleted if it `is_gone`."""

    version: Version
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Followed:
    """An object as it is now, or as it last was if it `is_gone`."""

    obj: Object
    is_gone: bool


class Kube(Protocol):
    """A connection to one API server. The pages of a list become smaller if its objects are large."""

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, shape: Shape | None = None
    ) -> Object | None:
        """Return an object; None if it does not exist."""

    async def list(self, kind: Kind, *, keep: Keep | None = None, **selection: Unpack[Selection]) -> Sequence[Object]:
        """Return the selected objects that `keep` wants."""

    async def versions(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Version]:
        """Return the versions of the objects with these labels, which is cheaper than the objects."""

    def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[Listed | Changed]:
        """Yield the existing objects, and then every change, until the API server ends the watch."""

    def follow(
        self, kind: Kind, shape: Shape, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Followed]:
        """Yield each existing object with these labels, and then every change, until the API server ends the watch."""

    def pages(self, kind: Kind, *, size: int, **selection: Unpack[Selection]) -> AsyncIterator[Sequence[Object]]:
        """Yield the selected objects in pages of at most `size`. One may be yielded twice, in two versions."""

    async def create(self, obj: Object, *, dry_run: bool = False) -> bool:
        """Create an object, without its status; false if its name is taken. `dry_run`: it is only checked, strictly."""

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        """Merge a patch (RFC 7386) into an object, except for its status."""

    async def patch_status(
        self, kind: Kind, name: str, namespace: str | None, status: Object, *, version: str | None = None
    ) -> Object:
        """Replace these fields of a status, or remove those that are None; `version`: the expected resourceVersion."""

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        """Delete an object, if given with that UID, `foreground` after its dependents; false if there is none."""

    async def version(self) -> str:
        """Return the API server's version: `v1.34.0`."""


class ApiError(Exception):
    """A request failed: `asked`, which begins the message, because of `reason`, after so many `attempts`."""

    def __init__(self, asked: str, reason: str) -> None:
        self.asked = asked
        self.reason = reason
        self.attempts = 1
        super().__init__(asked, reason)

    def __str__(self) -> str:
        tried = f"; gave up after {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.asked}: {self.reason}{tried}"


class NotFoundError(ApiError):
    """404: the object, or the namespace to create it in, does not exist."""


class ConflictError(ApiError):
    """409: the object or its quota changed meanwhile, so a retry may succeed; or an object of that name exists."""

    def __init__(self, asked: str, reason: str, *, already_exists: bool = False) -> None:
        self.already_exists = already_exists
        super().__init__(asked, reason)


class ForbiddenError(ApiError):
    """403: the credentials do not permit the request."""


class UnauthorizedError(ForbiddenError):
    """401: the credentials are invalid or expired."""


class TerminatingError(ForbiddenError):
    """403: the namespace is being deleted and accepts no new objects."""


class InvalidError(ApiError):
    """400, 413, 422: the object or the request is invalid."""


class UnknownKindError(ApiError):
    """The API server does not serve this kind or subresource: its CRD may be missing."""


class TooLargeError(ApiError):
    """The answer is larger than the client reads."""


class CredentialsError(ApiError):
    """No API server or credentials are configured."""


class TransientError(ApiError):
    """429, 5xx, timeouts, broken connections: a retry may succeed. `retry_after`: seconds to wait before it."""

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


async def persist(
    ask: Callable[[], Awaitable[T]],
    *,
    seconds: float,
    attempts: int = _MAX_ATTEMPTS,
    errors: tuple[type[ApiError], ...] = (TransientError, ConflictError),
) -> T:
    """Retry an idempotent request with growing pauses; ApiError: not one of `errors`, or the last within `seconds`."""
    begun, attempt, pause = time.monotonic(), 1, _FIRST_PAUSE_SECONDS
    while True:
        try:
            return await ask()
        except ApiError as error:
            # At least as long as the API server asked for.
            wait = max(pause, error.retry_after) if isinstance(error, TransientError) else pause
            is_late = time.monotonic() - begun + wait >= seconds
            if not isinstance(error, errors) or attempt == attempts or is_late:
                error.attempts *= attempt
                raise
            _log.warning("%s; retrying in %.1f s", error, wait)
        await asyncio.sleep(wait)
        attempt, pause = attempt + 1, min(2 * pause, _LONGEST_PAUSE_SECONDS)
