"""A suite's status: what it remembers, its conditions, and texts for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from plimsoll.api import suite_status
from plimsoll.api.names import ConditionStatus, SuiteConditionType
from plimsoll.api.reasons.suites import SUITE_TABLE, SuiteReason
from plimsoll.api.status import SuiteCondition, format_time, set_condition
from plimsoll.api.suite_status import BenchmarkSuiteStatus, Cause, RoundChildren, RoundVerdict, SuiteDisplay
from plimsoll.suite.rounds.actions import CreateRun, DryRun, GetRun, Request
from plimsoll.suite.rounds.baseline import last_judged, open_regression
from plimsoll.suite.rounds.observed import ActiveRound, EndedRound, Observed, Outcomes, OwnedRun, State
from plimsoll.suite.rounds.progress import Progress
from plimsoll.suite.rounds.requests import blocking_run, is_overdue, refusal_of, refused_check
from plimsoll.suite.rounds.turns import lost_runs, strange_runs

_MAX_MINUTES = 5
"""Rounds that a message names."""

_MAX_RUNS = 3
"""Runs that a message names. Labels select no runs: whoever made a run chose them."""

_REFUSED = frozenset({SuiteReason.NAME_TAKEN, SuiteReason.RUN_REFUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One condition: whether it holds (None: unknown), its reason and its message."""

    holds: bool | None
    reason: SuiteReason
    message: str = ""


def facts_of(seen: Observed, progress: Progress, request: Request | None) -> Mapping[SuiteConditionType, Fact]:
    """Return the conditions by type. Reconciling and Stalled exist only if they are True."""
    regressed = _regressed(progress.state)
    change, waiting = _reconciling(seen, progress), _waiting_for_run(seen, progress)
    obstacle = _obstacle(seen, request) or (waiting if waiting is not None and is_overdue(seen) else None)
    stalled = obstacle or (_closed_gate(seen, regressed) if change is None else None)
    reconciling = waiting or change
    found = {SuiteConditionType.REGRESSED: regressed}
    if stalled is not None:
        found[SuiteConditionType.STALLED] = stalled
    elif reconciling is not None:
        found[SuiteConditionType.RECONCILING] = reconciling
    blocker = stalled or reconciling
    ready = _ready(seen, progress)
    if blocker is not None:
        ready = Fact(holds=False, reason=blocker.reason, message=blocker.message)
    return found | {SuiteConditionType.READY: ready}


def _obstacle(seen: Observed, request: Request | None) -> Fact | None:
    """Return what keeps the suite from measuring until somebody changes something; None if nothing does.

    `request` is the next one, even while it waits to be repeated.
    """
    lost = lost_runs(seen, seen.suite.state)
    if lost:
        return _status_lost(seen, lost)
    problem = seen.suite.specification.problem
    if problem:
        return Fact(holds=True, reason=SuiteReason.INVALID_SPEC, message=problem)
    checked = refused_check(seen)
    if checked is not None and isinstance(request, DryRun):
        return _with_remedy(SuiteReason.VARIANT_REFUSED, f"variant {checked.variant}: {checked.message}")
    refusal = refusal_of(seen, request)
    if refusal is None:
        return _refused_before(seen, request)
    if refusal.is_taken:
        return _with_remedy(SuiteReason.NAME_TAKEN, f"BenchmarkRun {refusal.name} {refusal.message}")
    return _with_remedy(SuiteReason.RUN_REFUSED, f"BenchmarkRun {refusal.name} was refused: {refusal.message}")


def _status_lost(seen: Observed, runs: Sequence[OwnedRun]) -> Fact:
    minutes = tuple(dict.fromkeys(run.minute for run in runs))
    is_one = len(minutes) == 1
    shown = ", ".join(map(str, minutes[:_MAX_MINUTES])) + ", ..." * (len(minutes) > _MAX_MINUTES)
    rounds = f"round {shown} has runs" if is_one else f"rounds {shown} have runs"
    names = " ".join(run.name for run in runs[:_MAX_RUNS])
    others = f", and {len(runs) - _MAX_RUNS} more" if len(runs) > _MAX_RUNS else ""
    message = (
        f"{rounds}, but the status does not have {'it' if is_one else 'them'}, because it was lost or set back; "
        "nothing is measured or deleted until the status is restored from a backup, or these runs are deleted: "
        f"kubectl delete benchmarkruns -n {seen.suite.namespace} {names}{others}"
    )
    return Fact(holds=True, reason=SuiteReason.STATUS_LOST, message=message)


def _refused_before(seen: Observed, request: Request | None) -> Fact | None:
    """Return the refusal that the status has, until a restarted operator knows the outcome of the same request."""
    before = seen.suite.conditions.get(SuiteConditionType.STALLED)
    if before is None or before.observed_generation != seen.suite.generation:
        return None
    is_check = isinstance(request, DryRun) and before.reason == SuiteReason.VARIANT_REFUSED
    is_same = isinstance(request, CreateRun | GetRun) and f"BenchmarkRun {request.name} " in before.message
    if not is_check and not (is_same and before.reason in _REFUSED):
        return None
    return Fact(holds=True, reason=SuiteReason(before.reason), message=before.message)


def _closed_gate(seen: Observed, regressed: Fact) -> Fact | None:
    suite = seen.suite.specification.suite
    return regressed if suite is not None and suite.spec.gate and regressed.holds else None


def _reconciling(seen: Observed, progress: Progress) -> Fact | None:
    """Return the progress of measuring a change; None if no change is being measured."""
    suite, active = seen.suite.specification.suite, progress.state.active
    if suite is None or suite.spec.suspend:
        return None
    if active is not None and active.cause is Cause.CHANGE:
        return Fact(holds=True, reason=SuiteReason.MEASURING, message=progress_message(active))
    return _checking() if progress.waiting is Cause.CHANGE else None


def _waiting_for_run(seen: Observed, progress: Progress) -> Fact | None:
    """Return which run has to end before the next one starts; None if there is none."""
    name = blocking_run(seen, progress)
    if not name:
        return None
    message = f"BenchmarkRun {name} has to end before the next run of the suite can start"
    return _with_remedy(SuiteReason.WAITING_FOR_RUN, message)


def _checking() -> Fact:
    message = "the API server checks the run of every variant"
    return Fact(holds=True, reason=SuiteReason.CHECKING_VARIANTS, message=message)


def _ready(seen: Observed, progress: Progress) -> Fact:
    """Return the condition of a suite that is neither reconciling nor stalled, with the runs that it ignores."""
    fact = _rest(seen, progress)
    strange = strange_runs(seen, progress.state)
    if not strange:
        return fact
    names = ", ".join(run.name for run in strange[:_MAX_RUNS]) + ", ..." * (len(strange) > _MAX_RUNS)
    message = f"{fact.message}; ignored, because the suite cannot have created them before their time: {names}"
    return replace(fact, message=message)


def _rest(seen: Observed, progress: Progress) -> Fact:
    suite, state = seen.suite.specification.suite, progress.state
    if suite is not None and suite.spec.suspend:
        message = "no run is created until spec.suspend is false"
        return Fact(holds=True, reason=SuiteReason.SUSPENDED, message=message)
    if state.active is not None:
        return Fact(holds=True, reason=SuiteReason.MEASURING, message=progress_message(state.active))
    if progress.waiting is not None:
        return _checking()
    message = f"the next round starts at {format_time(state.next_time)}" if state.next_time else "no round is due"
    return Fact(holds=True, reason=SuiteReason.IDLE, message=message)


def progress_message(active: ActiveRound) -> str:
    """Return the progress of a round in one line."""
    if active.is_measured:
        return f"round {active.minute}: its results are being evaluated"
    return f"round {active.minute}: run {active.done + 1} of {active.total}"


def _regressed(state: State) -> Fact:
    """Return whether a round was worse than its baseline, and no later one showed that this is over."""
    last, regression = last_judged(state), open_regression(state)
    if last is None:
        return Fact(holds=None, reason=SuiteReason.NOT_EVALUATED, message="no round has been evaluated yet")
    if regression is not None:
        message = f"round {regression.minute} is worse than its baseline"
        later = f", and round {last.minute} does not show that this is over" if last != regression else ""
        return _with_remedy(SuiteReason.REGRESSED, message + later)
    match last.verdict:
        case RoundVerdict.REGRESSED:
            message = f"round {last.minute} regressed and was accepted"
            return Fact(holds=False, reason=SuiteReason.ACCEPTED, message=message)
        case RoundVerdict.NO_REGRESSION:
            message = f"round {last.minute} is not worse than its baseline"
            if not last.counts:
                message = f"round {last.minute} was measured; the suite compares no rounds"
            return Fact(holds=False, reason=SuiteReason.NO_REGRESSION, message=message)
    message = f"round {last.minute} does not show whether there is a regression"
    return _with_remedy(SuiteReason.INCONCLUSIVE, message, holds=None)


def _with_remedy(reason: SuiteReason, message: str, *, holds: bool | None = True) -> Fact:
    return Fact(holds=holds, reason=reason, message=f"{message}; {SUITE_TABLE[reason].remedy}")


Json = dict[str, Any]

_MAX_MESSAGE = 2000
_MAX_DISPLAY = 1024
_MAX_ENVIRONMENT = 16
_MAX_VERSION = 256
"""Maximum length of a version in the environment of a round."""
_STATUS_OF = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}


def status_of(seen: Observed, state: State, facts: Mapping[SuiteConditionType, Fact]) -> Json:
    """Return the whole status. A field that is None will be removed."""
    status = BenchmarkSuiteStatus(
        observed_generation=seen.suite.generation,
        conditions=_conditions(seen, facts),
        digest=state.digest or None,
        requested_round=state.requested or None,
        requested_minute=state.requested_minute or None,
        accepted_round=state.accepted or None,
        next_schedule_time=_text(state.next_time),
        last_schedule_time=_text(state.last_time),
        ceph_version=state.ceph_version or None,
        round=_active_document(state.active) if state.active else None,
        abandoned_run=state.abandoned or None,
        rounds=tuple(map(_ended_document, state.ended)),
        baseline=_baseline_document(state),
        dropped=state.dropped,
        comparisons=state.comparisons.shown,
        comparisons_left_out=state.comparisons.left_out or None,
        hypotheses=state.hypotheses.shown,
        hypotheses_left_out=state.hypotheses.left_out or None,
        display=_display(state, facts),
    )
    known = status.model_dump(mode="json", exclude_none=True)
    names = [field.serialization_alias or name for name, field in BenchmarkSuiteStatus.model_fields.items()]
    return {name: known.get(name) for name in names}


def is_written(status: Json, stored: Mapping[str, Any]) -> bool:
    """Whether the API server has that status."""
    return {name: value for name, value in status.items() if value is not None} == stored


def read_state(status: Mapping[str, Any]) -> State:
    """Return what a stored status remembers.

    Raises:
        pydantic.ValidationError: it is not of this version.

    """
    known = BenchmarkSuiteStatus.model_validate(status)
    return State(
        digest=known.digest or "",
        requested=known.requested_round or "",
        requested_minute=known.requested_minute or 0,
        accepted=known.accepted_round or "",
        next_time=_time(known.next_schedule_time),
        last_time=_time(known.last_schedule_time),
        ceph_version=known.ceph_version or "",
        active=_active(known.round) if known.round else None,
        abandoned=known.abandoned_run or "",
        ended=tuple(map(_ended, known.rounds)),
        first=(known.baseline and known.baseline.first) or 0,
        since=(known.baseline and known.baseline.since) or 0,
        dropped=known.dropped,
        comparisons=Outcomes(shown=known.comparisons, left_out=known.comparisons_left_out or 0),
        hypotheses=Outcomes(shown=known.hypotheses, left_out=known.hypotheses_left_out or 0),
    )


def read_conditions(status: Mapping[str, Any]) -> dict[SuiteConditionType, SuiteCondition]:
    """Return the conditions of a status by type."""
    found = (SuiteCondition.model_validate(one) for one in status.get("conditions", ()))
    return {one.type: one for one in found}


def _conditions(seen: Observed, facts: Mapping[SuiteConditionType, Fact]) -> tuple[SuiteCondition, ...]:
    """Return the conditions. Those about which there is no fact do not hold, and are absent."""
    conditions = tuple(one for kind, one in seen.suite.conditions.items() if kind in facts)
    for kind, fact in facts.items():
        new = SuiteCondition(
            type=kind,
            status=_STATUS_OF[fact.holds],
            observed_generation=seen.suite.generation,
            reason=fact.reason,
            message=fact.message[:_MAX_MESSAGE],
        )
        conditions = set_condition(conditions, new, seen.now)
    return conditions


def _display(state: State, facts: Mapping[SuiteConditionType, Fact]) -> SuiteDisplay:
    """Return texts for people: what the suite does or what is wrong with it, and how its last round ended."""
    ready, active = facts[SuiteConditionType.READY], state.active
    return SuiteDisplay(
        status=ready.reason,
        progress=f"{active.done}/{active.total}" if active else None,
        verdict=state.ended[0].verdict if state.ended else None,
        message=ready.message[:_MAX_DISPLAY],
    )


def _baseline_document(state: State) -> suite_status.Baseline | None:
    known = suite_status.Baseline(first=state.first or None, since=state.since or None)
    return known if state.first or state.since else None


def _active_document(active: ActiveRound) -> suite_status.ActiveRound:
    return suite_status.ActiveRound(
        minute=active.minute,
        seed=active.seed,
        cause=active.cause,
        start_time=format_time(active.started),
        children=RoundChildren(done=active.done, total=active.total),
        current=active.current or None,
        current_uid=active.uid or None,
    )


def _active(known: suite_status.ActiveRound) -> ActiveRound:
    return ActiveRound(
        minute=known.minute,
        seed=known.seed,
        cause=known.cause,
        started=datetime.fromisoformat(known.start_time),
        done=known.children.done,
        total=known.children.total,
        current=known.current or "",
        uid=known.current_uid or "",
    )


def _ended_document(one: EndedRound) -> suite_status.EndedRound:
    return suite_status.EndedRound(
        minute=one.minute,
        cause=one.cause,
        start_time=format_time(one.started),
        completion_time=format_time(one.ended),
        verdict=one.verdict,
        complete=one.complete,
        accepted=one.accepted,
        pinned=one.pinned,
        former=one.former,
        digest=one.digest,
        environment={name: one.environment[name][:_MAX_VERSION] for name in sorted(one.environment)[:_MAX_ENVIRONMENT]},
        comparisons=dict(one.counts),
    )


def _ended(known: suite_status.EndedRound) -> EndedRound:
    return EndedRound(
        minute=known.minute,
        cause=known.cause,
        started=datetime.fromisoformat(known.start_time),
        ended=datetime.fromisoformat(known.completion_time),
        verdict=known.verdict,
        complete=known.complete,
        accepted=known.accepted,
        pinned=known.pinned,
        former=known.former,
        digest=known.digest,
        environment=known.environment,
        counts=known.comparisons,
    )


def _text(time: datetime | None) -> str | None:
    return format_time(time) if time is not None else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
