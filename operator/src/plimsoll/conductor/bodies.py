"""Reads the bodies of requests: none is too large, none arrives too slowly, and none waits for a slow one of another.

All clients post at the same moment. Most documents are small and are read as they come. Of larger ones only a few are
read at a time, each as long as it keeps up a pace; what is not read yet waits with the client and takes no memory here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from plimsoll.protocol.messages import MAX_DOCUMENT_BYTES, MAX_MESSAGE_BYTES

_BODY_SECONDS = 10.0
"""For all of a small body."""

_SMALL_BYTES = 128 * 2**10
"""A body is read so far without waiting for its turn."""

_LARGE_AT_ONCE = 4
_PACE_BYTES = 2**20
"""A large body whose turn it is has to bring so much every second ..."""

_PACE_GRACE_SECONDS = 2.0
"""... and may be late by this much; longer than the loop is busy with the documents of others."""


class TooLargeError(Exception):
    """A body is larger than its kind may be; the message says by which limit."""


class Bodies:
    """Reads the bodies of all requests to one conductor."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._turns = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._posting: dict[int, asyncio.Timeout] = {}

    async def message(self, request: web.Request) -> bytes:
        """Return the body of anything but a result.

        Raises:
            TooLargeError: if it is larger than any such message.
            HTTPServiceUnavailable: if it does not arrive in time.

        """
        async with _in_time(_BODY_SECONDS):
            return await _Body(request, MAX_MESSAGE_BYTES).read(MAX_MESSAGE_BYTES)

    async def document(self, request: web.Request, client: int) -> bytes:
        """Return the body of a client's result; of each client one is read at a time, the one that began last.

        Raises:
            TooLargeError: if it is larger than any document.
            HTTPServiceUnavailable: if it does not arrive in time, or the client has begun to send another.

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
    """What has arrived of one body."""

    def __init__(self, request: web.Request, limit: int) -> None:
        self._request = request
        self._limit = limit
        self._content = bytearray()
        self._check(request.content_length or 0)

    @property
    def is_complete(self) -> bool:
        return self._request.content.at_eof()

    async def read(self, enough: int) -> bytes:
        """Read until it is complete, or more than `enough` is there."""
        while len(self._content) <= enough and await self._read_some():
            pass
        return bytes(self._content)

    async def read_at_pace(self, deadline: asyncio.Timeout) -> bytes:
        """Read the rest, and put the deadline off for as long as what arrives allows."""
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
    """Do not wait for somebody who has died while sending, or pretends to; who is gone needs no answer."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield deadline
    except (TimeoutError, ConnectionError) as error:
        raise web.HTTPServiceUnavailable(text="the body did not arrive in time; send it again") from error


def _size(limit: int) -> str:
    return f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"
