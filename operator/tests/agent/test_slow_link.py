"""A slow link between real network namespaces is found by the real iperf3."""

import subprocess
import uuid
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from plimsoll.agent.process import ACCEPT_LIBRARY
from plimsoll.agent.readings import Host
from plimsoll.agent.worker import Worker
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.trial import TrialNumbers, measure_round, trial_of_rounds
from plimsoll.protocol.messages import ServeOrder
from support.agents import TRIAL, compiled_library, load, measured, served

pytestmark = [pytest.mark.network, pytest.mark.xdist_group("network")]

NODES, SLOW = 3, 2
RATES = {0: "200mbit", 1: "200mbit", SLOW: "20mbit"}
"""What each node can send."""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def address(node: int) -> str:
    return f"10.251.0.{node + 1}"


@pytest.fixture(scope="module")
def namespaces() -> Iterator[list[str]]:
    """Return a network namespace for each node; a bridge in another one connects them."""
    prefix = f"plimsoll-{uuid.uuid4().hex[:8]}"
    hub, names = f"{prefix}-hub", [f"{prefix}-{node}" for node in range(NODES)]
    made = []
    try:
        for name in (hub, *names):
            ip("netns", "add", name)
            made.append(name)
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        for node, name in enumerate(names):
            ip("-n", hub, "link", "add", f"port{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", hub, "link", "set", f"port{node}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{address(node)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            shaped = ["tbf", "rate", RATES[node], "burst", "64kb", "latency", "50ms"]
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *shaped], check=True)
        yield names
    finally:
        for name in made:
            ip("netns", "delete", name)


def worker(directory: Path, node: int, namespace: str, library: Path) -> Worker:
    """Return the worker of a client whose iperf3 runs in a namespace."""
    directory = directory / f"client-{node}"
    directory.mkdir()
    program = directory / "iperf3"
    program.write_text(f'#!/bin/sh\nexec nsenter --net=/run/netns/{namespace} iperf3 "$@"\n')
    program.chmod(0o755)
    binaries = {ACCEPT_LIBRARY: str(library), "iperf3": str(program)}
    return Worker(
        client=node, node=f"node-{node}", volume=None, directory=directory, binaries=binaries, host=Host(), tools=()
    )


async def test_a_slow_link_is_the_outlier_of_a_matrix(tmp_path: Path, namespaces: list[str]) -> None:
    library = compiled_library(tmp_path)
    workers = [worker(tmp_path, node, name, library) for node, name in enumerate(namespaces)]
    rounds = [await measure_link(workers, client, server) for client, server in permutations(range(NODES), 2)]
    numbers = trial_of_rounds(rounds)
    outliers = {
        (cell.client, cell.peer): 8 * cell.bytes_per_second / 10**6 for cell in numbers.matrix if cell.client == SLOW
    }
    assert outliers.keys() == {(SLOW, 0), (SLOW, 1)}
    assert all(10 < rate < 22 for rate in outliers.values()), numbers.matrix
    (finding,) = [finding for finding in numbers.findings if finding.reason == "LinkOutlier"]
    assert f"client {SLOW} (node node-{SLOW}) to client" in finding.message
    assert "client 0 (node node-0) to client 1" not in finding.message


async def measure_link(workers: list[Worker], client: int, server: int) -> TrialNumbers:
    """Return the numbers of the round in which one client sends to another."""
    order = ServeOrder(
        trial=TRIAL,
        tool="iperf3",
        parameters={},
        ramp_seconds=1,
        runtime_seconds=3,
        seed=1,
        peers={client: address(client)},
    )
    async with served(workers[server], order):
        document = await load(workers[client], order, (server, address(server)))
    measured(document)
    facts = TrialFacts(
        clients=(client,),
        runtime_seconds=3,
        ramp_seconds=1,
        t0_nanoseconds=document.launched_at,
        least_runtime_seconds=3,
        measures_network=True,
        nodes={number: f"node-{number}" for number in range(NODES)},
    )
    return measure_round(facts, {client: document})
