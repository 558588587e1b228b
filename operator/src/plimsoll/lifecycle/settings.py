"""The operator's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from plimsoll.api.model import Model, Size
from plimsoll.api.storage import NamespacedName

ANY_NAMESPACE = "*"


def _read_name(value: object) -> object:
    """Split `namespace/name`, as the chart writes it."""
    return dict(zip(("namespace", "name"), value.split("/", 1), strict=False)) if isinstance(value, str) else value


class Helper(Model):
    """The Service of a helper, and the namespaces whose runs may use it, or `*` for all."""

    service: Annotated[NamespacedName, BeforeValidator(_read_name)]
    namespaces: tuple[str, ...]


class Burning(Helper):
    """The helper that runs kube-burner, and how much a run may do with it."""

    max_objects: Annotated[int, Field(ge=1)]  # PVCs of a run at the same time
    max_qps: Annotated[int, Field(ge=1)]  # requests per second, and at once
    max_volume_size: Annotated[Size, Field(ge=1)]  # bytes of a PVC


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that decisions depend on, which an administrator makes for all runs."""

    runner_image: str  # image of conductor and agents; frozen into the plan of each run
    # Of the runs' teardown records, with their keyrings and Jobs: nothing else is in it.
    teardown_namespace: str = "plimsoll-teardown"
    # `namespace/name` of a CephCluster -> namespaces whose runs may use it, or `*` for all.
    rook_clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # `namespace/name` of a CephCluster -> options of its OSDs that runs may set.
    rook_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    caches: Helper | None = None  # the helpers that drop the caches of nodes; None if there are none
    burning: Burning | None = None  # None if no run may use kube-burner
    platform_assigns_user: bool = False  # whether pods leave user and group to the platform, as OpenShift requires
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
        return _problem("dropping caches", "drop caches", "caches", self.caches, namespace)

    def burning_problem(self, namespace: str) -> str:
        """Return why runs in a namespace may not use kube-burner, and the remedy; empty if they may."""
        return _problem("kube-burner", "use kube-burner", "kubeBurner", self.burning, namespace)


def _problem(feature: str, use: str, chart_value: str, helper: Helper | None, namespace: str) -> str:
    ask = "ask the operator's administrator to"
    if helper is None:
        return f"{feature} is not enabled; {ask} set the chart's {chart_value}.enabled"
    if {namespace, ANY_NAMESPACE} & {*helper.namespaces}:
        return ""
    return f"runs in namespace {namespace} may not {use}; {ask} add it to the chart's {chart_value}.namespaces"
