"""The parameters of kube-burner, and the files of its job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Flag, Integer, Model, Size
from plimsoll.api.quantity import format_quantity
from plimsoll.tools.base import ToolParameters

_MAX_OBJECTS = 5000
_DEFAULT_VOLUME = 64 * 2**20

MAX_SECONDS = 4 * 3600
"""How long one measurement may take, during which no other run can use kube-burner."""


class Churn(Model):
    """Deletes a part of the claims and pods, with their namespaces, and creates them again.

    Attributes:
        percent: Part of the claims that each cycle deletes and creates again, at least one claim.
        cycles: Number of cycles.

    """

    percent: Annotated[Integer, Field(ge=1, le=100)] = 10
    cycles: Annotated[Integer, Field(ge=1, le=20)] = 1

    def claims(self, objects: int) -> int:
        """Return how many claims all cycles create again. Source: kube-burner 2.7, `churnNamespaces`."""
        return self.cycles * max(1, self.percent * objects // 100)


class KubeBurnerParameters(ToolParameters):
    """kube-burner: creates PVCs of the run's StorageClass, and pods that mount them, and times them.

    Runs outside the run's namespace, and needs the administrator's permission. runtimeSeconds does not end it, but a
    trial that takes more than eleven times rampSeconds plus runtimeSeconds is aborted.

    Attributes:
        objects: Axis: number of PVCs to create. The administrator limits it.
        qps: Axis: PVCs and pods to create per second, together. The administrator limits it.
        burst: How many may be created at once before that rate applies; as many as qps if absent.
        churn: Deletes a part of them afterwards and creates it again; such PVCs are timed like all others.
        volume_size: Size of each PVC, from 1Mi to 1Ti. The administrator limits it.
        pods: Whether each PVC gets a pod that mounts it. With false, the StorageClass must bind immediately.
        ready_seconds: How long to wait for all PVCs to be bound and all pods to be ready, once they are created. With
            some that are not, the result is Invalid.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"objects", "qps"})
    objects: Annotated[Integer, Field(ge=1, le=_MAX_OBJECTS, description="Number of PVCs.")] = 10
    qps: Annotated[Integer, Field(ge=1, le=1000, description="PVCs and pods per second.")] = 20
    burst: Annotated[Integer, Field(ge=1, le=_MAX_OBJECTS)] | None = None
    churn: Churn | None = None
    volume_size: Annotated[Size, Field(ge=2**20, le=2**40)] = _DEFAULT_VOLUME
    pods: Flag = True
    ready_seconds: Annotated[Integer, Field(ge=1, le=3600)] = 300

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        if self.limit_seconds > MAX_SECONDS:
            remedy = (
                f"may take {self.limit_seconds} s with these objects, qps and churn.cycles, which is more than "
                f"{MAX_SECONDS} s; lower it, or one of them, or raise qps"
            )
            raise SpecError([Problem(field="readySeconds", value=str(self.ready_seconds), remedy=remedy)])
        return self

    @property
    def limit_seconds(self) -> int:
        """How long kube-burner may take: to create everything, and to wait after each creation."""
        cycles = self.churn.cycles if self.churn else 0
        requests = self.claims * (2 if self.pods else 1)
        return requests // self.qps + (1 + cycles) * (self.ready_seconds + 120) + self.pause_seconds

    @property
    def pause_seconds(self) -> int:
        """How long kube-burner waits for late events of pods, unmeasured; those that it misses are in the cluster."""
        return 10 if self.pods else 0

    @property
    def burst_requests(self) -> int:
        """Requests that may be sent at once."""
        return self.burst or self.qps

    @property
    def claims(self) -> int:
        """Claims that are created and timed, also by the churn."""
        return self.objects + (self.churn.claims(self.objects) if self.churn else 0)

    @property
    def limited(self) -> Mapping[str, int]:
        """PVCs that exist at the same time, requests per second and at once, and bytes of a PVC."""
        burst, size = self.burst_requests, self.volume_size
        return {"objects": self.objects, "qps": self.qps, "burst": burst, "volumeSize": size}

    def label(self) -> str:
        """Return a short description: `200 PVCs with pods, 20/s`."""
        what = f"{self.objects} PVCs{' with pods' if self.pods else ''}"
        size = "" if self.volume_size == _DEFAULT_VOLUME else f" of {format_quantity(self.volume_size)}"
        churn = f", churn {self.churn.percent} % x {self.churn.cycles}" if self.churn else ""
        return f"{what}{size}, {self.qps}/s{churn}"


CONFIG_FILE = "config.yml"
COLLECTED = "collected"
"""Directory with the files of the indexer."""

_CLAIM_FILE = "pvc.yml"
_POD_FILE = "pod.yml"
_NUMBER = "{{.Iteration}}-{{.Replica}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kube-burner creates its objects, and with what."""

    # Name of the namespace; with a churn it is followed by a number. It is the name of the job as well, because kube-
    # burner deletes the namespaces of earlier jobs of that name.
    namespace: str
    storage_class: str
    pod_image: str  # of the pods, which only sleep
    labels: Mapping[str, str] = field(default_factory=dict)  # of namespaces, PVCs and pods


def files_of(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, str]:
    """Return the files of a job by name."""
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": place.storage_class,
        "resources": {"requests": {"storage": format_quantity(parameters.volume_size)}},
    }
    files = {
        CONFIG_FILE: _config(parameters, place),
        _CLAIM_FILE: _object("PersistentVolumeClaim", f"pvc-{_NUMBER}", place, claim),
    }
    if parameters.pods:
        files[_POD_FILE] = _pod(place)
    return {name: f"{json.dumps(content, indent=1)}\n" for name, content in files.items()}


def _config(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, object]:
    measurements = ["pvcLatency", *(["podLatency"] if parameters.pods else [])]
    templates = [_CLAIM_FILE, *([_POD_FILE] if parameters.pods else [])]
    job: dict[str, object] = {
        "name": place.namespace,
        "jobType": "create",
        "jobIterations": parameters.objects,
        "qps": parameters.qps,
        "burst": parameters.burst_requests,
        "namespace": place.namespace,
        # The chart's admission policy requires the last one.
        "namespaceLabels": {**place.labels, "pod-security.kubernetes.io/enforce": "restricted"},
        # A churn deletes and creates whole namespaces, so that a pod and its PVC go together.
        "namespacedIterations": parameters.churn is not None,
        "podWait": False,
        "waitWhenFinished": True,
        # It would start a DaemonSet that pulls images, which are on the nodes already.
        "preLoadImages": False,
        "maxWaitTimeout": f"{parameters.ready_seconds}s",
        "jobPause": f"{parameters.pause_seconds}s",
        "objects": [{"objectTemplate": name, "replicas": 1} for name in templates],
    }
    if churn := parameters.churn:
        sizes = {"cycles": churn.cycles, "percent": churn.percent}
        job["churnConfig"] = {"mode": "namespaces", **sizes, "duration": "0s", "delay": "0s"}
    return {
        # The helper deletes the namespaces, after it has looked at what is not ready.
        "global": {"gc": False, "measurements": [{"name": name} for name in measurements]},
        "metricsEndpoints": [{"indexer": {"type": "local", "metricsDirectory": COLLECTED}}],
        "jobs": [job],
    }


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
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # With the image's user, or the one that the platform assigns.
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"pvc-{_NUMBER}"}}],
    }
    return _object("Pod", f"pod-{_NUMBER}", place, spec)


def _object(kind: str, name: str, place: Place, spec: Mapping[str, object]) -> Mapping[str, object]:
    metadata = {"name": name, "labels": dict(place.labels)}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
