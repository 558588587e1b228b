"""The one request that a suite needs next."""

from datetime import datetime, timedelta

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import ActiveRound
from plimsoll.suite.rounds.actions import CreateRun, DeleteRun, DryRun, GetRun, Request
from plimsoll.suite.rounds.observed import Checked, Observed, RunRefusal, State
from plimsoll.suite.rounds.progress import (
    Progress,
    is_checked,
    is_loaded,
    judgement_request,
    measures_digest,
    next_minute,
)
from plimsoll.suite.rounds.turns import (
    abandoned_run,
    lost_runs,
    members_of,
    next_member,
    obsolete_run,
    run_object,
    unconfirmed_name,
    variant_objects,
)

_RECHECK = timedelta(minutes=5)
"""Pause between two dry runs of a refused variant: what refuses it may have been changed."""

_RETRY = timedelta(minutes=1)
"""Pause between two attempts to create a run that the API server refuses."""


def request_of(seen: Observed, progress: Progress) -> Request | None:
    """Return the next request; None if there is nothing to do but wait.

    Deletions come first, because old runs may use up the quota that a new one needs. Nothing is done after the status
    was lost: which runs a user still needs is unknown.
    """
    suite, state = seen.suite.specification.suite, progress.state
    if lost_runs(seen, state):
        return None
    run = abandoned_run(seen, state) or obsolete_run(seen, state)
    if run is not None:
        return DeleteRun(name=run.name, uid=run.uid)
    if suite is None:
        return None
    if state.abandoned and all(run.name != state.abandoned for run in seen.runs):
        return GetRun(name=state.abandoned)
    if state.active is not None:
        return _of_round(seen, suite, state, state.active) if measures_digest(seen, state) else None
    return _check(seen, suite, progress)


def pause_seconds(seen: Observed, request: Request) -> float:
    """Return how long a request that was refused has to wait; 0 if it was not."""
    refusal, checked = refusal_of(seen, request), refused_check(seen)
    if refusal is not None:
        return _remaining(seen, refusal.time, _RETRY)
    if checked is not None and isinstance(request, DryRun):
        return _remaining(seen, checked.time, _RECHECK)
    return 0


def refusal_of(seen: Observed, request: Request | None) -> RunRefusal | None:
    """Return the refusal of a request that was made before; None if it was not refused."""
    refusal = seen.memory.refusal
    is_same = isinstance(request, CreateRun | GetRun) and refusal is not None and refusal.name == request.name
    return refusal if is_same else None


def refused_check(seen: Observed) -> Checked | None:
    """Return the dry run that refused a variant of the suite as it is now; None if none did."""
    checked = seen.memory.checked
    if checked is None or checked.digest != seen.suite.specification.digest or not checked.variant:
        return None
    return checked


def _of_round(seen: Observed, suite: BenchmarkSuite, state: State, active: ActiveRound) -> Request | None:
    members = members_of(seen, suite, active)
    unconfirmed = unconfirmed_name(seen, active, members)
    if unconfirmed:
        member = next(member for member in members if member.name == unconfirmed)
        uid = (active.current_uid or "") if unconfirmed == active.current else ""
        return GetRun(name=unconfirmed, uid=uid, measures=seen.suite.specification.measures[member.turn.variant])
    if active.is_measured:
        return judgement_request(seen, state, active, members)
    following = None if suite.spec.suspend else next_member(seen, active, members)
    if following is None:
        return None
    return CreateRun(run=run_object(seen.suite, suite, following.turn, active.minute))


def _check(seen: Observed, suite: BenchmarkSuite, progress: Progress) -> DryRun | None:
    """Return the dry run before a round that is due."""
    state = progress.state
    if progress.waiting is None or suite.spec.suspend or is_checked(seen, state) or is_loaded(seen, state):
        return None
    runs = variant_objects(seen.suite, suite, next_minute(seen, state))
    return DryRun(digest=seen.suite.specification.digest, runs=runs)


def _remaining(seen: Observed, since: datetime, pause: timedelta) -> float:
    """Return the rest of a pause. A clock that was set back ends it."""
    passed = seen.now - since
    return (pause - passed).total_seconds() if timedelta() <= passed < pause else 0


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
    if active.is_measured or active.current_uid:
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
