"""The conditions of a suite.

kstatus reads Reconciling, Stalled and Ready: only a round that was started by a change makes a suite InProgress.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.suites import SUITE_TABLE, SuiteReason
from plimsoll.api.status import format_time
from plimsoll.api.suite_status import Cause, RoundVerdict
from plimsoll.suite.rounds.actions import CreateRun, DryRun, GetRun, Request
from plimsoll.suite.rounds.baseline import last_judged, open_regression
from plimsoll.suite.rounds.keeping import lost_runs, strange_runs
from plimsoll.suite.rounds.observed import Observed, OwnedRun
from plimsoll.suite.rounds.progress import Progress
from plimsoll.suite.rounds.requests import refusal_of, refused_check
from plimsoll.suite.rounds.state import ActiveRound, State
from plimsoll.suite.rounds.waiting import blocking_run, is_overdue

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
