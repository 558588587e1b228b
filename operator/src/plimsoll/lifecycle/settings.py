"""The operator's settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.api.storage import NamespacedName

ANY_NAMESPACE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burning:
    """What runs may do with kube-burner."""

    helper: NamespacedName  # Service of the helper that runs it
    namespaces: tuple[str, ...]  # namespaces whose runs may use it, or `*` for all
    max_objects: int  # PVCs of a run at the same time
    max_qps: int  # requests per second, and at once
    max_volume_size: int  # bytes of a PVC


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that decisions depend on, which an administrator makes for all runs."""

    runner_image: str  # image of conductor and agents; frozen into the plan of each run
    namespace: str = "plimsoll-system"  # the operator's, with the runs' teardown records, keyrings and Jobs
    # `namespace/name` of a CephCluster -> namespaces whose runs may use it, or `*` for all.
    rook_clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # `namespace/name` of a CephCluster -> options of its OSDs that runs may set.
    rook_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Service of the helpers that drop the caches of nodes; None if there are none.
    cache_helper: NamespacedName | None = None
    cache_namespaces: tuple[str, ...] = ()  # namespaces whose runs may use them, or `*` for all
    burning: Burning | None = None  # None if no run may use kube-burner
    osd_bench: bool = False  # whether runs may load OSDs directly, bypassing pools
    # How long a run may block others on its target while it does not measure: suspended, in total between two measured
    # trials, or after its end until it is cleaned up.
    hold_seconds: int = 3600
    image_pull_policy: str = "IfNotPresent"  # of conductor and agents
    port: int = 8443  # of a conductor
    metrics_port: int = 8081  # of a conductor, for Prometheus
    metrics_from: tuple[Mapping[str, Any], ...] = ()  # who may scrape it, as peers of a NetworkPolicy; empty for none
    max_client_restarts: int = 5  # processes that a client may lose before the run fails
    conductor_restarts: int = 6  # pods that a conductor may lose

    def allows(self, cluster: NamespacedName, namespace: str) -> bool:
        """Whether runs in a namespace may use a Rook cluster."""
        allowed = self.rook_clusters.get(f"{cluster.namespace}/{cluster.name}", ())
        return namespace in allowed or ANY_NAMESPACE in allowed

    def allows_option(self, cluster: NamespacedName, name: str) -> bool:
        """Whether runs that may use a Rook cluster may set an option of its OSDs."""
        return name in self.rook_options.get(f"{cluster.namespace}/{cluster.name}", ())

    def caches_problem(self, namespace: str) -> str:
        """Return why runs in a namespace may not drop caches, and what the administrator can do; empty if they may."""
        namespaces = None if self.cache_helper is None else self.cache_namespaces
        return _problem("dropping caches", "drop caches", "caches", namespaces, namespace)

    def burning_problem(self, namespace: str) -> str:
        """Return why runs in a namespace may not use kube-burner, and the remedy; empty if they may."""
        namespaces = self.burning.namespaces if self.burning is not None else None
        return _problem("kube-burner", "use kube-burner", "kubeBurner", namespaces, namespace)


def _problem(feature: str, use: str, chart_value: str, namespaces: Sequence[str] | None, namespace: str) -> str:
    """`namespaces`: those whose runs may use the feature; None if it is not enabled."""
    ask = "ask the operator's administrator to"
    if namespaces is None:
        return f"{feature} is not enabled; {ask} set the chart's {chart_value}.enabled"
    if {namespace, ANY_NAMESPACE} & {*namespaces}:
        return ""
    return f"runs in namespace {namespace} may not {use}; {ask} add it to the chart's {chart_value}.namespaces"
