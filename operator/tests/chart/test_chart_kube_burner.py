"""The helper that runs kube-burner, as the chart renders it."""

import pytest

from chart.rendering import NAMESPACE, Document, Rendering, render
from plimsoll.protocol.helpers import BURNER_CERTIFICATE

pytestmark = pytest.mark.chart

NAME = "plimsoll-kube-burner"


def pod(rendering: Rendering) -> Document:
    found: Document = rendering.one("Deployment", NAME)["spec"]["template"]["spec"]
    return found


def test_it_is_off_by_default() -> None:
    defaults = render()
    # The definitions of runs and results describe the tool.
    created = str([one for one in defaults.objects if one["kind"] != "CustomResourceDefinition"])
    assert "kube-burner" not in created.replace("kube-burner, ", "")
    assert "PLIMSOLL_KUBE_BURNER" not in defaults.text


def test_everything_of_it_is_in_a_namespace_of_its_own(everything: Rendering) -> None:
    labels = everything.one("Namespace", NAME)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    kinds = {one["kind"] for one in everything.objects if one["metadata"].get("namespace") == NAME}
    assert kinds == {"Deployment", "NetworkPolicy", "Role", "RoleBinding", "Service", "ServiceAccount"}


def test_its_rights_are_the_least_that_kube_burner_needs(everything: Rendering) -> None:
    verbs = {
        resource: set(rule["verbs"])
        for rule in everything.one("ClusterRole", NAME)["rules"]
        for resource in rule["resources"]
    }
    assert verbs == {
        "tokenreviews": {"create"},
        "namespaces": {"get", "list", "watch", "create", "patch", "delete"},
        "persistentvolumeclaims": {"list", "watch", "create"},
        "pods": {"list", "watch", "create"},
        "events": {"list"},
        "persistentvolumes": {"list"},
        "nodes": {"list"},
        "storageclasses": {"list"},
    }
    (subject,) = everything.one("ClusterRoleBinding", NAME)["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}


def test_only_the_helper_has_the_key_of_its_certificate_and_the_operator_reads_only_the_certificate(
    everything: Rendering,
) -> None:
    roles = {
        one["metadata"]["name"]: one["rules"]
        for one in everything.of_kind("Role")
        if one["metadata"]["namespace"] == NAME
    }
    name = [BURNER_CERTIFICATE]
    assert roles == {
        NAME: [
            {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": name, "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": name, "verbs": ["get", "patch"]},
        ],
        "plimsoll": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": name, "verbs": ["get"]}],
    }
    subjects = {
        one["roleRef"]["name"]: one["subjects"]
        for one in everything.of_kind("RoleBinding")
        if one["metadata"]["namespace"] == NAME
    }
    assert subjects == {
        NAME: [{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}],
        "plimsoll": [{"kind": "ServiceAccount", "name": "plimsoll", "namespace": NAMESPACE}],
    }


def test_nobody_else_is_bound_to_its_role(everything: Rendering) -> None:
    bound = [
        one["metadata"]["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for one in everything.of_kind(kind)
        if one["roleRef"]["name"] == NAME
    ]
    assert bound == [NAME, NAME]


def test_a_policy_limits_it_to_its_own_namespaces(everything: Rendering) -> None:
    policy = everything.one("ValidatingAdmissionPolicy", NAME)["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConditions"][0]["expression"] == (
        f"request.userInfo.username == 'system:serviceaccount:{NAME}:{NAME}'"
    )
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert rule["resources"] == ["namespaces", "persistentvolumeclaims", "pods"]
    assert sum("plimsoll-burn-" in one["expression"] for one in policy["validations"]) == 2
    assert everything.one("ValidatingAdmissionPolicyBinding", NAME)["spec"]["validationActions"] == ["Deny"]


def test_it_knows_who_may_use_it_and_how_much(everything: Rendering) -> None:
    (container,) = pod(everything)["containers"]
    assert container["args"][:5] == [
        "burner", f"--namespace={NAME}", "--allow=bench", "--max-objects=50", "--max-qps=20"
    ]  # fmt: skip
    assert container["args"][5] == "--max-volume-size=1Gi"
    assert container["args"][6].startswith("--pod-image=plimsoll-runner:")
    assert container["image"].startswith("plimsoll-kube-burner:")
    assert pod(everything)["nodeSelector"] == {"bench": "true", "kubernetes.io/os": "linux"}


def test_there_is_never_a_second_one(everything: Rendering) -> None:
    spec = everything.one("Deployment", NAME)["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_only_clients_in_listed_namespaces_reach_it(everything: Rendering) -> None:
    (rule,) = everything.one("NetworkPolicy", NAME)["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"]["matchExpressions"][0]["values"] == ["bench"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "client"
    anywhere = render({"kubeBurner": {"enabled": True, "namespaces": ["*"]}})
    (rule,) = anywhere.one("NetworkPolicy", NAME)["spec"]["ingress"]
    assert rule["from"][0]["namespaceSelector"] == {}


def policy(rendering: Rendering, name: str) -> str:
    return str(rendering.one("ValidatingAdmissionPolicy", f"plimsoll-{name}")["spec"])


def test_claims_and_labels_of_runs_are_its_own_too(everything: Rendering, defaults: Rendering) -> None:
    for name in ("claims", "labels", "names"):
        assert f"system:serviceaccount:{NAME}:{NAME}" in policy(everything, name)
        assert "kube-burner" not in policy(defaults, name)


def test_only_if_it_is_enabled_may_clients_have_a_token_for_it(everything: Rendering, defaults: Rendering) -> None:
    assert "plimsoll-kube-burner" in policy(everything, "jobs")
    assert "plimsoll-kube-burner" not in policy(defaults, "jobs")
