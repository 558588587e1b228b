"""One look at a suite: from observation to decision. Level-triggered: the status is its only memory."""

from datetime import timedelta

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.suites import SUITE_TABLE, SuiteReason
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import ActiveRound
from plimsoll.suite.rounds.observed import (
    LONGEST_WAIT_SECONDS,
    Action,
    CreateRun,
    Decision,
    DeleteRun,
    DryRun,
    Emit,
    GetRun,
    Observed,
    PatchStatus,
    Request,
    State,
)
from plimsoll.suite.rounds.progress import (
    Progress,
    is_checked,
    is_loaded,
    judgement_request,
    measures_digest,
    next_minute,
    progress_of,
)
from plimsoll.suite.rounds.status import facts_of, is_written, recorded_refusal, refused_check, status_of
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


def step(seen: Observed) -> Decision:
    """Return what to do for a suite now.

    The status is written before the request that it is about, so that a round exists before its first run. Before a run
    is created it is written in any case: that fails if the suite was read before another operator wrote its status.
    Nothing is left to do for a deleted suite: its runs are garbage-collected.
    """
    if seen.suite.is_deleted:
        return Decision()
    progress = progress_of(seen)
    request = _request_of(seen, progress)
    facts = facts_of(seen, progress, request)
    pause = _pause_seconds(seen, request) if request is not None else 0
    requests = () if request is None or pause else (request,)
    status = status_of(seen, progress.state, facts)
    is_known = is_written(status, seen.suite.status)
    actions: list[Action] = []
    if not is_known or any(isinstance(action, CreateRun) for action in requests):
        actions.append(PatchStatus(status=status, resource_version=seen.suite.resource_version))
    if not is_known:
        actions += progress.events
        stalled = facts.get(SuiteConditionType.STALLED)
        before = seen.suite.conditions.get(SuiteConditionType.STALLED)
        # A regression has the event of its round.
        if stalled and stalled.reason is not SuiteReason.REGRESSED and not (before and before.reason == stalled.reason):
            severity = SUITE_TABLE[stalled.reason].severity
            actions.append(Emit(severity=severity, reason=stalled.reason, message=stalled.message))
    actions += requests
    suite, next_time = seen.suite.specification.suite, progress.state.next_time
    seconds = [LONGEST_WAIT_SECONDS, *([pause] if pause else [])]
    if suite is not None and not suite.spec.suspend and next_time is not None and next_time > seen.now:
        seconds.append((next_time - seen.now).total_seconds())
    return Decision(actions=tuple(actions), again_after=min(seconds))


def _request_of(seen: Observed, progress: Progress) -> Request | None:
    """Return the next request; None if there is nothing to do but wait.

    Deletions come first, because old runs may use up the quota that a new one needs. Nothing is done after the status
    was lost: which runs a user still needs is unknown.
    """
    suite, state = seen.suite.specification.suite, progress.state
    is_lost = bool(lost_runs(seen, state))
    run = abandoned_run(seen, state) or obsolete_run(seen, state)
    if run is not None and not is_lost:
        return DeleteRun(name=run.name, uid=run.uid)
    if suite is None or is_lost:
        return None
    if state.abandoned and all(run.name != state.abandoned for run in seen.runs):
        return GetRun(name=state.abandoned)
    if state.active is not None:
        return _of_round(seen, suite, state, state.active) if measures_digest(seen, state) else None
    # A dry run precedes a round that is due.
    is_due = progress.waiting is not None and not suite.spec.suspend
    if is_due and not is_checked(seen, state) and not is_loaded(seen, state):
        runs = variant_objects(seen.suite, suite, next_minute(seen, state))
        return DryRun(digest=seen.suite.specification.digest, runs=runs)
    return None


def _of_round(seen: Observed, suite: BenchmarkSuite, state: State, active: ActiveRound) -> Request | None:
    members = members_of(seen, suite, active)
    if unconfirmed := unconfirmed_name(seen, active, members):
        member = next(member for member in members if member.name == unconfirmed)
        uid = (active.current_uid or "") if unconfirmed == active.current else ""
        return GetRun(name=unconfirmed, uid=uid, measures=seen.suite.specification.measures[member.turn.variant])
    if active.is_measured:
        return judgement_request(seen, state, active, members)
    following = None if suite.spec.suspend else next_member(seen, active, members)
    if following is None:
        return None
    return CreateRun(run=run_object(seen.suite, suite, following.turn, active.minute))


def _pause_seconds(seen: Observed, request: Request) -> float:
    """Return how long a request that was refused has to wait; 0 if it was not."""
    refusal, checked = recorded_refusal(seen, request), refused_check(seen)
    if refusal is not None:
        passed, pause = seen.now - refusal.time, _RETRY
    elif checked is not None and isinstance(request, DryRun):
        passed, pause = seen.now - checked.time, _RECHECK
    else:
        return 0
    # A clock that was set back ends the pause.
    return (pause - passed).total_seconds() if timedelta() <= passed < pause else 0
