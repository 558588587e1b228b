"""Objects of others that occupy a run's names, or look like a run's: they are neither used nor deleted."""

from copy import deepcopy
from typing import Any

import pytest

from plimsoll.api.names import API_VERSION
from plimsoll.api.names import RESULT_KIND as RESULT
from plimsoll.lifecycle import naming
from support.pretend_cluster import NAMESPACE, Document
from support.pretend_world import PretendWorld, until_trial

IN_THE_WAY = [
    ("v1", "ConfigMap", "a-state"),
    ("v1", "ServiceAccount", "plimsoll-a-conductor"),
    ("v1", "Service", "a-conductor"),
    ("v1", "PersistentVolumeClaim", "plimsoll-a-client-1"),
    ("batch/v1", "Job", "a-client-0-0"),
    ("batch/v1", "Job", "a-conductor"),
    ("networking.k8s.io/v1", "NetworkPolicy", "a-client-network"),
    ("rbac.authorization.k8s.io/v1", "Role", "plimsoll-a-conductor"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "plimsoll-a-conductor"),
    ("plimsoll.dev/v1alpha1", "BenchmarkResult", "a-w-000"),
]


def put(world: PretendWorld, api_version: str, kind: str, name: str, **metadata: Any) -> Document:
    """Put a stranger's object there."""
    obj: Document = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
    }
    if kind == "Job":
        # One that has no pods and makes none.
        obj["spec"] = {"suspend": True}
        obj["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    if kind == "BenchmarkResult":
        obj["spec"] = {"runUid": "another", "point": "w-000"}
    return dict(world.cluster.kube.put(obj))


def is_as_it_was(world: PretendWorld, obj: Document) -> bool:
    """Whether only the volume controller has changed an object."""
    found = deepcopy(world.cluster.find(obj["kind"], obj["metadata"]["name"]))
    assert found is not None
    for one in (found, obj):
        for field in ("finalizers", "resourceVersion"):
            one["metadata"].pop(field, None)
    return found == obj


def uses_of(world: PretendWorld, claim: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in world.cluster.kube.objects("Pod")
        for volume in pod["spec"]["volumes"]
        if volume.get("persistentVolumeClaim", {}).get("claimName") == claim
    ]


@pytest.mark.parametrize(("api_version", "kind", "name"), IN_THE_WAY)
def test_what_stands_in_the_way_ends_the_run_and_is_left_alone(
    world: PretendWorld, api_version: str, kind: str, name: str
) -> None:
    stranger = put(world, api_version, kind, name)
    uid = world.create("a")
    ending = world.until_ended(uid)
    assert (ending["reason"], ending["status"]) == ("NameTaken", "False")
    assert f"{kind} {name}" in ending["message"]
    assert "rename the run" in ending["message"]
    world.until_settled(uid)
    assert is_as_it_was(world, stranger)
    assert not world.conductors.loads


FIXED = [each for each in IN_THE_WAY if each[1] in {"ServiceAccount", "Service", "NetworkPolicy", "Role"}]


@pytest.mark.parametrize(("api_version", "kind", "name"), FIXED)
def test_no_client_starts_again_beside_what_has_taken_a_name_meanwhile(
    world: PretendWorld, api_version: str, kind: str, name: str
) -> None:
    uid = world.create("a")
    until_trial(world)
    own = world.cluster.find(kind, name)
    assert own is not None
    world.cluster.delete(own)
    put(world, api_version, kind, name)
    job = world.cluster.find("Job", "a-client-0-0")
    assert job is not None
    world.cluster.delete(job)
    world.cluster.kube.requests.clear()
    assert world.until_ended(uid)["reason"] == "NameTaken"
    assert not [asked for asked in world.cluster.kube.requests if asked.startswith("create Job")]


def test_a_volume_of_somebody_else_is_never_mounted(world: PretendWorld) -> None:
    claim = put(world, "v1", "PersistentVolumeClaim", "plimsoll-a-client-0", labels={"app": "database"})
    world.create("a")
    for _ in range(30):
        world.round()
        assert not uses_of(world, "plimsoll-a-client-0")
    assert is_as_it_was(world, claim)


@pytest.mark.parametrize("owned", [False, True])
def test_the_label_or_the_owner_alone_does_not_make_an_object_the_runs(world: PretendWorld, *, owned: bool) -> None:
    uid = world.create("a", suspend=True)
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "a", "uid": uid}
    metadata = {"ownerReferences": [owner]} if owned else {"labels": {naming.LABEL_RUN_UID: uid}}
    put(world, "v1", "PersistentVolumeClaim", "plimsoll-a-client-0", **metadata)
    world.change(uid, suspend=False)
    for _ in range(20):
        world.round()
        assert not uses_of(world, "plimsoll-a-client-0")


def test_a_claim_that_is_going_is_waited_for(world: PretendWorld) -> None:
    claim = put(world, "v1", "PersistentVolumeClaim", "plimsoll-a-client-0", finalizers=["example.com/busy"])
    world.cluster.delete(claim)
    uid = world.create("a")
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "WaitingForEarlierRun")
    assert not uses_of(world, "plimsoll-a-client-0")
    world.cluster.let_go(claim, "example.com/busy")
    assert world.until_ended(uid)["status"] == "True"


def test_a_claim_that_does_not_go_is_waited_for_no_longer_than_for_volumes(world: PretendWorld) -> None:
    claim = put(world, "v1", "PersistentVolumeClaim", "plimsoll-a-client-0", finalizers=["example.com/busy"])
    world.cluster.delete(claim)
    assert world.until_ended(world.create("a"))["reason"] == "NameTaken"


def test_an_object_with_the_label_only_is_neither_deleted_nor_waited_for(world: PretendWorld) -> None:
    uid = world.create("a")
    mine = {naming.LABEL_RUN_UID: uid}
    stranger = put(world, "v1", "PersistentVolumeClaim", "data-of-mine", labels=mine)
    config = put(world, "v1", "ConfigMap", "notes", labels=mine)
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "Removed")
    assert is_as_it_was(world, stranger)
    assert is_as_it_was(world, config)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"


# -- plans


def forged(world: PretendWorld, uid: str) -> Document:
    """Return the plan of another run, made over to the one with this UID in every respect."""
    other = world.create("b", suspend=False)
    world.until(lambda: world.cluster.find("ConfigMap", "b-plan"))
    plan = deepcopy(world.cluster.find("ConfigMap", "b-plan"))
    assert plan is not None
    text = plan["data"]["plan.json"].replace(other, uid).replace('"name": "b"', '"name": "a"')
    labels = plan["metadata"]["labels"] | {naming.LABEL_RUN: "a", naming.LABEL_RUN_UID: uid}
    owner = plan["metadata"]["ownerReferences"][0] | {"name": "a", "uid": uid}
    metadata = {"name": "a-plan", "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
    run = world.run(other)
    assert run is not None
    world.cluster.delete(run)
    world.until(lambda: world.run(other) is None)
    data = {"plan.json": text.replace("runner:1", "evil:1")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": data}


def test_a_plan_that_the_operator_did_not_make_is_not_used(world: PretendWorld) -> None:
    uid = world.create("a", suspend=True)
    world.cluster.kube.put(forged(world, uid))
    world.change(uid, suspend=False)
    ending = world.until_ended(uid)
    assert ending["reason"] == "PlanDamaged"
    assert "planSha256" in ending["message"]
    assert not world.cluster.kube.objects("Job")


def test_a_plan_that_replaces_the_operators_is_not_used(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    run = world.run(uid)
    assert run is not None
    assert len(run["status"]["planSha256"]) == 64
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    text = plan["data"]["plan.json"].replace("runner:1", "evil:1")
    world.cluster.edit(plan, lambda new: new["data"].update({"plan.json": text}))
    assert world.until_ended(uid)["reason"] == "PlanDamaged"


def test_a_plan_under_another_name_is_not_looked_at(world: PretendWorld) -> None:
    uid = world.create("a", suspend=True)
    plan = forged(world, uid)
    plan["metadata"]["name"] = "elsewhere"
    world.cluster.kube.put(plan)
    world.change(uid, suspend=False)
    world.until(lambda: world.cluster.kube.objects("Job"))
    images = {
        container["image"]
        for job in world.cluster.kube.objects("Job")
        for container in job["spec"]["template"]["spec"]["containers"]
    }
    assert images == {"runner:1"}


def test_a_plan_that_could_be_changed_is_not_used(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    plan = world.cluster.find("ConfigMap", "a-plan")
    assert plan is not None
    world.cluster.edit(plan, lambda new: new.update(immutable=False))
    assert world.until_ended(uid)["reason"] == "PlanDamaged"


# -- an earlier run of the same name


@pytest.mark.parametrize(
    ("kind", "name", "reason"), [("ConfigMap", "a-plan", "NameTaken"), (RESULT, "x", "ResultsExist")]
)
def test_what_an_earlier_run_leaves_is_waited_for_no_longer_than_for_volumes_and_holds_up_no_others(
    world: PretendWorld, kind: str, name: str, reason: str
) -> None:
    owner = {"apiVersion": API_VERSION, "kind": "BenchmarkRun", "name": "a", "uid": "earlier"}
    version = API_VERSION if kind == RESULT else "v1"
    put(world, version, kind, name, ownerReferences=[owner], labels={naming.LABEL_RUN: "a"})
    first = world.create("a")
    second = world.create("b")
    world.until(lambda: world.conditions(second).get("Admitted", {}).get("status") == "True", rounds=5)
    assert world.conditions(first)["Reconciling"]["reason"] == "WaitingForEarlierRun"
    ending = world.until_ended(first)
    assert ending["reason"] == reason
    assert f"{kind} {name}" in ending["message"]
    assert "provisionSeconds (60 s)" in ending["message"]
