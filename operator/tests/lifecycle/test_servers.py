"""A run with servers, and a run that has no storage at all, in a pretended cluster."""

from typing import Any

import pytest

from plimsoll.lifecycle import naming
from plimsoll.tools.registry import TOOLS
from support.pretend_cluster import Document, client_of, label
from support.pretend_world import PretendWorld, kinds_of, run_of, until_trial
from support.specs import KEY, PAIRS, SERVERS

WORKLOADS = [{"name": "w", KEY: {"streams": [1, 2]}, "runtimeSeconds": 4, "rampSeconds": 1}]
NETWORK: dict[str, Any] = {"storage": None, "workloads": WORKLOADS, "servers": SERVERS}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, KEY, PAIRS)


def pods_of(world: PretendWorld, uid: str) -> dict[int | None, Document]:
    return {client_of(pod): pod for pod in world.cluster.of_run("Pod", uid)}


def test_a_run_of_the_network_needs_no_storage(world: PretendWorld) -> None:
    uid = world.create("a", **NETWORK)
    until_trial(world)
    conditions = world.conditions(uid)
    assert (conditions["StorageReady"]["status"], conditions["StorageReady"]["reason"]) == ("True", "NotNeeded")
    assert "PersistentVolumeClaim" not in kinds_of(world, uid)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert run_of(world, uid)["status"]["points"] == {"total": 2, "completed": 2, "invalid": 0}
    assert kinds_of(world, uid) == {"BenchmarkResult", "ConfigMap", "Secret"}


def test_clients_may_serve_each_other_without_storage(world: PretendWorld) -> None:
    uid = world.create("a", **NETWORK | {"servers": None})
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_every_server_has_a_pod_and_a_token(world: PretendWorld) -> None:
    uid = world.create("a", **NETWORK)
    until_trial(world)
    pods = pods_of(world, uid)
    assert {number for number in pods if number is not None} == {0, 1, 2, 3}
    roles = {number: label(pod, naming.LABEL_ROLE) for number, pod in pods.items() if number is not None}
    assert roles == {0: "", 1: "", 2: "server", 3: "server"}
    (secret,) = world.cluster.of_run("Secret", uid)
    assert {f"token-{number}" for number in range(4)} <= secret["data"].keys()
    assert "token-4" not in secret["data"]
    world.until(lambda: world.conditions(uid)["ClientsReady"]["status"] == "True")
    assert world.conditions(uid)["ClientsReady"]["message"] == "2 clients and 2 servers registered"


def test_only_clients_have_volumes(world: PretendWorld) -> None:
    fio = {"name": "v", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}
    uid = world.create("a", servers=SERVERS, workloads=[*WORKLOADS, fio])
    until_trial(world)
    claims = world.cluster.of_run("PersistentVolumeClaim", uid)
    assert sorted(claim["metadata"]["name"] for claim in claims) == ["plimsoll-a-client-0", "plimsoll-a-client-1"]
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_a_lost_server_is_replaced_and_its_trial_repeated(world: PretendWorld) -> None:
    uid = world.create("a", **NETWORK)
    until_trial(world)
    world.cluster.end(pods_of(world, uid)[3], 1, "OutOfMemory")
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    trials = [trial for one in world.cluster.of_run("BenchmarkResult", uid) for trial in one["status"]["trials"]]
    assert [trial["abort"]["reason"] for trial in trials if trial["outcome"] == "Aborted"] == ["ClientLost"]


def test_a_server_without_a_node_ends_the_run_by_its_name(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable.add(3)
    uid = world.create("a", **NETWORK)
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "Unschedulable")
    assert "client 3" in ended["message"]
    world.until_settled(uid)
    assert not kinds_of(world, uid) & {"Job", "Pod"}


def test_a_server_that_does_not_start_is_missed(world: PretendWorld) -> None:
    world.cluster.faults.silent.add(2)
    uid = world.create("a", **NETWORK)
    ended = world.until_ended(uid)
    assert ended["status"] == "False"
    assert "client 2" in ended["message"]


def test_suspension_stops_servers_too_and_deletion_leaves_nothing(world: PretendWorld) -> None:
    uid = world.create("a", **NETWORK)
    until_trial(world)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    assert not kinds_of(world, uid) & {"Job", "Pod"}
    world.change(uid, suspend=False)
    until_trial(world)
    world.cluster.delete(run_of(world, uid))
    world.until(lambda: world.run(uid) is None)
    assert kinds_of(world, uid) == set()


def test_two_runs_of_the_network_do_not_disturb_each_other(world: PretendWorld) -> None:
    first, second, other = world.create("a", **NETWORK), world.create("b", **NETWORK), world.create("c")
    until_trial(world)
    # Both were created in the same second, so either may be first.
    assert {world.conditions(uid)["Admitted"]["status"] for uid in (first, second)} == {"False", "True"}
    assert world.conditions(other)["Admitted"]["status"] == "True"
    for uid in (first, second, other):
        world.until_settled(uid)
        assert world.conditions(uid)["Succeeded"]["status"] == "True"
