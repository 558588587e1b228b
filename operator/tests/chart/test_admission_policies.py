"""The chart's admission policies in a real API server: rejected and accepted requests."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from chart.rendering import NAMESPACE, Document, render
from support.apiserver import Answer, ApiServer, Binaries, running_apiserver, wait_until
from support.specs import STORAGE, ceph_run, made_for_ceph

pytestmark = [pytest.mark.chart, pytest.mark.crd]

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{}"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
CLAIMS = "/api/v1/namespaces/bench/persistentvolumeclaims"
OF_A_RUN = "plimsoll-a-0123abcd"
COPIED = [
    "snapshot.storage.kubernetes.io/pvc-as-source-protection",
    "provisioner.storage.kubernetes.io/cloning-protection",
]
"""Finalizers of the snapshot controller and of the CSI provisioner on the source of a copy."""
VALUES: Document = {
    "admission": {"claims": True, "pods": True},
    "runner": {"image": {"repository": "runner"}},
    "kubeBurner": {"enabled": True, "namespaces": ["bench"]},
}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an administrator of an API server with the active policies."""
    with running_apiserver(Binaries.find(os.environ), tmp_path_factory.mktemp("apiserver")) as server:
        for name in (NAMESPACE, "bench"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            server.request("POST", "/api/v1/namespaces", namespace).expect(201)
        rendering = render(VALUES)
        for kind, ending in (("ValidatingAdmissionPolicy", "ies"), ("ValidatingAdmissionPolicyBinding", "ybindings")):
            for one in rendering.of_kind(kind):
                server.request("POST", f"{POLICIES.format(ending)}?fieldValidation=Strict", one).expect(201)
        wait_until(lambda: not tried(server, claim(OF_A_RUN)).accepted, "the policies are in force")
        yield server


@pytest.fixture(scope="module")
def operator(stranger: ApiServer) -> Iterator[ApiServer]:
    """Return the operator's ServiceAccount, which only the policies restrict."""
    collection = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "plimsoll"}}
    stranger.request("POST", collection, account).expect(201)
    subject = {"kind": "ServiceAccount", "name": "plimsoll", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "anything"}, "roleRef": role, "subjects": [subject]}
    stranger.request("POST", BINDINGS, binding).expect(201)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = stranger.request("POST", f"{collection}/plimsoll/token", request).expect(201)["status"]["token"]
    certificate = stranger.kubeconfig()["clusters"][0]["cluster"]["certificate-authority"]
    with closing(ApiServer(stranger.port, token, Path(certificate))) as server:
        wait_until(lambda: tried(server, claim("other")).accepted, "its rights are known")
        yield server


def claim(storage_class: str) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine", "namespace": "bench"},
        "spec": spec | {"storageClassName": storage_class},
    }


def tried(server: ApiServer, obj: Document) -> Answer:
    """Return the API server's answer to a dry run."""
    namespace = obj["metadata"]["namespace"]
    path = CLAIMS if obj["kind"] == "PersistentVolumeClaim" else f"/apis/batch/v1/namespaces/{namespace}/jobs"
    return server.request("POST", f"{path}?dryRun=All", obj)


@pytest.mark.parametrize("storage_class", ["fast", "plimsoll-fast", "my-plimsoll-a-0123abcd", "plimsoll-a-0123abcx"])
def test_other_classes_are_for_everybody(stranger: ApiServer, storage_class: str) -> None:
    tried(stranger, claim(storage_class)).expect(201)


def test_only_the_operator_claims_from_the_class_of_a_run(stranger: ApiServer, operator: ApiServer) -> None:
    answer = tried(stranger, claim(OF_A_RUN))
    assert answer.code == 403
    assert "this StorageClass belongs to one BenchmarkRun" in answer.message
    tried(operator, claim(OF_A_RUN)).expect(201)


@pytest.mark.parametrize("spec", [{}, {"storageClassName": "fast"}])
def test_nobody_else_names_the_class_of_a_run_in_the_older_way(stranger: ApiServer, spec: Document) -> None:
    """The annotation takes precedence over the field."""
    made = claim("fast")
    del made["spec"]["storageClassName"]
    made["spec"] |= spec
    made["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "fast"}
    tried(stranger, made).expect(201)
    made["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": OF_A_RUN}
    answer = tried(stranger, made)
    assert answer.code == 403
    assert "this StorageClass belongs to one BenchmarkRun" in answer.message


def test_who_works_on_a_claim_of_the_operators_may_change_it(stranger: ApiServer, operator: ApiServer) -> None:
    made = operator.request("POST", CLAIMS, claim(OF_A_RUN)).expect(201)
    made["metadata"]["annotations"] = {"volume.kubernetes.io/storage-provisioner": "rook-ceph.rbd.csi.ceph.com"}
    stranger.request("PUT", f"{CLAIMS}/mine", made).expect(200)


def test_a_claim_without_a_class_does_not_get_that_of_a_run_afterwards(stranger: ApiServer) -> None:
    undecided = claim("")
    undecided["metadata"]["name"] = "undecided"
    del undecided["spec"]["storageClassName"]
    made = stranger.request("POST", CLAIMS, undecided).expect(201)
    made["spec"]["storageClassName"] = OF_A_RUN
    assert stranger.request("PUT", f"{CLAIMS}/undecided", made).code == 403


def server_claim(server: ApiServer, name: str, storage_class: str, *finalizers: str) -> Document:
    """Create a claim and return it as the API server stores it."""
    made = claim(storage_class)
    made["metadata"] |= {"name": name, "finalizers": [*finalizers]}
    return server.request("POST", CLAIMS, made).expect(201)


def marked(server: ApiServer, made: Document, *finalizers: str) -> Answer:
    """Add finalizers to a PVC."""
    metadata = made["metadata"] | {"finalizers": [*made["metadata"].get("finalizers", []), *finalizers]}
    path = f"{CLAIMS}/{metadata['name']}?dryRun=All"
    return server.request("PUT", path, made | {"metadata": metadata})


@pytest.mark.parametrize("mark", COPIED)
def test_no_snapshot_or_clone_is_made_of_a_claim_of_a_run(stranger: ApiServer, operator: ApiServer, mark: str) -> None:
    """Its controller marks the source first; what it copies to, and in which class, does not matter."""
    made = server_claim(operator, f"copied-{COPIED.index(mark)}", OF_A_RUN)
    for server in (stranger, operator):
        answer = marked(server, made, mark)
        assert answer.code == 403
        assert "a snapshot or a clone would keep the run's pool in use" in answer.message
    marked(stranger, made, "kubernetes.io/somebody-elses").expect(200)


@pytest.mark.parametrize("mark", COPIED)
def test_other_claims_are_copied(stranger: ApiServer, mark: str) -> None:
    made = server_claim(stranger, f"other-{COPIED.index(mark)}", "fast")
    marked(stranger, made, mark).expect(200)


def test_a_claim_of_a_run_is_not_made_with_such_a_mark(operator: ApiServer) -> None:
    made = claim(OF_A_RUN)
    made["metadata"]["finalizers"] = [COPIED[0]]
    assert tried(operator, made).code == 403


def jobs(name: str) -> list[Any]:
    return [deepcopy(obj) for obj in made_for_ceph(ceph_run(name)) if obj["kind"] == "Job"]


@pytest.mark.parametrize("name", STORAGE)
def test_the_operator_may_make_every_job_of_a_run(operator: ApiServer, name: str) -> None:
    for job in jobs(name):
        tried(operator, job).expect(201)


def pod(**changes: Any) -> Callable[[Document], None]:
    return lambda job: job["spec"]["template"]["spec"].update(changes)


def container(**changes: Any) -> Callable[[Document], None]:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0].update(changes)


def security(**changes: Any) -> Callable[[Document], None]:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0]["securityContext"].update(changes)


def test_the_conductor_may_have_a_token_for_the_helpers_that_drop_caches(operator: ApiServer) -> None:
    job, other = (cold_conductor(audience) for audience in ("plimsoll-caches", "https://kubernetes.default.svc"))
    tried(operator, job).expect(201)
    answer = tried(operator, other)
    assert answer.code == 422
    assert "a conductor a token for plimsoll-caches" in answer.message


def test_a_client_may_have_a_token_for_the_helper_that_runs_kube_burner(operator: ApiServer) -> None:
    job = next(job for job in jobs("rook-images") if "-client-" in job["metadata"]["name"])
    source = {"serviceAccountToken": {"path": "token", "audience": "plimsoll-kube-burner", "expirationSeconds": 3600}}
    job["spec"]["template"]["spec"]["volumes"].append({"name": "burner-token", "projected": {"sources": [source]}})
    tried(operator, job).expect(201)


def cold_conductor(audience: str) -> Document:
    found: Document = next(job for job in jobs("rook-images") if job["metadata"]["name"].endswith("-conductor"))
    source = {"serviceAccountToken": {"path": "token", "audience": audience, "expirationSeconds": 3600}}
    found["spec"]["template"]["spec"]["volumes"].append({"name": "cold", "projected": {"sources": [source]}})
    return found


COLD_TOKEN = {
    "name": "t",
    "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "plimsoll-caches"}}]},
}
TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
HOSTILE: dict[str, tuple[Callable[[Document], None], str]] = {
    "another account": (pod(serviceAccountName="admin"), "must use the ServiceAccount of its own conductor"),
    "another's conductor": (
        pod(serviceAccountName="other-conductor"),
        "must use the ServiceAccount of its own conductor",
    ),
    "a token": (pod(automountServiceAccountToken=True), "only a conductor may have a token"),
    "the host's network": (pod(hostNetwork=True), "must not use the host"),
    "the host's processes": (pod(hostPID=True), "must not use the host"),
    "a node": (pod(nodeName="control-plane"), "must not use the host"),
    "the host's files": (pod(volumes=[{"name": "h", "hostPath": {"path": "/"}}]), "as volumes"),
    "a token by a volume": (pod(volumes=[TOKEN]), "as volumes"),
    "a client's token for the helpers": (pod(volumes=[COLD_TOKEN]), "as volumes"),
    "another image": (container(image="evil:1"), "with the image runner"),
    "an image that begins alike": (container(image="runner.example.com/evil:1"), "with the image runner"),
    "two containers": (
        lambda job: job["spec"]["template"]["spec"]["containers"].append(
            {"name": "second", "image": "runner:1", "securityContext": {"allowPrivilegeEscalation": False}}
        ),
        "must have one container",
    ),
    "more privileges later": (security(allowPrivilegeEscalation=True), "must not have capabilities"),
    "capabilities": (security(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "must not have capabilities"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_job_that_no_run_needs_is_refused_to_the_operator_and_to_nobody_else(
    stranger: ApiServer, operator: ApiServer, case: str
) -> None:
    change, says = HOSTILE[case]
    job = next(job for job in jobs("rook-images") if "client" in job["metadata"]["name"])
    job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = []
    change(job)
    answer = tried(operator, job)
    assert answer.code == 422, answer.message
    assert says in answer.message
    tried(stranger, job).expect(201)
