"""Whose orders the helper fulfils, and how large they may be. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from plimsoll.caches.authority import ANY_NAMESPACE, namespace_of
from plimsoll.protocol.burning import excess_of
from plimsoll.tools.kube_burner import KubeBurnerParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an administrator allows.

    Attributes:
        allowed: namespaces whose ServiceAccounts may order, or `*` for all.
        max_objects: PVCs that exist at the same time.
        max_qps: requests per second, and at once.

    """

    allowed: Collection[str]
    max_objects: int
    max_qps: int


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
    return excess_of(parameters.limited, max_objects=limits.max_objects, max_qps=limits.max_qps)
