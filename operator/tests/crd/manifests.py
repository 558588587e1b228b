"""Manifests of runs, good and bad: what the API server and the models must agree on."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue

REMOVED: Final = "<removed>"
"""In place of a value: the field is left out."""

Wrong = Iterable[tuple[Any, str]]
"""Values, each with what is said of it."""

LONGER = "a" * 64
"""One character more than a label may have."""
BY_HAND = "the models hand it to Kubernetes as it is, which would refuse it later"

FIO = "spec.workloads.0.fio"
VOLUME = "spec.storage.volume"
PRECONDITION = "spec.prepare.precondition"
ROOK: Mapping[str, JsonValue] = {
    "cluster": {"namespace": "rook-ceph", "name": "rook-ceph"},
    "pool": {"replicated": {"size": 3}},
}
IMAGE: Mapping[str, JsonValue] = {"size": "1Gi", "access": "LibRBD"}
"""A volume that all Ceph clusters can give."""
CEPH: Mapping[str, JsonValue] = {
    "monitors": ["192.0.2.1:6789"],
    "user": "plimsoll",
    "keyringSecret": {"name": "keyring"},
    "pool": {"name": "bench"},
}

SMALL: Mapping[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "run", "namespace": "default"},
    "spec": {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
        "clients": {"count": 2},
        "workloads": [{"name": "w", "fio": {}}],
    },
}

_TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
FULL: Mapping[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "rbd-size3", "namespace": "default"},
    "spec": {
        "storage": {
            "rook": {
                "cluster": {"namespace": "rook-ceph", "name": "rook-ceph"},
                "pool": {
                    "replicated": {"size": 3},
                    "failureDomain": "host",
                    "deviceClass": "ssd",
                    "crushRoot": "default",
                    "compressionMode": "none",
                    "placementGroups": 64,
                },
                "config": [
                    {"who": "osd", "name": "osd_mclock_profile", "value": "high_client_ops"},
                    {"who": "osd/class:ssd", "name": "osd_memory_target", "value": "4Gi"},
                    {"who": "osd.3", "name": "osd_memory_target", "value": "8Gi"},
                ],
            },
            "volume": {"size": "20Gi", "sharing": "PerClient", "mode": "Block", "access": "PVC", "rbdCache": False},
        },
        "clients": {
            "count": 8,
            "spread": "Required",
            "networkBytesPerSecond": "1250M",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 2}},
            "nodeSelector": {"storage": "ceph"},
        },
        "conductor": {"resources": {"limits": {"memory": "2Gi"}}, "nodeSelector": {"storage": "none"}},
        "podTemplate": {
            "labels": {"team": "storage"},
            "annotations": {"k8s.v1.cni.cncf.io/networks": "rook-ceph/public"},
            "tolerations": [{"key": "bench", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _TERM}],
                }
            },
            "priorityClassName": "low",
            "runtimeClassName": "kata",
            "imagePullSecrets": [{"name": "registry"}],
            "env": [{"name": "NO_PROXY", "value": ".svc"}],
        },
        "workloads": [
            {
                "name": "random-write",
                "fio": {"pattern": "randwrite", "blockSize": ["4Ki", "64Ki"], "ioDepth": [1, 16, 64], "jobs": 1},
                "clients": [1, 2, 4, 8],
                "runtimeSeconds": 60,
                "rampSeconds": 10,
            },
            {
                "name": "mixed",
                "caches": "Warm",
                "disturb": {"afterSeconds": 10, "osds": {"count": 1, "action": "Out"}, "forSeconds": 20},
                "fio": {
                    "pattern": "randrw",
                    "blockSize": [4096],
                    "ioDepth": [1],
                    "engine": "psync",
                    "jobs": 4,
                    "readPercent": 70,
                    "fsyncEvery": 32,
                    "rateIops": 1000,
                    "directIo": False,
                },
            },
        ],
        "repetitions": 5,
        "prepare": {
            "prefill": True,
            "precondition": {"blockSize": "64Ki", "seconds": 600},
            "discard": True,
            "dropCaches": False,
            "settleSeconds": 10,
            "fillPercent": 90,
            "perTrial": "NewDataSet",
        },
        "gates": {
            "cephHealth": "Required",
            "acceptedHealthChecks": ["MON_DISK_LOW"],
            "pauseScrub": True,
            "stopOn": ["SLOW_OPS"],
        },
        "limits": {"fillPercent": 60},
        "timeouts": {"provisionSeconds": 600, "readySeconds": 300, "totalSeconds": 14400},
        "cleanup": "Always",
        "results": "Delete",
        "ttlSecondsAfterFinished": 3600,
        "suspend": False,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as it differs from a small good one.

    Attributes:
        name: what it is about.
        changes: path such as `spec.workloads.0.name` -> what stands there.
        says: what the API server's message must contain if it refuses the manifest; the field among it.
        model_accepts: why the models accept what the API server refuses; empty if they do not.
        server_accepts: why the API server accepts what the models refuse; empty if it does not.
        base: the good manifest.

    """

    name: str
    changes: Mapping[str, Any]
    says: tuple[str, ...] = ()
    model_accepts: str = ""
    server_accepts: str = ""
    base: Mapping[str, Any] = field(default_factory=lambda: SMALL)

    @property
    def document(self) -> dict[str, Any]:
        return changed(self.base, self.changes)


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a document with other values at some paths."""
    copy = dict(deepcopy(document))
    for path, value in changes.items():
        *way, last = path.split(".")
        place: Any = copy
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if value is REMOVED:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return copy


def refused(name: str, path: str, value: Any, *says: str, model_accepts: str = "") -> Manifest:
    return Manifest(name=name, changes={path: value}, says=says, model_accepts=model_accepts)


def integers(low: int, high: int) -> tuple[tuple[Any, str], ...]:
    """Return what is below and above the bounds of a whole number, and what is none."""
    return (
        (low - 1, f"greater than or equal to {low}"),
        (high + 1, f"less than or equal to {high}"),
        (str(low), "must be of type integer"),
    )


def each(path: str, wrong: Wrong) -> list[Manifest]:
    return [refused(f"{path} {repr(value)[:40]}", path, value, indexed(path), words) for value, words in wrong]


def bounds(path: str, low: int, high: int) -> list[Manifest]:
    return each(path, (*integers(low, high), (low + 0.5, "must be of type integer")))


def choice(path: str, *values: str) -> list[Manifest]:
    return [refused(f"{path} unknown", path, "other", indexed(path), *(f'"{value}"' for value in values))]


def flag(path: str) -> list[Manifest]:
    return [refused(f"{path} text", path, "yes", indexed(path), "must be of type boolean")]


def missing(path: str) -> Manifest:
    return refused(f"{path} missing", path, REMOVED, indexed(path), "Required value")


def unknown(path: str) -> Manifest:
    return refused(f"{path} unknown", path, 1, f'unknown field "{indexed(path)}"')


def indexed(path: str) -> str:
    """Return a path as the API server writes it, with indices of lists in brackets."""
    return re.sub(r"\.(\d+)", r"[\1]", path)
