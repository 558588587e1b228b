"""Runs of tools between clients: their matrices, and who may connect to whom.

The cluster enforces no NetworkPolicy, so what refuses a connection here is the server itself.
"""

import re
from typing import Any

import pytest

from runs import invalid_for_load, run
from support import Cluster

PROGRAMS = {"iperf3": "iperf 3", "netcat": "[v1.1", "ping": "iputils"}
OPERATIONS = {"iperf3": "write", "udp": "write", "netcat": "read", "ping": "roundTrip"}
ONE_PAIR = {"netcat", "udp"}
"""Workloads with the pairing AllAtOnce."""

DATAGRAMS: dict[str, Any] = {"protocol": ["UDP"], "bitrate": "8M", "datagramBytes": 1000}
UDP_BYTES_PER_SECOND = 10**6
"""Of one stream of 8 Mbit/s."""
LOST = re.compile(r"([0-9.]+) % of the datagrams")
LISTENING = "0A"
"""State of a socket in /proc/net/tcp. Source: Linux, include/net/tcp_states.h."""

RESET = "[Errno 104] Connection reset by peer"
FIRST_PORT, LAST_PORT = 20_480, 24_575


def between_clients(name: str, namespace: str, *workloads: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a run of three clients without storage."""
    manifest = run(name, namespace, clients={"count": 3}, workloads=list(workloads), repetitions=1, **changes)
    del manifest["spec"]["storage"]
    return manifest


def workload(tool: str, runtime: int = 4, name: str = "", **parameters: Any) -> dict[str, Any]:
    return {"name": name or tool, tool: parameters, "runtimeSeconds": runtime, "rampSeconds": 1}


def test_three_clients_measure_each_other_without_storage(cluster: Cluster, namespace: str) -> None:
    workloads = (
        workload("iperf3"),
        workload("iperf3", name="udp", pairing="AllAtOnce", **DATAGRAMS),
        workload("netcat", pairing="AllAtOnce"),
        workload("ping"),
    )
    cluster.apply(between_clients("links", namespace, *workloads))
    cluster.until_over("links", namespace, seconds=600)
    results = {result["spec"]["workload"]: result for result in cluster.results("links", namespace)}
    assert results.keys() == OPERATIONS.keys()
    for name, result in results.items():
        assert_measured(name, result["spec"]["tool"], result["status"])
    assert cluster.items("persistentvolumeclaims", namespace, run="links") == []
    assert cluster.leftovers(namespace) == []


def assert_measured(name: str, tool: str, status: dict[str, Any]) -> None:
    """Check the last trial of a workload: real numbers, or a verdict that a busy machine explains."""
    trial = max(status["trials"], key=lambda one: int(one["attempt"]))
    assert trial["outcome"] == "Measured", trial
    if trial["verdict"] == "Invalid":
        reasons = {finding["reason"] for finding in trial["findings"] if finding["verdict"] == "Invalid"}
        # A busy machine drops datagrams, and pings, of which one in ten thousand is too many.
        lost = {"LostIo", "PacketsLost", "LateClient", "LowOverlap", "ShortRun"}
        assert invalid_for_load([trial]) or reasons <= lost, trial
        return
    if not trial["operations"]:
        # The only pair may be on one node, where it crosses no link.
        assert name in ONE_PAIR, trial
        assert "LocalPairs" in {finding["reason"] for finding in trial["findings"]}, trial
    for operation in trial["operations"]:
        assert operation["operation"] == OPERATIONS[name]
        assert operation["rates"]["iops" if tool == "ping" else "bytesPerSecond"] > 0
    assert len(trial["operations"]) <= 1
    (version,) = trial["tool"]["versions"]
    assert PROGRAMS[tool] in version
    matrix = status["summary"]["matrix"]
    pairs = set(zip(matrix["clients"], matrix["peers"], strict=True))
    every_pair = {(client, peer) for client in range(3) for peer in range(3) if client != peer}
    assert pairs == ({(0, 1)} if name in ONE_PAIR else every_pair)
    if tool != "ping":
        assert min(matrix["bytesPerSecond"]) > 0
    if name == "udp":
        arrived = 1 - lost_share(trial["findings"])
        assert matrix["bytesPerSecond"] == [pytest.approx(UDP_BYTES_PER_SECOND * arrived, rel=0.1)]


def lost_share(findings: list[dict[str, Any]]) -> float:
    """Return the share of datagrams that a finding reports as lost; 0 without one: too few for a finding."""
    messages = [finding["message"] for finding in findings if finding["reason"] == "PacketsLost"]
    return max((float(LOST.findall(message)[0]) / 100 for message in messages), default=0.0)


def test_a_server_accepts_its_client_only_and_is_gone_after_the_load(cluster: Cluster, namespace: str) -> None:
    # Clients connect by TCP before they send datagrams; so few leave the processors to other tests.
    cluster.apply(between_clients("guarded", namespace, workload("iperf3", runtime=40, **DATAGRAMS)))
    pods = {}

    def serving() -> int | None:
        """Return the port on which client 1 serves client 0, in the first round."""
        pods.update({number: pod_of(cluster, namespace, number) for number in range(3)})
        return next(iter(listening(cluster, namespace, pods[1])), None) if all(pods.values()) else None

    port = cluster.until(serving, seconds=240, what="client 1 serves")
    address = cluster.object("pods", pods[1], namespace)["status"]["podIP"]
    assert connecting(cluster, namespace, pods[2], address, port) in {"closed", RESET}
    # iperf3 tells its own client that it is busy.
    cluster.until(
        lambda: connecting(cluster, namespace, pods[0], address, port) == "served",
        seconds=20,
        what="client 0 is served",
    )
    assert connecting(cluster, namespace, pods[2], address, port) in {"closed", RESET}

    def is_gone() -> bool:
        return port not in listening(cluster, namespace, pods[1]) and "refused" in connecting(
            cluster, namespace, pods[0], address, port
        )

    # What serves now may serve another client, on another port; a further attempt serves on this one again.
    cluster.until(is_gone, seconds=240, what=f"nothing listens on {port}")
    cluster.kubectl("delete", "benchmarkrun", "guarded", "-n", namespace, "--timeout=240s")
    assert cluster.leftovers(namespace) == []


def pod_of(cluster: Cluster, namespace: str, client: int) -> str:
    """Return the running pod of a client; empty if there is none yet."""
    pods = cluster.items("pods", namespace, run="guarded", client=str(client))
    running = (pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running")
    return next(running, "")


def listening(cluster: Cluster, namespace: str, pod: str) -> set[int]:
    """Return the ports of the tools on which a pod listens."""
    sockets = in_pod(cluster, namespace, pod, "cat", "/proc/net/tcp", "/proc/net/tcp6")
    rows = [line.split() for line in sockets.splitlines()]
    ports = {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == LISTENING}
    return {port for port in ports if FIRST_PORT <= port <= LAST_PORT}


def connecting(cluster: Cluster, namespace: str, pod: str, address: str, port: int) -> str:
    """Return `served` if the server sends a pod anything, `closed` if it does not, or why the pod could not connect."""
    program = (
        "import socket\n"
        "try:\n"
        f"    print('served' if socket.create_connection(({address!r}, {port}), 3).recv(1) else 'closed')\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    return in_pod(cluster, namespace, pod, "python3", "-c", program).strip()


def in_pod(cluster: Cluster, namespace: str, pod: str, *command: str) -> str:
    return cluster.kubectl("exec", pod, "-n", namespace, "-c", "client", "--", *command)
