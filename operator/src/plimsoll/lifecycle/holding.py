"""How long a run keeps its place in the queue without measuring, while others wait for an idle target.

The time is a sum over all suspensions: a run that is resumed for a moment gives others nothing. The clock runs from a
suspension until the clients of the resumed run are back. Only a measured trial resets the sum.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from math import ceil

from pydantic import ValidationError

from plimsoll.api.names import ConditionStatus, ConditionType, Outcome
from plimsoll.api.status import Hold, format_time
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings

_SUSPENDED_TOO_LONG = "SuspendedTooLong"


def hold_of(run: Run, seen: Observed, now: datetime) -> Hold | None:
    """Return how long a run has kept its place without measuring; None if it has no place, or did not keep it so."""
    if not _is_admitted(run):
        return None
    measured = _measured_trials(seen)
    before = _recorded(run)
    if before is None or measured > before.measured_trials:
        since = format_time(_suspended_since(run, now))
        return Hold(seconds=0, since=since, measured_trials=measured) if run.is_suspended else None
    if run.is_suspended and before.since is None:
        return before.model_copy(update={"since": format_time(now)})
    if run.is_suspended or not _is_back(seen):
        return before
    return before.model_copy(update={"seconds": _held_seconds(before, now), "since": None})


def place_lost(run: Run, seen: Observed, settings: Settings, now: datetime) -> Fact | None:
    """Return that a suspended run loses its place in the queue, or has lost it; None if it keeps it, or had none."""
    admitted = run.conditions.get(ConditionType.ADMITTED)
    until = keeps_until(run, seen, settings, now)
    if until is None and (admitted is None or admitted.reason != _SUSPENDED_TOO_LONG):
        return None
    if until is not None and now < until and not is_losing_place(run):
        return None
    message = (
        f"it was suspended for more than {settings.hold_seconds} s without measuring a trial in between, which the "
        "operator's administrator allows (PLIMSOLL_HOLD_SECONDS), so others of its target go first; its volumes are "
        "kept, and resuming puts it at the end of the queue"
    )
    return Fact(holds=False, reason="SuspendedTooLong", message=message)


def is_losing_place(run: Run) -> bool:
    """Whether a run's time is used up and its load still stops: resuming it now does not save its place."""
    reconciling = run.conditions.get(ConditionType.RECONCILING)
    return _is_admitted(run) and reconciling is not None and reconciling.reason == _SUSPENDED_TOO_LONG


def has_lost_place(run: Run) -> bool:
    """Whether a run that was admitted once is not admitted any more."""
    return run.start_time is not None and ConditionType.ADMITTED in run.conditions and not _is_admitted(run)


def keeps_until(run: Run, seen: Observed, settings: Settings, now: datetime) -> datetime | None:
    """Return until when a suspended run keeps its place in the queue; None if it has none."""
    hold = hold_of(run, seen, now)
    if hold is None:
        return None
    since = datetime.fromisoformat(hold.since) if hold.since else now
    return since + timedelta(seconds=settings.hold_seconds - hold.seconds)


def _is_admitted(run: Run) -> bool:
    admitted = run.conditions.get(ConditionType.ADMITTED)
    return admitted is not None and admitted.status is ConditionStatus.TRUE


def _is_back(seen: Observed) -> bool:
    """Whether all clients of a resumed run are there, with a conductor that no suspension has stopped.

    What is left of a client on a dead node is deleted for as long as that node is away, and does not count.
    """
    conductor = seen.conductor_job
    return seen.all_registered and conductor is not None and not conductor.child.deleting


def _recorded(run: Run) -> Hold | None:
    """Return what the status has; what another version wrote and this one cannot read counts as nothing."""
    with suppress(ValidationError):
        return Hold.model_validate(run.status.get("hold"))
    return None


def _measured_trials(seen: Observed) -> int:
    """Return how many trials were measured to their end, according to the results, which users cannot write."""
    return sum(trial.outcome is Outcome.MEASURED for result in seen.results.values() for trial in result.trials)


def _suspended_since(run: Run, now: datetime) -> datetime:
    """Return since when a run is suspended: before now if an older operator suspended it, which did not count."""
    suspended = run.conditions.get(ConditionType.SUSPENDED)
    if suspended is None or suspended.status is not ConditionStatus.TRUE:
        return now
    return datetime.fromisoformat(suspended.last_transition_time)


def _held_seconds(hold: Hold, now: datetime) -> int:
    """Return the sum up to now. A second that has begun counts, or shorter suspensions would cost nothing."""
    running = age_seconds(datetime.fromisoformat(hold.since), now) if hold.since else 0.0
    return hold.seconds + ceil(max(0.0, running))
