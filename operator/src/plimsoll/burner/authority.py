"""Whose orders the helper fulfils, and how large they may be. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.caches.authority import ANY_NAMESPACE, namespace_of
from plimsoll.protocol.helpers import LABEL_RUN_NAMESPACE, LABEL_RUN_UID, BurnOrder, excess_of
from plimsoll.tools.kube_burner.job import KubeBurnerParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an administrator allows.

    Attributes:
        allowed: namespaces whose ServiceAccounts may order, or `*` for all.
        max_objects: PVCs that exist at the same time.
        max_qps: requests per second, and at once.
        max_volume_size: bytes of a PVC.

    """

    allowed: Collection[str]
    max_objects: int
    max_qps: int
    max_volume_size: int


def refusal(username: str, limits: Limits) -> str:
    """Return why a user may not order anything, and the remedy; empty if the user may."""
    namespace = namespace_of(username)
    if namespace is None:
        return f"{username} is not a ServiceAccount; use the token of a run's client"
    if namespace in limits.allowed or ANY_NAMESPACE in limits.allowed:
        return ""
    return (
        f"runs in namespace {namespace} may not run kube-burner; ask the administrator to add it to the chart's "
        "kubeBurner.namespaces"
    )


def excess(parameters: KubeBurnerParameters, limits: Limits) -> str:
    """Return which limit an order exceeds; empty if it exceeds none."""
    return excess_of(
        parameters.limited,
        max_objects=limits.max_objects,
        max_qps=limits.max_qps,
        max_volume_size=limits.max_volume_size,
    )


def class_refusal(found: Mapping[str, Any] | None, order: BurnOrder, namespace: str) -> str:
    """Return why an order from a namespace may not use its StorageClass, None if it is absent; empty if it may.

    The operator has checked that before, but whoever has a token can send an order without it.
    """
    name = f"StorageClass {order.storage_class}"
    if found is None:
        return f"{name} does not exist; name another one"
    if found.get("reclaimPolicy") == "Retain":
        return f"{name} has reclaimPolicy Retain, which would leave the volumes behind; name one with Delete"
    labels = found["metadata"].get("labels") or {}
    owner = (labels.get(LABEL_RUN_UID, order.run_uid), labels.get(LABEL_RUN_NAMESPACE, namespace))
    if owner != (order.run_uid, namespace):
        return f"{name} belongs to another BenchmarkRun; name another one"
    return ""
