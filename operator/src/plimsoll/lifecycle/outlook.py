"""Estimate of when the last trial of a run will be over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from statistics import fmean, median

from plimsoll.api.names import ConditionType, Outcome, RunPhase
from plimsoll.api.status import RunState
from plimsoll.lifecycle.children import TrialFact, time_of
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.expand import estimate, most_trials, renewal_seconds, trial_seconds

_TOLERATED_SECONDS = 10.0
"""How wrong an estimate may be before it is replaced."""

_TOLERATED_SHARE = 0.1
"""The same as a share of the remaining time: otherwise every look during a prefill would write a status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """How long trials really take, in seconds."""

    took: Mapping[str, Sequence[float]]  # point -> the durations of its measured trials
    servers: int  # number of the run's servers
    preparing: float  # planned between two trials: zero unless each trial has a new data set
    between: float  # from the end of a trial to the start of the next
    ratio: float  # of the real to the planned duration of trials, both with what is between them

    def seconds(self, point: Point) -> float:
        """Return how long a trial of a point should take, from its start to the start of the next one."""
        if self.took[point.name]:
            return fmean(self.took[point.name]) + self.between
        return (trial_seconds(point, self.servers) + self.preparing) * self.ratio


def estimated_end(run: Run, seen: Observed, now: datetime) -> datetime | None:
    """Return when the last trial should be over if no more have to be repeated; None while that is unknown.

    The estimate is made when all clients have registered, with each attempt, and during the prefill when it has become
    wrong. Other delays do not move it, so it reveals a run that is behind schedule.
    """
    plan, state = seen.plan, seen.state
    if plan is None or state is None or run.is_suspended:
        return None
    before = time_of(run.status.get("estimatedCompletionTime"))
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
            # The estimate of the last attempt includes the preparations between trials.
            is_known = before is not None and plan.renews_data_sets and any(_trials(seen))
            is_filled = 0 < state.prefill.total_bytes <= state.prefill.done_bytes
            return before if is_known else _unless_close(before, new, now, may_grow=not is_filled)
        case _:
            return before


def is_late(end: datetime | None, now: datetime) -> bool:
    """Whether the estimated end has passed."""
    return age_seconds(end, now) > _TOLERATED_SECONDS


def _pace(plan: Plan, seen: Observed) -> _Pace:
    took = {
        point.name: [
            max(0.0, (trial.finished - trial.started).total_seconds())
            for trial in (seen.results[point.name].trials if point.name in seen.results else ())
            if trial.outcome is Outcome.MEASURED
        ]
        for point in plan.points
    }
    in_order = pairwise(sorted(_trials(seen), key=lambda trial: trial.started))
    gaps = [
        max(0.0, (after.started - before.finished).total_seconds())
        for before, after in in_order
        if before.epoch == after.epoch
    ]
    preparing = renewal_seconds(plan)
    between = median(gaps) if gaps else preparing
    servers = plan.server_count
    planned = sum(len(took[point.name]) * (trial_seconds(point, servers) + preparing) for point in plan.points)
    taken = sum(seconds + between for all_taken in took.values() for seconds in all_taken)
    ratio = taken / planned if planned else 1.0
    return _Pace(took=took, servers=servers, preparing=preparing, between=between, ratio=ratio)


def _end_from_trial(plan: Plan, state: RunState, pace: _Pace) -> datetime | None:
    """Return when the last trial should be over, counted from the one in flight; None if there is none.

    It does not change during an attempt, however long that takes.
    """
    trial = state.in_flight
    number, point = plan.pairs[state.trials_done]
    if trial is None or trial.point != point.name or (point.line is None and trial.pass_number != number):
        return None
    current = datetime.fromtimestamp(state.current.starts_at, tz=UTC) if state.current else None
    started = time_of(state.in_flight_since) or current
    return _after(started, _left_seconds(plan, state, pace)) if started else None


def _left_seconds(plan: Plan, state: RunState, pace: _Pace) -> float:
    """Return the seconds from the start of the next trial to the end of the last one; searches as long as they may."""
    seconds = 0.0
    for _, point in plan.pairs[state.trials_done :]:
        is_search = point.line is not None
        trials = max(1, most_trials(plan, point) - len(pace.took[point.name])) if is_search else 1
        seconds += pace.seconds(point) * trials
    # Nothing is prepared after the last trial.
    return max(0.0, seconds - pace.between) if pace.preparing else seconds


def _prefill_seconds(run: Run, state: RunState, guess: int, now: datetime) -> float:
    """Return how long the rest of the prefill takes at its rate since the clients registered."""
    ready = run.conditions.get(ConditionType.CLIENTS_READY)
    since = (time_of(ready.last_transition_time) if ready else None) or now
    done, total = state.prefill.done_bytes, state.prefill.total_bytes
    passed = age_seconds(since, now)
    if not done or passed < _TOLERATED_SECONDS:
        return max(0.0, guess - passed)
    return max(0, total - done) * passed / done


def _trials(seen: Observed) -> list[TrialFact]:
    return [trial for result in seen.results.values() for trial in result.trials]


def _unless_close(before: datetime | None, new: datetime, now: datetime, *, may_grow: bool) -> datetime:
    """Return the earlier estimate if it is close to the new one, or if the new one is later and may not be."""
    if before is None:
        return new
    tolerated = max(_TOLERATED_SECONDS, _TOLERATED_SHARE * age_seconds(now, new))
    difference = (new - before).total_seconds()
    return before if abs(difference) <= tolerated or (difference > 0 and not may_grow) else new


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=ceil(seconds))
