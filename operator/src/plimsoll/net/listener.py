"""Accepts connections for an HTTP server; the number and time of unauthenticated ones ("strangers") are bounded.

Strangers are refused by closing the connection before TLS allocates buffers for it.
"""

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from plimsoll.net.crowd import Crowd, Stranger

_BACKLOG = 1024
_ACCEPT_PAUSE_SECONDS = 0.5
_SHUTDOWN_SECONDS = 1.0  # a client that does not read its answer must not keep the process from exiting

# asyncio would allocate 256 KiB for each TLS connection: half of the memory of a conductor with a thousand agents.
sslproto.SSLProtocol.max_size = 32 * 1024

_log = logging.getLogger(__name__)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What a server tolerates."""

    strangers: int  # number of connections that have not authenticated
    stranger_seconds: float  # time that a connection has to authenticate
    patience_seconds: float = 2.0  # when strangers hold all places, one this old gives way to a new one
    connections: int = 8  # number of connections of one authenticated client; the newest are kept


# Clients are not authenticated: a connection serves one request and ends, whether or not the client reads it.
_AT_ADDRESS = ListenerLimits(strangers=64, stranger_seconds=60.0)
_IDLE_SECONDS = 5.0


class AddressError(Exception):
    """The address cannot be served; the message has the reason."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Visit(Stranger):
    """The connection of a stranger; `protocol` is set once the TLS handshake starts."""

    socket: socket.socket
    timer: asyncio.TimerHandle | None = None  # None once it is a stranger no more
    protocol: web.RequestHandler | None = None


class Listener:
    """Passes connections to an HTTP server, which calls `know` for those that have authenticated."""

    def __init__(self, limits: ListenerLimits, *, tls: ssl.SSLContext | None = None) -> None:
        """Create a listener without sockets; `tls` is None for plain HTTP."""
        self._limits = limits
        self._tls = tls
        self._crowd = Crowd[_Visit](most=limits.strangers, patience_seconds=limits.patience_seconds)
        self._strangers: dict[web.RequestHandler, _Visit] = {}
        self._known: defaultdict[int, list[web.RequestHandler]] = defaultdict(list)
        self._handshakes: set[asyncio.Task[None]] = set()

    def know(self, protocol: web.RequestHandler, client: int) -> None:
        """Keep a connection that `client` has authenticated, and close its oldest ones beyond the limit."""
        if protocol not in self._strangers:
            return
        self._forget(self._strangers[protocol])
        connections = [*(other for other in self._known[client] if other.transport is not None), protocol]
        while len(connections) > self._limits.connections:
            _hang_up(connections.pop(0))
        self._known[client] = connections

    @asynccontextmanager
    async def listening(self, server: web.Server, host: str | None, port: int) -> AsyncIterator[int]:
        """Accept connections on a host (default: all addresses), and yield the port; OSError if it is not available."""
        sockets = _bind(host, port)
        accepting = [asyncio.create_task(self._accept(server, listening)) for listening in sockets]
        try:
            yield int(sockets[0].getsockname()[1])
        finally:
            for task in accepting:
                task.cancel()
            await asyncio.gather(*accepting, return_exceptions=True)
            for listening in sockets:
                listening.close()
            for visit in self._crowd:
                self._dismiss(visit)
            await asyncio.gather(*self._handshakes, return_exceptions=True)

    async def _accept(self, server: web.Server, listening: socket.socket) -> None:
        while True:
            await _until_readable(listening)
            try:
                connection, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as error:
                _log.warning("cannot accept connections: %s", error)
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            connection.settimeout(0)
            loop = asyncio.get_running_loop()
            visit = _Visit(address=str(address[0]), since=loop.time(), socket=connection)
            victim = self._crowd.admit(visit)
            if victim is visit:
                connection.close()
                continue
            if victim is not None:
                self._dismiss(victim)
            visit.timer = loop.call_later(self._limits.stranger_seconds, self._dismiss, visit)
            handshake = asyncio.create_task(self._shake_hands(server, visit))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, server: web.Server, visit: _Visit) -> None:
        def connect() -> web.RequestHandler:
            protocol = server()
            if visit.timer is not None:
                visit.protocol = protocol
                self._strangers[protocol] = visit
            return protocol

        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.connect_accepted_socket(connect, visit.socket, ssl=self._tls)
        except OSError as error:
            _log.debug("the handshake with %s failed: %s", visit.address, error)
            self._forget(visit)
        else:
            if protocol.transport is None:
                self._forget(visit)

    def _dismiss(self, visit: _Visit) -> None:
        if not self._forget(visit):
            return
        if visit.protocol is not None and visit.protocol.transport is not None:
            _hang_up(visit.protocol)
            return
        # This fails the handshake, which then closes the socket.
        with suppress(OSError):
            visit.socket.shutdown(socket.SHUT_RDWR)

    def _forget(self, visit: _Visit) -> bool:
        """Return whether it was still a stranger."""
        if visit.timer is None:
            return False
        visit.timer.cancel()
        visit.timer = None
        self._crowd.remove(visit)
        if visit.protocol is not None:
            self._strangers.pop(visit.protocol, None)
        return True


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


@asynccontextmanager
async def serving_address(address: str, answer: Answer, *, example: str, **others: Answer) -> AsyncIterator[int]:
    """Answer plain HTTP requests for an address as users write it, and for `others` next to it by name; yield the port.

    `http://:8081/metrics` means all addresses, port 0 a free one. AddressError, with `example`: invalid or in use.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme != "http" or parts.port is None or not parts.path.startswith("/"):
            raise ValueError("is not a valid address")  # noqa: TRY301 - handled like an invalid port
    except ValueError as error:
        raise AddressError(f"{address}: {error}; write it as {example}") from error
    application = web.Application()
    application.router.add_get(parts.path, answer)
    for name, other in others.items():
        application.router.add_get(f"{parts.path.rpartition('/')[0]}/{name}", other)
    async with AsyncExitStack() as stack:
        try:
            listener, host = Listener(_AT_ADDRESS), parts.hostname
            server = serving_requests(application, listener, host, parts.port, idle_seconds=_IDLE_SECONDS)
            taken = await stack.enter_async_context(server)
        except OSError as error:
            reason = error.strerror or error
            raise AddressError(f"{address}: cannot listen ({reason}); choose another address") from error
        yield taken


async def _until_readable(listening: socket.socket) -> None:
    """Wait for a connection without accepting it: a cancelled `sock_accept` loses the socket that it has accepted."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(listening, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(listening)


def _hang_up(protocol: web.RequestHandler) -> None:
    """Abort a connection without a TLS shutdown, for which the peer might never answer."""
    if protocol.transport is not None:
        protocol.transport.abort()


def _bind(host: str | None, port: int) -> list[socket.socket]:
    """Return listening sockets for all addresses of a host (default: this machine) whose family the kernel supports."""
    infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    kinds = set[int]()
    for family in {family for family, *_ in infos}:
        with suppress(OSError):
            socket.socket(family, socket.SOCK_STREAM).close()
            kinds.add(family)
    addresses = dict.fromkeys((family, address) for family, *_, address in infos if family in kinds)
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            # create_server makes IPv6 sockets IPv6-only; IPv4 has its own socket.
            sockets.append(socket.create_server(address, family=family, backlog=_BACKLOG))
            sockets[-1].settimeout(0)
    except OSError:
        for listening in sockets:
            listening.close()
        raise
    return sockets
