"""The helpers that drop caches, as the chart renders them."""

import pytest

from chart.rendering import Document, Rendering, render

pytestmark = pytest.mark.chart

NAME = "plimsoll-caches"


def in_namespace(rendering: Rendering) -> set[str]:
    return {one["kind"] for one in rendering.objects if one["metadata"].get("namespace") == NAME}


def pod(rendering: Rendering) -> Document:
    (daemon_set,) = rendering.of_kind("DaemonSet")
    found: Document = daemon_set["spec"]["template"]["spec"]
    return found


def test_nothing_is_privileged_by_default() -> None:
    defaults = render()
    assert "privileged" not in defaults.text.replace("allowPrivilegeEscalation", "")
    assert "PLIMSOLL_CACHES" not in defaults.text
    assert not defaults.of_kind("DaemonSet")
    assert not defaults.of_kind("Namespace")


def test_only_the_helpers_are_privileged_in_a_namespace_of_their_own(everything: Rendering) -> None:
    namespace = everything.one("Namespace", NAME)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert in_namespace(everything) == {"ConfigMap", "DaemonSet", "NetworkPolicy", "Service", "ServiceAccount"}
    privileged = [one["kind"] for one in everything.objects if "'privileged': True" in str(one)]
    assert privileged == ["DaemonSet"]


def test_a_helper_has_nothing_of_its_node_but_the_privilege(everything: Rendering) -> None:
    spec = pod(everything)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert {*spec["volumes"][0], *spec["volumes"][1]} == {"name", "emptyDir", "projected"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "privileged": True, "readOnlyRootFilesystem": True, "runAsUser": 0, "runAsGroup": 0
    }  # fmt: skip
    assert container["args"] == ["caches", "--allow=bench", "--ceph-user=admin"]
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_a_helper_may_only_have_tokens_reviewed(everything: Rendering) -> None:
    role = everything.one("ClusterRole", NAME)
    assert role["rules"] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    ]
    (subject,) = everything.one("ClusterRoleBinding", NAME)["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}


def test_a_client_reaches_the_helper_of_its_own_node_from_listed_namespaces_only(everything: Rendering) -> None:
    assert everything.one("Service", NAME)["spec"]["internalTrafficPolicy"] == "Local"
    (rule,) = everything.one("NetworkPolicy", NAME)["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"]["matchExpressions"][0]["values"] == ["bench"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "client"
    anywhere = render({"caches": {"enabled": True, "namespaces": ["*"]}})
    (rule,) = anywhere.one("NetworkPolicy", NAME)["spec"]["ingress"]
    assert rule["from"][0]["namespaceSelector"] == {}


def test_without_a_ceph_cluster_a_helper_has_no_key() -> None:
    found = render({"caches": {"enabled": True, "namespaces": ["bench"]}})
    (container,) = pod(found)["containers"]
    assert container["args"] == ["caches", "--allow=bench"]
    assert in_namespace(found) == {"DaemonSet", "NetworkPolicy", "Service", "ServiceAccount"}
    assert [volume["name"] for volume in pod(found)["volumes"]] == ["tmp"]


def test_the_key_of_the_administrator_is_of_the_named_secret(everything: Rendering) -> None:
    sources = next(one for one in pod(everything)["volumes"] if one["name"] == "ceph")["projected"]["sources"]
    assert [source["secret"]["name"] for source in sources if "secret" in source] == ["administrator"]
    configuration = everything.one("ConfigMap", f"{NAME}-ceph")["data"]["ceph.conf"]
    assert "mon_host = 192.0.2.1,192.0.2.2:3300\n" in configuration
