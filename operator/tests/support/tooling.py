"""What others make of Plimsoll's objects: Helm, promtool, PromQL, the Pod Security Standards and kstatus."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.metrics.catalogue import METRICS, MetricType
from support.apiserver import read_yamls

CHART = Path(__file__).parents[3] / "charts" / "plimsoll"
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
    "ceph": {"keyrings": {"bench": ["plimsoll-keyring"], "lab": ["one", "two"]}},
    "osdBench": {"enabled": True},
    "caches": {
        "enabled": True,
        "namespaces": ["bench"],
        "ceph": {"monitors": ["192.0.2.1", "192.0.2.2:3300"], "keyringSecret": "administrator"},
        "nodeSelector": {"bench": "true"},
    },
    "kubeBurner": {"enabled": True, "namespaces": ["bench"], "maxObjects": 50, "nodeSelector": {"bench": "true"}},
    "admission": {"pods": True},
    "imagePullSecrets": [{"name": "registry"}],
    "serviceAccount": {"annotations": {"who": "me"}},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        "conductorMetricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "c"}}}],
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
    """Render the chart with these values, for a cluster with or without the Prometheus Operator."""
    arguments = ["template", release, str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.31.0"]
    if serves_monitoring:
        arguments += [f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in MONITORING]
    done = helm(*arguments, "--values", "-", text=yaml.safe_dump(values or {}))
    return Rendering(text=done.stdout, complaint=done.stderr if done.returncode else "")


def pod_specs(rendering: Rendering) -> Iterator[Document]:
    """Yield the pods of the chart except the privileged ones, which `test_chart_caches.py` checks."""
    for one in rendering.objects:
        if one["kind"] == "DaemonSet":
            continue
        if one["kind"] == "Pod":
            yield one["spec"]
        elif "template" in one.get("spec", {}):
            yield one["spec"]["template"]["spec"]


def promtool(*arguments: str | Path) -> str:
    """Run it and return what it says; what it does not accept fails the test, and so does its absence."""
    path = shutil.which(os.environ.get("PLIMSOLL_PROMTOOL", ""))
    if path is None:
        message = (
            "PLIMSOLL_PROMTOOL names no promtool; run `make test-all`, or PLIMSOLL_PROMTOOL=$(hack/tool.sh promtool)"
        )
        pytest.fail(message, pytrace=False)
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


FOREIGN = {
    "ALERTS": {"alertname", "alertstate", "severity", "namespace", "run", "suite"},
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds_total": set[str](),
}
"""What the chart reads besides, with its labels: of Prometheus itself, and of every program."""

TARGET_LABELS = {"job", "instance", "pod", "cluster"}
"""What Prometheus adds to every series; `cluster` if somebody makes it so. `namespace` is a label of Plimsoll's too."""

_STRING = re.compile(r'"[^"]*"')
_WORD = re.compile(r"\b[a-zA-Z_]\w*\b(?!\s*\()")
_SELECTOR = re.compile(r"\b([a-zA-Z_]\w*)\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_LISTED = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)")
_MADE = re.compile(r'label_join\(.*,\s*"(\w+)",\s*" · "')
_PARTS = {"_bucket": {"le"}, "_count": set[str](), "_sum": set[str]()}


def labels_by_name() -> dict[str, set[str]]:
    """Return the name of every series that may be read, with its labels."""
    found = {name: set(labels) for name, labels in FOREIGN.items()}
    for metric in METRICS:
        if metric.kind is MetricType.HISTOGRAM:
            found |= {metric.name + part: {*metric.labels, *labels} for part, labels in _PARTS.items()}
        else:
            found[metric.name] = set(metric.labels)
    return found


def names_of(expr: str) -> set[str]:
    bare = _STRING.sub('""', expr)
    return {word for word in _WORD.findall(bare) if word.startswith("plimsoll_") or word in FOREIGN}


def problems_of(expr: str) -> Iterator[str]:
    """Yield what an expression reads that is not there."""
    known = labels_by_name()
    names = names_of(expr)
    if not names:
        yield "it reads no series"
    yield from (f"there is no {name}" for name in names - known.keys())
    for name, matchers in _SELECTOR.findall(expr):
        named = set(_MATCHER.findall(_STRING.sub('""', matchers)))
        yield from (f"{name} has no label {label}" for label in named - known.get(name, set()) - TARGET_LABELS)
    made = set(_MADE.findall(expr)) | TARGET_LABELS
    there = made.union(*(known.get(name, set()) for name in names), {"namespace"})
    for listed in _LISTED.findall(expr):
        yield from (f"nothing has a label {label}" for label in set(re.findall(r"\w+", listed)) - there)


def counters_without_rate(expr: str) -> set[str]:
    """Return the counters that an expression reads as they are: they grow for ever, and begin anew with a process."""
    counters = {metric.name for metric in METRICS if metric.kind is MetricType.COUNTER}
    rated = set(re.findall(r"\b(?:rate|increase)\((\w+)", expr))
    growing = {name for name in names_of(expr) if name in counters or name.endswith(("_bucket", "_count", "_sum"))}
    return growing - rated


Pod = Mapping[str, Any]

_HOST = ("hostNetwork", "hostPID", "hostIPC")
_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
}
_SECCOMP = {"RuntimeDefault", "Localhost"}


def baseline(spec: Pod) -> Iterator[str]:
    """Yield what the baseline profile forbids about a pod."""
    yield from (field for field in _HOST if spec.get(field))
    yield from (f"volume {volume['name']} of the host" for volume in spec["volumes"] if "hostPath" in volume)
    if _seccomp(spec) == "Unconfined":
        yield "pod: unconfined"
    sysctls = spec.get("securityContext", {}).get("sysctls", [])
    yield from (f"pod: sysctl {one['name']}" for one in sysctls if one["name"] not in _SAFE_SYSCTLS)
    for container in _containers(spec):
        security = container.get("securityContext", {})
        if security.get("privileged"):
            yield f"{container['name']}: privileged"
        if security.get("capabilities", {}).get("add"):
            yield f"{container['name']}: more capabilities"
        if security.get("procMount", "Default") != "Default":
            yield f"{container['name']}: procMount"
        if any(port.get("hostPort") for port in container.get("ports", [])):
            yield f"{container['name']}: port of the host"


def restricted(spec: Pod) -> Iterator[str]:
    """Yield what the restricted profile forbids about a pod."""
    yield from baseline(spec)
    for volume in spec["volumes"]:
        yield from (f"volume {volume['name']}: {kind}" for kind in volume.keys() - {"name"} - _VOLUMES)
    pod = spec.get("securityContext", {})
    for container in _containers(spec):
        own = container.get("securityContext", {})
        security = {**pod, **own}
        name = container["name"]
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: privilege escalation"
        if security.get("runAsNonRoot") is not True:
            yield f"{name}: not runAsNonRoot"
        if security.get("runAsUser") == 0:
            yield f"{name}: uid 0"
        if security.get("seccompProfile", {}).get("type") not in _SECCOMP:
            yield f"{name}: seccomp"
        if "ALL" not in own.get("capabilities", {}).get("drop", []):
            yield f"{name}: keeps capabilities"


def _containers(spec: Pod) -> list[Mapping[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def _seccomp(spec: Pod) -> str:
    return str(spec.get("securityContext", {}).get("seccompProfile", {}).get("type", ""))


def kstatus(obj: Mapping[str, Any]) -> str:
    """Return `Terminating`, `InProgress`, `Failed` or `Current`."""
    metadata, status = obj["metadata"], obj.get("status", {})
    if "deletionTimestamp" in metadata:
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata["generation"]:
        return "InProgress"
    true = {entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"}
    if "Reconciling" in true:
        return "InProgress"
    if "Stalled" in true:
        return "Failed"
    return "Current"
