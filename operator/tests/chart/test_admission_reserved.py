"""What is reserved for the operator, on a real API server: labels, names and StorageClasses of runs."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from chart.admission import (
    BENCH,
    BURNER,
    JOB_CONTROLLER,
    VALUES,
    Installation,
    collection,
    config_map,
    create,
    put,
    refused,
)
from chart.rendering import Document, render
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph as render_ceph
from plimsoll.protocol.helpers import BURNER_CERTIFICATE
from support.apiserver import Answer, ApiServer
from support.fake_kube import copy_of
from support.specs import MONITORS, UID, ceph_run, document, made_for_ceph

pytestmark = [pytest.mark.chart, pytest.mark.crd]

MERGE = "application/merge-patch+json"
CONTROLLERS = "system:serviceaccount:kube-system:"
MANAGER = "system:kube-controller-manager"
RUN_UID = {naming.LABEL_RUN_UID: UID}
MANAGED_BY = {naming.LABEL_MANAGED_BY: naming.MANAGED_BY}
RESERVED = [RUN_UID, MANAGED_BY]
OF_A_RUN = "plimsoll-a-0123abcd"
COPIED = [
    "snapshot.storage.kubernetes.io/pvc-as-source-protection",
    "provisioner.storage.kubernetes.io/cloning-protection",
]
"""Finalizers of the snapshot controller and of the CSI provisioner on the source of a copy."""


# -- labels


POD = {"containers": [{"name": "c", "image": "theirs"}]}
APP = {"matchLabels": {"app": "theirs"}}


def template(labels: Document) -> Document:
    return {"metadata": {"labels": {"app": "theirs", **labels}}, "spec": POD}


def job_spec(labels: Document) -> Document:
    return {"template": {"metadata": {"labels": labels}, "spec": {**POD, "restartPolicy": "Never"}}}


def named(api_version: str, kind: str, labels: Document | None = None, **content: Any) -> Document:
    metadata = {"name": "theirs", "namespace": BENCH, **({"labels": labels} if labels else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


WORKLOADS: dict[str, Callable[[Document], Document]] = {
    "Deployment": lambda labels: named("apps/v1", "Deployment", spec={"selector": APP, "template": template(labels)}),
    "DaemonSet": lambda labels: named("apps/v1", "DaemonSet", spec={"selector": APP, "template": template(labels)}),
    "ReplicaSet": lambda labels: named("apps/v1", "ReplicaSet", spec={"selector": APP, "template": template(labels)}),
    "StatefulSet": lambda labels: named(
        "apps/v1", "StatefulSet", spec={"selector": APP, "serviceName": "s", "template": template(labels)}
    ),
    "ReplicationController": lambda labels: named(
        "v1", "ReplicationController", spec={"selector": {"app": "theirs"}, "template": template(labels)}
    ),
    "PodTemplate": lambda labels: named("v1", "PodTemplate", template=template(labels)),
    "Job": lambda labels: named("batch/v1", "Job", spec=job_spec(labels)),
    "CronJob": lambda labels: named(
        "batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": {"spec": job_spec(labels)}}
    ),
    "CronJob's Job": lambda labels: named(
        "batch/v1",
        "CronJob",
        spec={"schedule": "@daily", "jobTemplate": {"metadata": {"labels": labels}, "spec": job_spec({"a": "b"})}},
    ),
}
PLURALS = {"PodTemplate": "podtemplates", "NetworkPolicy": "networkpolicies"}


def tried(server: ApiServer, obj: Document) -> Answer:
    """Return the API server's answer to a dry run."""
    group = obj["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    plural = PLURALS.get(obj["kind"], f"{obj['kind'].lower()}s")
    place = obj["metadata"]["namespace"]
    return server.request("POST", f"{root}/namespaces/{place}/{plural}?dryRun=All", obj)


@pytest.mark.parametrize("labels", RESERVED, ids=["run-uid", "managed-by"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_workload_creates_pods_with_the_labels_of_a_run(
    cluster: Installation, workload: str, labels: Document
) -> None:
    make = WORKLOADS[workload]
    # The role `edit` has no PodTemplates.
    user = cluster.administrator if workload == "PodTemplate" else cluster.tenant
    refused(tried(user, make(labels)), "is reserved for the objects that Plimsoll's operator creates")
    tried(user, make({"app.kubernetes.io/managed-by": "theirs"})).expect(201)


OBJECTS = {
    "ConfigMap": named("v1", "ConfigMap"),
    "Secret": named("v1", "Secret"),
    "Service": named("v1", "Service", spec={"ports": [{"port": 80}]}),
    "ServiceAccount": named("v1", "ServiceAccount"),
    "Pod": named("v1", "Pod", spec=POD),
    "NetworkPolicy": named("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}),
    "PersistentVolumeClaim": named(
        "v1",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
}


@pytest.mark.parametrize("labels", RESERVED, ids=["run-uid", "managed-by"])
@pytest.mark.parametrize("kind", OBJECTS)
def test_nobody_labels_an_object_as_a_runs(cluster: Installation, kind: str, labels: Document) -> None:
    """A user with `edit`, with that object in its namespace, and the administrator."""
    obj = copy_of(OBJECTS[kind])
    for server in (cluster.tenant, cluster.administrator):
        tried(server, obj).expect(201)
        refused(tried(server, copy_of({**obj, "metadata": {**obj["metadata"], "labels": labels}})), "is reserved")


@pytest.mark.parametrize("labels", RESERVED, ids=["run-uid", "managed-by"])
@pytest.mark.usefixtures("backup")
def test_labels_are_neither_added_nor_changed_nor_removed(cluster: Installation, labels: Document) -> None:
    (label,) = labels
    plain = config_map(f"plain-{label.rpartition('/')[2]}")
    put(cluster.tenant, plain)
    path = f"{collection(plain)}/{plain['metadata']['name']}"
    change = {"metadata": {"labels": labels}}
    refused(cluster.tenant.request("PATCH", path, change, content=MERGE), "is reserved")
    made = ceph_run("rook-claims")
    conf = render_ceph.config_map(made.run, MONITORS)
    create(cluster.operator, conf)
    path = f"{collection(conf)}/{conf['metadata']['name']}"
    # As a conductor that patches its state, or a controller that adds an annotation.
    harmless = {"metadata": {"annotations": {"a": "b"}}}
    cluster.tenant.request("PATCH", path, harmless, content=MERGE).expect(200)
    other = {"metadata": {"labels": {naming.LABEL_RUN_UID: "another"}}}
    refused(cluster.tenant.request("PATCH", path, other, content=MERGE), "is reserved")
    # Without the label, the object would not be found, and so not be waited for when the run is deleted.
    removed = {"metadata": {"labels": {label: None}}}
    refused(cluster.tenant.request("PATCH", path, removed, content=MERGE), "is reserved")
    with closing(cluster.administrator.as_user("backup")) as backup:
        backup.request("PATCH", f"{path}?dryRun=All", removed, content=MERGE).expect(200)


def test_the_job_controller_creates_the_pods_of_a_run(cluster: Installation) -> None:
    """As itself, or as the controller manager where controllers have no accounts of their own."""
    job = next(obj for obj in made_for_ceph(ceph_run("rook-images")) if obj["kind"] == "Job")
    template = copy_of(job["spec"]["template"])
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] |= {"generateName": "run-client-0-0-", "namespace": BENCH}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": MANAGER}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:controller:job-controller"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "roleRef": role}
    put(cluster.administrator, {**binding, "metadata": {"name": "manager"}, "subjects": [subject]})
    for user in (JOB_CONTROLLER, MANAGER):
        with closing(cluster.administrator.as_user(user)) as controller:
            tried(controller, pod).expect(201)
    with closing(cluster.administrator.as_user(f"{CONTROLLERS}replicaset-controller")) as controller:
        refused(tried(controller, pod), "is reserved")


def test_the_endpoint_controllers_copy_the_labels_of_services(cluster: Installation) -> None:
    labels = {**RUN_UID, **MANAGED_BY}
    slices = {"addressType": "IPv4", "endpoints": []}
    endpoints = named("discovery.k8s.io/v1", "EndpointSlice", labels, **slices)
    with closing(cluster.administrator.as_user(f"{CONTROLLERS}endpointslice-controller")) as controller:
        tried(controller, endpoints).expect(201)


def test_the_helper_of_kube_burner_labels_its_namespaces(cluster: Installation) -> None:
    labels = {"plimsoll.dev/kube-burner": "plimsoll-kube-burner", "pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": "plimsoll-burn-a", "labels": {**RUN_UID, **labels}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    with closing(cluster.administrator.as_user(BURNER)) as helper:
        helper.request("POST", "/api/v1/namespaces?dryRun=All", namespace).expect(201)
    answer = cluster.administrator.request("POST", "/api/v1/namespaces?dryRun=All", namespace)
    refused(answer, "is reserved")


def test_the_helper_of_kube_burner_publishes_its_certificate(cluster: Installation) -> None:
    """With its rights; test_burner_certificate.py has what it may not."""
    metadata = {"name": BURNER_CERTIFICATE, "namespace": "plimsoll-kube-burner"}
    with closing(cluster.administrator.as_user(BURNER)) as helper:
        for kind in ("Secret", "ConfigMap"):
            tried(helper, {"apiVersion": "v1", "kind": kind, "metadata": metadata}).expect(201)


def test_the_chart_has_no_pod_that_is_reserved(cluster: Installation) -> None:
    """Neither the operator's nor those of the helpers."""
    workloads = [obj for obj in render(VALUES).objects if obj["kind"] in {"Deployment", "DaemonSet"}]
    assert len(workloads) == 3
    for workload in workloads:
        template = copy_of(workload["spec"]["template"])
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] |= {"name": "pod", "namespace": workload["metadata"]["namespace"]}
        tried(cluster.administrator, pod).expect(201)


# -- the finalizer


FINALIZER = "plimsoll.dev/teardown"


def test_only_the_operator_and_administrators_remove_the_finalizer_of_a_run(cluster: Installation) -> None:
    """Without it, a deleted run would be gone before its teardown; with it, users may change everything else."""
    run = document() | {"metadata": {"name": "kept", "namespace": BENCH}}
    put(cluster.tenant, run)
    path = f"{collection(run)}/kept"
    mine = {"metadata": {"finalizers": [FINALIZER, "example.com/mine"], "annotations": {"a": "b"}}}
    cluster.operator.request("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, content=MERGE).expect(200)
    cluster.tenant.request("PATCH", path, mine, content=MERGE).expect(200)
    for finalizers in ([], ["example.com/mine"]):
        removal = {"metadata": {"finalizers": finalizers}}
        refused(cluster.tenant.request("PATCH", path, removal, content=MERGE), "is kept until everything of the run")
        for user in (cluster.operator, cluster.administrator):
            user.request("PATCH", f"{path}?dryRun=All", removal, content=MERGE).expect(200)
    cluster.tenant.request("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, content=MERGE).expect(200)
    cluster.tenant.request("DELETE", path).expect(200)
    removal = {"metadata": {"finalizers": []}}
    refused(cluster.tenant.request("PATCH", path, removal, content=MERGE), "is kept until everything of the run")
    cluster.operator.request("PATCH", path, removal, content=MERGE).expect(200)
    assert cluster.administrator.request("GET", path).code == 404


# -- names


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ServiceAccount", "plimsoll-run-conductor"),
        ("Secret", f"plimsoll-session-{UID}"),
        ("Secret", f"plimsoll-conductor-keyring-{UID}"),
        ("PersistentVolumeClaim", "plimsoll-run-client-0"),
        ("PersistentVolumeClaim", "plimsoll-run-shared"),
    ],
)
def test_names_that_give_a_runs_pods_rights_secrets_and_data_are_reserved(
    cluster: Installation, kind: str, name: str
) -> None:
    """The operator cannot read a session Secret, so it would use one that somebody created before."""
    obj = copy_of(OBJECTS[kind])
    obj["metadata"]["name"] = name
    refused(tried(cluster.tenant, obj), "names like this one are reserved")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ServiceAccount", "train-conductor"),
        ("ServiceAccount", "plimsoll"),
        ("Secret", "plimsoll-keyring"),
        ("Secret", "plimsoll-7"),
        ("PersistentVolumeClaim", "data-client-0"),
    ],
)
def test_other_names_are_free(cluster: Installation, kind: str, name: str) -> None:
    obj = copy_of(OBJECTS[kind])
    obj["metadata"]["name"] = name
    tried(cluster.tenant, obj).expect(201)


@pytest.fixture(scope="module")
def backup(cluster: Installation) -> None:
    """Give all rights to the user whom the administrator exempts."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "backup"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    metadata = {"metadata": {"name": "backup"}}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "roleRef": role}
    put(cluster.administrator, {**binding, **metadata, "subjects": [subject]})


@pytest.mark.usefixtures("backup")
def test_users_whom_the_administrator_exempts_restore_objects_of_runs(cluster: Installation) -> None:
    with closing(cluster.administrator.as_user("backup")) as backup:
        for obj in made_for_ceph(ceph_run("rook-claims")):
            assert create(backup, copy_of(dict(obj)), dry_run=True).code in {201, 409}


def test_with_namespaces_labels_and_names_are_reserved_where_the_operators_runs_and_their_objects_are() -> None:
    rendering = render({**VALUES, "watchNamespaces": ["lab"]})
    bindings = {one["metadata"]["name"]: one["spec"] for one in rendering.of_kind("ValidatingAdmissionPolicyBinding")}
    expected = ["plimsoll-system", "lab", "plimsoll-teardown", "rook-ceph"]
    for name in ("plimsoll-labels", "plimsoll-members", "plimsoll-orphans", "plimsoll-names"):
        (expression,) = bindings[name]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": expected}
    everywhere = [name for name, spec in bindings.items() if "matchResources" not in spec]
    assert {"plimsoll-objects", "plimsoll-jobs", "plimsoll-rights", "plimsoll-storage", "plimsoll-runs"} <= {
        *everywhere
    }


# -- StorageClasses of runs


def claim(storage_class: str, name: str = "mine", *finalizers: str) -> Document:
    obj = copy_of(OBJECTS["PersistentVolumeClaim"])
    obj["metadata"] |= {"name": name, "finalizers": [*finalizers]}
    obj["spec"]["storageClassName"] = storage_class
    return obj


def claim_of_a_run(name: str = "plimsoll-a-client-0") -> Document:
    found = next(obj for obj in made_for_ceph(ceph_run("rook-claims")) if obj["kind"] == "PersistentVolumeClaim")
    made = copy_of(dict(found))
    made["metadata"]["name"] = name
    return made


OF_ONE_RUN = "this StorageClass belongs to one BenchmarkRun"


@pytest.mark.parametrize("storage_class", ["fast", "plimsoll-fast", "my-plimsoll-a-0123abcd", "plimsoll-a-0123abcx"])
def test_other_classes_are_for_everybody(cluster: Installation, storage_class: str) -> None:
    tried(cluster.tenant, claim(storage_class)).expect(201)


def test_only_the_operator_claims_from_the_class_of_a_run(cluster: Installation) -> None:
    refused(tried(cluster.tenant, claim(OF_A_RUN)), OF_ONE_RUN)
    tried(cluster.operator, claim_of_a_run()).expect(201)


@pytest.mark.parametrize("spec", [{}, {"storageClassName": "fast"}])
def test_nobody_else_names_the_class_of_a_run_in_the_older_way(cluster: Installation, spec: Document) -> None:
    """The annotation takes precedence over the field."""
    made = claim("fast")
    del made["spec"]["storageClassName"]
    made["spec"] |= spec
    made["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "fast"}
    tried(cluster.tenant, made).expect(201)
    made["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": OF_A_RUN}
    refused(tried(cluster.tenant, made), OF_ONE_RUN)


def test_who_works_on_a_claim_of_the_operators_may_change_it(cluster: Installation) -> None:
    made = put(cluster.operator, claim_of_a_run("plimsoll-a-client-1"))
    made["metadata"]["annotations"] = {"volume.kubernetes.io/storage-provisioner": "rook-ceph.rbd.csi.ceph.com"}
    cluster.tenant.request("PUT", f"{collection(made)}/plimsoll-a-client-1", made).expect(200)


def test_a_claim_without_a_class_does_not_get_that_of_a_run_afterwards(cluster: Installation) -> None:
    undecided = claim("", "undecided")
    del undecided["spec"]["storageClassName"]
    made = put(cluster.tenant, undecided)
    made["spec"]["storageClassName"] = OF_A_RUN
    refused(cluster.tenant.request("PUT", f"{collection(made)}/undecided", made), OF_ONE_RUN)


def marked(server: ApiServer, made: Document, *finalizers: str) -> Answer:
    """Add finalizers to a PVC."""
    metadata = made["metadata"] | {"finalizers": [*made["metadata"].get("finalizers", []), *finalizers]}
    path = f"{collection(made)}/{metadata['name']}?dryRun=All"
    return server.request("PUT", path, made | {"metadata": metadata})


@pytest.mark.parametrize("mark", COPIED)
def test_no_snapshot_or_clone_is_made_of_a_claim_of_a_run(cluster: Installation, mark: str) -> None:
    """Its controller marks the source first; what it copies to, and in which class, does not matter."""
    made = put(cluster.operator, claim_of_a_run(f"plimsoll-copied-client-{COPIED.index(mark)}"))
    refused(marked(cluster.administrator, made, mark), "a snapshot or a clone would keep the run's pool in use")
    marked(cluster.administrator, made, "kubernetes.io/somebody-elses").expect(200)


@pytest.mark.parametrize("mark", COPIED)
def test_other_claims_are_copied(cluster: Installation, mark: str) -> None:
    made = put(cluster.tenant, claim("fast", f"other-{COPIED.index(mark)}"))
    marked(cluster.tenant, made, mark).expect(200)


def test_a_claim_of_a_run_is_not_made_with_such_a_mark(cluster: Installation) -> None:
    made = claim_of_a_run("plimsoll-marked-client-0")
    made["metadata"]["finalizers"] = [COPIED[0]]
    refused(tried(cluster.operator, made), "denied request")
