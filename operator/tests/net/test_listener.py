"""Strangers of a server over real sockets: silent ones, slow ones, many of them."""

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from plimsoll.conductor.secret import server_context, write_session
from plimsoll.net.listener import Listener, ListenerLimits, serving_requests

LONG = 600.0
WAIT_SECONDS = 60.0
"""Deadline of an event that must happen."""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    write_session(tmp_path / "secret", 1)
    return tmp_path / "secret"


class Door:
    """A server that trusts a header `Client: N`, and holds requests for /held until released."""

    def __init__(self, limits: ListenerLimits, tls: ssl.SSLContext | None) -> None:
        self.listener = Listener(limits, tls=tls)
        self._scheme = "http" if tls is None else "https"
        self.release = asyncio.Event()
        self.held = 0
        self.port = 0

    @asynccontextmanager
    async def open(self, idle_seconds: float) -> AsyncIterator["Door"]:
        application = web.Application()
        application.router.add_get("/", self._answer)
        application.router.add_get("/held", self._hold)
        async with serving_requests(application, self.listener, "127.0.0.1", 0, idle_seconds=idle_seconds) as self.port:
            yield self

    async def _answer(self, request: web.Request) -> web.Response:
        if "Client" in request.headers:
            self.listener.know(request.protocol, int(request.headers["Client"]))
        return web.Response(text="served")

    async def _hold(self, request: web.Request) -> web.Response:
        self.held += 1
        await self.release.wait()
        return await self._answer(request)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a plain connection without sending anything."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    def url(self, path: str = "/") -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def door(
    *, strangers: int = 64, seconds: float = LONG, idle: float = LONG, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Door]:
    limits = ListenerLimits(strangers=strangers, stranger_seconds=seconds, patience_seconds=0.0, connections=3)
    async with Door(limits, tls).open(idle) as opened:
        yield opened


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Return the data that arrives until the other side closes."""
    async with asyncio.timeout(WAIT_SECONDS):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def served(opened: Door, session: aiohttp.ClientSession, **headers: str) -> bool:
    async with asyncio.timeout(WAIT_SECONDS), session.get(opened.url(), headers=headers, ssl=False) as answer:
        return await answer.text() == "served"


@pytest.mark.parametrize("sent", [b"", b"\x16", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: h\r\nSlow: "])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_that_does_not_authenticate_is_closed(secret: Path, sent: bytes, scheme: str) -> None:
    async with door(seconds=0.3, tls=server_context(secret) if scheme == "https" else None) as opened:
        reader, writer = await opened.connect()
        writer.write(sent)
        await closed(reader)
        writer.close()


async def test_half_open_connections_are_closed_and_a_client_is_served_meanwhile(secret: Path) -> None:
    async with door(strangers=16, tls=server_context(secret)) as opened:
        strangers = [await opened.connect() for _ in range(100)]
        for _, writer in strangers:
            writer.write(b"\x16\x03\x01")
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            for _ in range(5):
                assert await served(opened, session, Client="0")
        # Only the limit of their number closes them: each has ten minutes.
        await asyncio.gather(*(closed(reader) for reader, _ in strangers[:84]))
        for _, writer in strangers:
            writer.close()


async def test_authenticated_connections_stay_however_many_strangers_connect() -> None:
    async with door(strangers=2) as opened, aiohttp.ClientSession() as session:
        assert await served(opened, session, Client="0")
        held = asyncio.create_task(_held(opened, session))
        async with asyncio.timeout(WAIT_SECONDS):
            while not opened.held:
                await asyncio.sleep(0.01)
        strangers = [await opened.connect() for _ in range(20)]
        await asyncio.gather(*(closed(reader) for reader, _ in strangers[:18]))
        opened.release.set()
        assert await held == "served"
        for _, writer in strangers:
            writer.close()


async def _held(opened: Door, session: aiohttp.ClientSession) -> str:
    # Over the connection that `served` has left: one with other options would be a stranger's.
    request = session.get(opened.url("/held"), headers={"Client": "0"}, ssl=False)
    async with asyncio.timeout(WAIT_SECONDS), request as answer:
        return await answer.text()


async def test_only_the_newest_connections_of_one_client_stay() -> None:
    head = b"GET / HTTP/1.1\r\nHost: h\r\nClient: %d\r\n\r\n"
    async with door() as opened:
        connections = []
        for number in (0, 1, 0, 0, 0, 0):
            reader, writer = await opened.connect()
            writer.write(head % number)
            assert b"200" in await reader.readline()
            connections.append((reader, writer))
        for reader, _ in (connections[0], connections[2]):
            await closed(reader)
        for reader, writer in (connections[1], *connections[3:]):
            await reader.readuntil(b"served")
            writer.write(head % 0)
            assert b"200" in await reader.readline()
        for _, writer in connections:
            writer.close()


async def test_an_idle_connection_of_a_known_client_is_closed() -> None:
    async with door(idle=0.3) as opened:
        reader, writer = await opened.connect()
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nClient: 0\r\n\r\nGET / HTTP/1.1\r\nSlow")
        assert (await closed(reader)).count(b"served") == 1
        writer.close()


async def test_connections_that_close_themselves_do_no_harm(secret: Path) -> None:
    async with door(strangers=4, tls=server_context(secret)) as opened, aiohttp.ClientSession() as session:
        for _ in range(20):
            _, writer = await opened.connect()
            writer.write(b"no TLS at all")
            writer.close()
        assert await served(opened, session, Client="0")


async def test_all_connections_end_with_the_server(secret: Path) -> None:
    async with door(tls=server_context(secret)) as opened:
        strangers = [await opened.connect() for _ in range(3)]
        strangers[0][1].write(b"\x16\x03")
    for reader, writer in strangers:
        await closed(reader)
        writer.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", opened.port), timeout=WAIT_SECONDS)


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_arrives_while_the_server_ends_is_closed(turns: int) -> None:
    """The server ends that many turns of the event loop after the connection, which may be accepted in any of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        with socket.socket() as peer:
            async with door() as opened:
                async with aiohttp.ClientSession() as session:
                    assert await served(opened, session)
                peer.connect(("127.0.0.1", opened.port))
                for _ in range(turns):
                    await asyncio.sleep(0)
        gc.collect()
    assert [str(one.message) for one in caught] == []


async def test_a_port_that_is_taken_is_an_error() -> None:
    async with door() as opened:
        other = Door(ListenerLimits(strangers=1, stranger_seconds=LONG), None)
        with pytest.raises(OSError, match="in use"):
            async with serving_requests(web.Application(), other.listener, "127.0.0.1", opened.port, idle_seconds=LONG):
                pass
