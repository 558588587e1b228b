"""The queue: one active run per target. Concurrent runs would measure each other.

Namespaces take turns on a target (round-robin), and within a namespace the oldest run goes first: one that creates many
runs delays another's run by one of them. The turn goes to the namespace that has waited longest, since its oldest
waiting run was created or since one of its runs was last admitted, whichever was later. Waiting runs record that
admission in their status, because the admitted run may be deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from math import ceil
from typing import Any

from pydantic import ValidationError

from plimsoll.api.names import ConditionType, Outcome
from plimsoll.api.reasons import LOAD_IS_GONE, PASSED_BY
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import Hold, format_time
from plimsoll.lifecycle.children import time_of
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import Observed, Turn, age_seconds
from plimsoll.lifecycle.run import Run, Settings, resolved
from plimsoll.lifecycle.storage.registry import provider_for

_NOT_YET = "9999-12-31T23:59:59Z"  # queue time of a run whose resumption is not observed yet: behind all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the queue."""

    uid: str
    namespace: str
    name: str
    targets: frozenset[str]  # what it loads: runs with a common target wait for each other
    queued: str  # when it was created, or resumed after it lost its place, in the API server's format, which sorts
    admitted: bool  # whether it may run; it may until it is suspended for too long
    over: bool  # whether it has ended and no longer loads the target, or creates nothing for now
    suspended: bool = False  # whether it was admitted and is suspended
    removal: str = ""  # for an ended run, why its objects are not removed yet; empty while it is active
    ended: str = ""  # when it ended or was deleted, whichever was later, in the same format; empty while it is active
    # When a run of its namespace was last admitted on its target, itself included; empty if none was. Entries that
    # differ only in this are equal: the admission itself has already changed everything.
    served: str = field(default="", compare=False)


def entry_of(body: Mapping[str, Any], settings: Settings) -> Entry:
    """Return the entry of a run as the API server stores it. Never raises."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    place = conditions.get("Admitted", {})
    admitted = place.get("status") == "True"
    suspended = bool(body.get("spec", {}).get("suspend", False))
    passed_by = not admitted and conditions.get("Succeeded", {}).get("reason") in PASSED_BY
    removal = conditions.get("CleanedUp", {}).get("reason", "")
    storage = resolved(body, settings).get("spec", {}).get("storage") or {}
    queued, suspension = metadata["creationTimestamp"], conditions.get("Suspended", {})
    if status.get("startTime") and not admitted:
        # It has lost its place, and enters the queue again when it is resumed.
        queued = max(queued, place.get("lastTransitionTime", ""), suspension.get("lastTransitionTime", ""))
        queued = _NOT_YET if suspension.get("status") == "True" else queued
    admission = place.get("lastTransitionTime", "") if admitted else ""
    return Entry(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        targets=provider_for(storage).targets(storage),
        queued=queued,
        admitted=admitted,
        over=(suspended and not admitted) or passed_by or removal in LOAD_IS_GONE,
        suspended=suspended and admitted and not removal,
        removal="" if removal in LOAD_IS_GONE else removal,
        ended=max(status.get("completionTime") or "", metadata.get("deletionTimestamp") or "") if removal else "",
        served=max(status.get("namespaceServedTime") or "", status.get("startTime") or "", admission),
    )


def turn_of(uid: str, entries: Iterable[Entry], *, now: datetime, hold_seconds: float) -> Turn:
    """Return a run's turn in the queue of its target, empty for an admitted run.

    A run that has ended blocks the next until its storage is removed or kept, because deleting images and pools is I/O
    too; but at most for `hold_seconds`, because any user can prevent a removal.
    """
    by_uid = {entry.uid: entry for entry in entries}
    this = by_uid.get(uid)
    if this is None or not this.targets or this.admitted:
        return Turn()
    connected = _connected(this, by_uid.values())
    served: dict[str, str] = defaultdict(str)
    for entry in connected:
        served[entry.namespace] = max(served[entry.namespace], entry.served)
    # Compared as text: the API server's format sorts by time, and an invalid time does not raise.
    since = format_time(now - timedelta(seconds=hold_seconds))
    rivals = [entry for entry in connected if entry is this or not (entry.over or "" < entry.ended < since)]
    before, own_waiting = list[str](), 0
    for entry in _in_order(rivals, served):
        if entry is this:
            break
        if entry.targets & this.targets:
            # Users see only the names of their own namespace's runs, but what delays any of them.
            is_own = entry.namespace == this.namespace
            name = f"{entry.namespace}/{entry.name}" if is_own else "a run of another namespace"
            if entry.suspended:
                name = f"{name} (suspended; keeps its place for at most {hold_seconds:.0f} s)"
            elif entry.removal:
                name = f"{name} (being cleaned up: {entry.removal})"
            before.append(name)
            own_waiting += is_own and not entry.admitted
    return Turn(ahead=tuple(before), own_ahead=own_waiting, namespace_served=served[this.namespace])


def hold_of(run: Run, seen: Observed, now: datetime) -> Hold | None:
    """Return how long a run has kept its place without measuring; None if it has no place, or never did."""
    if not run.holds(ConditionType.ADMITTED):
        return None
    # According to the results, which users cannot write.
    measured = sum(trial.outcome is Outcome.MEASURED for result in seen.results.values() for trial in result.trials)
    before = None
    with suppress(ValidationError):
        before = Hold.model_validate(run.status.get("hold"))
    if before is None or measured > before.measured_trials:
        since = format_time(now)
        # A trial that the suspension found about to end is recorded after it.
        if before is not None and run.holds(ConditionType.SUSPENDED):
            since = run.conditions[ConditionType.SUSPENDED].last_transition_time
        return Hold(seconds=0, since=since, measured_trials=measured) if run.is_suspended else None
    if run.is_suspended:
        return before if before.since is not None else before.model_copy(update={"since": format_time(now)})
    # The remains of a client on a dead node exist until the node returns, and do not count. A conductor that is being
    # deleted was stopped by a suspension.
    conductor = seen.conductor_job
    if not seen.all_registered or conductor is None or conductor.child.deleting:
        return before
    # Rounded up: otherwise suspensions shorter than a second would cost nothing.
    seconds = before.seconds + ceil(max(0.0, age_seconds(time_of(before.since), now)))
    return before.model_copy(update={"seconds": seconds, "since": None})


def place_lost(run: Run, seen: Observed, settings: Settings, now: datetime) -> Fact | None:
    """Return that a suspended run loses or has lost its place in the queue; None if it keeps it, or never had one."""
    until = keeps_until(run, seen, settings, now)
    if until is None and not run.has_reason(ConditionType.ADMITTED, Reason.SUSPENDED_TOO_LONG):
        return None
    if until is not None and now < until and not is_losing_place(run):
        return None
    why = f"suspended for more than {settings.hold_seconds} s (queue.holdSeconds) without a measured trial in between"
    then = "other runs on its target go first; its volumes are kept, and resuming puts it at the end of the queue"
    return Fact.false(Reason.SUSPENDED_TOO_LONG, f"{why}, so {then}")


def is_losing_place(run: Run) -> bool:
    """Whether a run has used up its time and its load is stopping: resuming it does not save its place."""
    return run.holds(ConditionType.ADMITTED) and run.has_reason(ConditionType.RECONCILING, Reason.SUSPENDED_TOO_LONG)


def has_lost_place(run: Run) -> bool:
    admitted = ConditionType.ADMITTED
    return run.start_time is not None and admitted in run.conditions and not run.holds(admitted)


def keeps_until(run: Run, seen: Observed, settings: Settings, now: datetime) -> datetime | None:
    """Return until when a suspended run keeps its place in the queue; None if it has none."""
    hold = hold_of(run, seen, now)
    if hold is None:
        return None
    return (time_of(hold.since) or now) + timedelta(seconds=settings.hold_seconds - hold.seconds)


def _connected(this: Entry, entries: Collection[Entry]) -> list[Entry]:
    """Return the runs connected with a run through common targets: without one order, a cycle of them could wait."""
    by_target: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        for target in entry.targets:
            by_target[target].append(entry)
    # Each target is followed once, so a long chain of runs with common targets is cheap.
    reached, found, unexplored = set(this.targets), {this.uid: this}, [*this.targets]
    while unexplored:
        for entry in by_target[unexplored.pop()]:
            found[entry.uid] = entry
            unexplored.extend(entry.targets - reached)
            reached |= entry.targets
    return [*found.values()]


def _in_order(entries: Iterable[Entry], served: Mapping[str, str]) -> Iterator[Entry]:
    """Yield admitted runs, and then the others in the order of admission if no run were created; names break ties."""

    def age(entry: Entry) -> tuple[str, str, str]:
        return entry.queued, entry.name, entry.uid

    waiting: dict[str, list[Entry]] = defaultdict(list)
    oldest_first = sorted(entries, key=age)
    yield from (entry for entry in oldest_first if entry.admitted)
    for entry in oldest_first:
        if not entry.admitted:
            waiting[entry.namespace].append(entry)

    def since(runs: list[Entry]) -> tuple[str, ...]:
        return max(runs[0].queued, served[runs[0].namespace]), *age(runs[0])[1:]

    for round_ in zip_longest(*sorted(waiting.values(), key=since)):
        yield from filter(None, round_)
