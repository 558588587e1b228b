"""Runs on a Ceph cluster: what is created for them, in which order, and that all of it is removed."""

import json
from base64 import b64decode, b64encode
from functools import partial
from typing import Any

import pytest

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS, LABEL_RUN_UID
from support.pretend_cluster import NAMESPACE
from support.pretend_rook import KEY, ROOK, ROOK_NAMESPACE, TEARDOWN_NAMESPACE
from support.pretend_world import CLAIMS, ERASURE_CODED, LIBRBD, CrashError, PretendWorld, create, outside


@pytest.mark.parametrize("volume", [LIBRBD, CLAIMS])
@pytest.mark.parametrize("rook", [ROOK, ERASURE_CODED])
def test_a_run_on_rook_is_measured_and_leaves_nothing_in_ceph(world: PretendWorld, volume: Any, rook: Any) -> None:
    uid = create(world, volume=volume, rook=rook)
    world.until(lambda: world.conductors.loads)
    pools = world.cluster.of_run("CephBlockPool", uid)
    assert len(pools) == (2 if "erasureCoded" in rook["pool"] else 1)
    assert outside(world, uid) >= {"CephBlockPool", "CephClient", "ConfigMap", "Secret"}
    assert ("StorageClass" in outside(world, uid)) == (volume == CLAIMS)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())
    assert not any(world.rook.notes.values())


def test_nothing_is_made_before_the_record_of_it(world: PretendWorld) -> None:
    uid = create(world, volume=CLAIMS, rook=ERASURE_CODED)
    world.until_settled(uid)
    made = [request for request in world.cluster.kube.requests if request.startswith("create ")]
    kinds = [request.split()[1] for request in made]
    record = made.index(f"create ConfigMap {TEARDOWN_NAMESPACE}/{naming.teardown(uid)}")
    order = [kinds.index(kind) for kind in ("CephBlockPool", "CephClient", "StorageClass", "PersistentVolumeClaim")]
    assert [record, *order] == sorted([record, *order])
    keyring = made.index(f"create Secret {TEARDOWN_NAMESPACE}/{naming.teardown(uid)}")
    assert kinds.index("CephClient") < keyring < kinds.index("Job")


def test_the_keys_are_where_they_are_needed_and_nowhere_else(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    secrets = {
        obj["metadata"]["name"]: b64decode(obj["data"]["keyring"]).decode()
        for obj in world.cluster.of_run("Secret", uid)
        if "keyring" in obj["data"]
    }
    assert len(secrets) == 3
    assert all(text.startswith("[client.plimsoll-a-") and f"key = {KEY}" in text for text in secrets.values())
    assert "-conductor]" in secrets[naming.teardown(uid)]
    assert "-agent]" in secrets[naming.keyring_secret(uid, naming.CLIENT)]
    world.until_settled(uid)
    others = [obj for obj in world.cluster.kube.objects() if obj["kind"] != "Secret"]
    assert KEY not in json.dumps(others)
    assert KEY not in " ".join(map(str, list(world.operator.events._queue)))  # type: ignore[attr-defined]


def test_placement_groups_are_fixed_in_the_plan(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.cluster.of_run("CephBlockPool", uid))
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    frozen = json.loads(plan["data"]["plan.json"])
    (pool,) = world.cluster.of_run("CephBlockPool", uid)
    assert str(frozen["ceph"]["made"]["placementGroups"]) == pool["spec"]["parameters"]["pg_num"] == "64"
    assert frozen["environment"]["rook"] == {"cephVersion": "18.2.7-0"}


def test_a_run_without_a_ceph_cluster_asks_nothing_of_one(world: PretendWorld) -> None:
    for kind in [kind for kind in world.cluster.kube.kinds if kind.api_version == "ceph.rook.io/v1"]:
        del world.cluster.kube.kinds[kind]
    uid = world.create("a")
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    asked = " ".join(world.cluster.kube.requests)
    assert "Ceph" not in asked
    assert ROOK_NAMESPACE not in asked
    assert TEARDOWN_NAMESPACE not in asked
    assert "PersistentVolume " not in asked


# -- what goes wrong while it is made


def test_a_pool_that_failed_and_recovers_is_used(world: PretendWorld) -> None:
    world.rook.knobs.pools = "CephBlockPool failed"
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("StorageReady", {}).get("reason") == "PoolFailed")
    assert "signal: interrupt" in world.conditions(uid)["StorageReady"]["message"]
    world.rook.knobs.pools = ""
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_rook_may_be_away_for_a_while(world: PretendWorld) -> None:
    world.rook.knobs.down = True
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("StorageReady", {}).get("reason") == "PoolNotReady")
    hint = "check that its operator is running"
    world.until(lambda: hint in world.conditions(uid)["StorageReady"]["message"])
    world.rook.knobs.down = False
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


def test_a_rook_that_is_restarted_during_a_measurement_does_not_matter(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    (pool,) = world.cluster.of_run("CephBlockPool", uid)
    world.cluster.set_status(pool, phase="Progressing", observedGeneration=1)
    world.rook.knobs.down = True
    (pod, *_) = world.client_pods(uid)
    world.cluster.end(pod, 137, "killed")
    world.round()
    assert world.conditions(uid)["StorageReady"]["status"] == "True"
    assert "is Progressing" in world.conditions(uid)["StorageReady"]["message"]
    world.until(lambda: world.conditions(uid)["Succeeded"]["status"] == "True")
    world.rook.knobs.down = False
    world.until_settled(uid)
    assert outside(world, uid) == set()


def test_a_record_or_key_that_is_deleted_is_made_anew(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    for kind in ("ConfigMap", "Secret"):
        obj = world.cluster.find(kind, naming.teardown(uid))
        assert obj is not None
        world.cluster.delete(obj)
    for _ in range(3):
        world.operator.watch_all()
        world.look(uid)
    assert world.cluster.find("ConfigMap", naming.teardown(uid))
    assert world.cluster.find("Secret", naming.teardown(uid))
    world.until_settled(uid)
    assert not any(world.rook.images.values())


def rotate_key(world: PretendWorld, uid: str) -> str:
    users = {obj["metadata"]["name"]: obj for obj in world.cluster.of_run("CephClient", uid)}
    return world.rook.rotate_key(next(obj for name, obj in users.items() if name.endswith("-conductor")))


def copied_key(world: PretendWorld, uid: str) -> str:
    copy = world.cluster.find("Secret", naming.teardown(uid))
    return b64decode(copy["data"]["keyring"]).decode().partition("key = ")[2].strip() if copy else ""


def has_copy(world: PretendWorld, uid: str, beginning: str) -> bool:
    return copied_key(world, uid).startswith(beginning)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_key_that_is_rotated_is_copied_again(world: PretendWorld, *, is_over: bool) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.unclean = "`ceph osd pool ls detail` failed: denied"
    if is_over:
        world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    for number in ("2", "3"):
        assert f"AQB{number}" in rotate_key(world, uid)
        world.until(partial(has_copy, world, uid, f"AQB{number}"))
        world.until(lambda: world.cluster.find("Secret", naming.key_renewal(uid)) is None)
    world.rook.knobs.unclean = ""
    world.until_settled(uid)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_a_copied_key_whose_generation_is_unknown_is_current_until_the_key_is_rotated(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    copy = world.cluster.find("Secret", naming.teardown(uid))
    assert copy is not None
    del copy["metadata"]["annotations"]
    world.cluster.kube.put(copy)
    asked = len(world.cluster.kube.requests)
    world.until_settled(uid)
    changes = [request for request in world.cluster.kube.requests[asked:] if not request.startswith("get ")]
    assert not any(naming.key_renewal(uid) in request for request in changes)
    assert outside(world, uid) == set()


def test_a_user_that_is_deleted_while_its_key_is_copied_again_keeps_the_run(world: PretendWorld) -> None:
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.unclean = "`ceph osd pool ls detail` failed: denied"
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    copy = world.cluster.find("Secret", naming.teardown(uid))
    assert copy is not None
    world.cluster.kube.put(
        {**copy, "metadata": {**copy["metadata"], "name": naming.key_renewal(uid), "uid": "renewal"}}
    )
    for obj in (copy, *world.cluster.of_run("CephClient", uid)):
        world.cluster.delete(world.cluster.kube.put({**obj, "metadata": {**obj["metadata"], "finalizers": []}}))
    for _ in range(6):
        world.round()
    cleaned_up = world.conditions(uid)["CleanedUp"]
    assert cleaned_up["reason"] == "TeardownFailing"
    assert f"then delete Secret {TEARDOWN_NAMESPACE}/{naming.key_renewal(uid)}" in cleaned_up["message"]
    assert any(world.rook.images.values())


def test_an_operator_that_dies_while_it_copies_a_rotated_key_still_removes_everything(world: PretendWorld) -> None:
    """Without a copy of the key, the run would have nothing in Ceph."""
    uid = create(world)
    world.until(lambda: world.conductors.loads)
    world.rook.knobs.unclean = "denied"
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "TeardownFailing")
    key = rotate_key(world, uid)
    for number in range(60):
        world.operator.watch_all()
        world.look_with(uid, 1 + number % 11, CrashError)
        world.cluster.step()
        world.rook.step()
        world.cluster.pass_time(1.0)
    world.until(lambda: copied_key(world, uid) == key)
    assert any(world.rook.images.values())
    world.rook.knobs.unclean = ""
    world.until_settled(uid)
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())


def test_the_key_of_whoever_had_a_secret_before_is_not_taken(world: PretendWorld) -> None:
    key = b64encode(b"another's").decode()
    data = {"plimsoll-other-conductor": key, "userID": "", "userKey": key}
    metadata = {"name": "plimsoll-0", "namespace": ROOK_NAMESPACE}
    left = world.cluster.kube.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "KeyringNotFound")
    assert world.cluster.find("Secret", naming.teardown(uid)) is None
    world.cluster.delete(dict(left))
    assert world.until_ended(uid)["status"] == "True"


def test_when_all_secrets_for_keys_are_taken_it_is_said(world: PretendWorld) -> None:
    for number in range(32):
        user = {"spec": {"secretName": f"plimsoll-{number}"}, "status": {"phase": "Ready"}}
        metadata = {"name": f"kept-{number}", "namespace": ROOK_NAMESPACE}
        world.cluster.kube.put({"apiVersion": "ceph.rook.io/v1", "kind": "CephClient", "metadata": metadata, **user})
    world.rook._see_to_users = lambda: None  # type: ignore[method-assign]
    uid = create(world)
    world.until(lambda: world.conditions(uid).get("StorageReady", {}).get("reason") == "KeySecretsTaken")
    assert "delete runs that keep their storage" in world.conditions(uid)["StorageReady"]["message"]


def test_a_stranger_with_the_same_label_is_not_touched(world: PretendWorld) -> None:
    uid = create(world)
    labels = {LABEL_RUN_UID: uid}
    for kind, name in (("CephBlockPool", "precious"), ("CephClient", "somebody")):
        metadata = {"name": name, "namespace": ROOK_NAMESPACE, "labels": labels}
        spec = {"secretName": "theirs"}
        world.cluster.kube.put({"apiVersion": "ceph.rook.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
    assert world.cluster.find("CephBlockPool", "precious")
    assert world.cluster.find("CephClient", "somebody")


# -- an existing pool, and Ceph without Rook


def existing(world: PretendWorld, *, annotated: bool = True) -> None:
    annotations = {naming.ALLOW_BENCHMARKS: "true"} if annotated else {}
    metadata = {"name": "given", "namespace": ROOK_NAMESPACE, "annotations": annotations, "generation": 2}
    status = {"phase": "Ready", "observedGeneration": 2}
    world.cluster.kube.put(
        {"apiVersion": "ceph.rook.io/v1", "kind": "CephBlockPool", "metadata": metadata, "spec": {}, "status": status}
    )


@pytest.mark.parametrize("volume", [LIBRBD, CLAIMS])
def test_an_existing_pool_is_used_and_stays(world: PretendWorld, volume: Any) -> None:
    existing(world)
    world.rook.images["given"].add("precious")
    rook = {"cluster": ROOK["cluster"], "existingPool": {"name": "given"}}
    uid = create(world, volume=volume, rook=rook)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert outside(world, uid) == set()
    assert world.cluster.find("CephBlockPool", "given")
    assert world.rook.images["given"] == {"precious"}


def give_keyring(world: PretendWorld, text: str = "[client.bench]\nkey = {KEY}\n") -> None:
    metadata = {"name": "keyring", "namespace": NAMESPACE, "annotations": {ALLOW_BENCHMARKS: "true"}}
    data = {"keyring": b64encode(text.format(KEY=KEY).encode()).decode()}
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


CEPH = {
    "monitors": ["192.0.2.1:6789"],
    "user": "bench",
    "keyringSecret": {"name": "keyring"},
    "pool": {"name": "given"},
}


def create_without_rook(world: PretendWorld, **spec: Any) -> str:
    return world.create("a", storage={"ceph": CEPH, "volume": LIBRBD}, **spec)


def test_a_ceph_cluster_without_rook_is_measured_and_left_as_it_was(world: PretendWorld) -> None:
    give_keyring(world)
    for kind in [kind for kind in world.cluster.kube.kinds if kind.api_version == "ceph.rook.io/v1"]:
        del world.cluster.kube.kinds[kind]
    world.rook.knobs.down = True
    uid = create_without_rook(world)
    world.until(lambda: world.conductors.loads)
    assert outside(world, uid) == {"ConfigMap", "Secret"}
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())
    assert world.cluster.find("Secret", "keyring")


def test_its_removal_does_not_need_the_users_secret_any_more(world: PretendWorld) -> None:
    give_keyring(world)
    uid = create_without_rook(world)
    world.until(lambda: world.conductors.loads)
    namespace = world.cluster.find("Namespace", NAMESPACE)
    assert namespace is not None
    world.cluster.delete(namespace)
    world.until(lambda: world.run(uid) is None)
    world.round()
    assert outside(world, uid) == set()
    assert not any(world.rook.images.values())
