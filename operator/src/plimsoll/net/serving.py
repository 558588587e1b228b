"""An HTTP server behind a listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from plimsoll.net.listener import Listener

_SHUTDOWN_SECONDS = 1.0
"""Whoever does not take their answer shall not keep the process from ending."""


@asynccontextmanager
async def serving_requests(
    application: web.Application, listener: Listener, host: str | None, port: int, *, idle_seconds: float
) -> AsyncIterator[int]:
    """Answer requests meanwhile, and yield the port: with port 0 a free one.

    A connection that is idle for `idle_seconds`, or takes that long over the head of a request, is closed.

    Raises:
        OSError: if nothing can listen there.

    """
    # Answers are not logged: there are several every second.
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        keepalive_timeout=idle_seconds,
        # Nobody who is expected here compresses what they send.
        auto_decompress=False,
    )
    await runner.setup()
    try:
        if runner.server is None:
            raise TypeError(runner)
        async with listener.listening(runner.server, host, port) as taken:
            yield taken
    finally:
        await runner.cleanup()
