"""How what a run made in Rook's namespace goes, and when it has to stay for now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from plimsoll.api.status import format_time
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.rook.cluster import ClusterFact, inactive_groups
from plimsoll.lifecycle.rook.facts import MAX_CHARACTERS, WORDS, RookFact

_LONG_SECONDS = 180.0
"""Rook removes a pool in 3 to 30 s, is back from a restart after 90 s, and asks Ceph once a minute."""

_COMPLAINT_SECONDS = 60.0
"""Ceph raises PG_AVAILABILITY when groups have been inactive for `mon_pg_stuck_threshold`. Source: Ceph 18.2."""

_LOOK_AT_ROOK = "look whether Rook's operator runs, and at its log"
_BRING_BACK = "bring the OSDs back (`ceph health detail` names the groups)"


def why_held(
    pool: RookFact, cluster: ClusterFact | None, *, groups_answered: bool, ended: datetime | None, now: datetime
) -> Fact | None:
    """Return why a pool may not be deleted yet; None if it may.

    Rook runs `rbd pool stats` first, without a time limit, and one worker serves all pools: on inactive placement
    groups that command hangs, and no other pool of the cluster is created, changed or deleted until they are active.

    `groups_answered`: the teardown Job has just listed the pool's objects, which takes all of its groups. Otherwise
    Rook must have asked Ceph since the run `ended`, because what it says is up to a minute old; and unless all is well
    then, once more when Ceph would have complained of groups that were inactive at that time.
    """
    if cluster is None:
        return None
    name = f"CephBlockPool {pool.child.namespace}/{pool.child.name}"
    if inactive := inactive_groups(cluster):
        message = (
            f"{name} is not deleted while {inactive}: that would stop Rook's pool controller for everybody. It goes on "
            f"by itself when they are active; {_BRING_BACK}, or delete the CephBlockPool yourself if none of them is "
            "its own"
        )
        return Fact(holds=False, reason="PlacementGroupsInactive", message=message)
    if groups_answered or cluster.checked is None:
        return None
    patience = timedelta(seconds=_COMPLAINT_SECONDS if cluster.checks else 0.0)
    if ended is not None and cluster.checked > ended + patience:
        return None
    message = (
        f"{name} is deleted when Rook has asked Ceph again whether all placement groups are active; the last time was "
        f"{format_time(cluster.checked)}"
    )
    late = ended is not None and (now - ended).total_seconds() > _LONG_SECONDS
    return Fact(holds=False, reason="InProgress", message=f"{message}; {_LOOK_AT_ROOK}" if late else message)


def removal_fact(left: Sequence[RookFact], now: datetime, inactive: str = "") -> Fact:
    """Return what of a run is still to go in Rook's namespace, and what keeps it there.

    `inactive`: the placement groups for which that has to wait, as a clause; empty if for none.
    """
    held = next((fact for fact in left if fact.blocked), None)
    if held is not None:
        where = f"{held.child.namespace}/{held.child.name}"
        message = (
            f"Rook does not delete {held.child.kind} {where}: {held.blocked}; see what is in it, for instance with "
            f"`rbd ls {held.child.name}`, and remove it if nobody needs it"
        )
        return Fact(holds=False, reason=f"{WORDS[held.child.kind]}DeletionBlocked", message=message)
    names = ", ".join(f"{fact.child.kind} {fact.child.name}" for fact in left)
    warning = next((f" ({fact.warning[:MAX_CHARACTERS]})" for fact in left if fact.warning), "")
    message = f"Rook is removing {names}{warning}"
    if inactive:
        message = f"{message}, and waits for Ceph: {inactive}; {_BRING_BACK}"
        return Fact(holds=False, reason="PlacementGroupsInactive", message=message)
    since = min((fact.deleted for fact in left if fact.deleted is not None), default=now)
    if (now - since).total_seconds() > _LONG_SECONDS:
        message = f"{message} since {format_time(since)}; {_LOOK_AT_ROOK}: a pool that it cannot delete holds up others"
    return Fact(holds=False, reason="InProgress", message=message)
