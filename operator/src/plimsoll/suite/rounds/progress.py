"""The progress of a suite since its status was written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from plimsoll.api.reasons.reason import Severity
from plimsoll.api.status import format_time
from plimsoll.api.suite import BenchmarkSuite, Schedule
from plimsoll.api.suite_status import (
    MAX_ENVIRONMENT,
    MAX_OUTCOMES,
    MAX_VERSION_CHARACTERS,
    ActiveRound,
    Cause,
    EndedRound,
    RoundChildren,
    RoundVerdict,
)
from plimsoll.suite.children import child_name, turns_by_name
from plimsoll.suite.rounds.baseline import REQUEST_ROUND, accept_round, cause_due, text_of, version_of
from plimsoll.suite.rounds.observed import (
    LARGEST_CORRECTION,
    Emit,
    Judge,
    Observed,
    OwnedRun,
    RecordedEvaluation,
    RoundRuns,
    State,
    first_time_after,
    last_time_until,
    worst_comparisons,
    worst_hypotheses,
)
from plimsoll.suite.rounds.turns import Member, advance, drop_rounds, forget_abandoned, lost_runs, members_of

_BECAUSE = {
    Cause.CHANGE: "what the suite measures has changed",
    Cause.REQUESTED: f"annotation {REQUEST_ROUND} requests it",
    Cause.SCHEDULED: "it is scheduled now",
    Cause.CEPH_VERSION: "the version of Ceph has changed",
}


def timing_of(seen: Observed, state: State) -> tuple[State, datetime | None, tuple[Emit, ...]]:
    """Return the state with its next schedule time, the time that is due if one is, and events about a missed one.

    Of several times that are due, the last one counts, unless it is too old.
    It was due when its time came, so a schedule that is added or changed never makes a former time due.
    """
    suite = seen.suite.specification.suite
    if suite is None or suite.spec.schedule is None:
        return replace(state, next_time=None), None, ()
    planned = replace(state, next_time=_next_time(suite.spec.schedule, state, seen.now))
    if state.next_time is None or state.next_time > seen.now:
        return planned, None, ()
    last = last_time_until(suite.spec.schedule, seen.now)
    if last < state.next_time:
        return planned, None, ()
    deadline = suite.spec.schedule.starting_deadline_seconds
    if deadline is not None and seen.now - last > timedelta(seconds=deadline):
        message = (
            f"no round started at {format_time(last)} or in the {deadline} s after it, because another one was active "
            "or the operator was not running; raise spec.schedule.startingDeadlineSeconds to start late"
        )
        missed = Emit(severity=Severity.WARNING, reason="ScheduleMissed", message=message)
        return planned, None, () if suite.spec.suspend else (missed,)
    return state, last, ()


def _next_time(schedule: Schedule, state: State, now: datetime) -> datetime:
    last = state.last_time
    is_ahead = last is not None and now < last < now + LARGEST_CORRECTION
    return first_time_after(schedule, last if last is not None and is_ahead else now)


def next_minute(seen: Observed, state: State) -> int:
    """Return the minute of a round that starts now: later than all known rounds, even if the clock was set back."""
    minutes = [ended.minute for ended in state.ended] + [run.minute for run in seen.runs if not run.is_ahead]
    minutes += [state.active.minute] if state.active else []
    return max(int(seen.now.timestamp()) // 60, *(minute + 1 for minute in minutes), 0)


def open_round(
    seen: Observed, suite: BenchmarkSuite, state: State, cause: Cause, due: datetime | None
) -> tuple[State, Emit]:
    """Return the state with a new round, which answers everything that is due, and the event about it."""
    minute = next_minute(seen, state)
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
        state = replace(state, last_time=due)
        state = replace(state, next_time=_next_time(suite.spec.schedule, state, seen.now))
    is_requested = text_of(seen, REQUEST_ROUND) not in {"", state.requested}
    state = replace(
        state,
        active=active,
        digest=seen.suite.specification.digest,
        requested=text_of(seen, REQUEST_ROUND) if is_requested else state.requested,
        requested_minute=minute if is_requested else state.requested_minute,
        ceph_version=version_of(seen) or state.ceph_version,
    )
    message = f"round {active.name} of {len(names)} run{'s' * (len(names) > 1)} started, because {_BECAUSE[cause]}"
    return state, Emit(severity=Severity.NORMAL, reason="RoundStarted", message=message)


def runs_by_variant(members: Sequence[Member], runs: Iterable[OwnedRun]) -> Mapping[str, Mapping[str, str]]:
    """Return names and UIDs of the runs with numbers, by the name of every variant."""
    with_numbers: dict[str, dict[str, str]] = {member.turn.variant: {} for member in members}
    for run in runs:
        if run.is_finished and run.has_numbers:
            with_numbers[run.variant][run.name] = run.uid
    return with_numbers


def judgement_request(seen: Observed, state: State, active: ActiveRound, members: Sequence[Member]) -> Judge:
    suite, uid, baseline = seen.suite.specification.suite, seen.suite.uid, []
    for earlier in reversed(state.ended):
        if earlier.accepted:
            # Users may create other runs, which are not turns of the round.
            turns = {child_name(suite, member.turn, earlier.minute, uid) for member in members} if suite else set()
            runs = sorted((run for run in seen.runs if run.name in turns), key=lambda run: run.name)
            baseline.append(
                RoundRuns(minute=earlier.minute, digest=earlier.digest, runs=runs_by_variant(members, runs))
            )
    return Judge(
        round=RoundRuns(minute=active.minute, digest=state.digest, runs=_measured_runs(members)),
        baseline=tuple(baseline),
        pinned=tuple(ended.minute for ended in reversed(state.ended) if ended.pinned),
        questions=seen.suite.specification.questions,
    )


def _measured_runs(members: Sequence[Member]) -> Mapping[str, Mapping[str, str]]:
    return runs_by_variant(members, [member.run for member in members if member.run is not None])


def end_round(
    seen: Observed, state: State, active: ActiveRound, members: Sequence[Member]
) -> tuple[State, tuple[Emit, ...]]:
    """Return the state after a measured round, and the event; without an event the round has to be evaluated first.

    Without any numbers there is nothing to evaluate. A judgement counts if it is of the data that the round has now.
    Runs without numbers cannot hide a regression, nor prove that there is none. A round that has all of its runs is
    accepted if it did not regress.
    """
    runs, total = _measured_runs(members), active.children.total
    if not any(runs.values()):
        return _close_round(seen, state, active, RoundVerdict.FAILED, f"none of its {total} runs has numbers")
    judged = seen.memory.judgement
    if judged is None or judged.request != judgement_request(seen, state, active, members):
        return state, ()
    comparisons, hypotheses = worst_comparisons(judged.comparisons), worst_hypotheses(judged.hypotheses)
    state = replace(
        state,
        comparisons=comparisons[:MAX_OUTCOMES],
        comparisons_left_out=max(0, len(comparisons) - MAX_OUTCOMES),
        hypotheses=hypotheses[:MAX_OUTCOMES],
        hypotheses_left_out=max(0, len(hypotheses) - MAX_OUTCOMES),
    )
    verdict, missing = judged.verdict, total - sum(map(len, runs.values()))
    if not missing:
        return _close_round(seen, state, active, verdict, judged.message, judged, is_complete=True)
    if verdict is not RoundVerdict.REGRESSED:
        verdict = RoundVerdict.INCONCLUSIVE if all(runs.values()) else RoundVerdict.FAILED
    message = f"{missing} of its {total} runs have no numbers; {judged.message}"
    return _close_round(seen, state, active, verdict, message, judged)


def supersede_round(seen: Observed, state: State, active: ActiveRound) -> tuple[State, tuple[Emit, ...]]:
    """Return the state after a round that a change made pointless, and the event.

    Nothing counts as measured then: reverting the change starts another round, too. Its current run
    may load the storage, unless it could not be created because another one has its name.
    """
    message = f"what the suite measures changed after {active.children.done} of {active.children.total} runs"
    state, events = _close_round(seen, state, active, RoundVerdict.SUPERSEDED, message)
    refusal = seen.memory.refusal
    is_taken = refusal is not None and refusal.name == active.current and refusal.is_taken and not active.current_uid
    return replace(state, abandoned="" if is_taken else active.current or "", digest=""), events


def _close_round(
    seen: Observed,
    state: State,
    active: ActiveRound,
    verdict: RoundVerdict,
    message: str,
    judged: RecordedEvaluation | None = None,
    *,
    is_complete: bool = False,
) -> tuple[State, tuple[Emit, ...]]:
    versions = sorted(judged.environment.items())[:MAX_ENVIRONMENT] if judged else ()
    record = EndedRound(
        minute=active.minute,
        cause=active.cause,
        start_time=active.start_time,
        completion_time=format_time(seen.now),
        verdict=verdict,
        complete=is_complete,
        accepted=is_complete and judged is not None and judged.is_acceptable and verdict is not RoundVerdict.REGRESSED,
        digest=state.digest,
        environment={name: version[:MAX_VERSION_CHARACTERS] for name, version in versions},
        comparisons=dict(judged.counts) if judged else {},
    )
    is_harmless = verdict in {RoundVerdict.NO_REGRESSION, RoundVerdict.SUPERSEDED}
    event = Emit(
        severity=Severity.NORMAL if is_harmless else Severity.WARNING,
        reason=f"Round{verdict}",
        message=f"round {active.name}: {message}",
    )
    return replace(state, active=None, ended=(record, *state.ended)), (event,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The new state."""

    state: State
    events: tuple[Emit, ...] = ()  # about what has changed, oldest first
    # Cause of a round that is due and cannot start yet; None if none is due or one is active
    waiting: Cause | None = None


def progress_of(seen: Observed) -> Progress:
    """Return the state after everything that has happened. A second application changes nothing.

    An invalid suite keeps its state: it is unknown which turns the active round has. So does one whose status was lost.
    A suspended suite whose digest has changed keeps its round: the active run continues until the suite is resumed.
    """
    suite, state = seen.suite.specification.suite, seen.suite.state
    if suite is None or lost_runs(seen, state):
        return Progress(state=state)
    ending: tuple[Emit, ...] = ()
    if (active := state.active) is not None:
        if measures_digest(seen, state):
            members = members_of(seen, suite, active)
            active = advance(seen, active, members)
            state = replace(state, active=active)
            if active.is_measured:
                state, ending = end_round(seen, state, active, members)
        elif not suite.spec.suspend:
            state, ending = supersede_round(seen, state, active)
    state, acceptance = accept_round(seen, forget_abandoned(seen, state))
    state = drop_rounds(seen, state, suite.spec.keep)
    # With the trigger, the state has the version of the last round: another one is a cause for a round.
    if not (state.ceph_version and suite.spec.triggers.ceph_version):
        state = replace(state, ceph_version=version_of(seen) or state.ceph_version)
    state, due, missed = timing_of(seen, state)
    events = (*ending, *acceptance, *missed)
    cause = None if state.active else cause_due(seen, suite, state, due)
    if cause is None or suite.spec.suspend or is_loaded(seen, state) or not is_checked(seen, state):
        return Progress(state=state, events=events, waiting=cause)
    state, start = open_round(seen, suite, state, cause, due)
    return Progress(state=state, events=(*events, start))


def is_loaded(seen: Observed, state: State) -> bool:
    """Whether a run of the suite may load the storage."""
    return bool(seen.unfinished or state.abandoned)


def is_checked(seen: Observed, state: State) -> bool:
    """Whether the API server accepts the runs of all variants, as an earlier round or a dry run shows."""
    digest, checked = seen.suite.specification.digest, seen.memory.checked
    return digest == state.digest or (checked is not None and checked.digest == digest and not checked.variant)


def measures_digest(seen: Observed, state: State) -> bool:
    """Whether the active round, if any, measures what the suite asks for now."""
    return seen.suite.specification.digest == state.digest
