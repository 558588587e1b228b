"""The chart as Helm renders it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.apiserver import read_yamls

CHART = Path(__file__).parents[3] / "charts" / "plimsoll"
LOCAL_IMAGES = CHART / "ci" / "local-values.yaml"
NAMESPACE = "plimsoll-system"
MONITORING = ("ServiceMonitor", "PodMonitor", "PrometheusRule")

Document = dict[str, Any]

EVERYTHING: Document = {
    "crds": {"keep": False},
    "deleteRunsOnUninstall": {"enabled": True},
    "rook": {
        "clusters": {"rook-ceph/a": ["bench"], "rook-ceph/b": ["*"], "other/c": ["bench", "lab"]},
        "options": {"rook-ceph/a": ["osd_mclock_profile", "osd_memory_target"]},
    },
    "disturb": {"rook-ceph/a": ["*"], "bench/key-1": []},
    "ceph": {"keyrings": {"bench": ["plimsoll-keyring"], "lab": ["one", "two"]}},
    "osdBench": {"enabled": True},
    "caches": {
        "enabled": True,
        "namespaces": ["bench"],
        "ceph": {"monitors": ["192.0.2.1", "192.0.2.2:3300"], "keyringSecret": "administrator"},
        "nodeSelector": {"bench": "true"},
    },
    "kubeBurner": {"enabled": True, "namespaces": ["bench"], "maxObjects": 50, "nodeSelector": {"bench": "true"}},
    "admission": {"allowedRepositories": ["registry.example.com/earlier/runner"], "exemptUsers": ["backup"]},
    "imagePullSecrets": [{"name": "registry"}],
    "serviceAccount": {"annotations": {"who": "me"}},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
    "networkPolicies": {
        "dnsPorts": [53, 5353],
        "cephNetworks": ["192.0.2.0/24"],
        "conductorMetricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "c"}}}],
        "operator": {"enabled": True, "metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    },
    "metrics": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True, "interval": "1m30s"},
        "rules": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True},
    },
}
"""Values with which all that the chart can make is made."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """What `helm template` made: objects, or a complaint."""

    text: str
    complaint: str

    @property
    def objects(self) -> list[Document]:
        assert not self.complaint, self.complaint
        return read_yamls(self.text)

    def of_kind(self, kind: str) -> list[Document]:
        return [one for one in self.objects if one["kind"] == kind]

    def one(self, kind: str, name: str = "plimsoll") -> Document:
        (found,) = [one for one in self.of_kind(kind) if one["metadata"]["name"] == name]
        return found


def helm(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run Helm; its absence fails the test."""
    program = os.environ.get("PLIMSOLL_HELM", "")
    if not os.access(program, os.X_OK):
        pytest.fail(f"PLIMSOLL_HELM={program} is no program; run `make test-real`", pytrace=False)
    return subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)


def render(values: Document | None = None, *, release: str = "plimsoll", serves_monitoring: bool = True) -> Rendering:
    """Render the chart with local images and these values, for a cluster with or without the Prometheus Operator."""
    arguments = ["template", release, str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.31.0"]
    if serves_monitoring:
        arguments += [f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in MONITORING]
    done = helm(*arguments, "--values", str(LOCAL_IMAGES), "--values", "-", text=yaml.safe_dump(values or {}))
    return Rendering(text=done.stdout, complaint=done.stderr if done.returncode else "")


def pod_specs(rendering: Rendering) -> Iterator[Document]:
    """Yield the pods of the chart except those that mount a file of their node, which `test_chart_caches.py` checks."""
    for one in rendering.objects:
        if one["kind"] == "DaemonSet":
            continue
        if one["kind"] == "Pod":
            yield one["spec"]
        elif "template" in one.get("spec", {}):
            yield one["spec"]["template"]["spec"]
