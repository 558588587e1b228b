"""A run can be deleted at any time and in any way, and leaves nothing behind."""

import pytest

from plimsoll.kube.port import ForbiddenError, TransientError
from support.pretend_cluster import NAMESPACE, NODES
from support.pretend_world import SETTINGS, PretendWorld, kinds_of, run_of, until_trial


@pytest.mark.parametrize("rounds", [1, 2, 4, 8, 16, 40])
@pytest.mark.parametrize("way", ["background", "foreground", "namespace"])
def test_nothing_is_left_whenever_and_however_a_run_is_deleted(world: PretendWorld, rounds: int, way: str) -> None:
    uid = world.create("a")
    for _ in range(rounds):
        world.round(1.0)
    if way == "namespace":
        namespace = world.cluster.find("Namespace", NAMESPACE)
        assert namespace is not None
        world.cluster.delete(namespace)
    else:
        world.cluster.delete(run_of(world, uid), foreground=way == "foreground")
    world.until(lambda: world.run(uid) is None)
    world.round()
    assert kinds_of(world, uid) == set()


def test_a_deletion_goes_on_although_the_api_is_flaky_and_a_node_is_gone(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.lose_node(NODES[1])
    world.cluster.delete(run_of(world, uid))
    for number in range(1, 40):
        world.operator.watch_all()
        kind = ForbiddenError if number % 2 else TransientError
        world.look_with(uid, number % 12 + 1, lambda asked, kind=kind: kind(asked, "not now"))  # type: ignore[misc]
        world.cluster.step()
        world.conductors.step()
    assert run_of(world, uid)["metadata"]["finalizers"]
    world.cluster.faults.dead_nodes.clear()
    world.until(lambda: world.run(uid) is None)
    assert kinds_of(world, uid) == set()


def test_who_keeps_a_claim_is_named_and_the_next_run_does_not_wait_for_ever(world: PretendWorld) -> None:
    """A snapshot that never becomes ready keeps its source."""
    mark = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
    uid = world.create("a")
    until_trial(world)
    (claim, *_) = world.cluster.of_run("PersistentVolumeClaim", uid)
    world.cluster.edit(claim, lambda new: new["metadata"].setdefault("finalizers", []).append(mark))
    world.until_ended(uid)
    world.until(lambda: mark in world.conditions(uid)["CleanedUp"]["message"])
    kept = f"deleting 1 PVC; {claim['metadata']['name']} waits for finalizers: "
    assert kept in world.conditions(uid)["CleanedUp"]["message"]
    waiting = world.create("b")
    world.round()
    world.round()
    assert world.conditions(waiting)["Admitted"]["reason"] == "WaitingForTurn"
    world.round(SETTINGS.hold_seconds + 1.0)
    assert world.until_ended(waiting)["status"] == "True"
