"""The queue: one active run per target, first come, first served. Concurrent runs would measure each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from plimsoll.api.reasons.table import LOAD_IS_GONE, PASSED_BY
from plimsoll.api.status import format_time
from plimsoll.lifecycle.storage.registry import provider_for

_NOT_YET = "9999-12-31T23:59:59Z"
"""Queue time of a run whose resumption the operator has not observed yet: behind all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the queue.

    Attributes:
        targets: what it loads; runs without a common target do not wait for each other. Empty: waits for no run.
        queued: when it entered the queue, in the API server's format, which sorts by time: its creation, or its
            resumption after it had lost its place.
        admitted: whether it may run; it may until it is suspended for too long.
        over: whether it has ended and no longer loads the target, or creates nothing for now.
        suspended: whether it was admitted and is suspended.
        removal: for an ended run, why its objects are not removed yet; empty while it is active.
        ended: when it ended or was deleted, whichever was later, in the same format; empty while it is active.

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
    """Return the entry of a run as the API server stores it. Never raises, whatever its content."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    place = conditions.get("Admitted", {})
    admitted = place.get("status") == "True"
    suspended = bool(body.get("spec", {}).get("suspend", False))
    passed_by = not admitted and conditions.get("Succeeded", {}).get("reason") in PASSED_BY
    removal = conditions.get("CleanedUp", {}).get("reason", "")
    storage = body.get("spec", {}).get("storage") or {}
    return Entry(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        targets=provider_for(storage).targets(storage),
        queued=_queued(metadata["creationTimestamp"], conditions, has_begun=bool(status.get("startTime"))),
        admitted=admitted,
        over=(suspended and not admitted) or passed_by or removal in LOAD_IS_GONE,
        suspended=suspended and admitted and not removal,
        removal="" if removal in LOAD_IS_GONE else removal,
        ended=max(status.get("completionTime") or "", metadata.get("deletionTimestamp") or "") if removal else "",
    )


def _queued(created: str, conditions: Mapping[str, Mapping[str, str]], *, has_begun: bool) -> str:
    """Return when a run entered the queue: its creation, or its resumption after it had lost its place."""
    place, suspension = conditions.get("Admitted", {}), conditions.get("Suspended", {})
    if not has_begun or place.get("status") == "True":
        return created
    if suspension.get("status") == "True":
        return _NOT_YET
    return max(created, place.get("lastTransitionTime", ""), suspension.get("lastTransitionTime", ""))


def ahead_of(uid: str, entries: Iterable[Entry], *, now: datetime, hold_seconds: float) -> tuple[str, ...]:
    """Return the runs on the same target that come before a run, in order, as `namespace/name`.

    A run that has ended blocks the next until its storage is removed or kept, because deleting images and pools is I/O
    too; but at most for `hold_seconds`, because any user can prevent a removal.
    """
    known = {entry.uid: entry for entry in entries}
    this = known.get(uid)
    if this is None or not this.targets or this.admitted:
        return ()
    rivals = [entry for entry in known.values() if entry.targets & this.targets and not entry.over]
    # Compared as text: the API server's format sorts by time, and an invalid time does not raise.
    since = format_time(now - timedelta(seconds=hold_seconds))
    before = [entry for entry in rivals if _turn(entry) < _turn(this) and not "" < entry.ended < since]
    return tuple(_named(entry, hold_seconds) for entry in sorted(before, key=_turn))


def _named(entry: Entry, hold_seconds: float) -> str:
    name = f"{entry.namespace}/{entry.name}"
    if entry.suspended:
        return f"{name} (suspended; keeps its place for at most {hold_seconds:.0f} s)"
    return f"{name} (being cleaned up: {entry.removal})" if entry.removal else name


def _turn(entry: Entry) -> tuple[bool, str, str]:
    return (not entry.admitted, entry.queued, entry.uid)
