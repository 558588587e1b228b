"""Reads the bodies of requests, with limits on size and time, so that no client delays another.

All clients post at the same time. Small documents are read immediately. Only a few larger ones are read at a time, each
while it keeps up a minimum rate; unread data stays with the client and takes no memory here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from plimsoll.protocol.messages import MAX_DOCUMENT_BYTES, MAX_MESSAGE_BYTES

_BODY_SECONDS = 10.0
"""Time limit of a small body."""

_SMALL_BYTES = 128 * 2**10
"""Size up to which a body is read without a turn."""

_LARGE_AT_ONCE = 4
_PACE_BYTES = 2**20
"""Minimum rate of a large body, per second."""

_PACE_GRACE_SECONDS = 2.0
"""Time by which a large body may fall behind; longer than the event loop is busy with other documents."""


class TooLargeError(Exception):
    """A body exceeds the size limit in the message."""


class Bodies:
    """Reads the bodies of all requests to one conductor."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._posting: dict[int, asyncio.Timeout] = {}

    async def message(self, request: web.Request) -> bytes:
        """Return the body of any message except a result.

        Raises:
            TooLargeError: it exceeds the limit.
            HTTPServiceUnavailable: it did not arrive in time.

        """
        async with _in_time(_BODY_SECONDS):
            return await _Body(request, MAX_MESSAGE_BYTES).read(MAX_MESSAGE_BYTES)

    async def document(self, request: web.Request, client: int) -> bytes:
        """Return the body of a client's result. A new post of the same client ends the earlier one.

        Raises:
            TooLargeError: it exceeds the limit.
            HTTPServiceUnavailable: it did not arrive in time, or the client has started another post.

        """
        async with _in_time(None) as mine:
            earlier = self._posting.get(client)
            if earlier is not None:
                earlier.reschedule(asyncio.get_running_loop().time())
            self._posting[client] = mine
            try:
                return await self._document(_Body(request, MAX_DOCUMENT_BYTES))
            finally:
                if self._posting.get(client) is mine:
                    del self._posting[client]

    async def _document(self, body: "_Body") -> bytes:
        async with _in_time(_BODY_SECONDS):
            content = await body.read(_SMALL_BYTES)
        if body.is_complete:
            return content
        async with self._turns, _in_time(_PACE_GRACE_SECONDS) as deadline:
            return await body.read_at_pace(deadline)


class _Body:
    """The part of one body that has arrived."""

    def __init__(self, request: web.Request, limit: int) -> None:
        self._request = request
        self._limit = limit
        self._content = bytearray()
        self._check(request.content_length or 0)

    @property
    def is_complete(self) -> bool:
        return self._request.content.at_eof()

    async def read(self, enough: int) -> bytes:
        """Read until the body is complete or exceeds `enough` bytes."""
        while len(self._content) <= enough and await self._read_some():
            pass
        return bytes(self._content)

    async def read_at_pace(self, deadline: asyncio.Timeout) -> bytes:
        """Read the rest, and extend the deadline by the data that arrives."""
        begun, before = deadline.when() or 0.0, len(self._content)
        while await self._read_some():
            deadline.reschedule(begun + (len(self._content) - before) / _PACE_BYTES)
        return bytes(self._content)

    async def _read_some(self) -> bool:
        self._content += await self._request.content.readany()
        self._check(len(self._content))
        return not self.is_complete

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLargeError(f"the body is larger than {_size(self._limit)}")


@asynccontextmanager
async def _in_time(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Answer with 503 if the context takes too long or the client disconnects: it may have died while sending."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield deadline
    except (TimeoutError, ConnectionError) as error:
        raise web.HTTPServiceUnavailable(text="the body did not arrive in time; send it again") from error


def _size(limit: int) -> str:
    return f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"
