"""The run that keeps the next one from starting: only one run of a suite may load the storage."""

from datetime import datetime, timedelta

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.progress import Progress

_PATIENCE = timedelta(minutes=10)
"""A run that has not ended after so long may never end, so somebody has to look after it."""


def blocking_run(seen: Observed, progress: Progress) -> str:
    """Return the name of the run that the next run of a due or active round waits for; empty if it waits for none."""
    suite, state = seen.suite.specification.suite, progress.state
    if suite is None or suite.spec.suspend:
        return ""
    active = state.active
    if active is None:
        name = next((run.name for run in seen.unfinished), state.abandoned)
        return name if progress.waiting is not None else ""
    if active.is_measured or active.uid:
        return ""
    return next((run.name for run in seen.unfinished if run.name != active.current), "")


def is_overdue(seen: Observed) -> bool:
    """Whether the status has said for long enough that the suite waits for a run."""
    before = seen.suite.conditions
    stalled, reconciling = (before.get(kind) for kind in (SuiteConditionType.STALLED, SuiteConditionType.RECONCILING))
    if stalled is not None and stalled.reason == SuiteReason.WAITING_FOR_RUN:
        return True
    if reconciling is None or reconciling.reason != SuiteReason.WAITING_FOR_RUN:
        return False
    return seen.now - datetime.fromisoformat(reconciling.last_transition_time) >= _PATIENCE
