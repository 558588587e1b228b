"""One look at a suite: from observation to decision. Level-triggered: the status is its only memory."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.entry import Event, Severity
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.status import format_time
from plimsoll.api.suite import BenchmarkSuite, Schedule
from plimsoll.api.suite_status import (
    MAX_ENVIRONMENT,
    MAX_OUTCOMES,
    MAX_VERSION_CHARACTERS,
    WORST_FIRST,
    ActiveRound,
    Cause,
    EndedRound,
    HypothesisVerdict,
    RoundChildren,
    RoundVerdict,
)
from plimsoll.suite.children import child_name, turns_by_name
from plimsoll.suite.rounds.observed import (
    LARGEST_CORRECTION,
    LONGEST_WAIT_SECONDS,
    Action,
    CreateRun,
    Decision,
    DeleteRun,
    DryRun,
    GetRun,
    Judge,
    Observed,
    OwnedRun,
    PatchStatus,
    RecordedEvaluation,
    Request,
    RoundRuns,
    State,
    first_time_after,
    last_time_until,
)
from plimsoll.suite.rounds.status import facts_of, recorded_refusal, refused_check, status_of
from plimsoll.suite.rounds.turns import (
    REQUEST_ROUND,
    Member,
    accept_round,
    age_of,
    cause_due,
    drop_rounds,
    lost_runs,
    members_of,
    run_object,
    text_of,
    variant_objects,
    version_of,
)

_RECHECK = timedelta(minutes=5)  # between two dry runs of a refused variant: what refuses it may have been changed
_RETRY = timedelta(minutes=1)  # between two attempts to create a run that the API server refuses
_BECAUSE = {
    Cause.CHANGE: "what the suite measures has changed",
    Cause.REQUESTED: f"annotation {REQUEST_ROUND} requests it",
    Cause.SCHEDULED: "it is scheduled now",
    Cause.CEPH_VERSION: "the version of Ceph has changed",
}
_HYPOTHESES = (HypothesisVerdict.REFUTED, HypothesisVerdict.UNDECIDED, HypothesisVerdict.HELD)  # the worst first


def step(seen: Observed) -> Decision:
    """Return what to do for a suite now.

    The status is written before the request that it is about, so that a round exists before its first run. Before a run
    is created it is written in any case: that fails if the suite was read before another operator wrote its status.
    """
    if seen.suite.is_deleted:
        return Decision()
    state, events, waiting = _progress(seen)
    request = _request_of(seen, state, waiting)
    facts = facts_of(seen, state, waiting, request)
    pause = _pause_seconds(seen, request) if request is not None else 0
    requests = () if request is None or pause else (request,)
    status = status_of(seen, state, facts)
    is_known = status == seen.suite.status
    actions: list[Action] = []
    if not is_known or any(isinstance(action, CreateRun) for action in requests):
        fields = status.model_dump(mode="json", exclude_none=True)
        names = [field.serialization_alias or name for name, field in State.model_fields.items()]
        document = {name: fields.get(name) for name in names}
        actions.append(PatchStatus(status=document, resource_version=seen.suite.resource_version))
    if not is_known:
        actions += events
        stalled = facts.get(SuiteConditionType.STALLED)
        before = seen.suite.conditions.get(SuiteConditionType.STALLED)
        # A regression has the event of its round.
        if stalled and stalled.reason is not SuiteReason.REGRESSED and not (before and before.reason == stalled.reason):
            severity = stalled.reason.entry.severity
            actions.append(Event(severity=severity, reason=stalled.reason, message=stalled.message))
    actions += requests
    suite, seconds = seen.suite.specification.suite, [LONGEST_WAIT_SECONDS, pause or LONGEST_WAIT_SECONDS]
    if suite is not None and not suite.spec.suspend and state.next_schedule_time:
        seconds.append((datetime.fromisoformat(state.next_schedule_time) - seen.now).total_seconds())
    return Decision(actions=tuple(actions), again_after=min(each for each in seconds if each > 0))


def _progress(seen: Observed) -> tuple[State, tuple[Event, ...], Cause | None]:
    """Return the state after everything that has happened, events about it, and the cause of a round that has to wait.

    A second application changes nothing. An invalid suite keeps its state: it is unknown which turns the active round
    has. So does one whose status was lost. A suspended suite whose digest has changed keeps its round: the active run
    continues until the suite is resumed.
    """
    suite, state = seen.suite.specification.suite, seen.suite.status
    if suite is None or lost_runs(seen, state):
        return state, (), None
    ending: tuple[Event, ...] = ()
    if (active := state.round) is not None:
        if seen.measures_as(state):
            members = members_of(seen, suite, active)
            active = _advance(seen, active, members)
            state = state.model_copy(update={"round": active})
            if active.is_measured:
                state, ending = _end_round(seen, suite, state, active, members)
        elif not suite.spec.suspend:
            state, ending = _supersede_round(seen, state, active)
    # An abandoned round's run is over if it has finished, or the API server did not find it.
    abandoned = state.abandoned_run
    if abandoned in seen.memory.absent or any(run.name == abandoned and run.is_finished for run in seen.runs):
        state = state.model_copy(update={"abandoned_run": None})
    state, acceptance = accept_round(seen, state)
    state = drop_rounds(seen, state, suite.spec.keep)
    # With the trigger, the state has the version of the last round: another one is a cause for a round.
    if not (state.ceph_version and suite.spec.triggers.ceph_version):
        state = state.model_copy(update={"ceph_version": version_of(seen) or state.ceph_version})
    state, due, missed = _timing(seen, suite, state)
    events = (*ending, *acceptance, *missed)
    cause = None if state.round else cause_due(seen, suite, state, due)
    if cause is None or suite.spec.suspend or _is_loaded(seen, state) or not _is_checked(seen, state):
        return state, events, cause
    state, start = _open_round(seen, suite, state, cause, due)
    return state, (*events, start), None


def _advance(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> ActiveRound:
    while not active.is_measured:
        member = members[active.children.done]
        was_seen = active.current == member.name and active.current_uid is not None
        if member.run is None and not (was_seen and member.name in seen.memory.absent):
            return active if was_seen else active.model_copy(update={"current": member.name, "current_uid": None})
        if member.run is not None and not member.run.is_finished:
            return active.model_copy(update={"current": member.name, "current_uid": member.run.uid})
        children = active.children.model_copy(update={"done": active.children.done + 1})
        active = active.model_copy(update={"children": children, "current": None, "current_uid": None})
    return active


def _unconfirmed_name(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> str:
    """Return the name of a run that was seen, and that the list lacks or shows as it was before; empty if none is."""
    if not active.is_measured:
        is_unlisted = active.current_uid and members[active.children.done].run is None
        return (active.current or "") if is_unlisted else ""
    asked = seen.memory.absent | seen.memory.found.keys()
    doubtful = (member.name for member in members if member.run is None or not member.run.is_finished)
    return next((name for name in doubtful if name not in asked), "")


def _run_to_delete(seen: Observed, state: State) -> OwnedRun | None:
    """Return an unfinished run of an abandoned round, or else a run of a dropped one, unless it is being deleted.

    A run of any other round was finished when its round ended: a list that shows it unfinished is old.
    """
    abandoned = {ended.minute for ended in state.rounds if ended.verdict is RoundVerdict.SUPERSEDED}
    runs = [run for run in seen.runs if not run.is_deleting]
    unfinished = [run for run in runs if not run.is_finished and run.minute in abandoned]
    return min(unfinished or (run for run in runs if run.minute in state.dropped), key=age_of, default=None)


def _is_loaded(seen: Observed, state: State) -> bool:
    return bool(seen.unfinished() or state.abandoned_run)


def _is_checked(seen: Observed, state: State) -> bool:
    """Whether the API server accepts the runs of all variants, as an earlier round or a dry run shows."""
    digest, checked = seen.suite.specification.digest, seen.memory.checked
    return seen.measures_as(state) or (checked is not None and checked.digest == digest and not checked.variant)


def _timing(seen: Observed, suite: BenchmarkSuite, state: State) -> tuple[State, datetime | None, tuple[Event, ...]]:
    """Return the state with its next schedule time, the time that is due if one is, and events about a missed one.

    Of several times the last one is due, unless it is too old; a schedule that is changed makes no former time due.
    """
    schedule = suite.spec.schedule
    if schedule is None:
        return state.model_copy(update={"next_schedule_time": None}), None, ()
    planned = _scheduled(schedule, state, seen.now)
    next_time = datetime.fromisoformat(state.next_schedule_time) if state.next_schedule_time else None
    if not next_time or next_time > seen.now or (last := last_time_until(schedule, seen.now)) < next_time:
        return planned, None, ()
    deadline = schedule.starting_deadline_seconds
    if deadline is not None and seen.now - last > timedelta(seconds=deadline):
        message = (
            f"no round started at {format_time(last)} or in the {deadline} s after it, because another one was active "
            "or the operator was not running; raise spec.schedule.startingDeadlineSeconds to start late"
        )
        missed = Event(severity=Severity.WARNING, reason="ScheduleMissed", message=message)
        return planned, None, () if suite.spec.suspend else (missed,)
    return state, last, ()


def _scheduled(schedule: Schedule, state: State, now: datetime) -> State:
    """Return the state with the next time of the schedule, after the last one even if the clock was set back."""
    last = datetime.fromisoformat(state.last_schedule_time) if state.last_schedule_time else now
    following = first_time_after(schedule, last if now < last < now + LARGEST_CORRECTION else now)
    return state.model_copy(update={"next_schedule_time": format_time(following)})


def _next_minute(seen: Observed, state: State) -> int:
    """Return the minute of a round that starts now: later than all known rounds, even if the clock was set back."""
    minutes = [ended.minute for ended in state.rounds] + [run.minute for run in seen.runs if not run.is_ahead]
    return max(int(seen.now.timestamp()) // 60, *(minute + 1 for minute in minutes), 0)


def _open_round(
    seen: Observed, suite: BenchmarkSuite, state: State, cause: Cause, due: datetime | None
) -> tuple[State, Event]:
    """Return the state with a new round, which answers everything that is due, and the event about it."""
    minute = _next_minute(seen, state)
    names = [*turns_by_name(suite, minute=minute, seed=minute, uid=seen.suite.uid)]
    active = ActiveRound(
        minute=minute,
        seed=minute,
        cause=cause,
        start_time=format_time(seen.now),
        children=RoundChildren(done=0, total=len(names)),
        current=names[0],
    )
    if due is not None and suite.spec.schedule is not None:
        last = state.model_copy(update={"last_schedule_time": format_time(due)})
        state = _scheduled(suite.spec.schedule, last, seen.now)
    update = {
        "round": active,
        "digest": seen.suite.specification.digest,
        "ceph_version": version_of(seen) or state.ceph_version,
    }
    if (request := text_of(seen, REQUEST_ROUND)) not in {"", state.requested_round}:
        update |= {"requested_round": request, "requested_minute": minute}
    message = f"round {active.name} of {len(names)} run{'s' * (len(names) > 1)} started, because {_BECAUSE[cause]}"
    return state.model_copy(update=update), Event(severity=Severity.NORMAL, reason="RoundStarted", message=message)


def _runs_by_variant(members: Sequence[Member], runs: Iterable[OwnedRun | None]) -> Mapping[str, Mapping[str, str]]:
    with_numbers = [run for run in runs if run is not None and run.is_finished and run.has_numbers]
    variants = dict.fromkeys(member.turn.variant for member in members)
    return {variant: {run.name: run.uid for run in with_numbers if run.variant == variant} for variant in variants}


def _judgement_request(
    seen: Observed, suite: BenchmarkSuite, state: State, active: ActiveRound, members: Sequence[Member]
) -> Judge:
    def round_runs(minute: int, digest: str, runs: Iterable[OwnedRun | None]) -> RoundRuns:
        return RoundRuns(minute=minute, digest=digest, runs=_runs_by_variant(members, runs))

    baseline = []
    for earlier in (ended for ended in reversed(state.rounds) if ended.accepted):
        # Users may create other runs, which are not turns of the round.
        turns = {child_name(suite, member.turn, earlier.minute, seen.suite.uid) for member in members}
        runs = sorted((run for run in seen.runs if run.name in turns), key=lambda run: run.name)
        baseline.append(round_runs(earlier.minute, earlier.digest, runs))
    return Judge(
        round=round_runs(active.minute, state.digest or "", [member.run for member in members]),
        baseline=tuple(baseline),
        pinned=tuple(ended.minute for ended in reversed(state.rounds) if ended.pinned),
        questions=seen.suite.specification.questions,
    )


def _end_round(
    seen: Observed, suite: BenchmarkSuite, state: State, active: ActiveRound, members: Sequence[Member]
) -> tuple[State, tuple[Event, ...]]:
    """Return the state after a measured round, and the event; without an event the round has to be evaluated first.

    A judgement counts if it is of the data that the round has now. Runs without numbers cannot hide a regression, nor
    prove that there is none. A round that has all of its runs is accepted if it did not regress.
    """
    request, total = _judgement_request(seen, suite, state, active, members), active.children.total
    runs = request.round.runs.values()
    if not any(runs):
        return _close_round(seen, state, active, RoundVerdict.FAILED, f"none of its {total} runs has numbers")
    judged = seen.memory.judgement
    if judged is None or judged.request != request:
        return state, ()
    comparisons = sorted(judged.comparisons, key=lambda it: (WORST_FIRST.index(it.verdict), it.estimate or 0.0))
    hypotheses = sorted(judged.hypotheses, key=lambda result: _HYPOTHESES.index(result.verdict))
    update = {
        "comparisons": tuple(comparisons[:MAX_OUTCOMES]),
        "comparisons_left_out": len(comparisons[MAX_OUTCOMES:]) or None,
        "hypotheses": tuple(hypotheses[:MAX_OUTCOMES]),
        "hypotheses_left_out": len(hypotheses[MAX_OUTCOMES:]) or None,
    }
    state, verdict, message = state.model_copy(update=update), judged.verdict, judged.message
    if missing := total - sum(map(len, runs)):
        message = f"{missing} of its {total} runs have no numbers; {message}"
        if verdict is not RoundVerdict.REGRESSED:
            verdict = RoundVerdict.INCONCLUSIVE if all(runs) else RoundVerdict.FAILED
    return _close_round(seen, state, active, verdict, message, judged, is_complete=not missing)


def _supersede_round(seen: Observed, state: State, active: ActiveRound) -> tuple[State, tuple[Event, ...]]:
    """Return the state after a round that a change made pointless, and the event; reverting it starts another round."""
    message = f"what the suite measures changed after {active.children.done} of {active.children.total} runs"
    state, events = _close_round(seen, state, active, RoundVerdict.SUPERSEDED, message)
    refusal = seen.memory.refusal
    # Its current run may load the storage, unless it could not be created because another one has its name.
    is_taken = refusal is not None and refusal.name == active.current and refusal.is_taken and not active.current_uid
    update = {"abandoned_run": None if is_taken else active.current, "digest": None}
    return state.model_copy(update=update), events


def _close_round(
    seen: Observed,
    state: State,
    active: ActiveRound,
    verdict: RoundVerdict,
    message: str,
    judged: RecordedEvaluation | None = None,
    *,
    is_complete: bool = False,
) -> tuple[State, tuple[Event, ...]]:
    versions = sorted(judged.environment.items())[:MAX_ENVIRONMENT] if judged else ()
    record = EndedRound(
        minute=active.minute,
        cause=active.cause,
        start_time=active.start_time,
        completion_time=format_time(seen.now),
        verdict=verdict,
        complete=is_complete,
        accepted=is_complete and judged is not None and judged.is_acceptable and verdict is not RoundVerdict.REGRESSED,
        digest=state.digest or "",
        environment={name: version[:MAX_VERSION_CHARACTERS] for name, version in versions},
        comparisons=dict(judged.counts) if judged else {},
    )
    is_harmless = verdict in {RoundVerdict.NO_REGRESSION, RoundVerdict.SUPERSEDED}
    event = Event(
        severity=Severity.NORMAL if is_harmless else Severity.WARNING,
        reason=f"Round{verdict}",
        message=f"round {active.name}: {message}",
    )
    return state.model_copy(update={"round": None, "rounds": (record, *state.rounds)}), (event,)


def _request_of(seen: Observed, state: State, waiting: Cause | None) -> Request | None:
    """Return the next request; None if there is nothing to do but wait.

    Deletions come first, because old runs may use up the quota that a new one needs. Nothing is done after the status
    was lost: which runs a user still needs is unknown.
    """
    suite = seen.suite.specification.suite
    if lost_runs(seen, state):
        return None
    if (run := _run_to_delete(seen, state)) is not None:
        return DeleteRun(name=run.name, uid=run.uid)
    if state.abandoned_run and suite is not None and all(run.name != state.abandoned_run for run in seen.runs):
        return GetRun(name=state.abandoned_run)
    if state.round is not None:
        return _of_round(seen, suite, state, state.round) if suite and seen.measures_as(state) else None
    # A dry run precedes a round that is due.
    if suite is None or waiting is None or suite.spec.suspend or _is_checked(seen, state) or _is_loaded(seen, state):
        return None
    runs = variant_objects(seen.suite, suite, _next_minute(seen, state))
    return DryRun(digest=seen.suite.specification.digest, runs=runs)


def _of_round(seen: Observed, suite: BenchmarkSuite, state: State, active: ActiveRound) -> Request | None:
    members = members_of(seen, suite, active)
    if unconfirmed := _unconfirmed_name(seen, active, members):
        variant = next(member.turn.variant for member in members if member.name == unconfirmed)
        uid = (active.current_uid or "") if unconfirmed == active.current else ""
        return GetRun(name=unconfirmed, uid=uid, measures=seen.suite.specification.measures[variant])
    if active.is_measured:
        return _judgement_request(seen, suite, state, active, members)
    following = members[active.children.done]
    # Nothing is created while any other run of the suite may load the storage.
    if suite.spec.suspend or active.current_uid or following.run or seen.unfinished(following.name):
        return None
    return CreateRun(run=run_object(seen.suite, suite, following.turn, active.minute))


def _pause_seconds(seen: Observed, request: Request) -> float:
    refusal, checked = recorded_refusal(seen, request), refused_check(seen)
    if refusal is not None:
        passed, pause = seen.now - refusal.time, _RETRY
    elif checked is not None and isinstance(request, DryRun):
        passed, pause = seen.now - checked.time, _RECHECK
    else:
        return 0
    # A clock that was set back ends the pause.
    return (pause - passed).total_seconds() if timedelta() <= passed < pause else 0
