"""What the administrator and the author of a run set for pods."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.pods import PodTemplate
from plimsoll.api.run import Clients, Conductor
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import client, conductor, teardown
from plimsoll.lifecycle.run import PodDefaults
from support.specs import SETTINGS, ceph_run, made_for_ceph

_DISK = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
_ZONE = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}


def affinity(term: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


DEFAULTS: dict[str, Any] = {
    "labels": {"team": "platform", "cost": "bench"},
    "annotations": {"linkerd.io/inject": "enabled"},
    "nodeSelector": {"pool": "bench", "disk": "any", "kubernetes.io/os": "windows"},
    "tolerations": [{"key": "bench", "operator": "Exists"}],
    "affinity": affinity(_ZONE),
    "resources": {"limits": {"cpu": "4", "memory": "3Gi"}},
    "priorityClassName": "low",
    "runtimeClassName": "trusted",
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "NO_PROXY", "value": ".svc"}, {"name": "https_proxy", "value": "http://a:3128"}],
}
TEMPLATE: dict[str, Any] = {
    "labels": {"team": "storage"},
    "annotations": {"k8s.v1.cni.cncf.io/networks": "rook-ceph/public"},
    "tolerations": [{"key": "night", "operator": "Exists"}],
    "affinity": affinity(_DISK),
    "priorityClassName": "high",
    "runtimeClassName": "kata",
    "imagePullSecrets": [{"name": "mirror"}],
    "env": [{"name": "https_proxy", "value": "http://b:3128"}],
}
SPEC: dict[str, Any] = {
    "pod_template": PodTemplate.model_validate(TEMPLATE),
    "clients": Clients(node_selector={"disk": "ssd"}, resources={"requests": {"cpu": "2"}}),
    "conductor": Conductor(node_selector={"disk": "none"}, resources={"requests": {"memory": "2Gi"}}),
}


@pytest.fixture(scope="module")
def templates() -> dict[str, Any]:
    """Return the pod templates of a run on Ceph by component."""
    made = ceph_run("rook-images")
    document, record = made.run.document, teardown.record_of(made.plan)
    assert document is not None
    assert record is not None
    run = replace(made.run, document=document.model_copy(update={"spec": document.spec.model_copy(update=SPEC)}))
    settings = replace(SETTINGS, pod_defaults=PodDefaults.model_validate(DEFAULTS))
    jobs = {
        naming.CLIENT: client.job(run, made.plan, settings, client=0, attempt=0),
        naming.CONDUCTOR: conductor.job(run, made.plan, settings),
        naming.TEARDOWN: teardown.job(run, record, settings),
    }
    return {component: job["spec"]["template"] for component, job in jobs.items()}


@pytest.mark.parametrize(
    ("component", "disk", "requests", "limits"),
    [
        ("client", "ssd", {"cpu": "2"}, {"memory": "3Gi"}),
        ("conductor", "none", {"memory": "2Gi"}, {"cpu": "4"}),
        ("teardown", "any", {}, {"cpu": "4", "memory": "3Gi"}),
    ],
)
def test_a_run_overrides_the_administrators_defaults_except_for_its_teardown(
    templates: dict[str, Any], component: str, disk: str, requests: Any, limits: Any
) -> None:
    spec, metadata = templates[component]["spec"], templates[component]["metadata"]
    (container,) = spec["containers"]
    is_of_run = component != "teardown"
    assert (metadata["labels"]["team"], metadata["labels"]["cost"]) == ("storage" if is_of_run else "platform", "bench")
    assert metadata["labels"]["sidecar.istio.io/inject"] == "false"
    assert metadata["annotations"]["linkerd.io/inject"] == "enabled"
    assert ("k8s.v1.cni.cncf.io/networks" in metadata["annotations"]) == is_of_run
    assert spec["nodeSelector"] == {"pool": "bench", "disk": disk, "kubernetes.io/os": "linux"}
    keys = [toleration["key"] for toleration in spec["tolerations"] if "/" not in toleration["key"]]
    assert keys == (["bench", "night"] if is_of_run else ["bench"])
    assert spec["affinity"] == affinity(_DISK if is_of_run else _ZONE)
    assert spec["priorityClassName"] == ("high" if is_of_run else "low")
    assert spec["runtimeClassName"] == ("kata" if is_of_run else "trusted")
    assert spec["imagePullSecrets"] == [
        {"name": name} for name in (["registry", "mirror"] if is_of_run else ["registry"])
    ]
    proxies = {
        variable["name"]: variable["value"] for variable in container["env"] if "PROXY" in variable["name"].upper()
    }
    assert proxies == {"NO_PROXY": ".svc", "https_proxy": f"http://{'b' if is_of_run else 'a'}:3128"}
    resources = container["resources"]
    assert (resources.get("requests", {}), resources["limits"]) == (requests, limits)


def test_without_any_setting_pods_opt_out_of_sidecars_and_run_on_linux() -> None:
    for job in (obj for obj in made_for_ceph(ceph_run("rook-images")) if obj["kind"] == "Job"):
        template = job["spec"]["template"]
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
        assert template["metadata"]["annotations"]["linkerd.io/inject"] == "disabled"
        assert template["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
