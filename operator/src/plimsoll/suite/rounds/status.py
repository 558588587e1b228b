"""A suite's status: its conditions, and texts for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from plimsoll.api.json_reader import printable_text
from plimsoll.api.names import ConditionStatus, SuiteConditionType
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.api.status import SuiteCondition, set_condition
from plimsoll.api.suite_status import ActiveRound, Cause, RoundVerdict, SuiteDisplay, round_name
from plimsoll.suite.rounds.observed import (
    JUDGED,
    Checked,
    CreateRun,
    DryRun,
    GetRun,
    Observed,
    Request,
    RunRefusal,
    State,
)
from plimsoll.suite.rounds.turns import last_judged, lost_runs, open_regression, strange_runs

_MAX_MINUTES, _MAX_RUNS = 5, 3  # rounds and runs that a message names; whoever made a run chose its labels

_MAX_MESSAGE = 2000
_MAX_DISPLAY = 1024
_STATUS_OF = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}

_ASKED = {Cause.CHANGE: "change", Cause.REQUESTED: "request"}

_PATIENCE = timedelta(minutes=10)  # a run that has not ended after so long may never end: a person has to look at it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One condition: whether it holds (None: unknown), its reason and its message."""

    holds: bool | None
    reason: SuiteReason
    message: str


def _fact(reason: SuiteReason, message: str, *, holds: bool | None = True) -> Fact:
    return Fact(holds=holds, reason=reason, message="; ".join(filter(None, (message, reason.entry.remedy))))


_CHECKING = _fact(SuiteReason.CHECKING_VARIANTS, "the API server checks the run of every variant")


def facts_of(
    seen: Observed, state: State, due: Cause | None, request: Request | None
) -> Mapping[SuiteConditionType, Fact]:
    """Return the conditions by type, Reconciling and Stalled only if True; `due` causes a round that has to wait."""
    suite, regressed = seen.suite.specification.suite, _regressed(state)
    is_active = suite is not None and not suite.spec.suspend
    change, active = None, state.round
    if is_active and Cause.CHANGE in (due, active and active.cause):
        change = _fact(SuiteReason.MEASURING, progress_message(active)) if active else _CHECKING
    waiting = _waiting_for_run(seen, state, due) if is_active else None
    stalled = _obstacle(seen, request) or (waiting if waiting is not None and _is_overdue(seen) else None)
    if stalled is None and change is None and suite is not None:
        stalled = regressed if suite.spec.gate and regressed.holds else _not_measured(state)
    facts = {SuiteConditionType.REGRESSED: regressed}
    blocker = stalled or waiting or change
    if blocker is None:
        return facts | {SuiteConditionType.READY: _ready(seen, state, due)}
    facts[SuiteConditionType.STALLED if stalled is not None else SuiteConditionType.RECONCILING] = blocker
    return facts | {SuiteConditionType.READY: replace(blocker, holds=False)}


def recorded_refusal(seen: Observed, request: Request | None) -> RunRefusal | None:
    """Return the refusal of a request that was made before; None if it was not refused."""
    refusal = seen.memory.refusal
    is_same = isinstance(request, CreateRun | GetRun) and refusal is not None and refusal.name == request.name
    return refusal if is_same else None


def refused_check(seen: Observed) -> Checked | None:
    """Return the dry run that refused a variant of the suite as it is now; None if none did."""
    checked, digest = seen.memory.checked, seen.suite.specification.digest
    return checked if checked is not None and checked.digest == digest and checked.variant else None


def _obstacle(seen: Observed, request: Request | None) -> Fact | None:
    if lost := lost_runs(seen, seen.suite.status):
        rounds = _first([*map(round_name, dict.fromkeys(run.minute for run in lost))], _MAX_MINUTES)
        message = (
            f"there are runs of rounds that the status does not have ({rounds}), because it was lost or set back; "
            "nothing is measured or deleted until the status is restored from a backup, or these runs are deleted: "
            f"kubectl delete benchmarkruns -n {seen.suite.namespace} "
            f"{_first([run.name for run in lost], _MAX_RUNS, ' ')}"
        )
        return _fact(SuiteReason.STATUS_LOST, message)
    if problem := seen.suite.specification.problem:
        return _fact(SuiteReason.INVALID_SPEC, problem)
    checked = refused_check(seen)
    if checked is not None and isinstance(request, DryRun):
        return _fact(SuiteReason.VARIANT_REFUSED, f"variant {checked.variant}: {checked.message}")
    refusal = recorded_refusal(seen, request)
    if refusal is None:
        return _refused_before(seen, request)
    if refusal.is_taken:
        return _fact(SuiteReason.NAME_TAKEN, f"BenchmarkRun {refusal.name} {refusal.message}")
    return _fact(SuiteReason.RUN_REFUSED, f"BenchmarkRun {refusal.name} was refused: {refusal.message}")


def _first(names: Sequence[str], most: int, separator: str = ", ") -> str:
    return separator.join(names[:most]) + f" and {len(names) - most} more" * (len(names) > most)


def _refused_before(seen: Observed, request: Request | None) -> Fact | None:
    """Return the refusal that the status has, until a restarted operator knows the outcome of the same request."""
    before = seen.suite.conditions.get(SuiteConditionType.STALLED)
    if before is None or before.observed_generation != seen.suite.generation:
        return None
    is_same = isinstance(request, DryRun) and before.reason == SuiteReason.VARIANT_REFUSED
    if isinstance(request, CreateRun | GetRun) and before.reason in {SuiteReason.NAME_TAKEN, SuiteReason.RUN_REFUSED}:
        is_same = f"BenchmarkRun {request.name} " in before.message
    return Fact(holds=True, reason=SuiteReason(before.reason), message=before.message) if is_same else None


def _waiting_for_run(seen: Observed, state: State, due: Cause | None) -> Fact | None:
    active, name = state.round, None
    if active is None:
        if due is not None:
            name = next((run.name for run in seen.unfinished()), state.abandoned_run)
    elif not active.is_measured and not active.current_uid:
        name = next((run.name for run in seen.unfinished(active.current)), None)
    if not name:
        return None
    return _fact(SuiteReason.WAITING_FOR_RUN, f"BenchmarkRun {name} has to end before the next run of the suite starts")


def _is_overdue(seen: Observed) -> bool:  # whether it has waited for a run for long enough
    for kind, condition in seen.suite.conditions.items():
        if condition.reason == SuiteReason.WAITING_FOR_RUN and kind is not SuiteConditionType.READY:
            since = datetime.fromisoformat(condition.last_transition_time)
            return kind is SuiteConditionType.STALLED or seen.now - since >= _PATIENCE
    return False


def _ready(seen: Observed, state: State, due: Cause | None) -> Fact:
    """Return the condition of a suite that is neither reconciling nor stalled, with the runs that it ignores."""
    suite = seen.suite.specification.suite
    if suite is not None and suite.spec.suspend:
        fact = _fact(SuiteReason.SUSPENDED, "no run is created until spec.suspend is false")
    elif state.round is not None:
        fact = _fact(SuiteReason.MEASURING, progress_message(state.round))
    elif due is not None:
        fact = _CHECKING
    else:
        next_time = state.next_schedule_time
        fact = _fact(SuiteReason.IDLE, f"the next round starts at {next_time}" if next_time else "no round is due")
    if not (strange := strange_runs(seen, state)):
        return fact
    names = _first([run.name for run in strange], _MAX_RUNS)
    message = f"{fact.message}; ignored, because the suite cannot have created them before their time: {names}"
    return replace(fact, message=message)


def progress_message(active: ActiveRound) -> str:
    if active.is_measured:
        return f"round {active.name}: its results are being evaluated"
    return f"round {active.name}: run {active.children.done + 1} of {active.children.total}"


def _regressed(state: State) -> Fact:
    last, regression = last_judged(state), open_regression(state)
    if last is None:
        return _fact(SuiteReason.NOT_EVALUATED, "no round has been evaluated yet", holds=None)
    if regression is not None:
        message = f"round {regression.name} is worse than its baseline"
        if last != regression:
            message += f", and round {last.name} does not show that the regression is gone"
        # Comparisons between variants have no drift.
        elif worst := next((outcome for outcome in state.comparisons if outcome.drift is not None), None):
            message += f": comparison {worst.name}, variant {worst.variant}: {worst.message}"
        return _fact(SuiteReason.REGRESSED, message)
    match last.verdict:
        case RoundVerdict.REGRESSED:
            return _fact(SuiteReason.ACCEPTED, f"round {last.name} regressed and was accepted", holds=False)
        case RoundVerdict.NO_REGRESSION:
            what = "is not worse than its baseline" if last.comparisons else f"was {last.ending}"
            return _fact(SuiteReason.NO_REGRESSION, f"round {last.name} {what}", holds=False)
    return _fact(SuiteReason.INCONCLUSIVE, f"round {last.name} does not show if there is a regression", holds=None)


def _not_measured(state: State) -> Fact | None:
    for ended in state.rounds:
        if ended.verdict in JUDGED:
            return None
        if ended.verdict is RoundVerdict.FAILED and ended.cause in _ASKED:
            message = f"round {ended.name}, of a {_ASKED[ended.cause]}, measured too little to be evaluated"
            return _fact(SuiteReason.ROUND_FAILED, message)
    return None


def status_of(seen: Observed, state: State, facts: Mapping[SuiteConditionType, Fact]) -> State:
    """Return the whole status."""
    ready, active = facts[SuiteConditionType.READY], state.round
    # A condition without a fact does not hold, and is absent.
    conditions = tuple(condition for kind, condition in seen.suite.conditions.items() if kind in facts)
    for kind, fact in facts.items():
        new = SuiteCondition(
            type=kind,
            status=_STATUS_OF[fact.holds],
            observed_generation=seen.suite.generation,
            reason=fact.reason,
            message=printable_text(fact.message[:_MAX_MESSAGE]),
        )
        conditions = set_condition(conditions, new, seen.now)
    last = next(iter(state.rounds), None)
    display = SuiteDisplay(
        status=ready.reason,
        progress=f"{active.children.done}/{active.children.total}" if active else None,
        verdict=None if last is None else "Measured" if last.compares_none else last.verdict,
        message=ready.message[:_MAX_DISPLAY],
    )
    update = {"observed_generation": seen.suite.generation, "conditions": conditions, "display": display}
    return state.model_copy(update=update)
