"""Answers Prometheus: one path, plain HTTP, read only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from plimsoll.net.listener import Limits, Listener
from plimsoll.net.serving import serving_requests

_COMPRESS_IN_THREAD_BYTES = 4096

_LIMITS = Limits(strangers=64, stranger_seconds=60.0)
"""Nobody proves anything here: a connection serves one scrape and ends, with or without the answer taken."""

_IDLE_SECONDS = 5.0


class AddressError(Exception):
    """Nothing can be served at this address; the message says why."""


@asynccontextmanager
async def serving(address: str, snapshot: Callable[[], Collector]) -> AsyncIterator[int]:
    """Serve at an address as `http://0.0.0.0:8081/metrics`, and yield the port: with port 0 a free one.

    `http://:8081/metrics` means all addresses, of IPv4 and of IPv6.

    `snapshot` is called in the event loop and must be quick. What it returns is collected and written in a thread,
    so that whatever changes meanwhile must not be part of it: thousands of results would hold up the loop.

    Raises:
        AddressError: if the address is none, or is taken.

    """
    host, port, path = _parts(address)
    application = web.Application()
    application.router.add_get(path, _Scraped(snapshot).answer)
    async with AsyncExitStack() as stack:
        try:
            server = serving_requests(application, Listener(_LIMITS), host, port, idle_seconds=_IDLE_SECONDS)
            taken = await stack.enter_async_context(server)
        except OSError as error:
            raise AddressError(f"{address}: cannot listen there ({error.strerror or error}); choose another") from error
        yield taken


class _Scraped:
    """One scrape at a time: two at once would need the memory of both and be no faster."""

    def __init__(self, snapshot: Callable[[], Collector]) -> None:
        self._snapshot = snapshot
        self._turn = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Return all metrics, in the format that is asked for."""
        write, content_type = choose_encoder(",".join(request.headers.getall(hdrs.ACCEPT, [])))
        async with self._turn:
            body = await asyncio.to_thread(write, self._snapshot())
        response = web.Response(
            body=body, headers={hdrs.CONTENT_TYPE: content_type}, zlib_executor_size=_COMPRESS_IN_THREAD_BYTES
        )
        response.enable_compression()
        response.force_close()
        return response


def _parts(address: str) -> tuple[str | None, int, str]:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"{address}: {error}; write it as http://0.0.0.0:8081/metrics") from error
    if parts.scheme != "http" or port is None or not parts.path.startswith("/"):
        raise AddressError(f"{address} is no address to serve metrics at; write it as http://0.0.0.0:8081/metrics")
    return parts.hostname, port, parts.path
