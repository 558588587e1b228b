"""What both helpers do with a request: admit its sender by a token, read its body, and refuse it."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from aiohttp import web
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.model import Model
from plimsoll.helpers.authority import Service, refusal_of
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import ApiError
from plimsoll.protocol.helpers import CACHES_AUDIENCE, MAX_TOKEN_CHARACTERS, HelperRefusal

_BODY_SECONDS = 5.0
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_REVIEWS_AT_ONCE = 4

_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Model)

Username = Callable[[str], Awaitable[str | None]]  # returns the user that a token belongs to, or None


class RefusedError(Exception):
    """A request is refused with a status and a message."""

    def __init__(self, status: int, message: str, *, retry_after: float = 0.0) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


async def authorized_user(request: web.Request, username: Username, service: Service, allowed: Collection[str]) -> str:
    """Return the user whose token a request carries; RefusedError without one that may use the service."""
    token = bearer_token(request.headers.get("Authorization", ""))
    if not token or len(token) > MAX_TOKEN_CHARACTERS:
        raise RefusedError(401, "the request has no valid bearer token; send the token of a run's pod")
    try:
        user = await username(token)
    except ApiError as error:
        raise RefusedError(503, f"the token could not be reviewed: {error}") from error
    if user is None:
        raise RefusedError(401, f"the token is not valid, or not for a helper to {service.action}")
    if problem := refusal_of(user, service, allowed):
        raise RefusedError(403, problem)
    return user


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header; empty if there is none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def read_body(request: web.Request, model: type[M]) -> M:
    """Return the body of a request; RefusedError if it is not valid, or does not arrive in time."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return model.model_validate_json(await request.read())
    except TimeoutError:
        raise RefusedError(408, f"the request did not arrive within {_BODY_SECONDS:g} s") from None
    except ValidationError as error:
        raise RefusedError(400, "; ".join(map(str, problems_of(error)))) from error


def answer(status: int, model: Model) -> web.Response:
    return web.Response(status=status, text=model.model_dump_json(exclude_none=True), content_type="application/json")


def refuse(refused: RefusedError) -> web.Response:
    _log.info("refused with status %d: %s", refused.status, refused)
    response = answer(refused.status, HelperRefusal(message=str(refused)))
    if refused.retry_after:
        response.headers["Retry-After"] = str(math.ceil(refused.retry_after))
    return response


class TokenReviews(AioKube):
    """A connection that reviews tokens, a few at a time: anybody may send them."""

    def __init__(self, audience: str = CACHES_AUDIENCE) -> None:
        """Use the pod's credentials."""
        super().__init__()
        self._audience = audience
        self._turns = asyncio.Semaphore(_REVIEWS_AT_ONCE)

    async def username(self, token: str) -> str | None:
        """Return the user that a token for that audience belongs to; None if it is not valid. Raises ApiError."""
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        async with self._turns:
            reviewed = await self._ask("post", _REVIEWS, None, "create TokenReview", body=review)
        return reviewed_user(reviewed, self._audience)


def reviewed_user(review: dict[str, Any], audience: str = CACHES_AUDIENCE) -> str | None:
    """Return the user of a TokenReview; None unless it confirms the audience, as API servers that know audiences do."""
    status = review.get("status") or {}
    if not status.get("authenticated") or audience not in (status.get("audiences") or ()):
        return None
    return str((status.get("user") or {}).get("username") or "") or None
