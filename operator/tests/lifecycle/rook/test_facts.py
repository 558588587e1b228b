"""The status of Rook objects, as recorded from Rook 1.18 and from one with Ceph 20."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.lifecycle.ceph.rook import removal_fact
from plimsoll.lifecycle.ceph.rook_facts import RookFact, readiness_fact, rook_fact
from plimsoll.lifecycle.ceph.rook_render import BLOCK_POOL
from plimsoll.lifecycle.ceph.rook_survey import RookPlatform, complete_plan, unusable_file_system, unusable_objects
from plimsoll.lifecycle.children import warnings_on
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS, LABEL_RUN_UID
from plimsoll.plan.document import CephTarget
from support.goldens import NEW_ROOK, OLD_ROOK, rook_object
from support.specs import ceph_run, made_in_rook

TARGET = ceph_run("rook-images").target
CREATED = datetime(2026, 11, 21, 9, 12, tzinfo=UTC)
DELETED = datetime(2026, 11, 21, 9, 13, 56, tzinfo=UTC)
NOT_EMPTY = 'pool "bench-rep3" contains images or snapshots and cannot be deleted'
NO_CLASS = (
    'failed to reconcile CephBlockPool "rook-ceph/x". failed to create pool "x".: Error EINVAL: device class nvme does '
    "not exist: exit status 22"
)


def thing(kind: str = "CephBlockPool", name: str = "pool", *, phase: str = "Ready", **metadata: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase, **({"observedGeneration": 2} if phase == "Ready" else {})}
    if kind == "CephClient":
        status["info"] = {"secretName": "plimsoll-0"}
    own = {"name": name, "namespace": "rook-ceph", "uid": f"uid-of-{name}", "generation": 2}
    own |= {"creationTimestamp": CREATED.isoformat(), **metadata}
    return {"apiVersion": "ceph.rook.io/v1", "kind": kind, "metadata": own, "status": status}


def event(uid: str, message: str = NO_CLASS) -> dict[str, Any]:
    return {"type": "Warning", "reason": "ReconcileFailed", "message": message, "involvedObject": {"uid": uid}}


def fact(obj: dict[str, Any], *events: dict[str, Any]) -> RookFact:
    return rook_fact(obj, warnings_on([obj], events))


def everything(**changed: dict[str, Any]) -> list[RookFact]:
    """Return facts of all that a run makes, ready, but for what is changed, by the end of its name."""
    objects = [thing(obj["kind"], obj["metadata"]["name"]) for obj in made_in_rook(ceph_run("rook-images"))]
    for end, status in changed.items():
        for obj in objects:
            if obj["metadata"]["name"].endswith(end):
                obj["status"] = status
    return [fact(obj) for obj in objects]


def readiness(facts: Iterable[RookFact], target: CephTarget = TARGET, *, seconds: float = 61) -> Fact:
    """Return what is known that long after the creation."""
    return readiness_fact(target, facts, now=CREATED + timedelta(seconds=seconds))


def test_ready_of_the_present_generation_is_ready() -> None:
    assert fact(thing()).ready
    assert fact(thing("CephClient", "user")).secret == "plimsoll-0"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ready", "plimsoll-0"),
        ("aes", "rook-ceph-client-bench-aes"),
        ("aes256k", "rook-ceph-client-bench-aes256k"),
    ],
)
def test_a_user_is_read_as_rook_wrote_it(name: str, secret: str) -> None:
    found = fact(rook_object(f"cephclient-{name}"))
    assert (found.ready, found.secret, found.key_generation) == (True, secret, "1")


@pytest.mark.parametrize(
    ("version", "story", "ready", "phase"),
    [
        (OLD_ROOK, "ready", True, "Ready"),
        (OLD_ROOK, "progressing", False, "Progressing"),
        (OLD_ROOK, "deleting-blocked", False, "Ready"),
        (NEW_ROOK, "ready", True, "Ready"),
        (NEW_ROOK, "progressing", False, "Progressing"),
    ],
)
def test_a_file_system_is_read_as_rook_wrote_it(version: str, story: str, phase: str, *, ready: bool) -> None:
    found = fact(rook_object(f"cephfilesystem-{story}", version))
    assert (found.ready, found.phase) == (ready, phase)
    assert ("subvolume groups that contain subvolumes" in found.blocked) == (story == "deleting-blocked")


def test_a_file_system_that_is_not_ready_is_named_before_the_users() -> None:
    made = ceph_run("rook-files")
    objects = [thing(obj["kind"], obj["metadata"]["name"]) for obj in made_in_rook(made)]
    assert readiness([fact(obj) for obj in objects], made.target).message == (
        f"Rook reports file system {objects[0]['metadata']['name']} as ready"
    )
    objects[0]["status"] = {"phase": "Progressing"}
    found = readiness([fact(obj) for obj in objects], made.target)
    assert found.reason == "FileSystemNotReady"
    objects[0]["status"] = {"phase": "Failure"}
    assert readiness([fact(obj) for obj in objects], made.target).reason == "FileSystemFailed"


def test_ready_of_an_earlier_generation_is_not() -> None:
    assert not fact(thing(generation=3)).ready


def test_what_rook_has_not_seen_yet_is_not_ready() -> None:
    obj = thing()
    del obj["status"]
    assert not fact(obj).ready
    assert fact(obj).phase == ""


def test_what_is_being_deleted_is_not_ready_whatever_its_phase_says() -> None:
    assert not fact(thing(deletionTimestamp="2026-11-21T09:13:56Z")).ready


def test_events_of_an_earlier_object_of_the_same_name_do_not_count() -> None:
    obj = thing(phase="Failure")
    assert fact(obj, event("another")).warning == ""
    assert fact(obj, event("another"), event("uid-of-pool")).warning == f"ReconcileFailed: {NO_CLASS}"


def test_all_that_is_made_has_to_be_ready() -> None:
    assert readiness(everything()).holds
    found = readiness(everything()[:-1])
    assert (found.holds, found.reason) == (False, "UserNotReady")
    assert "is not created yet" in found.message


def test_of_an_existing_pool_only_users_are_waited_for() -> None:
    existing = ceph_run("rook-existing")
    facts = [fact(thing(obj["kind"], obj["metadata"]["name"])) for obj in made_in_rook(existing)]
    assert readiness(facts, existing.target).holds


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ({}, "PoolNotReady", "Rook has not reported the status of CephBlockPool rook-ceph/plimsoll-"),
        ({"phase": "Progressing"}, "PoolNotReady", "is Progressing"),
        ({"phase": "Failure"}, "PoolFailed", "failed; Rook retries"),
        ({"phase": "Ready", "observedGeneration": 1}, "PoolNotReady", "its current specification"),
    ],
)
def test_a_pool_that_is_not_ready_is_told(status: dict[str, Any], reason: str, words: str) -> None:
    found = readiness(everything(data=status))
    assert (found.holds, found.reason) == (False, reason)
    assert words in found.message


def test_a_rook_that_has_just_begun_is_only_waited_for() -> None:
    assert readiness(everything(data={}), seconds=2).message.startswith("waiting for Rook to report on CephBlockPool")
    warned = [replace(each, warning=NO_CLASS) for each in everything(data={})]
    assert NO_CLASS in readiness(warned, seconds=2).message


def test_a_user_that_failed_is_told() -> None:
    assert readiness(everything(agent={"phase": "Failure"})).reason == "UserFailed"


def test_the_condition_that_is_true_says_why_a_pool_is_not_deleted() -> None:
    obj = thing(deletionTimestamp="2026-11-21T09:13:56Z")
    obj["status"]["conditions"] = [
        {"type": "PoolDeletionIsBlocked", "status": "True", "reason": "PoolNotEmpty", "message": NOT_EMPTY},
        {"type": "DeletionIsBlocked", "status": "False", "reason": "ObjectHasNoDependents", "message": "no dependents"},
    ]
    assert fact(obj).blocked == NOT_EMPTY
    found = removal_fact([fact(obj)])
    assert found.reason == "PoolDeletionBlocked"
    assert f"Rook does not delete CephBlockPool rook-ceph/pool: {NOT_EMPTY};" in found.message
    obj["status"]["conditions"][0]["status"] = "False"
    assert removal_fact([fact(obj)]).reason == "InProgress"


def test_a_removal_says_since_when_and_where_to_look() -> None:
    assert removal_fact([fact(thing())]).message == "Rook is deleting CephBlockPool pool"
    begun = removal_fact([fact(thing(deletionTimestamp=DELETED.isoformat()))])
    assert begun.reason == "InProgress"
    assert "since 2026-11-21T09:13:56Z; if that takes minutes, check that Rook's operator is running" in begun.message


def test_a_pool_that_is_being_deleted_waits_for_its_placement_groups() -> None:
    found = removal_fact([fact(thing(deletionTimestamp=DELETED.isoformat()))], "8 groups are inactive")
    assert found.reason == "PlacementGroupsInactive"
    assert "8 groups are inactive; bring the OSDs back" in found.message


def shared(**annotations: str) -> list[dict[str, Any]]:
    return [thing(name=name, annotations=annotations) for name in ("shared", "shared-data")]


def words(unusable: Fact | None) -> str:
    assert unusable is not None
    return unusable.message


def test_an_existing_pool_has_to_be_there_given_and_ready() -> None:
    target = ceph_run("rook-existing").target
    given = {ALLOW_BENCHMARKS: "true"}
    assert unusable_objects(BLOCK_POOL, target.pools, shared(**given)) is None
    private = words(unusable_objects(BLOCK_POOL, target.pools, shared()))
    assert "kubectl annotate cephblockpool shared plimsoll.dev/allow-benchmarks" in private
    assert "does not allow benchmarks" in words(
        unusable_objects(BLOCK_POOL, target.pools, shared(**{ALLOW_BENCHMARKS: "yes"}))
    )
    pools = [thing(name="rbd"), thing(name="for-all", annotations=given)]
    assert words(unusable_objects(BLOCK_POOL, target.pools, pools)) == (
        "spec.storage.rook.existingPool: CephBlockPool shared does not exist, or belongs to another run; name one that "
        "allows benchmarks: for-all"
    )
    assert "shared-data does not exist" in words(unusable_objects(BLOCK_POOL, target.pools, shared(**given)[:1]))
    going = [thing(name=name, annotations=given, phase="Progressing") for name in ("shared", "shared-data")]
    assert "shared is Progressing" in words(unusable_objects(BLOCK_POOL, target.pools, going))


def test_a_plan_without_its_cluster_stays_as_it_is() -> None:
    plan = ceph_run("rook-images").plan
    assert complete_plan(plan, RookPlatform()) is plan


def test_a_pool_or_file_system_of_another_run_is_refused_and_named_nowhere() -> None:
    given, of_run = {ALLOW_BENCHMARKS: "true"}, {LABEL_RUN_UID: "another"}
    pools = [thing(name=name, annotations=given, labels=of_run) for name in ("shared", "plimsoll-victim-01234567")]
    existing_pool, existing_files = (ceph_run(name).target for name in ("rook-existing", "rook-existing-files"))
    for unusable in (
        unusable_objects(BLOCK_POOL, existing_pool.pools, pools),
        unusable_file_system(existing_files, pools),
    ):
        message = words(unusable)
        assert message.endswith(
            "shared does not exist, or belongs to another run; name one that allows benchmarks: none"
        )
