"""What somebody with the operator's token cannot do, on a real API server with the rights that the chart gives it."""

from typing import Any

import pytest

from chart.admission import (
    BENCH,
    OPERATOR,
    ROOK,
    TEARDOWN,
    VALUES,
    Installation,
    collection,
    config_map,
    create,
    delete,
    of_run,
    put,
    refused,
)
from chart.rendering import NAMESPACE, Document, render
from plimsoll.ceph.document import ceph_conf
from plimsoll.lifecycle import naming
from support.fake_kube import copy_of
from support.specs import UID, ceph_run, made_for_ceph

pytestmark = [pytest.mark.chart, pytest.mark.crd]

AWAY = ", ".join(
    'allow command "osd ' + words
    for words in ('reweight"', 'down"', 'set-group" with flags="noup"', 'unset-group" with flags="noup"')
)
OTHER_UID = "00000000-0000-4000-8000-000000000000"
MERGE = "application/merge-patch+json"


def outside(kind: str, name: str, namespace: str | None = ROOK, **content: Any) -> Document:
    """Return an object with the label of a run, which none can own."""
    obj = of_run(kind, name, namespace or "", **content)
    del obj["metadata"]["ownerReferences"]
    if namespace is None:
        del obj["metadata"]["namespace"]
    return obj


def without(obj: Document, field: str) -> Document:
    del obj["metadata"][field]
    return obj


def owned_in(version: str, obj: Document) -> Document:
    """Return the object with an owner of another version, whom no garbage collector looks for."""
    obj["metadata"]["ownerReferences"][0]["apiVersion"] = f"plimsoll.dev/{version}"
    return obj


def labelled(obj: Document, uid: str) -> Document:
    obj["metadata"]["labels"][naming.LABEL_RUN_UID] = uid
    return obj


# -- what is no object of a run


CAPS = {"mon": "profile simple-rados-client", "osd": "allow r pool=a"}
ACCOUNT: Document = {"automountServiceAccountToken": False}
NO_OBJECTS: dict[str, tuple[Document, str]] = {
    "no label": (without(of_run("ConfigMap", "run-plan"), "labels"), "whose label plimsoll.dev/run-uid is the UID"),
    "no UID": (labelled(of_run("ConfigMap", "run-plan"), "x"), "whose label plimsoll.dev/run-uid is the UID"),
    "no owner": (without(of_run("ConfigMap", "run-plan"), "ownerReferences"), "owned by the run whose UID"),
    "an owner of no version": (owned_in("v0", of_run("ConfigMap", "run-plan")), "owned by the run whose UID"),
    "another run's": (labelled(of_run("ConfigMap", "run-plan"), OTHER_UID), "owned by the run whose UID"),
    "another name": (of_run("ConfigMap", "kube-root-ca.crt"), "no configmaps with the name kube-root-ca.crt"),
    "another place": (of_run("ConfigMap", f"plimsoll-teardown-{UID}"), "no configmaps with the name plimsoll-tear"),
    "no teardown": (outside("ConfigMap", "run-plan", TEARDOWN), "no configmaps with the name run-plan"),
    "another's teardown": (outside("Secret", f"plimsoll-teardown-{OTHER_UID}", TEARDOWN), "no secrets with the name"),
    "another's Secret": (
        of_run("Secret", f"plimsoll-session-{OTHER_UID}"),
        "no secrets with the name plimsoll-session",
    ),
    "an account": (
        of_run("ServiceAccount", "train-conductor", **ACCOUNT),
        "no serviceaccounts with the name train-conductor",
    ),
    "a claim": (of_run("PersistentVolumeClaim", "data-db-0", spec={}), "no persistentvolumeclaims with the name data"),
    "a class": (
        outside("StorageClass", "standard", None, provisioner="a.rbd.csi.ceph.com", parameters={"clusterID": ROOK}),
        "no storageclasses with",
    ),
    "a pool": (outside("CephBlockPool", "replicapool", spec={}), "no cephblockpools with the name replicapool"),
    "a user": (
        outside("CephClient", "admin", spec={"caps": CAPS, "secretName": "plimsoll-3"}),
        "no cephclients with the name admin",
    ),
}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "1Gi"}},
}


@pytest.mark.parametrize("case", NO_OBJECTS)
def test_it_creates_only_objects_of_a_run(cluster: Installation, case: str) -> None:
    obj, words = NO_OBJECTS[case]
    obj = copy_of(obj)
    if obj["kind"] == "PersistentVolumeClaim":
        obj["spec"] = CLAIM_SPEC
    refused(create(cluster.operator, obj, dry_run=True), words)


def foreign(kind: str, name: str, namespace: str | None, **content: Any) -> Document:
    obj = outside(kind, name, namespace, **content)
    del obj["metadata"]["labels"]
    return obj


FOREIGN = [
    foreign("PersistentVolumeClaim", "data-db-0", BENCH, spec=CLAIM_SPEC),
    foreign("NetworkPolicy", "deny-all", BENCH, spec={"podSelector": {}}),
    foreign("Secret", "theirs", TEARDOWN),
    foreign("Pod", "theirs-0", BENCH, spec={"containers": [{"name": "c", "image": "theirs"}]}),
    foreign("Role", "theirs-0", BENCH, rules=[]),
    foreign("StorageClass", "standard", None, provisioner="standard"),
    foreign("CephBlockPool", "replicapool", ROOK, spec={}),
    foreign(
        "CephFilesystem",
        "files",
        ROOK,
        spec={"metadataPool": {}, "dataPools": [], "metadataServer": {"activeCount": 1}},
    ),
    foreign("CephClient", "theirs", ROOK, spec={"caps": {"mon": "allow r"}}),
]


@pytest.mark.parametrize("obj", FOREIGN, ids=lambda obj: str(obj["kind"]))
def test_it_deletes_only_objects_of_a_run(cluster: Installation, obj: Document) -> None:
    create(cluster.administrator, obj).expect(201)
    refused(delete(cluster.operator, obj), "whose label plimsoll.dev/run-uid is the UID of a run")


@pytest.mark.parametrize("namespace", ["kube-system", BENCH])
def test_it_changes_no_config_map(cluster: Installation, namespace: str) -> None:
    """It may patch them only to lend that right to conductors, by name."""
    put(cluster.administrator, config_map("run-state", namespace))
    path = f"/api/v1/namespaces/{namespace}/configmaps/run-state"
    answer = cluster.operator.request("PATCH", path, {"data": {"a": "b"}}, content=MERGE)
    refused(answer, "changes no object of a run")


# -- rights


def binding(**changes: Any) -> Document:
    name = "plimsoll-run-conductor"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": BENCH}]
    return of_run("RoleBinding", name, **{"roleRef": reference, "subjects": subjects, **changes})


def role(group: str, resource: str, verbs: list[str], *names: str) -> Document:
    rule = {
        "apiGroups": [group],
        "resources": [resource],
        "verbs": verbs,
        **({"resourceNames": names} if names else {}),
    }
    return of_run("Role", "plimsoll-run-conductor", rules=[rule])


def cluster_role(name: str) -> Document:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


def service(**spec: Any) -> Document:
    selector = {naming.LABEL_RUN_UID: UID}
    return of_run("Service", "run-conductor", spec={"ports": [{"port": 443}], "selector": selector, **spec})


EVE = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]
SESSION = f"plimsoll-session-{UID}"
REGISTRY = "kubernetes.io/dockerconfigjson"


def token_secret() -> Document:
    """Return a Secret into which Kubernetes writes a token of an account."""
    obj = of_run("Secret", SESSION, type="kubernetes.io/service-account-token")
    obj["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
    return obj


RIGHTS: dict[str, tuple[Document, str]] = {
    "token": (token_secret(), "denied request"),
    "registry": (of_run("Secret", SESSION, type=REGISTRY, stringData={".dockerconfigjson": "{}"}), "the type Opaque"),
    "own role": (binding(roleRef=cluster_role("plimsoll"), subjects=EVE), "only bind the Role of a conductor"),
    "own role to a conductor": (binding(roleRef=cluster_role("plimsoll")), "only bind the Role of a conductor"),
    "a user": (binding(subjects=EVE), "only bind the Role of a conductor, to the conductor's ServiceAccount"),
    "two subjects": (binding(subjects=[*binding()["subjects"], *EVE]), "only bind the Role of a conductor"),
    "another namespace": (
        binding(subjects=[{**binding()["subjects"][0], "namespace": "kube-system"}]),
        "only bind the Role of a conductor",
    ),
    "create Secrets": (role("", "secrets", ["create"]), "only create Roles to get and patch"),
    "delete pods": (role("", "pods", ["delete"], "a"), "only create Roles to get and patch"),
    "all ConfigMaps": (role("", "configmaps", ["patch"]), "by name, the state and the results"),
    "another ConfigMap": (role("", "configmaps", ["patch"], "coredns"), "by name, the state and the results"),
    "another's state": (role("", "configmaps", ["get", "patch"], "run-state", "argo-state"), "of the run that owns"),
    "another run's results": (role("plimsoll.dev", "benchmarkresults", ["get"], "other-a"), "of the run that owns"),
    "another run's numbers": (
        role("plimsoll.dev", "benchmarkresults/status", ["patch"], "run-reads", "victim-reads"),
        "of the run that owns",
    ),
    "all results": (role("plimsoll.dev", "benchmarkresults/status", ["patch"]), "by name, the state and the results"),
    "identity": (
        of_run("ServiceAccount", "plimsoll-run-conductor", **ACCOUNT) | {"secrets": [{"name": "x"}]},
        "has no Secrets",
    ),
    "token for all": (of_run("ServiceAccount", "plimsoll-run-conductor"), "its pods have no token"),
    "addresses": (
        service(externalIPs=["192.0.2.1"]),
        "of the type ClusterIP",
    ),
    "port of nodes": (
        service(type="NodePort"),
        "of the type ClusterIP",
    ),
    "others' pods": (
        service(selector={"app": "bank"}),
        "that select the pods of their run",
    ),
    "everybody's traffic": (
        of_run("NetworkPolicy", "run-client-network", spec={"podSelector": {}, "ingress": [{}]}),
        "NetworkPolicies that select the pods of their run",
    ),
}  # fmt: skip


def state_of(run: str, name: str) -> Document:
    made = role("", "configmaps", ["get", "patch"], name)
    made["metadata"]["ownerReferences"][0]["name"] = run
    return made


def test_a_run_with_a_long_name_has_a_state_with_its_digest(cluster: Installation) -> None:
    long = "a" * 57 + "-b"
    for name in ("state", "plan", "long-state"):
        obj = state_of(long, naming.child(long, name))
        if name == "state":
            create(cluster.operator, obj, dry_run=True).expect(201)
        else:
            refused(create(cluster.operator, obj, dry_run=True), "of the run that owns")
    refused(create(cluster.operator, state_of("short", f"short-{'0' * 8}-state"), dry_run=True), "of the run that owns")


CONF = ceph_conf(["192.0.2.1:6789", "[v2:192.0.2.2:3300/0,v1:192.0.2.2:6789/0]", "mon-a.example.com"])
CONFIG_MAPS: dict[str, Document] = {
    "a script": of_run("ConfigMap", "evil-plan", data={"run.sh": "#!/bin/sh\nid\n"}),
    "a library": of_run("ConfigMap", "evil-plan", binaryData={"plan.json": "f0VMRg=="}),
    "plugins": of_run("ConfigMap", "run-ceph", data={"ceph.conf": f"{CONF}rbd_plugins = evil\n"}),
    "another directory of plugins": of_run(
        "ConfigMap", "run-ceph", data={"ceph.conf": CONF.replace("\n\n", "\nplugin_dir = /etc/plimsoll/plan\n\n")}
    ),
    "another keyring": of_run("ConfigMap", "run-ceph", data={"ceph.conf": CONF.replace("/etc/plimsoll/ceph", "/data")}),
}


@pytest.mark.parametrize("case", CONFIG_MAPS)
def test_no_config_map_has_a_program_or_another_configuration(cluster: Installation, case: str) -> None:
    create(cluster.operator, of_run("ConfigMap", "run-ceph", data={"ceph.conf": CONF}), dry_run=True).expect(201)
    refused(create(cluster.operator, CONFIG_MAPS[case], dry_run=True), "has its plan or state")


@pytest.mark.parametrize("case", RIGHTS)
def test_it_gives_nobody_rights_tokens_or_traffic(cluster: Installation, case: str) -> None:
    obj, words = RIGHTS[case]
    if obj["kind"] == "RoleBinding":
        create(cluster.operator, role("plimsoll.dev", "benchmarkresults", ["get"], "run-a"))
    refused(create(cluster.operator, obj, dry_run=True), words)


def marked(obj: Document, **metadata: Any) -> Document:
    for field, value in metadata.items():
        found = obj["metadata"].get(field)
        obj["metadata"][field] = {**found, **value} if isinstance(found, dict) else value
    return obj


MARKS: dict[str, Document] = {
    "identity of a cloud": marked(
        of_run("ServiceAccount", "plimsoll-run-conductor", **ACCOUNT),
        annotations={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/admin"},
    ),
    "cluster of Argo CD": marked(of_run("Secret", SESSION), labels={"argocd.argoproj.io/secret-type": "cluster"}),
    "dashboard": marked(of_run("ConfigMap", "run-plan"), labels={"grafana_dashboard": "1"}),
    "another's name": marked(of_run("ConfigMap", "run-plan"), labels={"app.kubernetes.io/name": "bank"}),
    "finalizer": marked(of_run("ConfigMap", "run-plan"), finalizers=["example.com/never"]),
}


@pytest.mark.parametrize("case", MARKS)
def test_no_object_says_something_to_other_programs_or_outlives_its_owner(cluster: Installation, case: str) -> None:
    refused(create(cluster.operator, MARKS[case], dry_run=True), "only Plimsoll's labels and annotations, and no final")


def test_what_other_webhooks_add_is_accepted_if_the_administrator_lists_it(cluster: Installation) -> None:
    added = marked(
        of_run("ConfigMap", "run-plan"), labels={"example.com/team": "storage"}, annotations={"example.com/team": "a"}
    )
    create(cluster.operator, added, dry_run=True).expect(201)


# -- storage


def claim(**spec: Any) -> Document:
    return of_run("PersistentVolumeClaim", "plimsoll-run-client-0", spec={**CLAIM_SPEC, **spec})


def storage_class(**changes: Any) -> Document:
    found = next(obj for obj in made_for_ceph(ceph_run("rook-claims")) if obj["kind"] == "StorageClass")
    return copy_of({**found, **changes})


def user(osd: str = "allow r pool=a", **changes: Any) -> Document:
    spec = {"caps": {**CAPS, "osd": osd}, "secretName": "plimsoll-3", **changes}
    return outside("CephClient", "plimsoll-run-01234567-agent", spec=spec)


def monitors(*capabilities: str) -> Document:
    return user(caps={"mon": ", ".join(("profile simple-rados-client", *capabilities)), "osd": "allow r pool=a"})


def default_class() -> Document:
    made = storage_class()
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return made


SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "db"}
POOL_NAME = "plimsoll-run-01234567"
EXEC = {"exec": {"command": ["sh", "-c", "id"]}}
FILES = {"metadataPool": {"replicated": {"size": 3}}, "dataPools": [], "metadataServer": {"activeCount": 1}}
CAPABILITIES = "has capabilities for I/O in pools"
STORAGE: dict[str, tuple[Document, str]] = {
    "a clone": (claim(dataSource={"kind": "PersistentVolumeClaim", "name": "data-db-0"}), "new and empty"),
    "a snapshot": (claim(dataSourceRef=SNAPSHOT), "new and empty"),
    "a volume": (claim(volumeName="pv-of-others"), "new and empty"),
    "a volume by its labels": (claim(selector={"matchLabels": {"db": "a"}}), "new and empty"),
    "a volume without a class": (claim(storageClassName=""), "new and empty, and has a StorageClass"),
    "a program in Rook's pods": (
        outside(
            "CephFilesystem",
            POOL_NAME,
            spec={**FILES, "metadataServer": {"activeCount": 1, "livenessProbe": {"probe": EXEC}}},
        ),
        "add nothing to Rook's pods",
    ),
    "the default class": (default_class(), "only Plimsoll's labels and annotations"),
    "another provisioner": (storage_class(provisioner="ebs.csi.aws.com"), "for a pool of Rook's"),
    "a class that leaves volumes": (storage_class(reclaimPolicy="Retain"), "for a pool of Rook's"),
    "options of the kernel": (storage_class(mountOptions=["suid"]), "for a pool of Rook's"),
    "another's Secrets": (
        storage_class(parameters={"clusterID": ROOK, "csi.storage.k8s.io/node-stage-secret-namespace": "bank"}),
        "with the Secrets of that cluster",
    ),
    "another namespace": (storage_class(parameters={"clusterID": "bank"}), "with the Secrets of that cluster"),
    "the manager's objects": (storage_class(parameters={"clusterID": ROOK, "pool": ".mgr"}), "for a pool of Rook's"),
    "another Secret of the cluster": (
        storage_class(parameters={"clusterID": ROOK, "csi.storage.k8s.io/node-stage-secret-name": "rook-ceph-mon"}),
        "with the Secrets of that cluster",
    ),
    "the manager's pool": (outside("CephBlockPool", POOL_NAME, spec={"name": ".mgr"}), "the names of their objects"),
    "existing pools": (
        outside("CephFilesystem", POOL_NAME, spec={**FILES, "preservePoolNames": True}),
        "the names of their objects",
    ),
    "the administrator": (user(name="admin"), "the names of their objects"),
    "labels of Rook's pods": (
        outside(
            "CephFilesystem",
            POOL_NAME,
            spec={**FILES, "metadataServer": {"activeCount": 1, "labels": {"app": "rook-ceph-mgr"}}},
        ),
        "add nothing to Rook's pods",
    ),
    "everything": (user("allow *"), CAPABILITIES),
    "all pools": (user("allow rw"), CAPABILITIES),
    "more behind": (user("allow r pool=a,allow *"), CAPABILITIES),
    "the manager": (user("allow r pool=.mgr"), CAPABILITIES),
    "keys": (monitors('allow command "auth get"'), CAPABILITIES),
    "an administrator's profile": (monitors("profile admin"), CAPABILITIES),
    "any option": (monitors('allow command "config set"'), CAPABILITIES),
    "another option": (
        monitors('allow command "config set" with who="osd" name="osd_class_load_list"'),
        "the options in the chart's rook.options",
    ),
    "another flag of OSDs": (monitors('allow command "osd set-group" with flags="noout"'), CAPABILITIES),
    "any flag of OSDs": (monitors('allow command "osd set-group"'), CAPABILITIES),
    "another's record": (
        monitors(f'allow command "config-key set" with key="plimsoll/{OTHER_UID}/options"'),
        CAPABILITIES,
    ),
    "to read all of the monitors": (monitors("allow r"), CAPABILITIES),
    "all of the monitors": (monitors("allow *"), CAPABILITIES),
    "all of a pool": (monitors('allow command "osd pool set" with pool="a"'), CAPABILITIES),
    "another setting of a pool": (monitors('allow command "osd pool set" with pool="a" var="size"'), CAPABILITIES),
    "another's quota": (monitors('allow command "osd pool set-quota" with pool="a" field="max_bytes"'), CAPABILITIES),
    "all of its quota": (monitors(f'allow command "osd pool set-quota" with pool="{POOL_NAME}"'), CAPABILITIES),
    "more behind a command": (monitors('allow command "status",allow *'), CAPABILITIES),
    "all settings": (monitors('allow command "config show"'), CAPABILITIES),
    "a manager's command": (monitors('allow command "dashboard get-rgw-api-secret-key"'), CAPABILITIES),
    "the configuration": (monitors('allow command "config dump"'), CAPABILITIES),
    "a secret option": (
        monitors('allow command "config show" with key regex "osd_op_queue|rgw_keystone_admin_password"'),
        CAPABILITIES,
    ),
    "a stored key": (monitors('allow command "config-key get" with key="mgr/dashboard/crt"'), CAPABILITIES),
    "metadata servers": (user(caps={**CAPS, "mds": "allow *"}), CAPABILITIES),
    "managers": (user(caps={**CAPS, "mgr": "allow r"}), CAPABILITIES),
    "another Secret": (user(secretName="rook-ceph-mon"), CAPABILITIES),
}


@pytest.mark.parametrize("case", STORAGE)
def test_it_adopts_copies_and_opens_no_storage(cluster: Installation, case: str) -> None:
    obj, words = STORAGE[case]
    refused(create(cluster.operator, obj, dry_run=True), words)


def test_these_are_accepted_without_the_offence(cluster: Installation) -> None:
    for obj in (claim(), storage_class(), user(), monitors('allow command "config-key ls"'), monitors(AWAY)):
        create(cluster.operator, obj, dry_run=True).expect(201)


def test_without_options_in_the_chart_no_user_may_set_one() -> None:
    (policy,) = [
        one for one in render().of_kind("ValidatingAdmissionPolicy") if one["metadata"]["name"].endswith("-storage")
    ]
    variables = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
    assert variables["options"] == "[]"
    assert "osd (reweight|down)" not in variables["monitors"], "nor take OSDs away"


# -- its own kinds


RUN_SPEC = {
    "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
    "workloads": [{"name": "w", "fio": {}}],
}


def run(name: str) -> Document:
    metadata = {"name": name, "namespace": BENCH}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": RUN_SPEC}


def test_it_creates_changes_and_deletes_no_run_of_a_user(cluster: Installation) -> None:
    refused(create(cluster.operator, run("mine"), dry_run=True), "runs that a suite owns")
    refused(
        create(cluster.operator, marked(run("mine"), ownerReferences=[STALE]), dry_run=True), "runs that a suite owns"
    )
    of_suite = marked(run("mine"), ownerReferences=[OWNER], finalizers=[naming.FINALIZER])
    create(cluster.operator, of_suite, dry_run=True).expect(201)
    hook = marked(copy_of(of_suite), annotations={"argocd.argoproj.io/hook": "Sync"})
    refused(create(cluster.operator, hook, dry_run=True), "only Plimsoll's annotations")
    kept = marked(copy_of(of_suite), finalizers=["example.com/never"])
    refused(create(cluster.operator, kept, dry_run=True), "only add finalizers of Plimsoll")
    theirs = run("theirs")
    theirs["metadata"]["annotations"] = {"theirs": "a"}
    put(cluster.tenant, theirs)
    path = f"{collection(run('theirs'))}/theirs"
    for change in (
        {"spec": {"suspend": True}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"ownerReferences": [OWNER]}},
        {"metadata": {"annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}}},
        {"metadata": {"annotations": {"theirs": None}}},
        {"metadata": {"annotations": {"theirs": "another"}}},
    ):
        refused(cluster.operator.request("PATCH", path, change, content=MERGE), "only change finalizers, its own anno")
    never = {"metadata": {"finalizers": ["example.com/never"]}}
    refused(cluster.operator.request("PATCH", path, never, content=MERGE), "only add finalizers of Plimsoll")
    finalizers = {"metadata": {"finalizers": ["plimsoll.dev/teardown"], "annotations": {"plimsoll.dev/a": "b"}}}
    cluster.operator.request("PATCH", f"{path}?dryRun=All", finalizers, content=MERGE).expect(200)
    status = {"status": {"observedGeneration": 1}}
    cluster.operator.request("PATCH", f"{path}/status", status, content=MERGE).expect(200)
    refused(delete(cluster.operator, run("theirs")), "runs that a suite owns")
    expiring = run("expiring") | {"spec": {**RUN_SPEC, "ttlSecondsAfterFinished": 60}}
    refused(create(cluster.operator, expiring, dry_run=True), "runs that a suite owns")
    put(cluster.tenant, expiring)
    assert delete(cluster.operator, expiring).code == 200


OWNER = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "name": "suite", "uid": OTHER_UID}
STALE = {**OWNER, "apiVersion": "plimsoll.dev/v0"}


def test_it_writes_no_numbers(cluster: Installation) -> None:
    """It may patch the status of results only to lend that right to conductors, by name."""
    spec = {"run": "run", "runUid": UID, "point": "w-000", "workload": "w", "tool": "fio", "label": "l"}
    numbers = {"clients": 1, "runtimeSeconds": 4, "rampSeconds": 1, "repetitions": 1, "parameters": {}}
    result = of_run("BenchmarkResult", "run-w-000", spec={**spec, **numbers}) | {"apiVersion": "plimsoll.dev/v1alpha1"}
    put(cluster.operator, result)
    path = f"{collection(result)}/run-w-000/status"
    answer = cluster.operator.request("PATCH", path, {"status": {"final": True}}, content=MERGE)
    refused(answer, "changes no object of a run")


def test_it_reports_events_only_about_its_own_kinds(cluster: Installation) -> None:
    about = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "run", "namespace": BENCH}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": BENCH}, "reason": "R"}
    create(cluster.operator, {**event, "involvedObject": about}, dry_run=True).expect(201)
    for version in ("v1", "plimsoll.dev/v1alpha1"):
        pod = {"apiVersion": version, "kind": "Pod", "name": "bank", "namespace": BENCH}
        refused(
            create(cluster.operator, {**event, "involvedObject": pod}, dry_run=True), "only create events about runs"
        )


def test_it_changes_no_lease_but_its_own(cluster: Installation) -> None:
    """Those of kubelets and of other controllers decide which of them works."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"leaseDurationSeconds": 15}}
    own, other = ({**lease, "metadata": {"name": name, "namespace": NAMESPACE}} for name in ("plimsoll", "other"))
    put(cluster.operator, own)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    change = {"spec": {"holderIdentity": "a"}}
    cluster.operator.request("PATCH", f"{path}/plimsoll", change, content=MERGE).expect(200)
    refused(cluster.operator.request("POST", path, other), "only create and change its own Lease")
    cluster.administrator.request("POST", path, other).expect(201)
    for method, name in (("PATCH", "other"), ("DELETE", "other"), ("DELETE", "plimsoll")):
        assert cluster.operator.request(method, f"{path}/{name}", change, content=MERGE).code == 403


# -- everything that it may write is covered


def test_every_kind_that_the_operator_may_write_is_confined() -> None:
    """A permission that is added to the chart has to be confined too."""
    rendering = render(VALUES)
    confined: set[str] = set()
    for policy in rendering.of_kind("ValidatingAdmissionPolicy"):
        if any(
            OPERATOR in one["expression"] and "==" in one["expression"] for one in policy["spec"]["matchConditions"]
        ):
            for rule in policy["spec"]["matchConstraints"]["resourceRules"]:
                confined |= {
                    name for name in rule["resources"] if set(rule["operations"]) >= {"CREATE", "UPDATE", "DELETE"}
                }
    written: set[str] = set()
    for found in [*rendering.of_kind("ClusterRole"), *rendering.of_kind("Role")]:
        if found["metadata"]["name"].startswith(("plimsoll-view", "plimsoll-edit", "plimsoll-caches", "plimsoll-kube")):
            continue
        if "helm.sh/hook" in found["metadata"].get("annotations", {}):
            continue
        for rule in found["rules"]:
            if set(rule["verbs"]) - {"get", "list", "watch"}:
                written |= set(rule["resources"])
    # Its status of runs and suites is its own, and it updates finalizers only as the owner of what it creates.
    free = {"benchmarkruns/status", "benchmarksuites/status", "benchmarkruns/finalizers", "benchmarksuites/finalizers"}
    assert written - confined == free


def test_the_switches_are_independent() -> None:
    def names(**admission: Any) -> set[str]:
        policies = render({"admission": admission}).of_kind("ValidatingAdmissionPolicy")
        return {one["metadata"]["name"].removeprefix("plimsoll-") for one in policies}

    confining, reserving = (
        {"objects", "runs", "lease", "rights", "jobs", "storage"},
        {"labels", "members", "orphans", "names", "claims", "copies", "finalizer"},
    )
    assert names() == confining | reserving | {"metadata"}
    assert names(operator=False) == reserving | {"metadata"}
    assert names(runs=False) == confining | {"metadata"}
    assert names(metadata=False) == confining | reserving
