"""Agents that measure the loopback interface with real programs, whose servers accept packets of one address only."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from pydantic import JsonValue

from plimsoll.agent import process
from plimsoll.agent.process import ACCEPT_LIBRARY, PreparationError, Programs
from plimsoll.agent.readings import Host
from plimsoll.agent.worker import Worker
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import measure_round
from plimsoll.protocol.messages import ServeOrder
from plimsoll.tools.base import Command
from plimsoll.tools.cast import serving_port
from support.agents import TRIAL, compiled_library, load, measured, served, together

# Its servers have ports of their own on this machine.
pytestmark = [pytest.mark.network, pytest.mark.xdist_group("network")]

SERVER, CLIENT, OTHER = 1, 0, 2
SECOND = 10**9
STORAGE_REASONS = {"CacheNotExcluded", "CacheSized", "DeviceBypassed", "HostUnknown", "NetworkBound", "WrongDevice"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_library(tmp_path_factory.mktemp("library"))


class Setting:
    """Workers of clients that all have this machine's loopback interface."""

    def __init__(self, directory: Path, library: Path) -> None:
        self.directory = directory
        self.library = library

    def worker(self, client: int, *tools: str) -> Worker:
        directory = self.directory / f"client-{client}"
        directory.mkdir()
        binaries = {ACCEPT_LIBRARY: str(self.library)}
        return Worker(
            client=client, node="n", volume=None, directory=directory, binaries=binaries, host=Host(), tools=tools
        )


@pytest.fixture
def setting(tmp_path: Path, library: Path) -> Setting:
    return Setting(tmp_path, library)


def serve_order(tool: str, *, peers: dict[int, str], **parameters: JsonValue) -> ServeOrder:
    return ServeOrder(
        trial=TRIAL, tool=tool, parameters=parameters, ramp_seconds=1, runtime_seconds=3, seed=1, peers=peers
    )


def reasons(document: ClientDocument) -> set[str]:
    """Return why the numbers of one client would not be trusted."""
    facts = TrialFacts(
        clients=(CLIENT,),
        runtime_seconds=3,
        ramp_seconds=1,
        t0_nanoseconds=document.launched_at,
        least_runtime_seconds=3,
        measures_network=True,
    )
    return {finding.reason for finding in measure_round(facts, {CLIENT: document}).findings}


async def measure_pair(setting: Setting, tool: str, **parameters: JsonValue) -> ClientDocument:
    server, client = setting.worker(SERVER, tool), setting.worker(CLIENT, tool)
    order = serve_order(tool, peers={CLIENT: "127.0.0.1"}, **parameters)
    async with served(server, order):
        return await load(client, order, (SERVER, "127.0.0.1"))


@pytest.mark.parametrize(
    "parameters",
    [pytest.param({"streams": 2}, marks=pytest.mark.essential), {"direction": "Receive", "window": "256Ki"}],
)
async def test_iperf3_measures_a_pair(setting: Setting, parameters: dict[str, JsonValue]) -> None:
    document = await measure_pair(setting, "iperf3", **parameters)
    measurement = measured(document)
    (sample,) = measurement.operations
    assert sample.operation is (Operation.READ if "direction" in parameters else Operation.WRITE)
    assert sample.bytes > 2**20
    assert measurement.runtime / SECOND == pytest.approx(3, abs=0.5)
    assert document.launched_at + SECOND <= measurement.started_at
    assert measurement.started_at + measurement.runtime <= document.finished_at
    assert [peer.peer for peer in measurement.peers] == [SERVER]
    assert measurement.errors == ()
    assert not reasons(document) & STORAGE_REASONS


async def test_iperf3_measures_udp(setting: Setting) -> None:
    measurement = measured(await measure_pair(setting, "iperf3", protocol="UDP", bitrate="8M", datagramBytes=1000))
    (peer,) = measurement.peers
    assert peer.lost_percent is not None
    assert peer.bytes / peer.seconds == pytest.approx(10**6 * (1 - peer.lost_percent / 100), rel=0.2)


@pytest.mark.essential
async def test_netcat_measures_a_pair(setting: Setting) -> None:
    document = await measure_pair(setting, "netcat")
    measurement = measured(document)
    (sample,) = measurement.operations
    assert (sample.operation, measurement.errors) == (Operation.READ, ())
    assert not reasons(document) & STORAGE_REASONS
    assert sample.bytes > 2**20
    assert measurement.runtime / SECOND == pytest.approx(3, abs=0.5)


@pytest.mark.essential
async def test_ping_measures_a_pair_without_a_server(setting: Setting) -> None:
    measurement = measured(await measure_pair(setting, "ping"))
    (sample,) = measurement.operations
    assert (sample.operation, sample.latency.kind) == (Operation.ROUND_TRIP, LatencyKind.FULL)
    assert sample.ios > 50
    assert sample.lost_ios == 0
    assert measurement.runtime == 3 * SECOND


async def test_one_client_loads_two_servers_at_once(setting: Setting) -> None:
    """They are on one machine, but have different addresses and ports."""
    client, *servers = (setting.worker(number, "iperf3") for number in (CLIENT, SERVER, OTHER))
    order = serve_order("iperf3", peers={CLIENT: "127.0.0.1"})
    async with served(servers[0], order), served(servers[1], order):
        measurement = measured(await load(client, order, (SERVER, "127.0.0.1"), (OTHER, "127.0.0.2")))
    assert [peer.peer for peer in measurement.peers] == [SERVER, OTHER]
    assert all(peer.bytes > 2**20 for peer in measurement.peers)
    (sample,) = measurement.operations
    assert sample.bytes == sum(peer.bytes for peer in measurement.peers)


async def test_one_server_serves_two_clients_at_once(setting: Setting) -> None:
    server, *clients = (setting.worker(number, "netcat") for number in (SERVER, CLIENT, OTHER))
    order = serve_order("netcat", peers={CLIENT: "127.0.0.1", OTHER: "127.0.0.1"})
    async with served(server, order):
        documents = await asyncio.gather(*(load(client, order, (SERVER, "127.0.0.1")) for client in clients))
    assert all(measured(document).operations[0].bytes > 2**20 for document in documents)


async def test_a_server_of_netcat_ends_with_its_client_and_has_not_failed(setting: Setting) -> None:
    """It ends with exit code 1; a failure would abort the trial before the client's result arrives."""
    server = setting.worker(SERVER, "netcat")
    order = serve_order("netcat", peers={CLIENT: "127.0.0.1", OTHER: "127.0.0.1"})
    async with served(server, order):
        for client in (CLIENT, OTHER):
            # The other one's server still listens after that.
            assert await asyncio.to_thread(is_served, serving_port(SERVER, client), "127.0.0.1")
            await asyncio.sleep(0.5)


async def test_a_server_of_netcat_without_its_port_is_a_failure(setting: Setting) -> None:
    server = setting.worker(SERVER, "netcat")
    with (
        socket.create_server(("", serving_port(SERVER, CLIENT))),
        pytest.raises(PreparationError, match=r"the server of netcat ended with exit code 1: Can't grab"),
    ):
        await server.serve(serve_order("netcat", peers={CLIENT: "127.0.0.1"}), never_ready)


def is_served(port: int, source: str, family: socket.AddressFamily = socket.AF_INET) -> bool:
    """Whether a connection from an address of this machine stays open, or brings data, for half a second."""
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.settimeout(0.5)
        attempt.bind((source, 0))
        try:
            attempt.connect(("::1" if family is socket.AF_INET6 else "127.0.0.1", port))
            return bool(attempt.recv(1))
        except TimeoutError:
            return True
        except OSError:
            return False


@pytest.mark.parametrize("tool", ["iperf3", "netcat"])
async def test_a_server_accepts_its_peer_only_and_nothing_listens_afterwards(setting: Setting, tool: str) -> None:
    server = setting.worker(SERVER, tool)
    port = serving_port(SERVER, CLIENT)
    async with served(server, serve_order(tool, peers={CLIENT: "127.0.0.5"})):
        for stranger in ("127.0.0.1", "127.0.0.6"):
            assert not await asyncio.to_thread(is_served, port, stranger)
        assert await asyncio.to_thread(is_served, port, "127.0.0.5")
    assert not await asyncio.to_thread(is_served, port, "127.0.0.5")


async def test_an_ipv6_server_accepts_its_peer_only(setting: Setting) -> None:
    server = setting.worker(SERVER, "iperf3")
    port = serving_port(SERVER, CLIENT)
    async with served(server, serve_order("iperf3", peers={CLIENT: "::1"})):
        assert not await asyncio.to_thread(is_served, port, "127.0.0.1")
        assert await asyncio.to_thread(is_served, port, "::1", socket.AF_INET6)


async def test_datagrams_of_strangers_are_dropped(library: Path) -> None:
    program = (
        "import socket\n"
        "receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "receiver.bind(('127.0.0.1', 0))\n"
        "print(receiver.getsockname()[1], flush=True)\n"
        "print(receiver.recvfrom(100)[0].decode(), flush=True)\n"
    )
    environment = {**os.environ, "LD_PRELOAD": str(library), "PLIMSOLL_ACCEPT": "127.0.0.5"}
    receiver = await asyncio.create_subprocess_exec(
        "python3", "-c", program, env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert receiver.stdout is not None
    async with asyncio.timeout(30):
        port = int(await receiver.stdout.readline())
        for source in ("127.0.0.1", "127.0.0.5"):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind((source, 0))
                sender.sendto(source.encode(), ("127.0.0.1", port))
        assert (await receiver.stdout.readline()).decode() == "127.0.0.5\n"
        await receiver.wait()


@pytest.mark.parametrize(
    ("environment", "words"),
    [({}, "PLIMSOLL_ACCEPT is not set"), ({"PLIMSOLL_ACCEPT": "node-1"}, "PLIMSOLL_ACCEPT is not an address")],
)
def test_a_program_without_an_address_does_not_start(library: Path, environment: dict[str, str], words: str) -> None:
    ended = subprocess.run(
        ["iperf3", "--version"],
        env={**os.environ, "LD_PRELOAD": str(library), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert words in ended.stderr


async def test_servers_that_start_one_after_the_other_serve_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_STALE_SECONDS", 0.2)
    servers = [Command(argv=("sh", "-c", f"sleep {delay}; echo serving; exec sleep 60")) for delay in (0, 1)]
    is_ready = asyncio.Event()

    async def ready() -> None:
        is_ready.set()

    serving = Programs(tmp_path, {}).serve(
        together(servers), tmp_path, name="sh", is_serving=lambda printed: "serving" in printed, ready=ready
    )
    task = asyncio.create_task(serving)
    async with asyncio.timeout(20):
        await is_ready.wait()
    task.cancel()
    await asyncio.wait({task})


async def never_ready() -> None:
    raise AssertionError("it is not")


async def test_a_server_does_not_start_without_the_library(tmp_path: Path) -> None:
    server = Setting(tmp_path, tmp_path / "absent.so").worker(SERVER, "iperf3")
    with pytest.raises(PreparationError, match=r"absent\.so is not installed, without which iperf3 would accept"):
        await server.serve(serve_order("iperf3", peers={CLIENT: "127.0.0.1"}), never_ready)


async def test_a_client_without_a_server_is_a_failure(setting: Setting) -> None:
    order = serve_order("iperf3", peers={})
    document = await load(setting.worker(CLIENT, "iperf3"), order, (SERVER, "127.0.0.1"))
    assert document.measurement is not None
    (error,) = document.measurement.errors
    assert re.fullmatch(r"unable to connect to server.*: Connection refused", error)
    refused = await load(setting.worker(OTHER, "netcat"), serve_order("netcat", peers={}), (SERVER, "127.0.0.1"))
    assert refused.exit_code != 0
    assert refused.measurement is None


async def test_versions_are_facts(setting: Setting) -> None:
    facts = await setting.worker(CLIENT, "iperf3", "netcat", "ping").facts()
    versions = facts["tools"]
    assert isinstance(versions, dict)
    for key, start in (("iperf3", "iperf 3."), ("netcat", "[v1."), ("ping", "ping from iputils")):
        assert str(versions[key]).startswith(start)
        assert "\n" not in str(versions[key])


def test_programs_are_installed() -> None:
    assert all(shutil.which(program) for program in ("iperf3", "nc.traditional", "ping"))
