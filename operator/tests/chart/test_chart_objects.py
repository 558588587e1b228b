"""A real API server accepts the rendered objects."""

from collections.abc import Iterator

import pytest

from chart.rendering import EVERYTHING, MONITORING, NAMESPACE, render
from support.apiserver import ApiServer, running_apiserver

pytestmark = [pytest.mark.chart, pytest.mark.crd]

PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Namespace": "/api/v1/namespaces",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an API server with the namespaces that the chart is rendered for; they demand the restricted profile."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        for name in (
            NAMESPACE,
            "rook-ceph",
            "other",
            "bench",
            "lab",
            "plimsoll-caches",
            "plimsoll-kube-burner",
            "plimsoll-teardown",
        ):
            labels = {"pod-security.kubernetes.io/enforce": "restricted"}
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            server.request("POST", PATHS["Namespace"], namespace).expect(201)
        yield server


@pytest.mark.parametrize("namespaces", [[], ["bench", "lab"]])
def test_an_api_server_takes_everything(apiserver: ApiServer, namespaces: list[str]) -> None:
    for one in render(EVERYTHING | {"watchNamespaces": namespaces}).objects:
        if one["kind"] in MONITORING:
            continue  # not its own kinds; the end-to-end tests have the Prometheus Operator's
        if one["kind"] == "Namespace":
            continue  # exists, for the objects in it
        path = PATHS[one["kind"]].format(one["metadata"].get("namespace"))
        answer = apiserver.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", one)
        assert answer.code == 201, f"{one['kind']} {one['metadata']['name']}: {answer.message}"


@pytest.mark.parametrize("platform_assigns_user", [False, True])
def test_all_pods_but_the_helpers_of_nodes_satisfy_the_restricted_profile(
    apiserver: ApiServer, *, platform_assigns_user: bool
) -> None:
    values = EVERYTHING | {"podSecurity": {"platformAssignsUser": platform_assigns_user}}
    for one in render(values).objects:
        spec = one["spec"] if one["kind"] == "Pod" else one.get("spec", {}).get("template", {}).get("spec")
        if spec is None:
            continue
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, "spec": spec}
        answer = apiserver.request("POST", f"{PATHS['Pod'].format(one['metadata']['namespace'])}?dryRun=All", pod)
        if one["kind"] == "DaemonSet":
            assert 'violates PodSecurity "restricted:latest"' in answer.message
        else:
            answer.expect(201)
            assert ("runAsUser" in spec["securityContext"]) != platform_assigns_user
