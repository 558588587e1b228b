"""Claims that are not bound: which cause is named. And volumes that only root may open."""

from typing import Any

import pytest

from plimsoll.lifecycle.children import warnings_on
from support.pretend_cluster import NAMESPACE
from support.pretend_world import CLAIMS, LIBRBD, PretendWorld, create

BLOCK = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Block"}}


def bind(world: PretendWorld, mode: str) -> None:
    storage_class = world.cluster.find("StorageClass", "fast")
    assert storage_class is not None
    world.cluster.edit(storage_class, lambda new: new.update(volumeBindingMode=mode))


def enforce(world: PretendWorld, level: str) -> None:
    namespace = world.cluster.find("Namespace", NAMESPACE)
    assert namespace is not None
    labels = {"pod-security.kubernetes.io/enforce": level}
    world.cluster.edit(namespace, lambda new: new["metadata"].update(labels=labels))


@pytest.mark.parametrize(("mode", "clients"), [("Immediate", "Starting"), ("WaitForFirstConsumer", "Unschedulable")])
def test_a_csi_driver_that_is_not_there_is_named(world: PretendWorld, mode: str, clients: str) -> None:
    bind(world, mode)
    world.cluster.faults.no_driver = True
    uid = world.create("a")
    world.until(lambda: world.conditions(uid).get("ClientsReady", {}).get("reason") == clients, rounds=8)
    ended = world.until_ended(uid)
    assert ended["reason"] == "ClaimsNotBound"
    for words in ("PVC plimsoll-a-client-0 is Pending", "external provisioner 'absent'", "check the StorageClass"):
        assert words in ended["message"]
    assert "add nodes" not in ended["message"]


@pytest.mark.parametrize(("mode", "pods"), [("Immediate", 0), ("WaitForFirstConsumer", 2)])
def test_clients_wait_for_claims_that_they_do_not_bind(world: PretendWorld, mode: str, pods: int) -> None:
    bind(world, mode)
    world.cluster.faults.no_driver = True
    uid = world.create("a")
    for _ in range(8):
        world.round()
    assert len(world.client_pods(uid)) == pods
    world.cluster.faults.no_driver = False
    world.until(lambda: len(world.client_pods(uid)) == 2)
    assert world.until_ended(uid)["reason"] == "Valid"


def test_room_that_is_missing_is_told_when_the_claims_are_bound_or_wait_for_a_pod(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {1}
    uid = world.create("a")
    ended = world.until_ended(uid)
    assert ended["reason"] == "Unschedulable"
    assert "Insufficient memory" in ended["message"]


def test_a_warning_says_more_than_whom_a_claim_waits_for() -> None:
    claim = {"metadata": {"uid": "u"}}

    def event(kind: str, reason: str, when: str) -> dict[str, Any]:
        return {
            "type": kind,
            "reason": reason,
            "message": "words",
            "lastTimestamp": f"2026-01-01T12:00:0{when}Z",
            "involvedObject": {"uid": "u"},
        }

    waits, warns = event("Normal", "ExternalProvisioning", "5"), event("Warning", "ProvisioningFailed", "1")
    assert warnings_on([claim], [waits, warns, event("Normal", "Provisioning", "9")]) == {
        "u": "ProvisioningFailed: words"
    }
    assert warnings_on([claim], [waits]) == {"u": "ExternalProvisioning: words"}
    assert warnings_on([claim], [event("Normal", "WaitForFirstConsumer", "1")]) == {}


def test_the_newest_warning_is_the_one_that_was_seen_last_whichever_way_repetitions_are_counted() -> None:
    about = {"type": "Warning", "reason": "ReconcileFailed", "involvedObject": {"uid": "u"}}
    times = {"eventTime": "2026-11-26T22:36:41.0Z", "firstTimestamp": None, "lastTimestamp": None}
    series = {"count": 2, "lastObservedTime": "2026-11-26T22:37:01.3Z"}
    first = {**about, **times, "message": "first", "series": series}
    later = {**about, **times, "message": "later", "eventTime": "2026-11-26T22:36:50.7Z"}
    counted = {**about, "message": "counted", "count": 9, "lastTimestamp": "2026-11-26T22:37:02Z"}
    pool = {"metadata": {"uid": "u"}}
    assert warnings_on([pool], [later, first]) == {"u": "ReconcileFailed: first"}
    assert warnings_on([pool], [counted, later, first]) == {"u": "ReconcileFailed: counted"}


def test_block_volumes_are_refused_at_once_where_nobody_may_be_root(world: PretendWorld) -> None:
    enforce(world, "restricted")
    uid = world.create("a", storage=BLOCK)
    world.until(lambda: world.conditions(uid).get("Succeeded", {}).get("status") == "False", rounds=3)
    ended = world.conditions(uid)["Succeeded"]
    assert ended["reason"] == "PodSecurityTooStrict"
    for words in ("spec.storage.volume.mode", f"namespace {NAMESPACE}", "enforce: restricted", "Filesystem", "LibRBD"):
        assert words in ended["message"]
    world.until_settled(uid)
    assert world.conditions(uid)["CleanedUp"]["reason"] == "NothingCreated"


@pytest.mark.parametrize("level", ["baseline", "privileged"])
def test_block_volumes_are_measured_elsewhere(world: PretendWorld, level: str) -> None:
    enforce(world, level)
    assert world.until_ended(world.create("a", storage=BLOCK))["status"] == "True"


def test_of_a_rook_run_only_block_claims_need_root(world: PretendWorld) -> None:
    enforce(world, "restricted")
    refused = create(world, volume={"size": "1Gi", "mode": "Block"})
    assert world.until_ended(refused)["reason"] == "PodSecurityTooStrict"
    assert not world.cluster.of_run("CephBlockPool", refused)
    assert world.until_ended(create(world, "b", volume=CLAIMS))["status"] == "True"
    assert world.until_ended(create(world, "c", volume=LIBRBD))["status"] == "True"


SHARED = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "sharing": "Shared"}}


def test_clients_that_share_a_volume_have_one_claim_for_all(world: PretendWorld) -> None:
    uid = world.create("a", storage=SHARED, cleanup="Never")
    assert world.until_ended(uid)["status"] == "True"
    (claim,) = world.cluster.of_run("PersistentVolumeClaim", uid)
    assert claim["metadata"]["name"] == "plimsoll-a-shared"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    world.until(lambda: world.conditions(uid)["CleanedUp"]["reason"] == "StorageKept")
    assert "PVC: plimsoll-a-shared" in world.conditions(uid)["CleanedUp"]["message"]
    world.change(uid, cleanup="Always")
    world.until_settled(uid)
    assert not world.cluster.of_run("PersistentVolumeClaim", uid)
