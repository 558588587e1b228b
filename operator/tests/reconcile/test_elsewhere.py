"""What is asked of the API to observe what a run has outside its namespace, and what is taken for the run's."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.storage import ExistingPool, NamespacedName, RookStorage
from plimsoll.kube.port import ForbiddenError, Kind
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph.common import ExternalObjects, look_at_ceph
from plimsoll.lifecycle.ceph.rook import look_at_rook, survey_rook
from plimsoll.lifecycle.ceph.rook_survey import Provisioner
from plimsoll.lifecycle.children import Child, ClaimFact
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.storage.seam import View
from plimsoll.operator.gather import answer_look, gather
from plimsoll.plan.document import RunIdentity, base_name
from support.fake_kube import FakeKube
from support.pretend_cluster import START
from support.specs import SETTINGS

RUN = RunIdentity(name="r", namespace="default", uid="u")
BASE = base_name("r", "u")
STORED = {"storage": {"rook": {"cluster": {"namespace": "rook", "name": "c"}}, "volume": {"size": "1Gi"}}}
OWN = {naming.LABEL_RUN_UID: "u"}
CREATED = "2026-01-01T12:00:00Z"


def obj(api_version: str, kind: str, name: str, namespace: str | None, **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": OWN, "uid": f"{kind}-{name}", "creationTimestamp": CREATED}
    place = {} if namespace is None else {"namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | place, **content}


def rook(kind: str, name: str, **content: Any) -> dict[str, Any]:
    return obj("ceph.rook.io/v1", kind, name, "rook", **content)


def class_of_run() -> dict[str, Any]:
    return obj("storage.k8s.io/v1", "StorageClass", BASE, None)


def volume(name: str, storage_class: str, policy: str) -> dict[str, Any]:
    spec = {"storageClassName": storage_class, "persistentVolumeReclaimPolicy": policy}
    return obj("v1", "PersistentVolume", name, None, spec=spec)


def teardown_job(namespace: str) -> list[dict[str, Any]]:
    job = obj("batch/v1", "Job", naming.teardown("u"), namespace)
    pod = obj("v1", "Pod", "p", namespace, status={"phase": "Running"})
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}]
    return [job, pod]


def api(*objects: dict[str, Any]) -> FakeKube:
    kube = FakeKube(namespaces=["default", "ops", "rook"])
    for one in objects:
        kube.put(one)
    return kube


async def look(kube: FakeKube, *, has_claims: bool = False) -> ExternalObjects:
    run = Run(
        name="r",
        namespace="default",
        uid="u",
        generation=1,
        created=START,
        deleted=None,
        is_protected=True,
        document=None,
        written=STORED,
        spec_problem="",
        status={},
        conditions={},
    )
    claim = Child(
        api_version="v1", kind="PersistentVolumeClaim", namespace="default", name="r-0", uid="c", deleting=False
    )
    claims = (ClaimFact(child=claim, client=0, phase="Bound"),) if has_claims else ()
    settings = replace(SETTINGS, teardown_namespace="ops")
    view = View(run=run, seen=Observed(results={}, warnings={}, claims=claims), settings=settings, now=START)
    return await answer_look(look_at_rook(view), kube)


async def test_the_label_alone_does_not_make_an_object_the_runs() -> None:
    kube = api(
        rook("CephBlockPool", BASE),
        rook("CephBlockPool", "precious"),
        rook("CephClient", f"{BASE}-agent"),
        rook("CephClient", "theirs"),
        obj("v1", "ConfigMap", "other", "ops"),
    )
    seen = await look(kube)
    assert [fact.child.name for fact in seen.pools] == [BASE]
    assert [fact.child.name for fact in seen.users] == [f"{BASE}-agent"]
    assert len(seen.all_users) == 2
    assert seen.record is None


async def test_volumes_are_looked_for_when_their_claims_are_gone() -> None:
    volumes = [volume("a", BASE, "Delete"), volume("b", BASE, "Retain"), volume("c", "other", "Delete")]
    assert (await look(api(class_of_run(), *volumes))).volumes == ("a",)
    for kube, has_claims in ((api(*volumes), False), (api(class_of_run(), *volumes), True)):
        assert (await look(kube, has_claims=has_claims)).volumes == ()
        assert "list PersistentVolume" not in kube.requests


async def test_who_claims_a_volume_of_the_runs_storage_class_is_told() -> None:
    """Anybody may: a StorageClass has no namespace."""
    claimed, released = volume("a", BASE, "Delete"), volume("b", BASE, "Delete")
    for one, phase in ((claimed, "Bound"), (released, "Released")):
        one["spec"]["claimRef"] = {"namespace": "theirs", "name": "disk"}
        one["status"] = {"phase": phase}
    assert (await look(api(class_of_run(), claimed, released))).volumes == ("a (claimed by theirs/disk)", "b")


def volume_event(uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": uid, "namespace": "default"},
        "type": "Warning",
        "reason": "VolumeFailedDelete",
        "message": f"rbd csi-vol-{uid} is still being used",
        "involvedObject": {"kind": "PersistentVolume", "uid": uid},
    }


async def test_why_a_volume_is_not_deleted_is_read_from_its_events() -> None:
    volumes = [volume("a", BASE, "Delete"), volume("c", "other", "Delete")]
    events = [volume_event(f"PersistentVolume-{name}") for name in ("a", "c")]
    seen = await look(api(class_of_run(), *volumes, *events))
    assert seen.volume_warning == "VolumeFailedDelete: rbd csi-vol-PersistentVolume-a is still being used"
    assert (await look(api(class_of_run(), volumes[1], events[1]))).volume_warning == ""


async def test_an_operator_that_may_not_list_events_of_volumes_still_sees_the_volumes() -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("list Event default"):
            raise ForbiddenError(asked, "cannot list (status 403)")

    kube = api(class_of_run(), volume("a", BASE, "Delete"))
    kube.interfere = interfere
    seen = await look(kube)
    assert (seen.volumes, seen.volume_warning, seen.kinds_problem) == (("a",), "", "")


async def test_a_csi_driver_is_looked_for_while_a_storage_class_is_to_be_made() -> None:
    labels = {"app": "rook-ceph-osd", "rook.io/operator-namespace": "elsewhere"}
    osd = obj("apps/v1", "Deployment", "osd", "rook")
    osd["metadata"]["labels"] = labels
    name = "elsewhere.rbd.csi.ceph.com"
    driver = obj("storage.k8s.io/v1", "CSIDriver", name, None)
    assert (await look(api(osd, driver))).provisioner == Provisioner(name=name)
    missing = (await look(api(osd))).provisioner
    assert missing is not None
    assert f"CSIDriver {name} does not exist" in missing.problem
    assert (await look(api(osd, class_of_run()))).provisioner is None


@pytest.mark.parametrize(
    ("status", "asked"), [({"phase": "Progressing"}, True), ({}, True), ({"phase": "Ready"}, False)]
)
async def test_events_are_asked_for_only_while_something_is_waited_for(status: dict[str, Any], *, asked: bool) -> None:
    kube = api(rook("CephBlockPool", BASE, status=status))
    await look(kube)
    assert ("list Event rook" in kube.requests) == asked


async def test_an_earlier_pools_events_are_not_this_ones() -> None:
    events = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": uid, "namespace": "rook"},
            "type": "Warning",
            "reason": "ReconcileFailed",
            "message": uid,
            "involvedObject": {"kind": "CephBlockPool", "uid": uid},
        }
        for uid in (f"CephBlockPool-{BASE}", "earlier")
    ]
    (pool,) = (await look(api(rook("CephBlockPool", BASE), *events))).pools
    assert pool.warning == f"ReconcileFailed: CephBlockPool-{BASE}"


async def test_kinds_that_are_not_served_are_told_and_the_rest_is_seen() -> None:
    kube = api(class_of_run(), *teardown_job("ops"))
    for kind in ("CephClient", "CephCluster", "CephBlockPool"):
        del kube.kinds[Kind(api_version="ceph.rook.io/v1", kind=kind)]
    seen = await look(kube)
    assert seen.kinds_problem
    assert seen.storage_class is not None
    assert len(seen.jobs) == len(seen.pods) == 1
    cluster = NamespacedName(namespace="rook", name="c")
    storage = RookStorage(cluster=cluster, existing_pool=ExistingPool(name="p"))
    assert (await answer_look(survey_rook(storage), kube)).problem


async def test_a_missing_right_is_named_with_the_manifest_that_gives_it() -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("list CephClient"):
            raise ForbiddenError(asked, "cannot list (status 403)")

    kube = api(class_of_run())
    kube.interfere = interfere
    seen = await look(kube)
    assert seen.kinds_problem.startswith("cannot list (status 403); bind the Role of manifests/rook")
    assert seen.kinds_problem.endswith("in namespace rook, or name the cluster in the chart's value rook.clusters")
    assert seen.storage_class is not None


async def test_a_teardown_job_in_the_namespace_of_its_run_is_no_load_of_the_run() -> None:
    seen = await gather(api(*teardown_job("default")), RUN, look=lambda _: look_at_ceph("default", RUN))
    assert not seen.jobs
    assert not seen.pods
    assert isinstance(seen.external, ExternalObjects)
    assert len(seen.external.jobs) == len(seen.external.pods) == 1
