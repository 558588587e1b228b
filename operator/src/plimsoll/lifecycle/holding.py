"""How long a suspended run keeps its place in the queue: others wait for a target that nobody loads meanwhile."""

from datetime import datetime, timedelta

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings

_SUSPENDED_TOO_LONG = "SuspendedTooLong"


def place_lost(run: Run, settings: Settings, now: datetime) -> Fact | None:
    """Return that a suspended run has lost its place in the queue; None if it keeps it, or has none."""
    admitted = run.conditions.get(ConditionType.ADMITTED)
    if admitted is None or (admitted.status is not ConditionStatus.TRUE and admitted.reason != _SUSPENDED_TOO_LONG):
        return None
    if admitted.status is ConditionStatus.TRUE and now < _until(run, settings, now):
        return None
    message = (
        f"it was suspended for more than {settings.hold_seconds} s, which the operator's administrator allows "
        "(PLIMSOLL_HOLD_SECONDS), so others of its target go first; its volumes are kept, and resuming puts it back "
        "into the queue"
    )
    return Fact(holds=False, reason="SuspendedTooLong", message=message)


def has_lost_place(run: Run) -> bool:
    """Tell whether a run that was admitted once is not admitted any more."""
    admitted = run.conditions.get(ConditionType.ADMITTED)
    return run.start_time is not None and admitted is not None and admitted.status is not ConditionStatus.TRUE


def keeps_until(run: Run, settings: Settings, now: datetime) -> datetime | None:
    """Return until when a suspended run keeps its place in the queue; None if it has none."""
    admitted = run.conditions.get(ConditionType.ADMITTED)
    if admitted is None or admitted.status is not ConditionStatus.TRUE:
        return None
    return _until(run, settings, now)


def _until(run: Run, settings: Settings, now: datetime) -> datetime:
    suspended = run.conditions.get(ConditionType.SUSPENDED)
    since = now
    if suspended is not None and suspended.status is ConditionStatus.TRUE:
        since = datetime.fromisoformat(suspended.last_transition_time)
    return since + timedelta(seconds=settings.hold_seconds)
