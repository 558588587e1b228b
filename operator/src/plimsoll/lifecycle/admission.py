"""The queue: one active run per target, first come, first served. Two runs at once would measure each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LOAD_IS_GONE = frozenset({"Removed", "StorageKept", "NothingMade", "NodeGone"})
"""Reasons of the condition CleanedUp with which nothing of a run loads its target any more."""

HELD_UP = frozenset({"WaitingForEarlierRun", "SpecUnreadable", "CephClusterNotReady", "PoolNotReady"})
"""Reasons for which a run that was not admitted yet makes nothing, and so is passed by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the queue, as little as the queue needs.

    Attributes:
        target: what it loads; runs of different targets do not wait for each other. Empty: waits for nobody.
        created: creation time as the API server writes it, which sorts by time.
        admitted: it may run; once given, that stays.
        over: it has ended and what it loaded the target with is gone, or it makes nothing for now.
        removal: why what it has on the target is not gone yet although it has ended; empty while it goes on.

    """

    uid: str
    namespace: str
    name: str
    target: str
    created: str
    admitted: bool
    over: bool
    removal: str = ""


def entry_of(body: Mapping[str, Any]) -> Entry:
    """Return a run's entry, from the run as the API server stores it. Never raises, whatever stands there."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    admitted = conditions.get("Admitted", {}).get("status") == "True"
    suspended_unmade = body.get("spec", {}).get("suspend", False) and not admitted
    held_up = not admitted and conditions.get("Succeeded", {}).get("reason") in HELD_UP
    removal = conditions.get("CleanedUp", {}).get("reason", "")
    return Entry(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        target=_target_of_document(body.get("spec", {}).get("storage") or {}),
        created=metadata["creationTimestamp"],
        admitted=admitted,
        over=suspended_unmade or held_up or removal in LOAD_IS_GONE,
        removal="" if removal in LOAD_IS_GONE else removal,
    )


def ahead_of(uid: str, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the runs on the same target that come before one, next first, as `namespace/name`.

    One that has ended holds up the next until its storage is gone or kept: taking images and pools away is I/O as well.
    """
    known = {entry.uid: entry for entry in entries}
    this = known.get(uid)
    if this is None or not this.target or this.admitted:
        return ()
    rivals = [entry for entry in known.values() if entry.target == this.target and not entry.over]
    before = [entry for entry in rivals if _turn(entry) < _turn(this)]
    return tuple(map(_named, sorted(before, key=_turn)))


def _target_of_document(storage: Mapping[str, Any]) -> str:
    if rook := storage.get("rook"):
        cluster = rook.get("cluster", {})
        return f"rook/{cluster.get('namespace')}/{cluster.get('name')}"
    if ceph := storage.get("ceph"):
        return f"ceph/{','.join(sorted(ceph.get('monitors', [])))}"
    if storage_class := storage.get("storageClass"):
        return f"storageClass/{storage_class.get('name')}"
    return ""


def _named(entry: Entry) -> str:
    name = f"{entry.namespace}/{entry.name}"
    return f"{name}, which is being taken away ({entry.removal})" if entry.removal else name


def _turn(entry: Entry) -> tuple[bool, str, str]:
    return (not entry.admitted, entry.created, entry.uid)
