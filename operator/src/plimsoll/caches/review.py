"""Asks the API server whose token a request carries."""

import asyncio
from typing import Any

from plimsoll.kube.client import AioKube
from plimsoll.protocol.helpers import CACHES_AUDIENCE

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_AT_ONCE = 4


class TokenReviews(AioKube):
    """A connection that reviews tokens, a few at a time: anybody who reaches the helper can send some."""

    def __init__(self, audience: str = CACHES_AUDIENCE) -> None:
        """Use the pod's credentials."""
        super().__init__()
        self._audience = audience
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def username(self, token: str) -> str | None:
        """Return the user that a token for that audience belongs to; None if it is not valid. Raises ApiError."""
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        async with self._turns:
            answer = await self._ask("post", _PATH, None, "create TokenReview", body=review)
        return reviewed_user(answer, self._audience)


def reviewed_user(review: dict[str, Any], audience: str = CACHES_AUDIENCE) -> str | None:
    """Return the user of a TokenReview that confirms the audience; None if it does not.

    An API server whose authenticator does not know audiences confirms none.
    """
    status = review.get("status") or {}
    if not status.get("authenticated") or audience not in (status.get("audiences") or ()):
        return None
    return str((status.get("user") or {}).get("username") or "") or None
