"""A namespace that is being deleted takes nothing new; its runs are deleted with it, but not at the same moment."""

import pytest

from plimsoll.kube.port import TerminatingError
from plimsoll.lifecycle.refusals import reason_of_words
from plimsoll.operator.execute import refusal_of
from support.pretend_cluster import NAMESPACE
from support.pretend_world import PretendWorld

DELETED = "2026-01-01T12:00:00Z"


def begin_to_terminate(world: PretendWorld) -> None:
    """Have the namespace take nothing new; the namespace controller has not come to the runs yet."""
    namespace = world.cluster.find("Namespace", NAMESPACE)
    assert namespace is not None
    world.cluster.edit(namespace, lambda new: new["metadata"].update(deletionTimestamp=DELETED))


def creations(world: PretendWorld) -> int:
    return sum(asked.startswith("create ") for asked in world.cluster.kube.requests)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_the_operator_asks_once_says_what_happens_and_waits(world: PretendWorld, rounds: int) -> None:
    uid = world.create("a")
    for _ in range(rounds):
        world.round()
    begin_to_terminate(world)
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "NamespaceTerminating", rounds=3)
    message = world.conditions(uid)["Reconciling"]["message"]
    assert "being deleted" in message
    assert "nothing has to be done" in message
    assert "change the run" not in message
    asked = creations(world)
    for _ in range(5):
        world.round()
    assert creations(world) == asked
    namespace = world.cluster.find("Namespace", NAMESPACE)
    assert namespace is not None
    world.cluster.edit(namespace, lambda new: new["metadata"].pop("deletionTimestamp"))
    world.cluster.delete(namespace)
    world.until(lambda: world.run(uid) is None)


def test_another_namespace_that_is_being_deleted_may_come_back() -> None:
    refusal = refusal_of(TerminatingError("create CephBlockPool rook-ceph/pool", "it is being terminated"))
    assert refusal.reason == "NamespaceTerminating"
    assert refusal.is_permanent("rook-ceph")
    assert not refusal.is_permanent("bench")


def test_a_job_that_may_make_no_pod_there_is_told_in_the_same_way() -> None:
    words = "FailedCreate: unable to create new content in namespace a because it is being terminated"
    assert reason_of_words(words) == "NamespaceTerminating"
