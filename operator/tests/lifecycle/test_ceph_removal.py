"""Removal of what a run has in a Ceph cluster: in order, at any time, and without force."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.kube.port import ForbiddenError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.run import NetworkPolicies
from support.pretend_cluster import NAMESPACE, NOBODY
from support.pretend_rook import ROOK
from support.pretend_world import CLAIMS, ERASURE_CODED, LIBRBD, CrashError, PretendWorld, create, outside


def delete(world: PretendWorld, uid: str, *, foreground: bool = False) -> None:
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run, foreground=foreground)


@pytest.mark.parametrize("rounds", range(0, 14, 2))
@pytest.mark.parametrize("foreground", [False, True])
def test_a_run_that_is_deleted_at_any_time_leaves_nothing(
    world: PretendWorld, rounds: int, *, foreground: bool
) -> None:
    uid = create(world, volume=CLAIMS, rook=ERASURE_CODED)
    for _ in range(rounds):
        world.round(3.0)
    delete(world, uid, foreground=foreground)
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


@pytest.mark.parametrize("rounds", range(1, 14, 3))
def test_a_namespace_that_is_deleted_strands_nothing(world: PretendWorld, rounds: int) -> None:
    uid = create(world, volume=CLAIMS, rook=ERASURE_CODED)
    for _ in range(rounds):
        world.round(3.0)
    namespace = world.cluster.find("Namespace", NAMESPACE)
    assert namespace is not None
    world.cluster.delete(namespace)
    world.until(lambda: world.run(uid) is None)
    for _ in range(3):
        world.round()
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())
    assert world.cluster.find("Namespace", NAMESPACE) is None


def test_what_rook_says_against_a_pools_removal_is_told_and_waited_for(world: PretendWorld) -> None:
    world.rook.knobs.foreign_images = True
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "PoolDeletionBlocked")
    message = world.conditions(uid)["CleanedUp"]["message"]
    assert "contains images or snapshots and cannot be deleted" in message
    for _ in range(20):
        world.round(60.0)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "PoolDeletionBlocked"
    assert {obj["kind"] for obj in world.cluster.of_run("CephBlockPool", uid)} == {"CephBlockPool"}
    world.rook.knobs.foreign_images = False
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"


def test_a_teardown_job_that_somebody_tidies_up_is_not_made_anew_when_its_user_is_gone(world: PretendWorld) -> None:
    world.rook.knobs.foreign_images = True
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "PoolDeletionBlocked")
    for job in world.cluster.of_run("Job", uid):
        world.cluster.delete(job)
    for _ in range(5):
        world.round()
    assert world.conditions(uid)["CleanedUp"]["reason"] == "PoolDeletionBlocked"
    assert "Job" not in outside(world, uid)
    world.rook.knobs.foreign_images = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_plan_that_somebody_changed_says_nothing_of_what_is_torn_down(world: PretendWorld) -> None:
    """The Job runs in the namespace of teardowns, with a key."""
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    plan = world.cluster.find("ConfigMap", naming.plan_config_map("a"))
    record = world.cluster.find("ConfigMap", naming.teardown(uid))
    assert plan is not None
    assert record is not None

    text = plan["data"]["plan.json"].replace("runner:1", "evil:1")
    world.cluster.edit(plan, lambda new: new["data"].update({"plan.json": text}))
    world.cluster.delete(record)
    assert world.until_ended(uid)["reason"] == "PlanDamaged"
    world.until(lambda: "Job" in outside(world, uid))
    images = {
        job["spec"]["template"]["spec"]["containers"][0]["image"]
        for job in world.cluster.of_run("Job", uid)
        if job["metadata"]["namespace"] != NAMESPACE
    }
    assert images == {"runner:1"}
    world.until_settled(uid)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_volumes_are_waited_for_with_all_that_they_need(world: PretendWorld) -> None:
    world.rook.knobs.slow_volumes = True
    uid = create(world, volume=CLAIMS)
    world.until(lambda: "2 PersistentVolumes" in world.conditions(uid).get("CleanedUp", {}).get("message", ""))
    for _ in range(5):
        world.round()
    assert outside(world, uid) >= {"StorageClass", "CephClient", "CephBlockPool"}
    world.rook.knobs.slow_volumes = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_strangers_claim_of_the_runs_class_is_named_and_keeps_the_pool_but_not_the_queue(world: PretendWorld) -> None:
    uid = create(world, volume=CLAIMS)
    world.until(lambda: world.cluster.of_run("StorageClass", uid))
    (storage_class,) = world.cluster.of_run("StorageClass", uid)
    metadata = {"name": "mine", "namespace": "other"}
    spec = {"storageClassName": storage_class["metadata"]["name"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    stranger = world.cluster.kube.put(claim | {"status": {"phase": "Bound"}})
    behind = create(world, "b")
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "ClaimedByOthers")
    assert "claimed by other/mine" in world.conditions(uid)["CleanedUp"]["message"]
    assert world.until_ended(behind)["status"] == "True"
    assert outside(world, uid) >= {"StorageClass", "CephClient", "CephBlockPool"}
    world.cluster.delete(stranger)
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_teardown_whose_pod_is_done_before_its_job_is_does_not_fail(world: PretendWorld) -> None:
    uid = create(world)
    world.until_ended(uid)
    reasons = set()
    while world.conditions(uid).get("CleanedUp", {}).get("reason") != "Removed":
        for act in (world.cluster.step, world.rook.step, world.conductors.step):
            act()
            world.operator.watch_all()
            world.look(uid)
            reasons.add(world.conditions(uid)["CleanedUp"]["reason"])
        world.cluster.pass_time(1.0)
    assert reasons == {"InProgress", "Removed"}


def test_a_teardown_that_fails_is_told_in_its_words_and_tried_again(world: PretendWorld) -> None:
    world.rook.knobs.unclean = "image plimsoll-u-0 still has watchers"
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    assert "still has watchers" in world.conditions(uid)["CleanedUp"]["message"]
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    first = {obj["metadata"]["uid"] for obj in world.cluster.of_run("Job", uid)}
    for _ in range(80):
        world.round()
    assert not first & {obj["metadata"]["uid"] for obj in world.cluster.of_run("Job", uid)}
    assert outside(world, uid) >= {"CephBlockPool", "CephClient"}
    world.rook.knobs.unclean = ""
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_teardown_without_a_pod_names_what_refuses_it(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.cluster.faults.over_quota = {NOBODY}
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "QuotaExceeded")
    message = world.conditions(uid)["CleanedUp"]["message"]
    assert "Job plimsoll-teardown/" in message
    assert "exceeded quota: few, limited: pods=1; change the policy or quota that refuses it in namespace" in message
    world.cluster.faults.over_quota = set()
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_without_network_policies_a_teardown_needs_none(world: PretendWorld) -> None:
    runs = world.operator.runs
    runs.settings = replace(runs.settings, network_policies=NetworkPolicies(enabled=False))
    uid = create(world)
    world.until_settled(uid)
    assert outside(world, uid) == set()
    assert not [asked for asked in world.cluster.kube.requests if asked.startswith("create NetworkPolicy")]


def test_a_teardown_that_may_not_be_created_names_what_refuses_it(world: PretendWorld) -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("create Job plimsoll-teardown/"):
            raise ForbiddenError(asked, "exceeded quota: jobs")

    world.cluster.kube.interfere = interfere
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "QuotaExceeded")
    message = world.conditions(uid)["CleanedUp"]["message"]
    assert "could not create Job plimsoll-teardown/" in message
    assert "exceeded quota: jobs" in message
    world.cluster.kube.interfere = lambda _: None
    world.until_settled(uid)
    assert outside(world, uid) == set()


@pytest.mark.parametrize(("cleanup", "kept"), [("Never", True), ("OnSuccess", False), ("Always", False)])
@pytest.mark.parametrize("volume", [LIBRBD, CLAIMS])
def test_storage_is_kept_if_that_is_asked_for(world: PretendWorld, cleanup: str, volume: Any, *, kept: bool) -> None:
    uid = create(world, volume=volume, cleanup=cleanup)
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == ("StorageKept" if kept else "Removed")
    assert bool(outside(world, uid)) == kept
    if kept:
        assert any(world.rook.images.values())
        assert "CephBlockPool plimsoll-a-" in world.conditions(uid)["CleanedUp"]["message"]
        assert "Job" not in outside(world, uid)
    delete(world, uid)
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_a_suspended_run_keeps_its_pool_and_goes_on_with_it(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    pools = world.cluster.of_run("CephBlockPool", uid)
    world.change(uid, suspend=True)
    world.until_settled(uid)
    for _ in range(3):
        world.round(3600.0)
    assert [pool["metadata"]["uid"] for pool in world.cluster.of_run("CephBlockPool", uid)] == [
        pool["metadata"]["uid"] for pool in pools
    ]
    world.change(uid, suspend=False)
    assert world.until_ended(uid)["status"] == "True"


def test_the_next_run_of_a_cluster_waits_until_the_storage_of_the_former_is_gone(world: PretendWorld) -> None:
    world.rook.knobs.unclean = "not now"
    first = create(world)
    world.until(lambda: world.conditions(first).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    second = create(world, "b")
    for _ in range(5):
        world.round()
    message = world.conditions(second)["Admitted"]["message"]
    assert "behind bench/a (being cleaned up: TeardownFailing)" in message
    assert outside(world, second) == set()
    world.rook.knobs.unclean = ""
    assert world.until_ended(second)["status"] == "True"


def test_a_run_that_waits_for_its_turn_ends_if_its_namespace_may_not_use_the_cluster_any_more(
    world: PretendWorld,
) -> None:
    world.rook.knobs.unclean = "not now"
    first = create(world)
    world.until(lambda: world.conditions(first).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    second = create(world, "b")
    world.until(lambda: world.conditions(second).get("Admitted", {}).get("reason") == "WaitingForTurn")
    runs = world.operator.runs
    runs.settings = replace(runs.settings, rook_clusters={})
    assert world.until_ended(second)["reason"] == "RookClusterNotAllowed"
    world.rook.knobs.unclean = ""
    world.until_settled(first)
    assert outside(world, first) == outside(world, second) == set()


def test_kinds_that_are_gone_are_told_and_what_is_there_is_not_forgotten(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    gone = {kind: traits for kind, traits in world.cluster.kube.kinds.items() if kind.api_version == "ceph.rook.io/v1"}
    for kind in gone:
        del world.cluster.kube.kinds[kind]
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "RookNotFound")
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert "reinstall Rook's CRDs" in world.conditions(uid)["CleanedUp"]["message"]
    world.cluster.kube.kinds |= gone
    world.until_settled(uid)
    assert outside(world, uid) == set()


@pytest.mark.parametrize("deleted", [True, False])
def test_when_the_operator_may_not_see_rooks_namespace_any_more_the_load_ends_and_the_right_is_named(
    world: PretendWorld, *, deleted: bool
) -> None:
    """As if that namespace were deleted with all its Roles."""

    def interfere(asked: str) -> None:
        if asked.startswith("list CephBlockPool"):
            raise ForbiddenError(asked, "cannot list (status 403)")

    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.cluster.kube.interfere = interfere
    if deleted:
        delete(world, uid)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "RookNotFound")
    assert not world.client_pods(uid)
    assert "bind the Role of manifests/rook" in world.conditions(uid)["CleanedUp"]["message"]
    assert outside(world, uid) >= {"CephBlockPool", "CephClient", "ConfigMap", "Secret"}
    world.cluster.kube.interfere = lambda _: None
    world.until(lambda: outside(world, uid) == set())


@pytest.mark.parametrize("rook", [ROOK, ERASURE_CODED])
def test_an_operator_that_dies_at_every_request_comes_to_the_same_end(world: PretendWorld, rook: Any) -> None:
    uid = create(world, volume=CLAIMS, rook=rook, timeouts={"provisionSeconds": 3600})
    for number in range(600):
        world.operator.watch_all()
        world.look_with(uid, 1 + number % 37, CrashError)
        world.cluster.step()
        world.rook.step()
        world.conductors.step()
        world.cluster.pass_time(1.0)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert len([asked for asked in world.cluster.kube.requests if asked.startswith("create CephBlockPool")]) >= 1
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_what_takes_long_to_remove_is_looked_at_less_and_less_often(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.cluster.of_run("Job", uid))
    world.rook.knobs.down = True
    world.until_ended(uid)
    pauses: list[float] = []
    for _ in range(12):
        decision = world.look(uid)
        assert decision is not None
        assert decision.requeue_seconds is not None
        pauses.append(decision.requeue_seconds)
        world.round(30.0)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "InProgress"
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (1, 15)
