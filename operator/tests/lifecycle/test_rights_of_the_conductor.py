"""A conductor whose kubelet is dead, but whose connection is not, changes nothing after its pod's grace period."""

import pytest

from plimsoll.kube.port import ForbiddenError
from support.pretend_cluster import KUBELET, NODES
from support.pretend_world import PretendWorld, run_of, until_trial


def stop(world: PretendWorld, uid: str, way: str) -> None:
    if way == "suspended":
        world.change(uid, suspend=True)
    elif way == "deleted":
        world.cluster.delete(run_of(world, uid))
    else:
        (job,) = [job for job in world.cluster.of_run("Job", uid) if job["metadata"]["name"] == "a-conductor"]
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        world.cluster.set_status(job, conditions=[failed])


@pytest.mark.parametrize("way", ["suspended", "deleted", "failed"])
def test_a_conductor_may_record_its_end_until_its_deadline_and_has_no_rights_afterwards(
    world: PretendWorld, way: str
) -> None:
    uid = world.create("a")
    until_trial(world)
    for node in NODES:
        world.cluster.lose_node(node)
    stop(world, uid, way)
    world.round()
    assert any(asked.startswith("delete Job bench/a-conductor") for asked in world.cluster.kube.requests)
    assert world.cluster.find("RoleBinding", "plimsoll-a-conductor") is not None
    world.round(3600.0)
    world.round()
    assert world.cluster.find("RoleBinding", "plimsoll-a-conductor") is None


def test_a_suspended_runs_conductor_has_no_rights_once_its_pod_was_deleted_by_force(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    for node in NODES:
        world.cluster.lose_node(node)
    world.change(uid, suspend=True)
    world.round(0.0)
    assert world.cluster.find("RoleBinding", "plimsoll-a-conductor") is not None
    for pod in world.cluster.of_run("Pod", uid):
        world.cluster.let_go(pod, KUBELET)
    world.until(lambda: world.cluster.find("RoleBinding", "plimsoll-a-conductor") is None)
    assert run_of(world, uid)["spec"]["suspend"]
    world.cluster.faults.dead_nodes.clear()
    world.change(uid, suspend=False)
    world.until(lambda: world.conditions(uid)["Succeeded"]["status"] == "True")


def test_load_stops_although_the_rights_cannot_be_removed(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)

    def refuse(asked: str) -> None:
        if asked.startswith("delete RoleBinding"):
            raise ForbiddenError(asked, "no")

    world.cluster.kube.interfere = refuse
    for node in NODES:
        world.cluster.lose_node(node)
    world.cluster.delete(run_of(world, uid))
    world.round(3600.0)
    world.until(lambda: all(job["metadata"].get("deletionTimestamp") for job in world.cluster.of_run("Job", uid)))
