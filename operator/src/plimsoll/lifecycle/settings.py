"""What an administrator decides for all runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.api.storage import NamespacedName

ANY_NAMESPACE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's configuration, as far as decisions depend on it.

    Attributes:
        runner_image: image of conductor and agents; frozen into the plan of each run.
        namespace: the operator's own, where a run's teardown record, keyring and Job are.
        rook_clusters: `namespace/name` of a CephCluster -> namespaces whose runs may use it, or `*` for all of them.
        osd_bench: whether runs may load the OSDs themselves, around all pools.
        hold_seconds: how long a run may keep others of its target waiting while it does not measure: while it is
            suspended, in total between two measured trials, or after its end until it is cleaned up.
        image_pull_policy: of their containers.
        port: on which a conductor listens.
        metrics_port: on which it answers Prometheus.
        metrics_from: who may ask it there, as peers of a NetworkPolicy; nobody if there are none.
        max_client_restarts: processes that a client may lose before the run is given up.
        conductor_restarts: pods that a conductor may lose.

    """

    runner_image: str
    namespace: str = "plimsoll-system"
    rook_clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    osd_bench: bool = False
    hold_seconds: int = 3600
    image_pull_policy: str = "IfNotPresent"
    port: int = 8443
    metrics_port: int = 8081
    metrics_from: tuple[Mapping[str, Any], ...] = ()
    max_client_restarts: int = 5
    conductor_restarts: int = 6

    def allows(self, cluster: NamespacedName, namespace: str) -> bool:
        """Tell whether the runs of a namespace may use a Rook cluster."""
        allowed = self.rook_clusters.get(f"{cluster.namespace}/{cluster.name}", ())
        return namespace in allowed or ANY_NAMESPACE in allowed
