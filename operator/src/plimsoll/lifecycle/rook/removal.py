"""Removal of a run's objects in Rook's namespace, and when it has to wait."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import format_time
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.rook.cluster import ClusterFact, inactive_groups
from plimsoll.lifecycle.rook.facts import MAX_CHARACTERS, RookFact
from plimsoll.lifecycle.rook.file_system import FILE_SYSTEM
from plimsoll.lifecycle.rook.render import BLOCK_POOL, CEPH_CLIENT

_LONG_SECONDS = 180.0
"""Rook deletes a pool in 3 to 30 s, restarts within 90 s, and queries Ceph once a minute."""

_COMPLAINT_SECONDS = 60.0
"""Ceph raises PG_AVAILABILITY when groups have been inactive for `mon_pg_stuck_threshold`. Source: Ceph 18.2."""

_BLOCKED = {
    BLOCK_POOL: Reason.POOL_DELETION_BLOCKED,
    FILE_SYSTEM: Reason.FILE_SYSTEM_DELETION_BLOCKED,
    CEPH_CLIENT: Reason.USER_DELETION_BLOCKED,
}
_LISTING = {
    BLOCK_POOL: "rbd ls {name}",
    FILE_SYSTEM: "ceph fs subvolume ls {name} csi",
    CEPH_CLIENT: "ceph auth get client.{name}",
}
_WORKERS = {BLOCK_POOL: "pool controller for all pools", FILE_SYSTEM: "file system controller for all file systems"}
_CHECK_ROOK = "check that Rook's operator is running, and its log"
_BRING_BACK = "bring the OSDs back (`ceph health detail` names the groups)"


def deletion_blocker(
    pool: RookFact, cluster: ClusterFact | None, *, groups_answered: bool, ended: datetime | None, now: datetime
) -> Fact | None:
    """Return why a pool or file system cannot be deleted yet; None if it can.

    Rook first runs `rbd pool stats` without a timeout, and one worker serves all pools: with inactive placement groups
    that command hangs, and no other pool of the cluster is created, changed or deleted until they are active. Of a file
    system it lists the subvolumes, which reads its metadata pool.

    `groups_answered`: the teardown Job has just listed the pool's objects, for which all groups must be active.
    Otherwise Rook must have queried Ceph since the run `ended`, because its status is up to a minute old; and, unless
    Ceph was healthy then, again after Ceph would have reported groups that were inactive at that time.
    """
    if cluster is None:
        return None
    kind = pool.child.kind
    name = f"{kind} {pool.child.namespace}/{pool.child.name}"
    if inactive := inactive_groups(cluster):
        message = (
            f"{name} is not deleted while {inactive}: that would block Rook's {_WORKERS[kind]}. The removal continues "
            f"when they are active; {_BRING_BACK}, or delete the {kind} yourself if none of them belongs to it"
        )
        return Fact.false(Reason.PLACEMENT_GROUPS_INACTIVE, message)
    if groups_answered or cluster.checked is None:
        return None
    patience = timedelta(seconds=_COMPLAINT_SECONDS if cluster.checks else 0.0)
    if ended is not None and cluster.checked > ended + patience:
        return None
    message = (
        f"{name} is deleted once Rook has checked again that all placement groups are active (last check: "
        f"{format_time(cluster.checked)})"
    )
    late = ended is not None and (now - ended).total_seconds() > _LONG_SECONDS
    return Fact.false(Reason.IN_PROGRESS, f"{message}; {_CHECK_ROOK}" if late else message)


def removal_fact(left: Sequence[RookFact], now: datetime, inactive: str = "") -> Fact:
    """Return which objects in Rook's namespace are still being deleted, and what delays them.

    `inactive`: the placement groups that delay them, as a clause; empty if none do.
    """
    blocked = next((fact for fact in left if fact.blocked), None)
    if blocked is not None:
        child = blocked.child
        message = (
            f"Rook does not delete {child.kind} {child.namespace}/{child.name}: {blocked.blocked}; list its content, "
            f"for example with `{_LISTING[child.kind].format(name=child.name)}`, and remove what is not needed"
        )
        return Fact.false(_BLOCKED[child.kind], message)
    names = ", ".join(f"{fact.child.kind} {fact.child.name}" for fact in left)
    warning = next((f" ({fact.warning[:MAX_CHARACTERS]})" for fact in left if fact.warning), "")
    message = f"Rook is deleting {names}{warning}"
    if inactive:
        message = f"{message}, and waits because {inactive}; {_BRING_BACK}"
        return Fact.false(Reason.PLACEMENT_GROUPS_INACTIVE, message)
    since = min((fact.deleted for fact in left if fact.deleted is not None), default=now)
    if (now - since).total_seconds() > _LONG_SECONDS:
        message = f"{message} since {format_time(since)}; {_CHECK_ROOK}: a pool that it cannot delete blocks others"
    return Fact.false(Reason.IN_PROGRESS, message)
