"""Whose orders the helpers fulfil, and how large they may be. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.lifecycle.run import ANY_NAMESPACE
from plimsoll.protocol.helpers import LABEL_RUN_NAMESPACE, LABEL_RUN_UID, BurnOrder


def namespace_of(username: str) -> str | None:
    """Return the namespace of a ServiceAccount, `system:serviceaccount:NAMESPACE:NAME`; None for another user."""
    match username.split(":"):
        case ["system", "serviceaccount", namespace, name] if namespace and name:
            return namespace
        case _:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The service of a helper for the pods of runs, and the chart's value with the namespaces that may use it."""

    action: str
    value: str


DROPPING = Service(action="drop caches", value="caches.namespaces")
BURNING = Service(action="run kube-burner", value="kubeBurner.namespaces")


def refusal_of(username: str, service: Service, allowed: Collection[str]) -> str:
    """Return why a user may not use a service of the allowed namespaces, and the remedy; empty if the user may."""
    namespace = namespace_of(username)
    if namespace is None:
        return f"{username} is not a ServiceAccount; use the token of a run's pod"
    if namespace in allowed or ANY_NAMESPACE in allowed:
        return ""
    return (
        f"runs in namespace {namespace} may not {service.action}; ask the administrator to add it to the chart's "
        f"{service.value}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an administrator allows."""

    allowed: Collection[str]  # namespaces whose ServiceAccounts may order, or `*` for all
    max_objects: int  # PVCs that exist at the same time
    max_qps: int  # requests per second, and at once
    max_volume_size: int  # bytes of a PVC


def class_refusal(storage_class: Mapping[str, Any] | None, order: BurnOrder, namespace: str) -> str:
    """Return why an order, which anybody with a token may send, may not use its StorageClass; empty if it may."""
    name = f"StorageClass {order.storage_class}"
    labels = storage_class["metadata"].get("labels") or {} if storage_class is not None else {}
    owner = (labels.get(LABEL_RUN_UID, order.run_uid), labels.get(LABEL_RUN_NAMESPACE, namespace))
    if storage_class is None or owner != (order.run_uid, namespace):
        return f"{name} does not exist, or belongs to another run; name another one"
    if storage_class.get("reclaimPolicy") == "Retain":
        return f"{name} has reclaimPolicy Retain, which would leave the volumes behind; name one with Delete"
    return ""


@dataclass(slots=True)
class Turns:
    """At most one drop at a time, and `min_seconds` from the end of one to the beginning of the next."""

    min_seconds: float = 2.0
    _is_taken: bool = False
    _ended: float = float("-inf")

    def take(self, now: float) -> float:
        """Take a turn and return 0, or return how long to wait before the next attempt."""
        if self._is_taken:
            return self.min_seconds
        wait = self._ended + self.min_seconds - now
        if wait > 0:
            return wait
        self._is_taken = True
        return 0.0

    def end(self, now: float) -> None:
        self._is_taken, self._ended = False, now
