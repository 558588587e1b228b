"""The configuration and the templates of kube-burner, as it reads them from files.

They are JSON, which is YAML too. kube-burner removes `{{...}}` from each line of a template before it reads the kind
(greedily), so every field has its own line. Source: kube-burner 2.7, `prepareTemplate`, `config/types.go`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.quantity import format_quantity
from plimsoll.tools.kube_burner.parameters import KubeBurnerParameters

CONFIG_FILE = "config.yml"
COLLECTED = "collected"
"""Directory with the files of the indexer."""

_CLAIM_FILE = "pvc.yml"
_POD_FILE = "pod.yml"
_NUMBER = "{{.Iteration}}-{{.Replica}}"
_USER = 65532
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
"""Label of the namespaces; the chart's admission policy requires it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kube-burner creates its objects, and with what.

    Attributes:
        namespace: name of the namespace; with a churn it is followed by a number. It is the name of the job as well,
            because kube-burner deletes the namespaces of earlier jobs of that name.
        pod_image: of the pods, which only sleep.
        labels: of namespaces, PVCs and pods.

    """

    namespace: str
    storage_class: str
    pod_image: str
    labels: Mapping[str, str] = field(default_factory=dict)


def files_of(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, str]:
    """Return the files of a job by name."""
    files = {CONFIG_FILE: _config(parameters, place), _CLAIM_FILE: _claim(parameters, place)}
    if parameters.pods:
        files[_POD_FILE] = _pod(place)
    return {name: f"{json.dumps(content, indent=1)}\n" for name, content in files.items()}


def _config(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, object]:
    measurements = ["pvcLatency", *(["podLatency"] if parameters.pods else [])]
    indexer = {"type": "local", "metricsDirectory": COLLECTED}
    return {
        # The helper deletes the namespaces, after it has looked at what is not ready.
        "global": {"gc": False, "measurements": [{"name": name} for name in measurements]},
        "metricsEndpoints": [{"indexer": indexer}],
        "jobs": [_job(parameters, place)],
    }


def _job(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, object]:
    templates = [_CLAIM_FILE, *([_POD_FILE] if parameters.pods else [])]
    return {
        "name": place.namespace,
        "jobType": "create",
        "jobIterations": parameters.objects,
        "qps": parameters.qps,
        "burst": parameters.burst_requests,
        "namespace": place.namespace,
        "namespaceLabels": {**place.labels, **_RESTRICTED},
        # A churn deletes and creates whole namespaces, so that a pod and its PVC go together.
        "namespacedIterations": parameters.churn is not None,
        "podWait": False,
        "waitWhenFinished": True,
        # It would start a DaemonSet that pulls images, which are on the nodes already.
        "preLoadImages": False,
        "maxWaitTimeout": f"{parameters.ready_seconds}s",
        "jobPause": f"{parameters.pause_seconds}s",
        "objects": [{"objectTemplate": name, "replicas": 1} for name in templates],
        **_churn(parameters),
    }


def _churn(parameters: KubeBurnerParameters) -> Mapping[str, object]:
    if parameters.churn is None:
        return {}
    cycles, percent = parameters.churn.cycles, parameters.churn.percent
    churn = {"mode": "namespaces", "cycles": cycles, "percent": percent, "duration": "0s", "delay": "0s"}
    return {"churnConfig": churn}


def _claim(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, object]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": place.storage_class,
        "resources": {"requests": {"storage": format_quantity(parameters.volume_size)}},
    }
    return _object("PersistentVolumeClaim", f"pvc-{_NUMBER}", place, spec)


def _pod(place: Place) -> Mapping[str, object]:
    security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "sleep",
        "image": place.pod_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "86400"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": security,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    profile = {"type": "RuntimeDefault"}
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "seccompProfile": profile},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"pvc-{_NUMBER}"}}],
    }
    return _object("Pod", f"pod-{_NUMBER}", place, spec)


def _object(kind: str, name: str, place: Place, spec: Mapping[str, object]) -> Mapping[str, object]:
    metadata = {"name": name, "labels": dict(place.labels)}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
