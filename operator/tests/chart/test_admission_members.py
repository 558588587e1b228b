"""What belongs to a run is found and deleted with it, whatever editors of its namespace do, on a real API server."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from chart.admission import BENCH, JOB_CONTROLLER, Installation, collection, create, put, refused
from chart.rendering import Document
from plimsoll.lifecycle import naming
from support.apiserver import Answer, ApiServer, wait_until
from support.fake_kube import copy_of
from support.specs import ceph_run, document, made_for_ceph, suite_document

pytestmark = [pytest.mark.chart, pytest.mark.crd]

MERGE = "application/merge-patch+json"
CONTROLLERS = "system:serviceaccount:kube-system:"
MANAGER = "system:kube-controller-manager"
COLLECTOR = f"{CONTROLLERS}generic-garbage-collector"


def made(kind: str, name: str, component: str) -> Document:
    """Return an object that the operator creates for a run, with another name."""
    objects = (obj for obj in made_for_ceph(ceph_run("rook-claims")) if obj["kind"] == kind)
    obj = copy_of(dict(next(obj for obj in objects if obj["metadata"]["labels"][naming.LABEL_COMPONENT] == component)))
    obj["metadata"] |= {"name": name, "namespace": BENCH}
    return obj


MEMBERS = {
    "Job": ("kept-client-0-0", naming.CLIENT),
    "PersistentVolumeClaim": ("plimsoll-kept-client-0", naming.CLIENT),
    "ConfigMap": ("kept-ceph", naming.STORAGE),
}


@pytest.fixture(scope="module")
def members(cluster: Installation) -> dict[str, Document]:
    """Create one object of each kind, and a pod as the Job controller does."""
    found = {kind: put(cluster.operator, made(kind, *what)) for kind, what in MEMBERS.items()}
    job = found["Job"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, "blockOwnerDeletion": True}
    owner |= {field: job["metadata"][field] for field in ("name", "uid")}
    template = copy_of(job["spec"]["template"])
    metadata = template["metadata"] | {"name": "kept-client-0-0-x", "namespace": BENCH, "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
    with acting(cluster, JOB_CONTROLLER, "system:controller:job-controller", "pods") as controller:
        found["Pod"] = put(controller, pod)
    return {kind: cluster.administrator.request("GET", path_of(obj)).expect(200) for kind, obj in found.items()}


@contextmanager
def acting(cluster: Installation, user: str, role: str, plural: str) -> Iterator[ApiServer]:
    """Act as a user with a ClusterRole, which may list that kind."""
    rbac = "rbac.authorization.k8s.io"
    subject = {"apiGroup": rbac, "kind": "User", "name": user}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": role}
    binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}
    metadata = {"name": f"members-{user.rpartition(':')[2]}-{role.rpartition(':')[2]}"}
    assert create(cluster.administrator, binding | {"metadata": metadata}).code in {201, 409}
    with closing(cluster.administrator.as_user(user)) as server:
        wait_until(lambda: server.request("GET", f"/api/v1/{plural}").accepted, f"{user} has its rights")
        yield server


def path_of(obj: Document) -> str:
    return f"{collection(obj)}/{obj['metadata']['name']}"


def change(server: ApiServer, obj: Document, **metadata: Any) -> Answer:
    """Return the answer to a dry run."""
    return server.request("PATCH", f"{path_of(obj)}?dryRun=All", {"metadata": metadata}, content=MERGE)


KINDS = [*MEMBERS, "Pod"]
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "another"}
OWNERS: dict[str, Callable[[Document], list[Document]]] = {
    "none": lambda _: [],
    "another one": lambda _: [OTHER],
    "a second one, which keeps it from the garbage collector": lambda owner: [owner, OTHER],
    "another kind of that UID": lambda owner: [{**owner, "kind": "Secret"}],
    "another version of that UID": lambda owner: [{**owner, "apiVersion": "example.com/v1"}],
    "another name of that UID": lambda owner: [{**owner, "name": "other"}],
    "without its controller": lambda owner: [{**owner, "controller": not owner.get("controller", False)}],
    "another order of deletion": lambda owner: [
        {**owner, "blockOwnerDeletion": not owner.get("blockOwnerDeletion", False)}
    ],
}


@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_owners_of_a_runs_objects_are_kept(
    cluster: Installation, members: dict[str, Document], kind: str, owners: str
) -> None:
    """What has another owner, or none, is not the run's, and would neither be waited for nor deleted."""
    member = members[kind]
    (owner,) = member["metadata"]["ownerReferences"]
    refused(change(cluster.tenant, member, ownerReferences=OWNERS[owners](owner)), "the owners of an object")
    for name in (COLLECTOR, MANAGER):
        with acting(cluster, name, "system:controller:generic-garbage-collector", "pods") as collector:
            change(collector, member, ownerReferences=OWNERS[owners](owner)).expect(200)


@pytest.mark.parametrize("value", ["other", None])
def test_the_labels_of_a_runs_objects_are_kept(
    cluster: Installation, members: dict[str, Document], value: str | None
) -> None:
    """The Job controller would release a pod with another one, and the operator take a client for another."""
    for kind in KINDS:
        for label in set(members[kind]["metadata"]["labels"]) - {naming.LABEL_RUN_UID, naming.LABEL_MANAGED_BY}:
            refused(change(cluster.tenant, members[kind], labels={label: value}), "the labels of an object")
        change(cluster.tenant, members[kind], labels={"example.com/cost": "1"}, annotations={"a": "b"}).expect(200)
    assert "batch.kubernetes.io/controller-uid" in members["Pod"]["metadata"]["labels"]


DRIVER = "system:serviceaccount:storage:driver"


def test_editors_add_no_finalizers_to_a_runs_objects(cluster: Installation, members: dict[str, Document]) -> None:
    """Whatever has one is not gone, and so is its run not. Controllers of a cluster have some of their own."""
    for kind in KINDS:
        before = members[kind]["metadata"].get("finalizers", [])
        more = [*before, "example.com/mine"]
        refused(change(cluster.tenant, members[kind], finalizers=more), "only users who may change such objects in all")
        change(cluster.tenant, members[kind], finalizers=before).expect(200)
        change(cluster.administrator, members[kind], finalizers=more).expect(200)
    rules = [{"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list", "patch"]}]
    role = {"kind": "ClusterRole", "metadata": {"name": "driver"}, "rules": rules}
    put(cluster.administrator, role | {"apiVersion": "rbac.authorization.k8s.io/v1"})
    claim = members["PersistentVolumeClaim"]
    with acting(cluster, DRIVER, "driver", "persistentvolumeclaims") as driver:
        finalizers = [*claim["metadata"].get("finalizers", []), "driver.example.com/pvc"]
        change(driver, claim, finalizers=finalizers).expect(200)


# -- orphans


def run(name: str) -> Document:
    return document() | {"metadata": {"name": name, "namespace": BENCH}}


def suite(name: str) -> Document:
    return suite_document() | {"metadata": {"name": name, "namespace": BENCH}}


@pytest.fixture(scope="module")
def owners(cluster: Installation, members: dict[str, Document]) -> dict[str, Document]:
    """Return a run, a suite, and objects of a run, which may own something."""
    return {
        "BenchmarkRun": put(cluster.tenant, run("parent")),
        "BenchmarkSuite": put(cluster.tenant, suite("parent")),
        **{kind: members[kind] for kind in ("Job", "Pod", "PersistentVolumeClaim")},
    }


def options(**fields: Any) -> Document:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], **fields}


ORPHANS = "are deleted with what they own"


@pytest.mark.parametrize("kind", ["BenchmarkRun", "BenchmarkSuite", "Job", "Pod", "PersistentVolumeClaim"])
def test_nothing_of_a_run_is_orphaned(cluster: Installation, owners: dict[str, Document], kind: str) -> None:
    """Its pods would load the storage, and be no run's; the API server orphans those of a Job by default."""
    obj = owners[kind]
    users = {"tenant": cluster.tenant, "administrator": cluster.administrator}
    if kind not in {"BenchmarkRun", "BenchmarkSuite"}:
        users["operator"] = cluster.operator
    for server in users.values():
        for path in (path_of(obj), f"{collection(obj)}"):
            ways: list[tuple[str, Document | None]] = [
                (path, options(propagationPolicy="Orphan")),
                (path, options(orphanDependents=True)),
                (f"{path}?propagationPolicy=Orphan&dryRun=All", None),
            ]
            if kind == "Job":
                ways.append((path, options()))
            if path != path_of(obj) and (server is cluster.operator):
                continue  # it may not delete collections
            for where, asked in ways:
                refused(server.request("DELETE", where, asked), ORPHANS)
        for asked in (options(propagationPolicy="Background"), options(propagationPolicy="Foreground")):
            assert server.request("DELETE", path_of(obj), asked).code in {200, 202}
        assert server.request("DELETE", path_of(obj), options(orphanDependents=False)).code in {200, 202}


def test_other_jobs_are_orphaned_as_before(cluster: Installation) -> None:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "theirs"}]}}}
    job = put(
        cluster.tenant,
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "orphaning", "namespace": BENCH}, "spec": spec},
    )
    for asked in (options(), options(propagationPolicy="Orphan")):
        cluster.tenant.request("DELETE", path_of(job), asked).expect(200)


@pytest.mark.parametrize("kind", ["BenchmarkRun", "BenchmarkSuite", "Job", "Pod"])
def test_nothing_of_a_run_gets_the_finalizer_that_orphans(
    cluster: Installation, owners: dict[str, Document], kind: str
) -> None:
    """A later deletion without a policy would orphan what it owns."""
    obj = owners[kind]
    for server in (cluster.tenant, cluster.administrator):
        answer = change(server, obj, finalizers=[*obj["metadata"].get("finalizers", []), "orphan"])
        assert answer.code == 403
        assert ORPHANS in answer.message or "may add finalizers" in answer.message
    if kind in {"BenchmarkRun", "BenchmarkSuite"}:
        new = {"BenchmarkRun": run, "BenchmarkSuite": suite}[kind]("new")
        new["metadata"]["finalizers"] = ["orphan"]
        refused(create(cluster.tenant, new, dry_run=True), ORPHANS)


def test_exempt_users_and_the_garbage_collector_orphan(cluster: Installation, owners: dict[str, Document]) -> None:
    """The latter deletes what has the finalizer with that policy."""
    for name in ("backup", COLLECTOR):
        with acting(cluster, name, "cluster-admin", "pods") as user:
            asked = options(propagationPolicy="Orphan")
            user.request("DELETE", path_of(owners["BenchmarkRun"]), asked).expect(200)
