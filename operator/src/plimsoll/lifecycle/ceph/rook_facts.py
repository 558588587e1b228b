"""What Rook reports: about the pools, file systems and users of a run, and about the CephCluster."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import Gates
from plimsoll.api.storage import NamespacedName
from plimsoll.ceph import gate
from plimsoll.ceph.versions import mixture_problem, versions_that_matter
from plimsoll.lifecycle.ceph.rook_render import BLOCK_POOL, CEPH_CLIENT, FILE_SYSTEM
from plimsoll.lifecycle.children import Child, Object, child_of, time_of
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import age_seconds
from plimsoll.plan.document import CephTarget

READY = "Ready"  # phase of an object that Rook has applied
FAILURE = "Failure"  # phase after an attempt that failed; Rook tries again
FIRST_KEY = "1"  # what Rook counts for a key that was never rotated
_INACTIVE = "PG_AVAILABILITY"  # Ceph's health check for inactive placement groups
_EXTERNAL_ACCESS = "Secret rook-ceph-mon and ConfigMap rook-ceph-mon-endpoints of the external cluster"
POOL_KINDS = (BLOCK_POOL, FILE_SYSTEM)  # the kinds of objects that pools belong to
_REPORT_SECONDS = 60  # within which Rook usually reports on a new object; on pools, after it has created them
MAX_WARNING_CHARACTERS = 500  # maximum length of a warning in a message


@dataclass(frozen=True, slots=True)
class RookKind:
    """What messages and conditions say about objects of a kind."""

    not_ready: Reason
    failed: Reason
    deletion_blocked: Reason
    listing: str  # command that lists the content of the object called `name`
    worker: str = ""  # what a deletion that hangs would block in Rook


_POOL = (Reason.POOL_NOT_READY, Reason.POOL_FAILED, Reason.POOL_DELETION_BLOCKED)
_FILES = (Reason.FILE_SYSTEM_NOT_READY, Reason.FILE_SYSTEM_FAILED, Reason.FILE_SYSTEM_DELETION_BLOCKED)
_USER = (Reason.USER_NOT_READY, Reason.USER_FAILED, Reason.USER_DELETION_BLOCKED)
ROOK_KINDS: Mapping[str, RookKind] = {
    BLOCK_POOL: RookKind(*_POOL, "rbd ls {name}", "pool controller for all pools"),
    FILE_SYSTEM: RookKind(*_FILES, "ceph fs subvolume ls {name} csi", "file system controller for all file systems"),
    CEPH_CLIENT: RookKind(*_USER, "ceph auth get client.{name}"),
}
"""All kinds of objects that a run has in Rook's namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RookFact:
    """A CephBlockPool, CephFilesystem or CephClient."""

    child: Child
    created: datetime
    ready: bool  # whether Rook has applied its current specification
    phase: str  # from its status; empty before Rook has written one
    warning: str  # the newest warning about it; empty if there is none
    blocked: str  # Rook's message why it does not delete it; empty if nothing blocks that
    secret: str  # the Secret with a user's key; empty until it is known, and for other kinds
    deleted: datetime | None  # when its deletion was requested; None if it was not
    key_generation: str = ""  # of a user's key, which rises when the key is rotated; empty if Rook does not count


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFact:
    """A CephCluster."""

    namespace: str
    name: str
    ready: bool  # whether it was ever ready; later reconciles do not reset that. If external: whether Rook is connected
    external: bool  # whether Rook only connects to it; others run its daemons, and it has no OSDs here
    health: str  # Ceph's health; empty before Rook has queried it
    checks: Mapping[str, str]  # health check that may be unmuted -> its severity
    messages: Mapping[str, str]  # failing health check, even if it is muted -> its message
    versions: tuple[str, ...]  # of Ceph, of the daemons that a measurement depends on; several in an upgrade
    version: str  # of Ceph, short form; empty if unknown
    message: str  # of Rook, about what it is doing
    checked: datetime | None  # when Rook last queried Ceph's health; None if unknown

    @property
    def ceph_version(self) -> str:
        """The version of the daemons, or one of them during an upgrade, in Ceph's or Rook's words; empty if unknown."""
        return next(iter(self.versions), self.version)


def rook_fact(obj: Object, warnings: Mapping[str, str]) -> RookFact:
    """Read one of these objects. `warnings` are by UID, so those about an earlier object do not count."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    deleted = time_of(metadata.get("deletionTimestamp"))
    is_current = status.get("observedGeneration") == metadata.get("generation")
    # Conditions DeletionIsBlocked and PoolDeletionIsBlocked.
    blocking = [
        str(condition.get("message", ""))
        for condition in status.get("conditions") or ()
        if str(condition.get("type", "")).endswith("DeletionIsBlocked") and condition.get("status") == "True"
    ]
    return RookFact(
        child=child_of(obj),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        ready=status.get("phase") == READY and is_current and not deleted,
        phase=str(status.get("phase", "")),
        warning=warnings.get(metadata["uid"], ""),
        blocked="; ".join(blocking),
        secret=str((status.get("info") or {}).get("secretName", "")),
        deleted=deleted,
        key_generation=str((status.get("cephx") or {}).get("keyGeneration", "")),
    )


def readiness_fact(
    target: CephTarget, facts: Iterable[RookFact], kinds: Collection[str] = (*ROOK_KINDS,), *, now: datetime
) -> Fact:
    facts_by_name = {(fact.child.kind, fact.child.name): fact for fact in facts}
    for kind, name in own_objects(target):
        if kind not in kinds:
            continue
        fact = facts_by_name.get((kind, name))
        if fact is None:
            return Fact.false(ROOK_KINDS[kind].not_ready, f"{kind} {name} is not created yet")
        if not fact.ready:
            reason = ROOK_KINDS[kind].failed if fact.phase == FAILURE else ROOK_KINDS[kind].not_ready
            return Fact.false(reason, _waiting_message(fact, now))
    name = f"file system {target.file_system.name}" if target.file_system else f"pool {' and '.join(target.pools)}"
    return Fact.true(Reason.READY, f"Rook reports {name} as ready")


def own_objects(target: CephTarget) -> Iterable[tuple[str, str]]:
    if target.rook is None:
        return
    if target.made is not None and target.file_system is not None:
        yield FILE_SYSTEM, target.file_system.name
    elif target.made is not None:
        yield from ((BLOCK_POOL, pool) for pool in target.pools)
    yield from ((CEPH_CLIENT, user) for user in (target.conductor_user, target.agent_user))


def cluster_fact(obj: Object, *, file_system: bool = False) -> ClusterFact:
    """Read a CephCluster; `file_system`: whether a file system is measured, and not only pools."""
    status = obj.get("status") or {}
    ceph = status.get("ceph") or {}
    health = str(ceph.get("health", ""))
    details = ceph.get("details") or {}
    checks = {name: str(check.get("severity", "")) for name, check in details.items()}
    mutes = ((obj.get("spec") or {}).get("healthCheck") or {}).get("muteHealthWarning") or {}
    muted = {name for name, mute in mutes.items() if mute.get("policy") == "mute"}
    checked = None
    with suppress(ValueError):
        checked = datetime.fromisoformat(str(ceph.get("lastChecked")))
    conditions = {(condition.get("type"), condition.get("status")) for condition in status.get("conditions") or ()}
    return ClusterFact(
        namespace=obj["metadata"]["namespace"],
        name=obj["metadata"]["name"],
        ready=bool({("Ready", "True"), ("Connected", "True")} & conditions),
        external=bool(((obj.get("spec") or {}).get("external") or {}).get("enable")),
        health=health,
        checks=gate.reported_checks(health, checks, muted),
        messages={name: str(details[name].get("message", "")) for name in checks if checks[name] != gate.HEALTH_OK},
        versions=versions_that_matter(
            {kind: versions or () for kind, versions in (ceph.get("versions") or {}).items()}, file_system=file_system
        ),
        version=str((status.get("version") or {}).get("version", "")),
        message=str(status.get("message", "")),
        checked=checked if checked and checked.tzinfo else None,
    )


def cluster_name(cluster: NamespacedName | ClusterFact) -> str:
    return f"CephCluster {cluster.namespace}/{cluster.name}"


def inactive_groups(cluster: ClusterFact | None) -> str:
    """Return the inactive placement groups that Rook last reported, as a clause; empty if there were none."""
    if cluster is None or _INACTIVE not in cluster.messages:
        return ""
    return f"placement groups of {cluster_name(cluster)} are inactive ({_INACTIVE}: {cluster.messages[_INACTIVE]})"


def may_lose_groups(cluster: ClusterFact) -> bool:
    """Whether the health shows something after which Ceph may still report inactive placement groups."""
    standing = gate.standing_checks(cluster.health, cluster.checks, frozenset())
    return bool(standing) or any(gate.is_about_state(name) for name in cluster.messages)


def why_unusable(cluster: ClusterFact, gates: Gates) -> str:
    what = cluster_name(cluster)
    if not cluster.ready:
        remedy = f"; check {_EXTERNAL_ACCESS}, and the log of Rook's operator" if cluster.external else ""
        return f"{what} is not ready: {cluster.message or 'Rook has not reported a status yet'}{remedy}"
    if mixture := mixture_problem(what, cluster.versions):
        return mixture
    errors = [name for name, severity in cluster.checks.items() if severity == gate.HEALTH_ERR]
    # Rook ignores HEALTH_ERR if all errors are about keys, which it can replace (since 1.19.9 and 1.20.5).
    is_served = cluster.health == gate.HEALTH_ERR and errors and all(map(gate.is_about_keys, errors))
    if cluster.health not in {gate.HEALTH_OK, gate.HEALTH_WARN} and not is_served:
        state = cluster.health or "in an unknown state"
        checks = f" ({gate.checks_text(cluster.checks, cluster.messages)})" if cluster.checks else ""
        return f"{what} is {state}{checks}; until this changes, Rook creates neither pools nor users in it"
    standing = gate.certain_checks(cluster.health, cluster.checks, frozenset(gates.accepted_health_checks))
    if gates.ceph_health == "Ignored" or not standing:
        return ""
    problem = gate.health_problem(what, cluster.health, standing, cluster.messages)
    return f"{problem}, or set spec.gates.cephHealth to Ignored"


def _waiting_message(fact: RookFact, now: datetime) -> str:
    what = f"{fact.child.kind} {fact.child.place}"
    if fact.child.deleting:
        return f"{what} is being deleted by another user; delete the run and create it again"
    because = f": {fact.warning[:MAX_WARNING_CHARACTERS]}" if fact.warning else ""
    if not fact.phase:
        if not because and age_seconds(fact.created, now) <= _REPORT_SECONDS:
            return f"waiting for Rook to report on {what}"
        remedy = "check that its operator is running, and not blocked by another object that it cannot delete"
        return f"Rook has not reported the status of {what} yet{because}; {remedy}"
    if fact.phase == FAILURE:
        return f"{what} failed{because}; Rook retries, and its operator's log has the details"
    if fact.phase == READY:
        return f"{what}: Rook has not applied its current specification yet"
    return f"{what} is {fact.phase}{because}"
