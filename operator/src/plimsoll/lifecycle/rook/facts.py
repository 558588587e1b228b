"""What Rook says of the objects that a run made there, and of the pools that it found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from plimsoll.lifecycle.children import Child, Object, child_of
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.lifecycle.rook.render import BLOCK_POOL, CEPH_CLIENT
from plimsoll.plan.document import CephTarget

_READY = "Ready"
_FAILED = "Failure"
WORDS = {BLOCK_POOL: "Pool", CEPH_CLIENT: "User"}
"""What reasons of conditions call Rook's kinds."""

MAX_CHARACTERS = 500
"""Of a warning that a message repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RookFact:
    """A CephBlockPool or CephClient.

    Attributes:
        ready: Rook has done what its present specification asks for.
        phase: as Rook says it; empty before its first word.
        warning: the newest warning about it; empty if there is none.
        blocked: why Rook does not delete it, in Rook's words; empty if nothing is said to hinder that.
        secret: the Secret that a user's key is in; empty until it is known, and of a pool.
        deleted: when its deletion was asked for; None if it was not.

    """

    child: Child
    ready: bool
    phase: str
    warning: str
    blocked: str
    secret: str
    deleted: datetime | None

    @property
    def failed(self) -> bool:
        """Tell whether Rook gave up on it for now. It tries again, so this may pass."""
        return self.phase == _FAILED


def rook_fact(obj: Object, warnings: Mapping[str, str]) -> RookFact:
    """Read a CephBlockPool or CephClient. `warnings` are by UID: what an earlier object of its name met is not its."""
    status = obj.get("status") or {}
    current = status.get("observedGeneration") == obj["metadata"].get("generation")
    info = status.get("info") or {}
    deleted = obj["metadata"].get("deletionTimestamp")
    return RookFact(
        child=child_of(obj),
        ready=status.get("phase") == _READY and current and not deleted,
        phase=str(status.get("phase", "")),
        warning=warnings.get(obj["metadata"]["uid"], ""),
        blocked=_blocked(status),
        secret=str(info.get("secretName", "")),
        deleted=datetime.fromisoformat(deleted) if deleted else None,
    )


def readiness_fact(target: CephTarget, facts: Iterable[RookFact]) -> Fact:
    """Return whether the pools and users that are made for a run are ready, and if not what is wrong with the first."""
    found = {(fact.child.kind, fact.child.name): fact for fact in facts}
    for kind, name in _wanted(target):
        fact = found.get((kind, name))
        if fact is None:
            return Fact(holds=False, reason=f"{WORDS[kind]}NotReady", message=f"{kind} {name} is not made yet")
        if not fact.ready:
            reason = f"{WORDS[kind]}{'Failed' if fact.failed else 'NotReady'}"
            return Fact(holds=False, reason=reason, message=_waiting(fact))
    return Fact(holds=True, reason="Ready", message=f"Rook says that pool {' and '.join(target.pools)} can be used")


def why_not_existing(target: CephTarget, found: Iterable[Object]) -> str:
    """Return why a run may not use the existing pools it names, given all CephBlockPools there; empty if it may."""
    pools = {obj["metadata"]["name"]: obj for obj in found}
    for name in target.pools:
        if name not in pools:
            there = ", ".join(sorted(pools)[:10]) or "none"
            return f"CephBlockPool {name} is not there; those that are: {there}"
        annotations = pools[name]["metadata"].get("annotations") or {}
        if annotations.get(ALLOW_BENCHMARKS) != "true":
            return (
                f"CephBlockPool {name} is not given to benchmarks; whoever is responsible for it may say so with "
                f'`kubectl annotate cephblockpool {name} {ALLOW_BENCHMARKS}="true"` in its namespace'
            )
        status = pools[name].get("status") or {}
        if status.get("phase") != _READY or "deletionTimestamp" in pools[name]["metadata"]:
            return f"CephBlockPool {name} is {status.get('phase') or 'not known to Rook yet'}; wait until it is Ready"
    return ""


def _wanted(target: CephTarget) -> Iterable[tuple[str, str]]:
    if target.rook is None:
        return
    if target.made is not None:
        yield from ((BLOCK_POOL, pool) for pool in target.pools)
    yield from ((CEPH_CLIENT, user) for user in (target.conductor_user, target.agent_user))


def _waiting(fact: RookFact) -> str:
    """Return what is said of an object that is not ready, and where to look further."""
    what = f"{fact.child.kind} {fact.child.namespace}/{fact.child.name}"
    if fact.child.deleting:
        return f"{what} is being deleted by somebody; delete the run and create it anew"
    because = f": {fact.warning[:MAX_CHARACTERS]}" if fact.warning else ""
    if not fact.phase:
        return (
            f"Rook has not said anything of {what} yet{because}; look whether its operator runs, and whether another "
            "pool that cannot be deleted holds it up"
        )
    if fact.failed:
        return f"{what} failed{because}; Rook tries again, and its operator's log says why it did not succeed"
    if fact.phase == _READY:
        return f"{what}: Rook has not done what its present specification asks for"
    return f"{what} is {fact.phase}{because}"


def _blocked(status: Object) -> str:
    """Return the message of the condition that is true: of the two that Rook writes the other one says nothing."""
    conditions = status.get("conditions") or ()
    return "; ".join(
        str(condition.get("message", ""))
        for condition in conditions
        if str(condition.get("type", "")).endswith("DeletionIsBlocked") and condition.get("status") == "True"
    )
