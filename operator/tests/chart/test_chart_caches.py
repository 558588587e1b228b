"""The helpers that drop caches, as the chart renders them."""

import pytest

from chart.rendering import Document, Rendering, render
from plimsoll.agent.caches import SWITCH
from support.tooling import baseline, restricted

pytestmark = pytest.mark.chart

NAME = "plimsoll-caches"


def in_namespace(rendering: Rendering) -> set[str]:
    return {one["kind"] for one in rendering.objects if one["metadata"].get("namespace") == NAME}


def pod(rendering: Rendering) -> Document:
    (daemon_set,) = rendering.of_kind("DaemonSet")
    found: Document = daemon_set["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("values", ["defaults", "everything"])
def test_nothing_is_privileged(values: str, request: pytest.FixtureRequest) -> None:
    rendering: Rendering = request.getfixturevalue(values)
    assert "privileged:" not in rendering.text
    assert not [one for one in rendering.objects if "'privileged': True" in str(one)]


def test_nothing_of_a_node_is_mounted_by_default(defaults: Rendering) -> None:
    assert "hostPath" not in defaults.text
    assert "PLIMSOLL_CACHES" not in str(defaults.of_kind("Deployment"))
    assert not defaults.of_kind("DaemonSet")
    (namespace,) = defaults.of_kind("Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_only_the_helpers_mount_a_file_of_the_node_in_a_namespace_of_their_own(everything: Rendering) -> None:
    namespace = everything.one("Namespace", NAME)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert in_namespace(everything) == {"ConfigMap", "DaemonSet", "NetworkPolicy", "Service", "ServiceAccount"}
    assert [one["kind"] for one in everything.objects if "'hostPath'" in str(one)] == ["DaemonSet"]


def test_a_helper_has_one_file_of_its_node_and_no_capability(everything: Rendering) -> None:
    spec = pod(everything)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes.keys() == {"tmp", "switch", "ceph"}
    assert volumes["switch"]["hostPath"] == {"path": str(SWITCH), "type": "File"}
    assert list(baseline(spec)) == ["volume switch of the host"]
    assert list(restricted(spec)) == [
        "volume switch of the host", "volume switch: hostPath", "caches: not runAsNonRoot", "caches: uid 0"
    ]  # fmt: skip
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["args"] == ["caches", "--switch=/node/drop_caches", "--allow=bench", "--ceph-user=admin"]
    assert [mount for mount in container["volumeMounts"] if mount["name"] == "switch"] == [
        {"name": "switch", "mountPath": "/node/drop_caches"}
    ]
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_selinux_options_are_a_setting(everything: Rendering) -> None:
    assert "seLinuxOptions" not in pod(everything)["containers"][0]["securityContext"]
    options = {"type": "spc_t"}
    found = render({"caches": {"enabled": True, "namespaces": ["bench"], "seLinuxOptions": options}})
    assert pod(found)["containers"][0]["securityContext"]["seLinuxOptions"] == options


def test_only_a_helper_that_needs_cephs_commands_has_the_image_of_the_runner(everything: Rendering) -> None:
    assert pod(everything)["containers"][0]["image"].startswith("plimsoll-runner:")
    alone = render({"caches": {"enabled": True, "namespaces": ["bench"]}, "image": {"pullPolicy": "Always"}})
    (container,) = pod(alone)["containers"]
    assert container["image"].startswith("plimsoll-operator:")
    assert container["imagePullPolicy"] == "Always"


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
    assert container["args"] == ["caches", "--switch=/node/drop_caches", "--allow=bench"]
    assert in_namespace(found) == {"DaemonSet", "NetworkPolicy", "Service", "ServiceAccount"}
    assert [volume["name"] for volume in pod(found)["volumes"]] == ["tmp", "switch"]


def test_the_key_of_the_administrator_is_of_the_named_secret(everything: Rendering) -> None:
    sources = next(one for one in pod(everything)["volumes"] if one["name"] == "ceph")["projected"]["sources"]
    assert [source["secret"]["name"] for source in sources if "secret" in source] == ["administrator"]
    configuration = everything.one("ConfigMap", f"{NAME}-ceph")["data"]["ceph.conf"]
    assert "mon_host = 192.0.2.1,192.0.2.2:3300\n" in configuration
