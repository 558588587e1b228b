"""When the last trial of a run should be over, as far as that can be told from what is observed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from statistics import fmean, median

from plimsoll.api.names import ConditionType, Outcome, RunPhase
from plimsoll.api.state import RunState
from plimsoll.lifecycle.measured import TrialFact
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.estimate import estimate, trial_seconds

_TOLERATED_SECONDS = 10.0
"""How much an estimate may be wrong without anything being said."""

_TOLERATED_SHARE = 0.1
"""The same, of what is left: or every look at a prefill would be a write."""


def estimated_end(run: Run, seen: Observed, now: datetime) -> datetime | None:
    """Return when the last trial should be over if nothing more has to be repeated; None while nobody can tell.

    It is said when all clients have registered, anew with each attempt, and while volumes are prefilled when it has
    become wrong. Whatever else holds a run up does not move it: a run that is late can be told by it.
    """
    plan, state = seen.plan, seen.state
    if plan is None or state is None or run.is_suspended:
        return None
    before = said_end(run)
    if not seen.all_registered or not 0 <= state.trials_done < state.trials_total:
        return before
    pace = _pace(plan, seen)
    match state.phase:
        case RunPhase.MEASURING:
            return _end_from_trial(plan, state, pace) or before or _after(now, _left_seconds(plan, state, pace))
        case RunPhase.SETTLING:
            new = _after(now, plan.prepare.settle_seconds + _left_seconds(plan, state, pace))
            return _unless_close(before, new, now, may_grow=False)
        case RunPhase.PREPARING:
            cost = estimate(plan)
            afterwards = cost.precondition_seconds + cost.settle_seconds + _left_seconds(plan, state, pace)
            new = _after(now, _prefill_seconds(run, state, cost.prefill_seconds, now) + afterwards)
            return _unless_close(before, new, now, may_grow=not _is_filled(state))
        case _:
            return before


def is_late(end: datetime | None, now: datetime) -> bool:
    """Tell whether the end that was estimated has passed."""
    return age_seconds(end, now) > _TOLERATED_SECONDS


def said_end(run: Run) -> datetime | None:
    """Return the estimate that the run's status has; None if it has none."""
    text = run.status.get("estimatedCompletionTime")
    return datetime.fromisoformat(text) if text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """How long trials really take, in seconds.

    Attributes:
        known: by point, of those that were measured.
        between: from the end of one to the beginning of the next.
        ratio: of what trials took to what was planned for them.

    """

    known: Mapping[str, float]
    between: float
    ratio: float

    def seconds(self, point: Point) -> float:
        """Return how long a trial of a point should take, from its beginning to that of the next one."""
        known = self.known.get(point.name)
        return known + self.between if known is not None else trial_seconds(point) * self.ratio


def _pace(plan: Plan, seen: Observed) -> _Pace:
    """Learn from what is measured; without anything a trial takes what is planned."""
    took = {point.name: tuple(_seconds_taken(seen, point.name)) for point in plan.points}
    gaps = [max(0.0, gap) for gap in _gaps(seen)]
    between = median(gaps) if gaps else 0.0
    planned = sum(len(took[point.name]) * trial_seconds(point) for point in plan.points)
    taken = sum(seconds + between for all_taken in took.values() for seconds in all_taken)
    return _Pace(
        known={name: fmean(seconds) for name, seconds in took.items() if seconds},
        between=between,
        ratio=taken / planned if planned else 1.0,
    )


def _trials(seen: Observed, point: str) -> Sequence[TrialFact]:
    return seen.results[point].trials if point in seen.results else ()


def _seconds_taken(seen: Observed, point: str) -> Iterator[float]:
    """Yield how long the attempts at a point took that were measured to their end."""
    for trial in _trials(seen, point):
        if trial.outcome is Outcome.MEASURED:
            yield max(0.0, (trial.finished - trial.started).total_seconds())


def _gaps(seen: Observed) -> Iterator[float]:
    """Yield the seconds between one attempt and the next of the same conductor."""
    trials = [trial for point in seen.results for trial in _trials(seen, point)]
    trials.sort(key=lambda trial: trial.started)
    for one, other in pairwise(trials):
        if one.epoch == other.epoch:
            yield (other.started - one.finished).total_seconds()


def _left(plan: Plan, state: RunState) -> list[tuple[int, Point]]:
    """Return pass and point of the trials that are not done, in their order; one that is under way is the first."""
    passes = enumerate(plan.order)
    return [(number, plan.points[index]) for number, indices in passes for index in indices][state.trials_done :]


def _left_seconds(plan: Plan, state: RunState, pace: _Pace) -> float:
    return sum(pace.seconds(point) for _, point in _left(plan, state))


def _end_from_trial(plan: Plan, state: RunState, pace: _Pace) -> datetime | None:
    """Return when the last trial should be over, reckoned from the one under way; None if there is none.

    It is the same at every look during an attempt, however long that takes.
    """
    trial = state.in_flight
    number, point = _left(plan, state)[0]
    if trial is None or (trial.pass_number, trial.point) != (number, point.name):
        return None
    begun = _moment(state.in_flight_since) if state.in_flight_since else _start_of(state)
    return _after(begun, _left_seconds(plan, state, pace)) if begun else None


def _start_of(state: RunState) -> datetime | None:
    return datetime.fromtimestamp(state.current.starts_at, tz=UTC) if state.current else None


def _prefill_seconds(run: Run, state: RunState, guess: int, now: datetime) -> float:
    """Return how long the prefill still takes, at the rate that it has had since the clients were there."""
    ready = run.conditions.get(ConditionType.CLIENTS_READY)
    since = _moment(ready.last_transition_time) if ready and ready.last_transition_time else now
    done, total = state.prefill.done_bytes, state.prefill.total_bytes
    passed = age_seconds(since, now)
    if not done or passed < _TOLERATED_SECONDS:
        return max(0.0, guess - passed)
    return max(0, total - done) * passed / done


def _is_filled(state: RunState) -> bool:
    return 0 < state.prefill.total_bytes <= state.prefill.done_bytes


def _unless_close(before: datetime | None, new: datetime, now: datetime, *, may_grow: bool) -> datetime:
    """Return what was said before if that is still right, or if the new one may not be later and is."""
    if before is None:
        return new
    tolerated = max(_TOLERATED_SECONDS, _TOLERATED_SHARE * age_seconds(now, new))
    difference = (new - before).total_seconds()
    return before if abs(difference) <= tolerated or (difference > 0 and not may_grow) else new


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=ceil(seconds))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
