"""The port that Prometheus asks."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import aiohttp
import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from plimsoll.cli.launch import free_port
from plimsoll.metrics.catalogue import RESULTS_OMITTED, Sample
from plimsoll.metrics.exposition import families, serving
from plimsoll.net import listener
from plimsoll.net.listener import AddressError

ANYWHERE = "http://127.0.0.1:0/metrics"


class Counted(Collector):
    """As many results as it was made with."""

    def __init__(self, value: float) -> None:
        self._value = value

    def collect(self) -> Iterator[prometheus_client.Metric]:
        yield from families([Sample(RESULTS_OMITTED, (), self._value)])


def value_in(text: str) -> float:
    (family,) = text_string_to_metric_families(text)
    return float(family.samples[0].value)


async def test_every_scrape_shows_the_current_state() -> None:
    numbers = iter((1.0, 2.0))
    async with serving(ANYWHERE, lambda: Counted(next(numbers))) as port, aiohttp.ClientSession() as session:
        for expected in (1.0, 2.0):
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert answer.headers["Content-Encoding"] == "deflate"
                assert value_in(await answer.text()) == expected


async def test_openmetrics_is_spoken_to_who_asks_for_it() -> None:
    accepted = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "Accept-Encoding": "gzip"}
    async with serving(ANYWHERE, lambda: Counted(1)) as port, aiohttp.ClientSession(headers=accepted) as session:
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
            assert answer.headers["Content-Encoding"] == "gzip"
            assert (await answer.text()).endswith("# EOF\n")
        async with session.get(f"http://127.0.0.1:{port}/") as answer:
            assert answer.status == 404
        async with session.post(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.status == 405


async def test_the_loop_keeps_running_while_a_scrape_is_written() -> None:
    """The scrape waits here for something that only the loop can do."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Counted):
        def collect(self) -> Iterator[prometheus_client.Metric]:
            begun.set()
            assert go_on.wait(60)
            yield from super().collect()

    async with serving(ANYWHERE, lambda: Slow(1)) as port, aiohttp.ClientSession() as session:

        async def scrape() -> float:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                return value_in(await answer.text())

        task = asyncio.create_task(scrape())
        async with asyncio.timeout(60):
            while not begun.is_set():
                await asyncio.sleep(0.001)
        go_on.set()
        assert await task == 1


async def test_a_connection_serves_one_scrape_and_an_idle_one_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "_IDLE_SECONDS", 0.3)
    async with serving(ANYWHERE, lambda: Counted(1)) as port:
        for sent, answers in ((b"", 0), (b"GET /met", 0), (b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n" * 2, 1)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            async with asyncio.timeout(60):
                assert (await reader.read()).count(b"200 OK") == answers
            writer.close()


async def test_prometheus_gets_its_answer_while_many_hold_connections() -> None:
    async with serving(ANYWHERE, lambda: Counted(1)) as port, aiohttp.ClientSession() as session:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * listener._AT_ADDRESS.strangers)]
        for _, writer in held:
            writer.write(b"GET /metrics HTTP/1.1\r\nSlow: ")
        async with asyncio.timeout(60):
            while not await scraped(session, port):
                await asyncio.sleep(0.1)
        for _, writer in held:
            writer.close()


async def scraped(session: aiohttp.ClientSession, port: int) -> bool:
    with suppress(aiohttp.ClientError):
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            return value_in(await answer.text()) == 1
    return False


async def test_without_a_host_all_addresses_of_both_protocols_are_served() -> None:
    port = free_port()
    async with serving(f"http://:{port}/metrics", lambda: Counted(1)), aiohttp.ClientSession() as session:
        for host in ("127.0.0.1", "[::1]"):
            async with session.get(f"http://{host}:{port}/metrics") as answer:
                assert value_in(await answer.text()) == 1


async def test_a_port_in_use_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/metrics"
        with pytest.raises(AddressError, match=r"/metrics: cannot listen .*; choose another address"):
            async with serving(address, lambda: Counted(1)):
                pass


@pytest.mark.parametrize(
    "address",
    [
        "8081",
        "0.0.0.0:8081",
        "https://0.0.0.0:8081/metrics",
        "http://0.0.0.0/metrics",
        "http://h:99999/m",
        "http://h:1",
        "http:///metrics",
    ],
)
async def test_an_invalid_address_is_an_error_with_an_example(address: str) -> None:
    with pytest.raises(AddressError, match=r"write it as http://0\.0\.0\.0:8081/metrics"):
        async with serving(address, lambda: Counted(1)):
            pass
