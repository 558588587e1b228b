"""The cluster that a run is measured in, as far as it is known before the run starts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plimsoll.api.environment import PlatformEnvironment, StorageClassDescription
from plimsoll.lifecycle.children import Object, label
from plimsoll.lifecycle.wording import listed

_MAX_PARAMETERS = 32
MAX_CHARACTERS = 256
"""Maximum length of a text in a plan's environment."""

_MAX_NAMES = 10

_POD_SECURITY = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A cluster.

    Attributes:
        kubernetes: its version: `v1.34.0`.
        storage_classes: by name.
        storage: what the provider of the run's storage found; None if it has no survey.
        pod_security: the level that the run's namespace enforces; empty if it has no label.

    """

    kubernetes: str
    storage_classes: Mapping[str, Object]
    storage: object | None = None
    pod_security: str = ""


def platform_of(
    kubernetes: str,
    storage_classes: Iterable[Object],
    storage: object | None = None,
    namespace: Object | None = None,
) -> Platform:
    """Return a cluster from its version, its StorageClasses, what the storage provider found, and the namespace."""
    classes = {obj["metadata"]["name"]: obj for obj in storage_classes}
    pod_security = label(namespace, _POD_SECURITY) if namespace else ""
    return Platform(kubernetes=kubernetes, storage_classes=classes, storage=storage, pod_security=pod_security)


def environment_of(platform: Platform, storage_class: str | None) -> PlatformEnvironment:
    """Return what a plan records about a cluster and the run's StorageClass, bounded in size."""
    return PlatformEnvironment(
        kubernetes=platform.kubernetes[:MAX_CHARACTERS],
        storage_class=_described(platform.storage_classes[storage_class]) if storage_class is not None else None,
    )


def listed_storage_classes(platform: Platform) -> str:
    """Return the names of the StorageClasses, for a message."""
    return listed(sorted(platform.storage_classes), most=_MAX_NAMES) or "none"


def _described(obj: Object) -> StorageClassDescription:
    parameters = sorted((obj.get("parameters") or {}).items())[:_MAX_PARAMETERS]
    return StorageClassDescription(
        name=obj["metadata"]["name"],
        provisioner=obj.get("provisioner"),
        parameters={key: str(value)[:MAX_CHARACTERS] for key, value in parameters},
        reclaim_policy=obj.get("reclaimPolicy"),
        volume_binding_mode=obj.get("volumeBindingMode"),
        allow_volume_expansion=obj.get("allowVolumeExpansion"),
    )
