"""Nodes are drained and reboot, and networks are cut, while a run measures: each costs one attempt at most."""

import time

import pytest

from runs import assert_measured_once, run, workload
from support import Cluster

pytestmark = pytest.mark.outage

LONG = {"runtimeSeconds": 30}
"""Trials that are long enough for a fault in the middle."""


def start(cluster: Cluster, name: str, namespace: str) -> None:
    cluster.apply(run(name, namespace, workloads=[workload(**LONG)]))
    cluster.until_measuring(name, namespace)


def nodes_of(cluster: Cluster, name: str, namespace: str) -> dict[str, str]:
    """Return the node of the conductor, and that of a client which is on another node."""
    conductor = cluster.object("pods", cluster.conductor_pod(name, namespace), namespace)["spec"]["nodeName"]
    clients = {cluster.client_pod(name, namespace, client)["spec"]["nodeName"] for client in range(2)}
    (other,) = clients - {conductor}
    return {"conductor": conductor, "client": other}


def assert_one_attempt_was_lost(cluster: Cluster, name: str, namespace: str, reasons: set[str]) -> None:
    cluster.until_succeeded(name, namespace)
    assert set(cluster.interruptions(name, namespace)) <= reasons
    assert len(cluster.interruptions(name, namespace)) == 1
    for result in cluster.results(name, namespace):
        assert_measured_once(result["status"]["trials"], 2)
    assert cluster.leftovers(namespace) == []


@pytest.mark.fault(
    "Nodes",
    "A node is drained, with the conductor or a client",
    "while measuring",
    ends="`Succeeded=True`; the pods start elsewhere, and the trial in flight is aborted (`Interrupted`, `ClientLost`)",
    within="3 minutes",
)
@pytest.mark.parametrize(("of", "reasons"), [("conductor", {"Interrupted", "ClientLost"}), ("client", {"ClientLost"})])
def test_a_drained_node_costs_one_attempt(cluster: Cluster, namespace: str, of: str, reasons: set[str]) -> None:
    start(cluster, "drained", namespace)
    node = nodes_of(cluster, "drained", namespace)[of]
    try:
        cluster.kubectl(
            "drain", node, "--pod-selector=plimsoll.dev/run=drained", "--delete-emptydir-data", "--timeout=120s"
        )
    finally:
        # The volume of the client is on this node.
        cluster.kubectl("uncordon", node)
    assert_one_attempt_was_lost(cluster, "drained", namespace, reasons)


@pytest.mark.fault(
    "Nodes",
    "A worker reboots and is back after a minute, with the conductor or a client",
    "while measuring",
    ends="`Succeeded=True`; its pods are replaced, and the trial is aborted (`ConductorRestarted`, `ClientLost`)",
    within="3 minutes after it is back",
)
@pytest.mark.parametrize(
    ("of", "reasons"), [("conductor", {"ConductorRestarted", "ClientLost"}), ("client", {"ClientLost"})]
)
def test_a_rebooted_node_costs_one_attempt(cluster: Cluster, namespace: str, of: str, reasons: set[str]) -> None:
    # Without volumes: those of this cluster are in memory.
    rebooted = run("rebooted", namespace, workloads=[{"name": "ping", "ping": {}, **LONG}])
    del rebooted["spec"]["storage"]
    cluster.apply(rebooted)
    cluster.until_measuring("rebooted", namespace)
    node = nodes_of(cluster, "rebooted", namespace)[of]
    cluster.docker("stop", "--time", "1", node)
    try:
        time.sleep(60)
    finally:
        cluster.docker("start", node)
        cluster.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=180s")
        cluster.repair()
    assert_one_attempt_was_lost(cluster, "rebooted", namespace, reasons)


@pytest.mark.fault(
    "Network",
    "The network between conductor and agents is cut for 8 s",
    "while measuring",
    ends="the trial counts: its load needs no network (no `ClientLost`)",
    within="no delay",
)
def test_a_cut_that_is_shorter_than_the_patience_costs_nothing(cluster: Cluster, namespace: str) -> None:
    start(cluster, "cut", namespace)
    client = cluster.client_pod("cut", namespace, 1)
    with cluster.without_network(client):
        time.sleep(8)
    cluster.until_succeeded("cut", namespace)
    assert "ClientLost" not in cluster.interruptions("cut", namespace)
    (result,) = cluster.results("cut", namespace)
    assert_measured_once(result["status"]["trials"], 2)


@pytest.mark.fault(
    "Network",
    "The network between conductor and agents is cut for 30 s",
    "while measuring",
    ends="the trial is aborted (`ClientLost`); the agents return with what they have prepared, and it is repeated",
    within="20 s, and the trial is repeated as soon as the network is back",
)
def test_a_longer_cut_costs_an_attempt(cluster: Cluster, namespace: str) -> None:
    start(cluster, "cut", namespace)
    client = cluster.client_pod("cut", namespace, 1)
    with cluster.without_network(client):
        time.sleep(30)
    assert_one_attempt_was_lost(cluster, "cut", namespace, {"ClientLost"})
