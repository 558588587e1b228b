"""The queue: one active run per target, first come, first served. Two runs at once would measure each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from plimsoll.api.status import format_time
from plimsoll.ceph.conf import monitor_keys

LOAD_IS_GONE = frozenset({"Removed", "StorageKept", "NothingMade", "NodeGone", "ClaimedByOthers"})
"""Reasons of the condition CleanedUp with which nothing of a run loads its target any more."""

HELD_UP = frozenset({"WaitingForEarlierRun", "SpecUnreadable", "CephClusterNotReady", "PoolNotReady"})
"""Reasons for which a run that was not admitted yet makes nothing, and so is passed by."""

_NOT_YET = "9999-12-31T23:59:59Z"
"""When a run enters the queue whose resumption the operator has not seen yet: behind all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the queue, as little as the queue needs.

    Attributes:
        targets: what it loads; runs without a common one do not wait for each other. Empty: waits for nobody.
        queued: when it entered the queue, as the API server writes it, which sorts by time: at its creation, or when it
            was resumed after it had lost its place.
        admitted: it may run; that stays unless it is suspended for too long.
        over: it has ended and what it loaded the target with is gone, or it makes nothing for now.
        suspended: it was admitted and rests.
        removal: why what it has on the target is not gone yet although it has ended; empty while it goes on.
        ended: when it ended or was deleted, whichever was later, as the API server writes it; empty while it goes on.

    """

    uid: str
    namespace: str
    name: str
    targets: frozenset[str]
    queued: str
    admitted: bool
    over: bool
    suspended: bool = False
    removal: str = ""
    ended: str = ""


def entry_of(body: Mapping[str, Any]) -> Entry:
    """Return a run's entry, from the run as the API server stores it. Never raises, whatever stands there."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    place = conditions.get("Admitted", {})
    admitted = place.get("status") == "True"
    suspended = bool(body.get("spec", {}).get("suspend", False))
    held_up = not admitted and conditions.get("Succeeded", {}).get("reason") in HELD_UP
    removal = conditions.get("CleanedUp", {}).get("reason", "")
    return Entry(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        targets=_targets_of_document(body.get("spec", {}).get("storage") or {}),
        queued=_queued(metadata["creationTimestamp"], conditions, has_begun=bool(status.get("startTime"))),
        admitted=admitted,
        over=(suspended and not admitted) or held_up or removal in LOAD_IS_GONE,
        suspended=suspended and admitted and not removal,
        removal="" if removal in LOAD_IS_GONE else removal,
        ended=max(status.get("completionTime") or "", metadata.get("deletionTimestamp") or "") if removal else "",
    )


def _queued(created: str, conditions: Mapping[str, Mapping[str, str]], *, has_begun: bool) -> str:
    """Return when a run entered the queue: at its creation, or when it was resumed after it had lost its place."""
    place, suspension = conditions.get("Admitted", {}), conditions.get("Suspended", {})
    if not has_begun or place.get("status") == "True":
        return created
    if suspension.get("status") == "True":
        return _NOT_YET
    return max(created, place.get("lastTransitionTime", ""), suspension.get("lastTransitionTime", ""))


def ahead_of(uid: str, entries: Iterable[Entry], *, now: datetime, hold_seconds: float) -> tuple[str, ...]:
    """Return the runs on the same target that come before one, next first, as `namespace/name`.

    One that has ended holds up the next until its storage is gone or kept, because taking images and pools away is I/O
    as well; but no longer than `hold_seconds`, because anybody can keep something from being removed.
    """
    known = {entry.uid: entry for entry in entries}
    this = known.get(uid)
    if this is None or not this.targets or this.admitted:
        return ()
    rivals = [entry for entry in known.values() if entry.targets & this.targets and not entry.over]
    # As text: what the API server wrote sorts by time, and what cannot be read as a time raises nothing here.
    since = format_time(now - timedelta(seconds=hold_seconds))
    before = [entry for entry in rivals if _turn(entry) < _turn(this) and not "" < entry.ended < since]
    return tuple(_named(entry, hold_seconds) for entry in sorted(before, key=_turn))


def _targets_of_document(storage: Mapping[str, Any]) -> frozenset[str]:
    """Return what a run loads. Of a Ceph cluster without Rook each monitor stands for it: naming one is enough."""
    if rook := storage.get("rook"):
        cluster = rook.get("cluster", {})
        return frozenset({f"rook/{cluster.get('namespace')}/{cluster.get('name')}"})
    if ceph := storage.get("ceph"):
        return frozenset(f"ceph/{key}" for key in monitor_keys(ceph.get("monitors") or ()))
    if storage_class := storage.get("storageClass"):
        return frozenset({f"storageClass/{storage_class.get('name')}"})
    return frozenset()


def _named(entry: Entry, hold_seconds: float) -> str:
    name = f"{entry.namespace}/{entry.name}"
    if entry.suspended:
        return f"{name}, which is suspended and keeps its place for {hold_seconds:.0f} s at most"
    return f"{name}, which is being taken away ({entry.removal})" if entry.removal else name


def _turn(entry: Entry) -> tuple[bool, str, str]:
    return (not entry.admitted, entry.queued, entry.uid)
