"""How the active round ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll.api.reasons.entry import Severity
from plimsoll.api.suite_status import RoundVerdict
from plimsoll.suite.children import child_name
from plimsoll.suite.rounds.actions import Emit, Judge, RoundRuns, RunVersion
from plimsoll.suite.rounds.observed import Judgement, Observed, OwnedRun
from plimsoll.suite.rounds.outcomes import worst_comparisons, worst_hypotheses
from plimsoll.suite.rounds.state import ActiveRound, EndedRound, State
from plimsoll.suite.rounds.turns import Member

_HARMLESS = frozenset({RoundVerdict.NO_REGRESSION, RoundVerdict.SUPERSEDED})


def runs_by_variant(members: Sequence[Member]) -> Mapping[str, tuple[RunVersion, ...]]:
    """Return the runs with numbers, by the name of every variant."""
    found: dict[str, tuple[RunVersion, ...]] = {member.turn.variant: () for member in members}
    for member in members:
        if member.run is not None and member.run.is_finished and member.run.succeeded:
            found[member.turn.variant] += (_version(member.run),)
    return found


def judgement_request(seen: Observed, state: State, active: ActiveRound, members: Sequence[Member]) -> Judge:
    """Return the request to evaluate the active round."""
    return Judge(
        round=RoundRuns(minute=active.minute, digest=state.digest, runs=runs_by_variant(members)),
        baseline=tuple(_data(seen, one, members) for one in reversed(state.ended) if one.accepted),
        pinned=tuple(one.minute for one in reversed(state.ended) if one.pinned),
        questions=seen.suite.specification.questions,
    )


def _data(seen: Observed, earlier: EndedRound, members: Sequence[Member]) -> RoundRuns:
    """Return the data of an earlier round. Users may make runs that are none of its turns; these do not count."""
    runs: dict[str, tuple[RunVersion, ...]] = {member.turn.variant: () for member in members}
    suite, uid = seen.suite.specification.suite, seen.suite.uid
    turns = {child_name(suite, member.turn, earlier.minute, uid) for member in members} if suite else set()
    for run in sorted(seen.runs, key=lambda one: one.name):
        if run.name in turns and run.is_finished and run.succeeded:
            runs[run.variant] = (*runs[run.variant], _version(run))
    return RoundRuns(minute=earlier.minute, digest=earlier.digest, runs=runs)


def _version(run: OwnedRun) -> RunVersion:
    return RunVersion(name=run.name, uid=run.uid)


def ended(seen: Observed, state: State, active: ActiveRound, members: Sequence[Member]) -> tuple[State, Emit] | None:
    """Return the state after a measured round, and the event; None while the round has to be evaluated.

    Without any numbers there is nothing to evaluate. A judgement counts if it is of the data that the round has now.
    """
    runs = runs_by_variant(members)
    if not any(runs.values()):
        return _closed(seen, state, active, RoundVerdict.FAILED, f"none of its {active.total} runs has numbers")
    judged = seen.memory.judgement
    if judged is None or judged.request != judgement_request(seen, state, active, members):
        return None
    missing = active.total - sum(map(len, runs.values()))
    verdict = _verdict(judged.verdict, runs, missing)
    comparisons, hypotheses = worst_comparisons(judged.comparisons), worst_hypotheses(judged.hypotheses)
    state = replace(state, comparisons=comparisons, hypotheses=hypotheses)
    message = f"{missing} of its {active.total} runs have no numbers; {judged.message}" if missing else judged.message
    state, event = _closed(seen, state, active, verdict, message, judged)
    return (state, event) if missing else (_completed(state, judged), event)


def superseded(seen: Observed, state: State, active: ActiveRound) -> tuple[State, Emit]:
    """Return the state after a round that a change made pointless, and the event.

    Nothing counts as measured then: also a change back to what the round measured starts another one. Its current run
    may load the storage, unless it could not be created because another one has its name.
    """
    message = f"what the suite measures changed after {active.done} of {active.total} runs"
    state, event = _closed(seen, state, active, RoundVerdict.SUPERSEDED, message)
    refusal = seen.memory.refusal
    is_taken = refusal is not None and refusal.name == active.current and refusal.is_taken and not active.uid
    return replace(state, abandoned="" if is_taken else active.current, digest=""), event


def _verdict(judged: RoundVerdict, runs: Mapping[str, tuple[RunVersion, ...]], missing: int) -> RoundVerdict:
    """Return the verdict of a round. Runs without numbers cannot hide a regression, nor prove that there is none."""
    if judged is RoundVerdict.REGRESSED or not missing:
        return judged
    return RoundVerdict.INCONCLUSIVE if all(runs.values()) else RoundVerdict.FAILED


def _completed(state: State, judged: Judgement) -> State:
    """Return the state whose last round has all of its runs. It is accepted if it did not regress."""
    last, *earlier = state.ended
    is_accepted = judged.is_acceptable and judged.verdict is not RoundVerdict.REGRESSED
    return replace(state, ended=(replace(last, complete=True, accepted=is_accepted), *earlier))


def _closed(
    seen: Observed,
    state: State,
    active: ActiveRound,
    verdict: RoundVerdict,
    message: str,
    judged: Judgement | None = None,
) -> tuple[State, Emit]:
    record = EndedRound(
        minute=active.minute,
        cause=active.cause,
        started=active.started,
        ended=seen.now,
        verdict=verdict,
        digest=state.digest,
        environment=judged.environment if judged else {},
        counts=judged.counts if judged else {},
    )
    severity = Severity.NORMAL if verdict in _HARMLESS else Severity.WARNING
    event = Emit(severity=severity, reason=f"Round{verdict}", message=f"round {active.minute}: {message}")
    return replace(state, active=None, ended=(record, *state.ended)), event
