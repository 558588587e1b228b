"""Runs on CephFS file systems of a Rook cluster: creation, use by all clients, and removal."""

from typing import Any

import pytest

from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.plan.document import load_plan
from support.pretend_cluster import Document
from support.pretend_rook import ROOK, ROOK_API, ROOK_NAMESPACE
from support.pretend_world import ERASURE_CODED, CrashError, PretendWorld, create, outside

REPLICATED = {"replicated": {"size": 3}}
CODED = {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}
CLUSTER = {"cluster": ROOK["cluster"]}
FILES = CLUSTER | {"fileSystem": {"metadataPool": REPLICATED, "dataPools": [REPLICATED]}}
TWO_POOLS = CLUSTER | {"fileSystem": {"metadataPool": REPLICATED, "dataPools": [REPLICATED, CODED]}}
EXISTING = CLUSTER | {"existingFileSystem": {"name": "shared", "dataPool": "shared-fast"}}
SHARED = {"size": "1Gi", "sharing": "Shared"}
PER_CLIENT = {"size": "1Gi"}


def put_file_system(world: PretendWorld, *, annotations: Any = None, phase: str = "Ready") -> Document:
    return world.cluster.kube.put(
        {
            "apiVersion": ROOK_API,
            "kind": "CephFilesystem",
            "metadata": {
                "name": "shared",
                "namespace": ROOK_NAMESPACE,
                "annotations": {ALLOW_BENCHMARKS: "true"} if annotations is None else annotations,
            },
            "spec": {"metadataPool": REPLICATED, "dataPools": [REPLICATED, {"name": "fast", **REPLICATED}]},
            "status": {"phase": phase},
        }
    )


@pytest.mark.parametrize("volume", [SHARED, PER_CLIENT])
@pytest.mark.parametrize("rook", [FILES, TWO_POOLS])
def test_a_run_on_a_file_system_is_measured_and_leaves_nothing(world: PretendWorld, rook: Any, volume: Any) -> None:
    uid = create(world, rook=rook, volume=volume)
    world.until(lambda: world.conductors.loads)
    (found,) = world.cluster.of_run("CephFilesystem", uid)
    assert len(found["metadata"]["name"]) <= 40
    assert found["spec"]["preserveFilesystemOnDelete"] is False
    assert not world.cluster.of_run("CephBlockPool", uid)
    claims = world.cluster.of_run("PersistentVolumeClaim", uid)
    assert len(claims) == (1 if volume == SHARED else 2)
    assert {claim["spec"]["volumeMode"] for claim in claims} == {"Filesystem"}
    (made,) = [obj for obj in world.cluster.kube.objects("StorageClass") if obj["metadata"]["name"] != "fast"]
    assert made["provisioner"] == "rook-ceph.cephfs.csi.ceph.com"
    assert made["parameters"]["fsName"] == found["metadata"]["name"]
    last = f"data{len(rook['fileSystem']['dataPools']) - 1}"
    assert made["parameters"]["pool"] == f"{found['metadata']['name']}-{last}"
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


@pytest.mark.parametrize("length", [22, 23, 30, 31, 52])
@pytest.mark.parametrize("rook", [FILES, ROOK, ERASURE_CODED])
def test_objects_of_a_run_with_a_long_name_are_known_and_removed(world: PretendWorld, rook: Any, length: int) -> None:
    """Rook allows file systems only 40 characters, and other objects more."""
    uid = create(world, ("a-run-of-a-suite-" * 4)[: length - 1] + "0", rook=rook, volume=PER_CLIENT)
    world.until(lambda: world.conductors.loads)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert outside(world, uid) == set()


def test_every_pool_has_a_fixed_number_of_placement_groups(world: PretendWorld) -> None:
    uid = create(world, rook=TWO_POOLS, volume=SHARED)
    world.until(lambda: world.conductors.loads)
    (found,) = world.cluster.of_run("CephFilesystem", uid)
    pools = [found["spec"]["metadataPool"], *found["spec"]["dataPools"]]
    assert [pool["parameters"]["pg_num"] for pool in pools] == ["16", "16", "64"]
    assert {pool["parameters"]["pg_autoscale_mode"] for pool in pools} == {"off"}
    config_map = world.cluster.find("ConfigMap", "a-plan")
    assert config_map is not None
    target = load_plan(config_map["data"]["plan.json"]).ceph
    assert target is not None
    assert target.file_system is not None
    assert target.file_system.made is not None
    assert target.made == target.file_system.made.data_pools[-1]


def test_an_operator_that_dies_at_every_request_reaches_the_same_end(world: PretendWorld) -> None:
    uid = create(world, rook=FILES, volume=SHARED)
    for number in range(1, 60):
        world.look_with(uid, number % 7 + 1, CrashError)
        world.restart_operator()
        world.round(2.0)
    world.until_settled(uid)
    assert outside(world, uid) == set()


@pytest.mark.parametrize("rounds", range(0, 16, 5))
def test_a_run_that_is_deleted_at_any_time_leaves_no_file_system(world: PretendWorld, rounds: int) -> None:
    uid = create(world, rook=FILES, volume=SHARED)
    for _ in range(rounds):
        world.round(3.0)
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    world.until(lambda: world.run(uid) is None)
    assert outside(world, uid) == set()


def test_what_keeps_a_file_system_is_shown_in_rook_s_words(world: PretendWorld) -> None:
    uid = create(world, rook=FILES, volume=PER_CLIENT)
    world.until(lambda: world.conductors.loads)
    (found,) = world.cluster.of_run("CephFilesystem", uid)
    pool = f"{found['metadata']['name']}-data0"
    world.rook.images[pool].add("a-subvolume-of-somebody")
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "FileSystemDeletionBlocked")
    message = world.conditions(uid)["CleanedUp"]["message"]
    assert "will not be deleted until all dependents are removed: filesystem subvolume groups" in message
    assert f"`ceph fs subvolume ls {found['metadata']['name']} csi`" in message
    world.rook.images[pool].discard("a-subvolume-of-somebody")
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_file_system_is_not_deleted_while_groups_are_inactive(world: PretendWorld) -> None:
    uid = create(world, rook=FILES, volume=SHARED, cleanup="Never")
    world.until_ended(uid)
    world.rook.knobs.inactive = True
    for _ in range(30):
        world.round()
    world.change(uid, cleanup="Always")
    world.until(lambda: world.conditions(uid)["CleanedUp"]["reason"] == "PlacementGroupsInactive")
    world.rook.knobs.inactive = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


# Feasibility


def test_each_pool_must_be_feasible(world: PretendWorld) -> None:
    wide = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}
    rook = CLUSTER | {"fileSystem": {"metadataPool": REPLICATED, "dataPools": [REPLICATED, wide]}}
    ended = world.until_ended(create(world, rook=rook, volume=SHARED))
    assert ended["reason"] == "PoolNotFeasible"
    assert "spec.storage.rook.fileSystem.dataPools[1]: the pool needs 6 failure domains" in ended["message"]


def test_the_pools_of_a_file_system_share_the_budget(world: PretendWorld) -> None:
    large = REPLICATED | {"placementGroups": 128}
    rook = CLUSTER | {"fileSystem": {"metadataPool": large, "dataPools": [large]}}
    ended = world.until_ended(create(world, rook=rook, volume=SHARED))
    assert ended["reason"] == "PoolNotFeasible"
    assert "spec.storage.rook.fileSystem.dataPools[0]: 128 placement groups would add 128 replicas" in ended["message"]


# Existing file systems


def test_an_existing_file_system_is_measured_and_stays(world: PretendWorld) -> None:
    put_file_system(world)
    uid = create(world, rook=EXISTING, volume=SHARED)
    world.until(lambda: world.conductors.loads)
    (made,) = [obj for obj in world.cluster.kube.objects("StorageClass") if obj["metadata"]["name"] != "fast"]
    assert made["parameters"]["pool"] == "shared-fast"
    config_map = world.cluster.find("ConfigMap", "a-plan")
    assert config_map is not None
    target = load_plan(config_map["data"]["plan.json"]).ceph
    assert target is not None
    assert target.pools == ("shared-metadata", "shared-data0", "shared-fast")
    world.until_settled(uid)
    assert outside(world, uid) == set()
    assert world.cluster.find("CephFilesystem", "shared") is not None


@pytest.mark.parametrize(
    ("existing", "annotations", "reason", "words"),
    [
        (
            {"name": "other"},
            None,
            "FileSystemNotFound",
            "CephFilesystem other does not exist, or belongs to another run; name one that allows benchmarks: shared",
        ),
        (
            {"name": "shared"},
            {},
            "FileSystemNotAllowed",
            "kubectl annotate cephfilesystem shared plimsoll.dev/allow-be",
        ),
        (
            {"name": "shared", "dataPool": "shared-slow"},
            None,
            "FileSystemNotFound",
            "existingFileSystem.dataPool: CephFilesystem shared has no data pool shared-slow; name one of its own",
        ),
        (
            {"name": "shared", "metadataPool": "meta"},
            None,
            "FileSystemNotFound",
            "existingFileSystem.metadataPool: CephFilesystem shared has no metadata pool meta; name its own",
        ),
    ],
)
def test_only_the_owner_s_file_system_with_its_pools_is_used(
    world: PretendWorld, existing: Any, annotations: Any, reason: str, words: str
) -> None:
    put_file_system(world, annotations=annotations)
    rook = CLUSTER | {"existingFileSystem": existing}
    ended = world.until_ended(create(world, rook=rook, volume=SHARED))
    assert ended["reason"] == reason
    assert words in ended["message"]


def test_a_run_waits_for_an_existing_file_system_that_is_not_ready(world: PretendWorld) -> None:
    world.rook.knobs.down = True
    put_file_system(world, phase="Progressing")
    uid = create(world, rook=EXISTING, volume=SHARED)
    world.until(lambda: "CephFilesystem shared is Progressing" in str(world.conditions(uid)), rounds=5)
