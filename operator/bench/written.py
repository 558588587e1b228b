"""What an API server and Kubernetes' controllers add to objects: who wrote which fields, and statuses.

As kube-apiserver 1.34 and kubelets write it, so that the objects are as large as real ones.
"""

import json
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Lists of whose entries the API server keeps the writers one by one, and by which fields it knows them apart."""
_WRITTEN_METADATA = {"annotations", "finalizers", "generateName", "labels", "ownerReferences"}
_NODE_ADDRESS = "10.128.0.17"
_CREATORS = {"Pod": "kube-controller-manager"}
_STATUS_WRITERS = {
    "Pod": "kubelet",
    "Job": "kube-controller-manager",
    "PersistentVolumeClaim": "kube-controller-manager",
}


def managed(obj: Mapping[str, Any], now: str) -> list[Document]:
    """Return who wrote what of an object."""
    of_spec = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "status"}}
    of_spec["metadata"] = {key: value for key, value in obj["metadata"].items() if key in _WRITTEN_METADATA}
    found = [_entry(obj, _CREATORS.get(obj["kind"], "plimsoll"), of_spec, now)]
    writer = _STATUS_WRITERS.get(obj["kind"])
    if writer and "status" in obj:
        found.append(_entry(obj, writer, {"status": obj["status"]}, now) | {"subresource": "status"})
    return found


def running_pod(address: str, now: str, image: str) -> Document:
    """Return the status of a pod that runs."""
    conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    container = {
        "name": "agent",
        "state": {"running": {"startedAt": now}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"{image}@sha256:{'0' * 64}",
        "containerID": f"containerd://{'0' * 64}",
        "started": True,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/mnt/{n}", "readOnly": True} for n in range(4)],
        "user": {"linux": {"uid": 65532, "gid": 65532, "supplementalGroups": [65532]}},
    }
    return {
        "phase": "Running",
        "conditions": [
            {"type": name, "status": "True", "observedGeneration": 1, "lastProbeTime": None, "lastTransitionTime": now}
            for name in conditions
        ],
        "hostIP": _NODE_ADDRESS,
        "hostIPs": [{"ip": _NODE_ADDRESS}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


def running_job(now: str) -> Document:
    """Return the status of a Job whose pod runs."""
    return {"startTime": now, "active": 1, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}}


def bound_claim(claim: Document) -> None:
    """Bind a claim to a volume that was made for it."""
    claim["metadata"]["annotations"] = {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.beta.kubernetes.io/storage-provisioner": "csi.example.com",
        "volume.kubernetes.io/selected-node": "node-0",
        "volume.kubernetes.io/storage-provisioner": "csi.example.com",
    }
    claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    claim["spec"] = {**claim["spec"], "volumeName": f"pvc-{claim['metadata']['uid']}"}
    claim["status"] = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}


def _entry(obj: Mapping[str, Any], manager: str, part: Mapping[str, Any], now: str) -> Document:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{name}": _fields(value, name) for name, value in part.items()},
    }


def _fields(value: object, name: str = "") -> Document:
    """Return the names of all fields in a value."""
    if isinstance(value, dict):
        return {".": {}, **{f"f:{part}": _fields(of, part) for part, of in value.items()}}
    if isinstance(value, list) and name in _KEYS:
        return {".": {}, **{_place(entry, _KEYS[name]): _fields(entry) for entry in value}}
    return {}


def _place(entry: Document, keys: tuple[str, ...]) -> str:
    return "k:" + json.dumps({key: entry.get(key, "TCP") for key in keys}, separators=(",", ":"))
