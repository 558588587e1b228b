"""The status of a CephCluster: whether it can be measured now.

It is up to a minute old. During a run, the conductor queries Ceph itself.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from plimsoll.api.run import Gates
from plimsoll.lifecycle.children import Object

_OK = "HEALTH_OK"
_WARN = "HEALTH_WARN"
_INACTIVE = "PG_AVAILABILITY"
"""Ceph's health check for inactive placement groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFact:
    """A CephCluster.

    Attributes:
        ready: whether it was ever ready; later reconciles do not reset that.
        health: Ceph's health; empty before Rook has queried it.
        checks: failing health check -> its message.
        versions: Ceph versions of all daemons; more than one during an upgrade.
        version: of Ceph, short form; empty if unknown.
        message: of Rook, about what it is doing.
        checked: when Rook last queried Ceph's health; None if unknown.

    """

    namespace: str
    name: str
    ready: bool
    health: str
    checks: Mapping[str, str]
    versions: tuple[str, ...]
    version: str
    message: str
    checked: datetime | None


def cluster_fact(obj: Object) -> ClusterFact:
    """Read a CephCluster."""
    status = obj.get("status") or {}
    ceph = status.get("ceph") or {}
    details = ceph.get("details") or {}
    conditions = status.get("conditions") or ()
    return ClusterFact(
        namespace=obj["metadata"]["namespace"],
        name=obj["metadata"]["name"],
        ready=any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions),
        health=str(ceph.get("health", "")),
        checks={name: str(check.get("message", "")) for name, check in details.items() if check.get("severity") != _OK},
        versions=tuple(sorted((ceph.get("versions") or {}).get("overall") or ())),
        version=str((status.get("version") or {}).get("version", "")),
        message=str(status.get("message", "")),
        checked=_time(ceph.get("lastChecked")),
    )


def inactive_groups(cluster: ClusterFact | None) -> str:
    """Return the inactive placement groups that Rook last reported, as a clause; empty if there were none."""
    if cluster is None or _INACTIVE not in cluster.checks:
        return ""
    where = f"CephCluster {cluster.namespace}/{cluster.name}"
    return f"placement groups of {where} are inactive ({_INACTIVE}: {cluster.checks[_INACTIVE]})"


def why_unusable(cluster: ClusterFact, gates: Gates) -> str:
    """Return why a cluster cannot be measured now, and what to do about it; empty if it can."""
    what = f"CephCluster {cluster.namespace}/{cluster.name}"
    if not cluster.ready:
        return f"{what} is not ready: {cluster.message or 'Rook has not reported a status yet'}"
    if len(cluster.versions) > 1:
        versions = "; ".join(cluster.versions)
        return f"{what} runs different versions of Ceph ({versions}); wait for its upgrade to finish"
    # Rook creates neither pools nor users for a cluster in such a state, whatever the gates.
    if cluster.health not in {_OK, _WARN}:
        return f"{what} is in {cluster.health or 'an unknown state'}{_because(cluster.checks)}"
    left = {name: text for name, text in cluster.checks.items() if name not in gates.accepted_health_checks}
    if cluster.health == _WARN and gates.ceph_health == "Required" and (left or not cluster.checks):
        return (
            f"{what} is in {cluster.health}{_because(left)}; repair it, list accepted checks in "
            "gates.acceptedHealthChecks, or set gates.cephHealth to Ignored"
        )
    return ""


def _time(text: object) -> datetime | None:
    with suppress(ValueError):
        time = datetime.fromisoformat(str(text))
        return time if time.tzinfo else None
    return None


def _because(checks: Mapping[str, str]) -> str:
    return f" ({'; '.join(f'{name}: {text}' for name, text in sorted(checks.items()))})" if checks else ""
