"""Serves metrics to Prometheus: one path, plain HTTP, read-only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from plimsoll.net.listener import Listener, ListenerLimits
from plimsoll.net.serving import serving_requests

_COMPRESS_IN_THREAD_BYTES = 4096

_LIMITS = ListenerLimits(strangers=64, stranger_seconds=60.0)
"""Clients are not authenticated: a connection serves one scrape and ends, whether or not the client reads it."""

_IDLE_SECONDS = 5.0


class AddressError(Exception):
    """The address cannot be served; the message has the reason."""


@asynccontextmanager
async def serving(address: str, snapshot: Callable[[], Collector]) -> AsyncIterator[int]:
    """Serve at an address such as `http://0.0.0.0:8081/metrics`, and yield the port: with port 0 a free one.

    `http://:8081/metrics` means all addresses, of IPv4 and of IPv6.

    `snapshot` is called in the event loop and must be quick. A thread collects and writes its result, since thousands
    of results would block the loop, so the result must not change meanwhile.

    Raises:
        AddressError: the address is invalid or in use.

    """
    host, port, path = _parts(address)
    application = web.Application()
    application.router.add_get(path, _Handler(snapshot).answer)
    async with AsyncExitStack() as stack:
        try:
            server = serving_requests(application, Listener(_LIMITS), host, port, idle_seconds=_IDLE_SECONDS)
            taken = await stack.enter_async_context(server)
        except OSError as error:
            raise AddressError(
                f"{address}: cannot listen ({error.strerror or error}); choose another address"
            ) from error
        yield taken


class _Handler:
    """One scrape at a time: two at once need more memory and are no faster."""

    def __init__(self, snapshot: Callable[[], Collector]) -> None:
        self._snapshot = snapshot
        self._turn = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Return all metrics, in the requested format."""
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
        raise AddressError(f"{address} is not a valid metrics address; write it as http://0.0.0.0:8081/metrics")
    return parts.hostname, port, parts.path
