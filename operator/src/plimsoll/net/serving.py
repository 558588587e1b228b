"""An HTTP server behind a listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from plimsoll.net.listener import Listener

_SHUTDOWN_SECONDS = 1.0
"""A client that does not read its answer must not keep the process from exiting."""


@asynccontextmanager
async def serving_requests(
    application: web.Application, listener: Listener, host: str | None, port: int, *, idle_seconds: float
) -> AsyncIterator[int]:
    """Answer requests within the context and yield the port; port 0 selects a free one. OSError if it is not available.

    A connection that is idle, or sends the head of a request, for longer than `idle_seconds` is closed.
    """
    runner = web.AppRunner(
        application,
        access_log=None,  # several requests arrive every second
        shutdown_timeout=_SHUTDOWN_SECONDS,
        keepalive_timeout=idle_seconds,
        auto_decompress=False,  # agents do not compress
    )
    await runner.setup()
    try:
        if runner.server is None:
            raise TypeError(runner)
        async with listener.listening(runner.server, host, port) as taken:
            yield taken
    finally:
        await runner.cleanup()
