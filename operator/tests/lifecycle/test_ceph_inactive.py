"""A pool whose placement groups are inactive is not deleted: that would stop Rook's pool controller for everybody."""

import pytest

from plimsoll.lifecycle import naming
from support.fake_kube import is_going
from support.pretend_cluster import NAMESPACE, Document
from support.pretend_rook import ROOK_API, ROOK_NAMESPACE
from support.pretend_world import PretendWorld, create, outside

SPEC = {"replicated": {"size": 3}}


def cleaned_up(world: PretendWorld, uid: str) -> Document:
    found: Document = world.conditions(uid).get("CleanedUp", {})
    return found


def lose_osds(world: PretendWorld) -> str:
    """Create a run whose OSDs go down when its pool has just been created, and return its UID."""
    world.rook.knobs.pools = "CephBlockPool failed"
    uid = create(world)
    world.until(lambda: world.cluster.of_run("CephBlockPool", uid))
    world.rook.knobs.inactive = True
    return uid


def pool_of_another_user(world: PretendWorld) -> Document:
    world.rook.knobs.pools = ""
    metadata = {"name": "another-users", "namespace": ROOK_NAMESPACE}
    world.cluster.kube.put({"apiVersion": ROOK_API, "kind": "CephBlockPool", "metadata": metadata, "spec": SPEC})
    world.until(lambda: served(world).get("status", {}).get("phase"), rounds=20)
    return served(world)


def served(world: PretendWorld) -> Document:
    found = world.cluster.find("CephBlockPool", "another-users")
    assert found is not None
    return found


def pools(world: PretendWorld, uid: str) -> list[bool]:
    """Return of each pool of a run whether it is being deleted."""
    return [is_going(pool) for pool in world.cluster.of_run("CephBlockPool", uid)]


def test_a_pool_is_kept_until_its_groups_are_active_and_others_are_served_meanwhile(world: PretendWorld) -> None:
    uid = lose_osds(world)
    assert world.until_ended(uid)["reason"] == "PoolFailed"
    world.until(lambda: cleaned_up(world, uid).get("reason") == "PlacementGroupsInactive")
    message = cleaned_up(world, uid)["message"]
    assert "is not deleted while placement groups of CephCluster rook-ceph/rook-ceph are inactive" in message
    assert "8 pgs inactive" in message
    assert pools(world, uid) == [False]
    assert pool_of_another_user(world)["status"]["phase"] == "Progressing"
    for _ in range(20):
        world.round(60.0)
    assert pools(world, uid) == [False]
    world.rook.knobs.inactive = False
    world.until_settled(uid)
    assert cleaned_up(world, uid)["reason"] == "Removed"
    assert outside(world, uid) == set()


@pytest.mark.parametrize("kind", ["BenchmarkRun", "Namespace"])
def test_a_run_that_is_deleted_meanwhile_waits_and_then_leaves_nothing(world: PretendWorld, kind: str) -> None:
    uid = lose_osds(world)
    world.until(lambda: cleaned_up(world, uid).get("reason") == "PlacementGroupsInactive")
    found = world.run(uid) if kind == "BenchmarkRun" else world.cluster.find("Namespace", NAMESPACE)
    assert found is not None
    world.cluster.delete(found)
    for _ in range(20):
        world.round(30.0)
    run = world.run(uid)
    assert run is not None
    assert "are inactive" in run["status"]["display"]["message"]
    assert pools(world, uid) == [False]
    world.rook.knobs.inactive = False
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()


@pytest.mark.parametrize("rounds", range(4))
def test_a_run_that_is_deleted_before_rook_noticed_waits_until_rook_has_asked_ceph_again(
    world: PretendWorld, rounds: int
) -> None:
    """What Rook knows of Ceph is up to a minute old, and Ceph waits a minute before it complains."""
    uid = lose_osds(world)
    for _ in range(rounds):
        world.round(1.0)
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    for _ in range(150):
        world.round(1.0)
        assert pools(world, uid) == [False]
    assert cleaned_up(world, uid)["reason"] == "PlacementGroupsInactive"
    world.rook.knobs.inactive = False
    world.until(lambda: world.run(uid) is None)


def test_a_teardown_job_that_hangs_on_inactive_groups_says_so_and_goes_on_with_them(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.inactive = True
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    world.until(lambda: cleaned_up(world, uid).get("reason") == "PlacementGroupsInactive")
    message = cleaned_up(world, uid)["message"]
    assert message.startswith(
        f"Job plimsoll-teardown/{naming.teardown(uid)} is removing the run's objects from Ceph, and waits"
    )
    assert "it continues when they are active" in message
    assert pools(world, uid) == [False]
    world.rook.knobs.inactive = False
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_a_pool_whose_groups_become_inactive_while_it_is_deleted_says_so(world: PretendWorld) -> None:
    world.rook.knobs.foreign_images = True
    uid = create(world)
    world.until(lambda: pools(world, uid) == [True])
    world.rook.knobs.foreign_images, world.rook.knobs.inactive = False, True
    for pool in world.cluster.of_run("CephBlockPool", uid):
        world.cluster.set_status(pool, conditions=[])
    world.until(lambda: cleaned_up(world, uid)["reason"] == "PlacementGroupsInactive")
    assert "Rook is deleting CephBlockPool plimsoll-a-" in cleaned_up(world, uid)["message"]
    world.rook.knobs.inactive = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_rook_that_does_nothing_is_named(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: "Job" in outside(world, uid))
    world.rook.knobs.down = True
    world.until(lambda: "check that Rook's operator is running" in cleaned_up(world, uid)["message"])
    assert cleaned_up(world, uid)["reason"] == "InProgress"
    world.rook.knobs.down = False
    world.until_settled(uid)
