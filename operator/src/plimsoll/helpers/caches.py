"""The helper that drops the caches of a node. Its one request is `POST /drop` with the token of a run's conductor."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from aiohttp import web

from plimsoll.api.json_reader import JsonNode
from plimsoll.api.surroundings import MAX_LISTED, NodeCaches, OsdCaches
from plimsoll.ceph.document import parse_answer
from plimsoll.conductor.ceph.commands import CommandError, Commands
from plimsoll.helpers.authority import DROPPING, Turns
from plimsoll.helpers.server import RefusedError, Username, answer, authorized_user, read_body, refuse
from plimsoll.protocol.helpers import DROP_PATH, MAX_DROP_REQUEST_BYTES, CacheDrop, DropRequest

_ANSWER_SECONDS = 30.0  # an OSD writes dirty metadata before it drops its caches
_STALLED_SECONDS = 240.0  # all dirty data takes as long as the node's slowest file system; the agent waits for 300 s

_log = logging.getLogger(__name__)


async def drop_osd_caches(commands: Commands | None, fsid: str) -> OsdCaches:
    """Have all OSDs that are up drop their caches, or return why not, without a key. RefusedError: one failed."""
    if commands is None:
        return OsdCaches(count=0, reason="the helper has no key of a Ceph administrator (caches.ceph of the chart)")
    try:
        dump = parse_answer(await commands.ceph("osd", "dump"))
        if dump["fsid"].text() != fsid:
            return OsdCaches(count=0, reason="the helper's key is for another Ceph cluster")
        numbers = osds_up(dump)
        for number in numbers:
            await commands.drop_cache(number, limit_seconds=_ANSWER_SECONDS)
    except (CommandError, ValueError) as error:
        raise RefusedError(502, f"the OSDs did not drop their caches: {error}") from error
    finally:
        await commands.close()
    return OsdCaches(count=len(numbers), osds=numbers[:MAX_LISTED])


def osds_up(dump: JsonNode) -> tuple[int, ...]:
    """Return the numbers of the OSDs that are up in the output of `ceph osd dump`; ValueError if it has none."""
    numbers = tuple(sorted(osd["osd"].count() for osd in dump["osds"].elements() if osd["up"].count()))
    if not numbers:
        raise ValueError("no OSD is up")
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a helper does for whom."""

    allowed: Collection[str]  # namespaces whose ServiceAccounts may have caches dropped, or `*` for all
    username: Username
    drop: Callable[[], NodeCaches]  # drops the caches of the node, in a thread
    commands: Commands | None = None  # Ceph's commands as an administrator; None without a key


class Helper:
    """Drops the caches of one node. `know` is called with each connection that has authenticated."""

    def __init__(
        self, abilities: Abilities, *, know: Callable[[web.RequestHandler], None], turns: Turns | None = None
    ) -> None:
        self._abilities = abilities
        self._know = know
        self._turns = turns or Turns()
        self._stalled: asyncio.Task[NodeCaches] | None = None

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_DROP_REQUEST_BYTES)
        application.router.add_post(DROP_PATH, self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            user = await authorized_user(request, self._abilities.username, DROPPING, self._abilities.allowed)
            self._know(request.protocol)
            wanted = await read_body(request, DropRequest)
            if wait := self._turns.take(time.monotonic()):
                words = "the caches of this node are dropped one at a time, with pauses"
                return refuse(RefusedError(429, words, retry_after=wait))
            # Not cancelled with the request: the next one has to wait until the caches are dropped.
            dropped = await asyncio.shield(asyncio.ensure_future(self._take_turn(wanted)))
        except RefusedError as refused:
            return refuse(refused)
        before, after = dropped.node.before_bytes, dropped.node.after_bytes
        _log.info("dropped the caches for %s: %d -> %d bytes", user, before, after)
        return answer(200, dropped)

    async def _take_turn(self, wanted: DropRequest) -> CacheDrop:
        try:
            # In a thread, which nothing can end while a file system does not answer it.
            if self._stalled is None or self._stalled.done():
                self._stalled = asyncio.create_task(asyncio.to_thread(self._abilities.drop))
                await asyncio.wait({self._stalled}, timeout=_STALLED_SECONDS)
            if not self._stalled.done():
                problem = f"the dirty data of this node was not written within {_STALLED_SECONDS:g} s"
                remedy = "one of its file systems does not answer; check the mounts of the node"
                raise RefusedError(500, f"{problem}: {remedy}")
            node = await self._stalled
            # After the node, whose dirty data may go to the OSDs.
            osds = await drop_osd_caches(self._abilities.commands, wanted.fsid) if wanted.fsid else None
            return CacheDrop(node=node, osds=osds)
        except (OSError, ValueError) as error:
            raise RefusedError(500, f"cannot drop the caches of this node: {error}") from error
        finally:
            self._turns.end(time.monotonic())
