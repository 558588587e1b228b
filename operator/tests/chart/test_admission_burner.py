"""The admission policy of the helper that runs kube-burner, in a real API server."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chart.rendering import Document, render
from plimsoll.tools.kube_burner import KubeBurnerParameters, Place, files_of
from support.apiserver import Answer, ApiServer, running_apiserver, wait_until

pytestmark = [pytest.mark.chart, pytest.mark.crd]

HELPER = "plimsoll-kube-burner"
NAMESPACES = "/api/v1/namespaces"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{}"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
OWN = "plimsoll-burn-0123456789-abcd"
PLACE = Place(namespace=OWN, storage_class="fast", pod_image="runner:1", labels={"plimsoll.dev/kube-burner": HELPER})
FILES = files_of(KubeBurnerParameters(), PLACE)
LABELS: dict[str, str] = json.loads(FILES["config.yml"])["jobs"][0]["namespaceLabels"]


def namespace(name: str = OWN, **labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**LABELS, **labels}}}


def template(file: str, **changes: Any) -> Document:
    found: Document = json.loads(FILES[file].replace("{{.Iteration}}", "0").replace("{{.Replica}}", "1"))
    return {**found, "spec": {**found["spec"], **changes}}


@pytest.fixture(scope="module")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        for one in (
            namespace(HELPER),
            namespace(OWN),
            {**namespace("plimsoll-burn-theirs"), "metadata": {"name": "plimsoll-burn-theirs"}},
        ):
            server.request("POST", NAMESPACES, one).expect(201)
        for name in (HELPER, "default"):
            place = HELPER if name == HELPER else OWN
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            server.request("POST", f"{NAMESPACES}/{place}/serviceaccounts", account).expect(201)
        rendering = render({"kubeBurner": {"enabled": True, "namespaces": ["bench"]}})
        for kind, ending in (("ValidatingAdmissionPolicy", "ies"), ("ValidatingAdmissionPolicyBinding", "ybindings")):
            path = f"{POLICIES.format(ending)}?fieldValidation=Strict"
            server.request("POST", path, rendering.one(kind, HELPER)).expect(201)
        yield server


@pytest.fixture(scope="module")
def helper(administrator: ApiServer) -> Iterator[ApiServer]:
    """The helper's ServiceAccount, which only the policy restricts."""
    subject = {"kind": "ServiceAccount", "name": HELPER, "namespace": HELPER}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "anything"}, "roleRef": role, "subjects": [subject]}
    administrator.request("POST", BINDINGS, binding).expect(201)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"{NAMESPACES}/{HELPER}/serviceaccounts/{HELPER}/token"
    token = administrator.request("POST", path, request).expect(201)["status"]["token"]
    certificate = administrator.kubeconfig()["clusters"][0]["cluster"]["certificate-authority"]
    with closing(ApiServer(administrator.port, token, Path(certificate))) as server:
        wait_until(lambda: server.request("GET", NAMESPACES).code == 200, "its rights are known")
        wait_until(lambda: not created(server, namespace("other")).accepted, "the policy is in force")
        yield server


def created(server: ApiServer, obj: Document, place: str = "") -> Answer:
    """Return the API server's answer to a dry run."""
    plural = {"PersistentVolumeClaim": "persistentvolumeclaims", "Pod": "pods", "Namespace": ""}[obj["kind"]]
    path = f"{NAMESPACES}/{place}/{plural}" if plural else NAMESPACES
    return server.request("POST", f"{path}?dryRun=All", obj)


def refused(answer: Answer) -> str:
    assert answer.code in {403, 422}, answer
    return answer.message


def test_it_creates_what_kube_burner_needs(helper: ApiServer) -> None:
    created(helper, namespace("plimsoll-burn-new")).expect(201)
    for file in ("pvc.yml", "pod.yml"):
        created(helper, template(file), OWN).expect(201)
    helper.request("DELETE", f"{NAMESPACES}/{OWN}?dryRun=All").expect(200)


def test_a_claim_may_follow_its_namespace_at_once(helper: ApiServer) -> None:
    for number in range(10):
        name = f"plimsoll-burn-fast-{number}"
        helper.request("POST", NAMESPACES, namespace(name)).expect(201)
        created(helper, template("pvc.yml"), name).expect(201)


def test_it_creates_no_other_namespaces(helper: ApiServer) -> None:
    own = "may only change its own namespaces"
    assert own in refused(created(helper, namespace("other")))
    assert own in refused(created(helper, namespace("plimsoll-burn-new", **{"plimsoll.dev/kube-burner": "other"})))
    assert own in refused(helper.request("DELETE", f"{NAMESPACES}/plimsoll-burn-theirs?dryRun=All"))
    assert own in refused(helper.request("DELETE", f"{NAMESPACES}/{HELPER}?dryRun=All"))
    take = {"metadata": {"labels": LABELS}}
    path = f"{NAMESPACES}/plimsoll-burn-theirs?dryRun=All"
    assert own in refused(helper.request("PATCH", path, take, content="application/merge-patch+json"))


def test_its_namespaces_enforce_the_restricted_standard(helper: ApiServer) -> None:
    lax = {"pod-security.kubernetes.io/enforce": "privileged"}
    assert "must enforce the restricted" in refused(created(helper, namespace("plimsoll-burn-new", **lax)))
    early = {"pod-security.kubernetes.io/enforce-version": "v1.0"}
    assert "in its latest version" in refused(created(helper, namespace("plimsoll-burn-new", **early)))
    without = namespace("plimsoll-burn-new")
    del without["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert "must enforce the restricted" in refused(created(helper, without))


def test_it_creates_no_pods_with_access_to_their_nodes(helper: ApiServer) -> None:
    files = [{"name": "data", "hostPath": {"path": "/"}}]
    assert "violates PodSecurity" in refused(created(helper, template("pod.yml", volumes=files), OWN))
    assert "violates PodSecurity" in refused(created(helper, template("pod.yml", hostNetwork=True), OWN))


@pytest.mark.parametrize("place", ["default", "plimsoll-burn-theirs"])
def test_it_creates_nothing_in_namespaces_of_others(helper: ApiServer, place: str) -> None:
    assert "only change objects in its own" in refused(created(helper, template("pvc.yml"), place))


def test_the_policy_restricts_nobody_else(administrator: ApiServer) -> None:
    created(administrator, namespace("other")).expect(201)
    created(administrator, template("pvc.yml"), "plimsoll-burn-theirs").expect(201)
