"""The helper's one request: `POST /drop` with the token of a run's conductor."""

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.model import Model
from plimsoll.api.surroundings import MAX_LISTED, NodeCaches, OsdCaches
from plimsoll.conductor.ceph.commands import CommandError, Commands
from plimsoll.helpers.authority import Turns, bearer_token, drop_refusal
from plimsoll.kube.client import AioKube
from plimsoll.kube.errors import ApiError
from plimsoll.protocol.helpers import (
    CACHES_AUDIENCE,
    DROP_PATH,
    MAX_DROP_REQUEST_BYTES,
    MAX_TOKEN_CHARACTERS,
    CacheDrop,
    DropRefusal,
    DropRequest,
)

_ANSWER_SECONDS = 30.0
"""An OSD writes dirty metadata before it drops its caches."""


class OsdsError(Exception):
    """An OSD did not drop its caches, or the cluster did not answer; the message has the reason."""


async def drop_osd_caches(commands: Commands | None, fsid: str) -> OsdCaches:
    """Have every OSD that is up drop its caches; without a key for that cluster, return why not.

    Raises:
        OsdsError: Ceph did not answer, or an OSD failed.

    """
    if commands is None:
        return OsdCaches(count=0, reason="the helper has no key of a Ceph administrator (caches.ceph of the chart)")
    try:
        dump = _parsed(await commands.ceph("osd", "dump"))
        if dump.get("fsid") != fsid:
            return OsdCaches(count=0, reason="the helper's key is for another Ceph cluster")
        numbers = osds_up(dump)
        for number in numbers:
            await commands.ceph("tell", f"osd.{number}", "cache", "drop", limit_seconds=_ANSWER_SECONDS)
    except (CommandError, ValueError) as error:
        message = f"the OSDs did not drop their caches: {error}"
        raise OsdsError(message) from error
    finally:
        await commands.close()
    return OsdCaches(count=len(numbers), osds=numbers[:MAX_LISTED])


def osds_up(dump: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of the OSDs that are up in the output of `ceph osd dump`; ValueError if it has none."""
    try:
        numbers = tuple(sorted(int(osd["osd"]) for osd in dump["osds"] if osd["up"]))
    except (LookupError, TypeError) as error:
        message = f"`ceph osd dump` has an unknown format: {error!r}"
        raise ValueError(message) from error
    if not numbers:
        raise ValueError("no OSD is up")
    return numbers


def _parsed(text: str) -> Mapping[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("`ceph osd dump` printed no JSON object")  # noqa: TRY004 - of the data, not of the caller
    return document


_BODY_SECONDS = 5.0
_STALLED_SECONDS = 240.0
"""Writing all dirty data takes as long as the slowest file system of the node; the agent waits for 300 s."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a helper does for whom.

    Attributes:
        allowed: namespaces whose ServiceAccounts may have caches dropped, or `*` for all.
        username: returns the user that a token belongs to, or None.
        drop: drops the caches of the node, in a thread.
        commands: Ceph's commands as an administrator; None without a key.

    """

    allowed: Collection[str]
    username: Callable[[str], Awaitable[str | None]]
    drop: Callable[[], NodeCaches]
    commands: Commands | None = None


class _RefusedError(Exception):
    """A request is refused with a status and a message."""

    def __init__(self, status: int, message: str, *, retry_after: float = 0.0) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class Helper:
    """Drops the caches of one node. `know` is called with each connection that has authenticated."""

    def __init__(
        self, abilities: Abilities, *, know: Callable[[web.RequestHandler], None], turns: Turns | None = None
    ) -> None:
        """Serve nothing yet; see `application`."""
        self._abilities = abilities
        self._know = know
        self._turns = turns or Turns()
        self._stalled: asyncio.Task[NodeCaches] | None = None

    def application(self) -> web.Application:
        """Return the application with its one route."""
        application = web.Application(client_max_size=MAX_DROP_REQUEST_BYTES)
        application.router.add_post(DROP_PATH, self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            return _response(200, await self._drop(request))
        except _RefusedError as refused:
            _log.info("refused with status %d: %s", refused.status, refused)
            response = _response(refused.status, DropRefusal(message=str(refused)))
            if refused.retry_after:
                response.headers["Retry-After"] = str(math.ceil(refused.retry_after))
            return response

    async def _drop(self, request: web.Request) -> CacheDrop:
        user = await self._authorized_user(request)
        self._know(request.protocol)
        wanted = await _body(request)
        if wait := self._turns.take(time.monotonic()):
            raise _RefusedError(429, "the caches of this node are dropped one at a time, with pauses", retry_after=wait)
        # Not cancelled with the request: the next one has to wait until the caches are dropped.
        dropping = asyncio.ensure_future(self._take_turn(wanted))
        dropped = await asyncio.shield(dropping)
        _log.info(
            "dropped the caches for %s: %d -> %d bytes", user, dropped.node.before_bytes, dropped.node.after_bytes
        )
        return dropped

    async def _take_turn(self, wanted: DropRequest) -> CacheDrop:
        try:
            # Its dirty data may go to the OSDs.
            node = await self._drop_node()
            osds = await drop_osd_caches(self._abilities.commands, wanted.fsid) if wanted.fsid else None
            return CacheDrop(node=node, osds=osds)
        except OsdsError as error:
            raise _RefusedError(502, str(error)) from error
        except (OSError, ValueError) as error:
            raise _RefusedError(500, f"cannot drop the caches of this node: {error}") from error
        finally:
            self._turns.end(time.monotonic())

    async def _drop_node(self) -> NodeCaches:
        """Drop the caches in a thread, which nothing can end while a file system does not answer it."""
        if self._stalled is None or self._stalled.done():
            self._stalled = asyncio.create_task(asyncio.to_thread(self._abilities.drop))
            await asyncio.wait({self._stalled}, timeout=_STALLED_SECONDS)
        if not self._stalled.done():
            message = (
                f"the dirty data of this node was not written within {_STALLED_SECONDS:g} s: one of its file systems "
                "does not answer; check the mounts of the node"
            )
            raise _RefusedError(500, message)
        return await self._stalled

    async def _authorized_user(self, request: web.Request) -> str:
        token = bearer_token(request.headers.get("Authorization", ""))
        if not token or len(token) > MAX_TOKEN_CHARACTERS:
            raise _RefusedError(401, "the request has no valid bearer token; send the token of a run's conductor")
        try:
            user = await self._abilities.username(token)
        except ApiError as error:
            raise _RefusedError(503, f"the token could not be reviewed: {error}") from error
        if user is None:
            raise _RefusedError(401, "the token is not valid, or not for the helpers that drop caches")
        if problem := drop_refusal(user, self._abilities.allowed):
            raise _RefusedError(403, problem)
        return user


async def _body(request: web.Request) -> DropRequest:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return DropRequest.model_validate_json(await request.read())
    except TimeoutError:
        raise _RefusedError(408, f"the request did not arrive within {_BODY_SECONDS:g} s") from None
    except ValidationError as error:
        raise _RefusedError(400, "; ".join(map(str, problems_of(error)))) from error


def _response(status: int, model: Model) -> web.Response:
    return web.Response(status=status, text=model.model_dump_json(exclude_none=True), content_type="application/json")


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
