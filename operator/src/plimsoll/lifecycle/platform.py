"""The cluster that a run is measured in, as far as it is known before anything runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.lifecycle.children import Object, label

_MAX_PARAMETERS = 32
_MAX_CHARACTERS = 256
_NAMED = 10

_POD_SECURITY = "pod-security.kubernetes.io/enforce"

_FIELDS = ("provisioner", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion")
"""Of a StorageClass, beside its parameters. Source: Kubernetes, storage.k8s.io/v1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RookPlatform:
    """What is there of the Rook cluster that a run names.

    Attributes:
        problem: why it cannot be looked at: the API server does not know Rook's kinds; empty if it does.
        cluster: the CephCluster; None if there is none.
        pools: all CephBlockPools beside it.
        osds: the Deployments of its OSDs.

    """

    problem: str = ""
    cluster: Object | None = None
    pools: tuple[Object, ...] = ()
    osds: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A cluster. `kubernetes` is its version as it says it, `v1.34.0`; StorageClasses are by name.

    `rook` is None of a run that names no Rook cluster. `pod_security` is what the run's namespace enforces; empty if it
    does not say.
    """

    kubernetes: str
    storage_classes: Mapping[str, Object]
    rook: RookPlatform | None = None
    pod_security: str = ""


def platform_of(
    kubernetes: str,
    storage_classes: Iterable[Object],
    rook: RookPlatform | None = None,
    namespace: Object | None = None,
) -> Platform:
    """Return the cluster of that version with those StorageClasses, as the run's namespace sees it."""
    classes = {obj["metadata"]["name"]: obj for obj in storage_classes}
    pod_security = label(namespace, _POD_SECURITY) if namespace else ""
    return Platform(kubernetes=kubernetes, storage_classes=classes, rook=rook, pod_security=pod_security)


def environment_of(platform: Platform, storage_class: str | None) -> dict[str, JsonValue]:
    """Return what a plan keeps of a cluster and of the StorageClass that its run uses, bounded in size."""
    environment: dict[str, JsonValue] = {"kubernetes": platform.kubernetes[:_MAX_CHARACTERS]}
    if storage_class is not None:
        environment["storageClass"] = _described(platform.storage_classes[storage_class])
    if platform.rook is not None and platform.rook.cluster is not None:
        version = (platform.rook.cluster.get("status", {}).get("version") or {}).get("version", "")
        environment["rook"] = {"cephVersion": str(version)[:_MAX_CHARACTERS]}
    return environment


def names_in(platform: Platform) -> str:
    """Return the StorageClasses that there are, for a message."""
    names = sorted(platform.storage_classes)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}" if names else "none"


def _described(obj: Object) -> JsonValue:
    described: dict[str, JsonValue] = {"name": obj["metadata"]["name"]}
    described.update({field: obj[field] for field in _FIELDS if field in obj})
    parameters = sorted((obj.get("parameters") or {}).items())[:_MAX_PARAMETERS]
    described["parameters"] = {key: str(value)[:_MAX_CHARACTERS] for key, value in parameters}
    return described
