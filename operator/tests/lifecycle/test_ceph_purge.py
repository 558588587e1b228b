"""Before a run's own file system is removed, Ceph has to purge the deleted volumes, with a Job that waits for it."""

from typing import Any

import pytest

from plimsoll.lifecycle import naming
from support.pretend_cluster import Document
from support.pretend_world import FILE_SYSTEM, SHARED, PretendWorld, create, outside

PER_CLIENT = {"size": "1Gi"}
LEFT = "Ceph has yet to purge 3 deleted volumes of file system f"


def job_of(world: PretendWorld, uid: str) -> Document | None:
    return world.cluster.find("Job", naming.teardown(uid))


def cleaned_up(world: PretendWorld, uid: str) -> dict[str, Any]:
    return world.conditions(uid).get("CleanedUp", {})


def until_volumes_are_left(world: PretendWorld) -> str:
    """Return a run on its own file system whose volumes are not removed yet, while its PVCs are."""
    uid = create(world, rook=FILE_SYSTEM, volume=PER_CLIENT)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.slow_volumes = True
    world.until(lambda: "PersistentVolume" in cleaned_up(world, uid).get("message", ""))
    return uid


def put_job(world: PretendWorld, uid: str, *, complete: bool) -> Document:
    """Create a teardown Job that has ended."""
    record = world.cluster.find("ConfigMap", naming.teardown(uid))
    assert record is not None
    metadata = {name: record["metadata"][name] for name in ("name", "namespace", "labels")}
    template = {
        "metadata": {"labels": metadata["labels"]},
        "spec": {"containers": [{"name": "teardown", "args": ["teardown", f"--uid={uid}"]}]},
    }
    ended = {"type": "Complete" if complete else "Failed", "status": "True"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    return world.cluster.kube.put({**job, "status": {"conditions": [ended]}})


def test_what_volumes_leave_is_waited_for_after_their_deletion(world: PretendWorld) -> None:
    uid = until_volumes_are_left(world)
    assert job_of(world, uid) is None
    world.rook.knobs.slow_volumes = False
    world.until(lambda: job_of(world, uid) is not None)
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_purge_that_takes_long_is_told_with_what_is_left_and_no_advice_to_give_up(world: PretendWorld) -> None:
    world.rook.knobs.purging = LEFT
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until(lambda: LEFT in cleaned_up(world, uid).get("message", ""))
    seen = set()
    for _ in range(100):
        world.round()
        seen.add((cleaned_up(world, uid)["reason"], "Secret" in cleaned_up(world, uid)["message"]))
    assert seen == {("InProgress", False)}
    message = cleaned_up(world, uid)["message"]
    assert "waits until Ceph has purged the deleted volumes (since " in message
    assert message.endswith(f"): {LEFT}")
    assert outside(world, uid) >= {"CephFilesystem", "CephClient", "StorageClass", "Secret"}
    world.rook.knobs.purging = ""
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_another_failure_after_a_purge_is_told_as_one(world: PretendWorld) -> None:
    world.rook.knobs.purging = LEFT
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until(lambda: LEFT in cleaned_up(world, uid).get("message", ""))
    world.rook.knobs.unclean = "cannot connect"
    world.until(lambda: cleaned_up(world, uid)["reason"] == "TeardownFailing")
    assert "exit code 1: cannot connect" in cleaned_up(world, uid)["message"]
    world.rook.knobs.unclean = world.rook.knobs.purging = ""
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_inactive_groups_are_what_delays_a_purge(world: PretendWorld) -> None:
    world.rook.knobs.purging = LEFT
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until(lambda: LEFT in cleaned_up(world, uid).get("message", ""))
    world.rook.knobs.inactive = True
    world.until(lambda: cleaned_up(world, uid)["reason"] == "PlacementGroupsInactive")
    assert "waits until Ceph has purged the deleted volumes, and waits because" in cleaned_up(world, uid)["message"]
    world.rook.knobs.inactive, world.rook.knobs.purging = False, ""
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_job_at_work_for_long_may_be_waiting_for_the_purge(world: PretendWorld) -> None:
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until_ended(uid)
    while job_of(world, uid) is None:
        for act in (world.cluster.step, world.rook.step, world.conductors.step, world.operator.watch_all):
            act()
        world.look(uid)
    world.cluster.pass_time(130.0)
    world.look(uid)
    assert "check whether Ceph is still purging deleted volumes" in cleaned_up(world, uid)["message"]


@pytest.mark.parametrize("complete", [True, False])
def test_a_job_from_before_the_volumes_were_deleted_is_repeated(world: PretendWorld, *, complete: bool) -> None:
    """Others may have got a volume of the run's StorageClass after the Job was complete."""
    uid = until_volumes_are_left(world)
    earlier = put_job(world, uid, complete=complete)
    world.until(lambda: job_of(world, uid) is None)
    assert "PersistentVolume" in cleaned_up(world, uid)["message"]
    world.rook.knobs.slow_volumes = False
    world.until(lambda: job_of(world, uid) is not None)
    repeated = job_of(world, uid)
    assert repeated is not None
    assert repeated["metadata"]["uid"] != earlier["metadata"]["uid"]
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_job_is_not_repeated(world: PretendWorld) -> None:
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until_settled(uid)
    asked = [one for one in world.cluster.kube.requests if one.startswith("create Job") and naming.teardown(uid) in one]
    assert len(asked) == 1


@pytest.mark.parametrize("rook", [FILE_SYSTEM, None], ids=["file system", "pool"])
def test_volumes_of_a_storage_class_that_somebody_deleted_are_waited_for(world: PretendWorld, rook: Any) -> None:
    options = {} if rook is None else {"rook": rook}
    uid = create(world, volume=PER_CLIENT, **options)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.slow_volumes = True
    world.until_ended(uid)
    (storage_class,) = world.cluster.of_run("StorageClass", uid)
    world.cluster.delete(storage_class)
    world.until(lambda: "2 PersistentVolumes" in cleaned_up(world, uid).get("message", ""))
    for _ in range(5):
        world.round()
    assert "2 PersistentVolumes" in cleaned_up(world, uid)["message"]
    assert outside(world, uid) >= {"CephClient", "CephFilesystem" if rook else "CephBlockPool"}
    world.rook.knobs.slow_volumes = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_volumes_are_not_listed_for_runs_without_any(world: PretendWorld) -> None:
    """A cluster may have thousands, and the operator looks often."""
    uid = create(world)
    world.until_settled(uid)
    assert not [one for one in world.cluster.kube.requests if one.split()[:2] == ["list", "PersistentVolume"]]


def test_a_strangers_claim_does_not_end_with_talk_of_a_pool(world: PretendWorld) -> None:
    uid = create(world, rook=FILE_SYSTEM, volume=PER_CLIENT)
    world.until(lambda: world.conductors.loads)
    (storage_class,) = world.cluster.of_run("StorageClass", uid)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine", "namespace": "other"},
        "spec": {"storageClassName": storage_class["metadata"]["name"]},
        "status": {"phase": "Bound"},
    }
    stranger = world.cluster.kube.put(claim)
    world.until(lambda: cleaned_up(world, uid).get("reason") == "ClaimedByOthers")
    message = cleaned_up(world, uid)["message"]
    assert "pool" not in message
    assert "their storage in Ceph is kept until they are deleted" in message
    world.cluster.delete(stranger)
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_the_job_names_the_file_system(world: PretendWorld) -> None:
    uid = create(world, rook=FILE_SYSTEM, volume=SHARED)
    world.until(lambda: job_of(world, uid) is not None)
    job, (found,) = job_of(world, uid), world.cluster.of_run("CephFilesystem", uid)
    assert job is not None
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert f"--file-system={found['metadata']['name']}" in container["args"]
