"""Serves plain HTTP at an address that a user writes, such as `http://0.0.0.0:8081/metrics`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web

from plimsoll.net.listener import Listener, ListenerLimits, serving_requests

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LIMITS = ListenerLimits(strangers=64, stranger_seconds=60.0)
"""Clients are not authenticated: a connection serves one request and ends, whether or not the client reads it."""

_IDLE_SECONDS = 5.0


class AddressError(Exception):
    """The address cannot be served; the message has the reason."""


@asynccontextmanager
async def serving_address(address: str, answer: Answer, *, example: str, **others: Answer) -> AsyncIterator[int]:
    """Answer requests for the address, and for `others` next to it by name; yield the port: with port 0 a free one.

    `http://:8081/metrics` means all addresses, of IPv4 and of IPv6. AddressError: the address is invalid or in use; the
    message shows `example`.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"{address}: {error}; write it as {example}") from error
    if parts.scheme != "http" or port is None or not parts.path.startswith("/"):
        raise AddressError(f"{address} is not a valid address; write it as {example}")

    application = web.Application()
    application.router.add_get(parts.path, answer)
    for name, other in others.items():
        application.router.add_get(f"{parts.path.rpartition('/')[0]}/{name}", other)
    async with AsyncExitStack() as stack:
        try:
            server = serving_requests(application, Listener(_LIMITS), parts.hostname, port, idle_seconds=_IDLE_SECONDS)
            taken = await stack.enter_async_context(server)
        except OSError as error:
            raise AddressError(
                f"{address}: cannot listen ({error.strerror or error}); choose another address"
            ) from error
        yield taken
