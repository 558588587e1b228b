"""How long a run keeps its place in the queue without measuring, while others wait for an idle target.

The time is a sum over all suspensions, so that resuming a run for a moment gains nothing. The clock runs from a
suspension until the clients of the resumed run are back. Only a measured trial resets the sum.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from math import ceil

from pydantic import ValidationError

from plimsoll.api.names import ConditionType, Outcome
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import Hold, format_time
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings


def hold_of(run: Run, seen: Observed, now: datetime) -> Hold | None:
    """Return how long a run has kept its place without measuring; None if it has no place, or never did."""
    if not run.holds(ConditionType.ADMITTED):
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
    """Return that a suspended run loses or has lost its place in the queue; None if it keeps it, or never had one."""
    until = keeps_until(run, seen, settings, now)
    if until is None and not run.has_reason(ConditionType.ADMITTED, Reason.SUSPENDED_TOO_LONG):
        return None
    if until is not None and now < until and not is_losing_place(run):
        return None
    message = (
        f"suspended for more than {settings.hold_seconds} s (PLIMSOLL_HOLD_SECONDS) without a measured trial in "
        "between, so other runs on its target go first; its volumes are kept, and resuming puts it at the end of the "
        "queue"
    )
    return Fact.false(Reason.SUSPENDED_TOO_LONG, message)


def is_losing_place(run: Run) -> bool:
    """Whether a run has used up its time and its load is stopping: resuming it does not save its place."""
    return run.holds(ConditionType.ADMITTED) and run.has_reason(ConditionType.RECONCILING, Reason.SUSPENDED_TOO_LONG)


def has_lost_place(run: Run) -> bool:
    """Whether a run was admitted once and is no longer."""
    admitted = ConditionType.ADMITTED
    return run.start_time is not None and admitted in run.conditions and not run.holds(admitted)


def keeps_until(run: Run, seen: Observed, settings: Settings, now: datetime) -> datetime | None:
    """Return until when a suspended run keeps its place in the queue; None if it has none."""
    hold = hold_of(run, seen, now)
    if hold is None:
        return None
    since = datetime.fromisoformat(hold.since) if hold.since else now
    return since + timedelta(seconds=settings.hold_seconds - hold.seconds)


def _is_back(seen: Observed) -> bool:
    """Whether all clients of a resumed run are registered with a conductor that no suspension has stopped.

    What remains of a client on a dead node stays until the node returns, and does not count.
    """
    conductor = seen.conductor_job
    return seen.all_registered and conductor is not None and not conductor.child.deleting


def _recorded(run: Run) -> Hold | None:
    """Return the status's hold; None if there is none that this version can read."""
    with suppress(ValidationError):
        return Hold.model_validate(run.status.get("hold"))
    return None


def _measured_trials(seen: Observed) -> int:
    """Return the number of measured trials according to the results, which users cannot write."""
    return sum(trial.outcome is Outcome.MEASURED for result in seen.results.values() for trial in result.trials)


def _suspended_since(run: Run, now: datetime) -> datetime:
    """Return when a run was suspended: before now if an older operator did it, which did not count the time."""
    if not run.holds(ConditionType.SUSPENDED):
        return now
    return datetime.fromisoformat(run.conditions[ConditionType.SUSPENDED].last_transition_time)


def _held_seconds(hold: Hold, now: datetime) -> int:
    """Return the sum until now, rounded up: otherwise suspensions shorter than a second would cost nothing."""
    running = age_seconds(datetime.fromisoformat(hold.since), now) if hold.since else 0.0
    return hold.seconds + ceil(max(0.0, running))
