"""An API server with the chart's definitions, rights and admission policies, and the users that they are about."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart.rendering import NAMESPACE, Document, Rendering, render
from plimsoll.lifecycle import naming
from support.apiserver import Answer, ApiServer, apiserver_with_kinds, read_yamls, wait_until
from support.served_world import path_of
from support.specs import UID

ROOT = Path(__file__).parents[3]
OPERATOR = f"system:serviceaccount:{NAMESPACE}:plimsoll"
BURNER = "system:serviceaccount:plimsoll-kube-burner:plimsoll-kube-burner"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
TENANT = "tenant"
BENCH, ROOK, TEARDOWN = "bench", "rook-ceph", "plimsoll-teardown"

VALUES: Document = {
    "runner": {"image": {"repository": "runner"}},
    "admission": {
        "allowedRepositories": ["registry.example.com:5000/earlier/runner"],
        "allowedLabels": ["example.com/team"],
        "exemptUsers": ["backup"],
    },
    "podDefaults": {
        "labels": {"example.com/cost": "bench"},
        "annotations": {"example.com/network": "public"},
        "runtimeClassName": "trusted",
    },
    "rook": {
        "clusters": {f"{ROOK}/rook-ceph": ["*"]},
        "options": {f"{ROOK}/rook-ceph": ["osd_mclock_profile", "osd_memory_target"]},
    },
    "disturb": {f"{ROOK}/rook-ceph": ["*"]},
    "ceph": {"keyrings": {BENCH: ["our-key", "keyring", "administrators"]}},
    "osdBench": {"enabled": True},
    "caches": {"enabled": True, "namespaces": [BENCH]},
    "kubeBurner": {"enabled": True, "namespaces": [BENCH]},
}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
_INSTALLED = (*_PATHS, "ServiceAccount", "Role", "RoleBinding")
"""All that the chart creates before the operator's Deployment matters, namespaces first."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An API server on which the chart is installed, as its administrator, its operator, and a user with `edit`."""

    administrator: ApiServer
    operator: ApiServer
    tenant: ApiServer


@contextmanager
def installed(directory: Path, values: Document) -> Iterator[Installation]:
    """Install the chart on a new API server; the tenant may edit the namespace of the runs."""
    with apiserver_with_kinds(directory) as server:
        for definition in read_yamls((ROOT / "e2e" / "rook" / "crds.yaml").read_text()):
            # Rook's own definitions have many more fields than those of the stand-in.
            (version,) = definition["spec"]["versions"]
            fields = version["schema"]["openAPIV3Schema"]["properties"]
            fields["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            server.define(definition)
        for name in (NAMESPACE, BENCH, ROOK):
            put(server, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        install(server, render(values))
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}
        # No controller aggregates `edit` here.
        for role in ("system:aggregate-to-edit", "plimsoll-edit"):
            binding = {"kind": "RoleBinding", "metadata": {"name": role, "namespace": BENCH}, "subjects": [subject]}
            put(server, binding | {"apiVersion": "rbac.authorization.k8s.io/v1", "roleRef": reference | {"name": role}})
        with closing(server.as_user(OPERATOR)) as operator, closing(server.as_user(TENANT)) as tenant:
            yield Installation(server, operator, tenant)


def install(server: ApiServer, rendering: Rendering) -> None:
    """Create the chart's namespaces, accounts, rights and policies, and wait until the policies are enforced."""
    objects = sorted(rendering.objects, key=lambda obj: obj["kind"] != "Namespace")
    for obj in objects:
        if obj["kind"] in _INSTALLED and "helm.sh/hook" not in obj["metadata"].get("annotations", {}):
            put(server, obj)
    forged = config_map("forged", labels={"plimsoll.dev/run-uid": "forged"})
    wait_until(lambda: create(server, forged, dry_run=True).code == 403, "the policies are enforced")


def collection(obj: Document) -> str:
    kind = obj["kind"]
    return _PATHS[kind] if kind in _PATHS else path_of(kind, obj["metadata"].get("namespace"))


def create(server: ApiServer, obj: Document, *, dry_run: bool = False) -> Answer:
    return server.request("POST", f"{collection(obj)}{'?dryRun=All' if dry_run else ''}", obj)


def put(server: ApiServer, obj: Document) -> Document:
    """Create an object; its unknown fields are refused."""
    return server.request("POST", f"{collection(obj)}?fieldValidation=Strict", obj).expect(201)


def delete(server: ApiServer, obj: Document) -> Answer:
    """Delete an object; what depends on it is left to the garbage collector, which is not there."""
    return server.request("DELETE", f"{collection(obj)}/{obj['metadata']['name']}?propagationPolicy=Background")


def config_map(name: str, namespace: str = BENCH, **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


def of_run(kind: str, name: str, namespace: str = BENCH, **content: Any) -> Document:
    """Return an object with the label and the owner of a run."""
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "name": "run", "uid": UID}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {naming.LABEL_RUN_UID: UID, naming.LABEL_MANAGED_BY: naming.MANAGED_BY},
        "ownerReferences": [owner],
    }
    api_version = {"Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1"}
    api_version |= {"NetworkPolicy": "networking.k8s.io/v1", "StorageClass": "storage.k8s.io/v1"}
    api_version |= dict.fromkeys(("CephClient", "CephBlockPool", "CephFilesystem"), "ceph.rook.io/v1")
    return {"apiVersion": api_version.get(kind, "v1"), "kind": kind, "metadata": metadata, **content}


def refused(answer: Answer, words: str) -> None:
    """Expect that a policy refused a request, not RBAC, and that its message has these words."""
    assert answer.code == 403, answer
    assert "denied request" in answer.message, answer.message
    assert words in answer.message
