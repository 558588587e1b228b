"""The progress of a local run, read from its results directory."""

import time
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.api.names import RunPhase, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.state import RunState, TrialKey
from plimsoll.cli.run_view import Lines, Screen, activity_text, probe_text, trial_text
from plimsoll.cli.watched import (
    WatchedDisplay,
    WatchedPoint,
    WatchedPoints,
    WatchedRun,
    WatchedState,
    WatchedStatus,
)
from plimsoll.conductor.reporting import result_display
from plimsoll.conductor.sink import read_results, read_state
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.estimate import TRIAL_OVERHEAD_SECONDS, most_trials, renewal_seconds


class LocalProgress:
    """Shows the state that the conductor publishes in a results directory."""

    def __init__(self, view: Screen | Lines, plan: Plan, results: Path) -> None:
        """Show nothing yet."""
        self._view = view
        self._plan = plan
        self._results = results
        self._start = datetime.now(UTC)
        self._read_at: tuple[int, TrialKey | None] | None = None
        self._recorded: dict[str, BenchmarkResult] = {}

    def update(self) -> None:
        """Show the current state."""
        state = read_state(self._results)
        if state is None:
            return
        # A search records many trials until its point is done.
        moment = (state.trials_done, state.current.key if state.current else None)
        if moment != self._read_at:
            self._recorded = {result.spec.point: result for result in read_results(self._results)}
            self._read_at = moment
        self._view.show(self._watched(state, time.time()))

    def _watched(self, state: RunState, now: float) -> WatchedRun:
        plan, verdicts = self._plan, [result.status.verdict for result in self._recorded.values()]
        end = now + remaining_seconds(state, plan, now)
        is_between_trials = state.phase is RunPhase.MEASURING and state.current is None
        message = "" if is_between_trials else describe(state, plan)
        return WatchedRun(
            status=WatchedStatus(
                start_time=self._start,
                estimated_completion_time=datetime.fromtimestamp(end, UTC),
                points=WatchedPoints(total=len(plan.points), invalid=verdicts.count(Verdict.INVALID)),
                display=WatchedDisplay(status=state.phase, message=message),
            ),
            state=_watched_state(state),
            points=[_point(plan, point, self._recorded.get(point.name)) for point in plan.points],
            passes=plan.repetitions,
            searches=_searches(plan),
            share=done_share(state, plan, now),
        )


def _watched_state(state: RunState) -> WatchedState:
    return WatchedState.model_validate(state.model_dump())


def _point(plan: Plan, point: Point, result: BenchmarkResult | None) -> WatchedPoint:
    if result is None:
        return WatchedPoint(name=point.name, label=point.label, clients=str(point.clients))
    display = result_display(result.status, most_trials(plan, point), point.line)
    return WatchedPoint(
        name=point.name,
        label=point.label,
        clients=str(point.clients),
        operation=display.operation or "",
        iops=display.iops or "",
        p99=display.p99 or "",
        line=display.line or "",
        trials=display.trials or "",
        verdict=result.status.verdict or "",
        reason=display.reason or "",
    )


def _searches(plan: Plan) -> frozenset[str]:
    return frozenset(point.workload for point in plan.points if point.line is not None)


def describe(state: RunState, plan: Plan) -> str:
    """Return what a run is doing, in one line."""
    watched = _watched_state(state)
    if watched.current is None:
        return activity_text(watched)
    is_probe = plan.point(watched.current.key.point).line is not None
    return probe_text(watched.current) if is_probe else trial_text(watched.current, plan.repetitions)


def done_share(state: RunState, plan: Plan, now: float) -> float:
    """Return the part of a run that is done, 0 to 1, by time."""
    total = remaining_seconds(RunState(), plan, now)
    return 1.0 - min(1.0, remaining_seconds(state, plan, now) / total) if total else 1.0


def remaining_seconds(state: RunState, plan: Plan, now: float) -> float:
    """Return the duration of the remaining trials if none is repeated; at most, if some are searches for the line.

    Completed trials are assumed to be the first ones of the plan's order, as they are without repeated attempts.
    """
    preparing = renewal_seconds(plan)
    trials = [(most_trials(plan, point) if point.line else 1, point) for _, point in plan.pairs[state.trials_done :]]
    left = sum(number * (_seconds(point) + preparing) for number, point in trials)
    if trials:
        left -= state.probes_done * (_seconds(trials[0][1]) + preparing)
    if state.current is None:
        return float(left)
    length = state.current.ends_at - state.current.starts_at + TRIAL_OVERHEAD_SECONDS
    # A trial that overruns does not shorten the ones after it.
    return left - preparing - min(max(0.0, now - state.current.starts_at), length)


def _seconds(point: Point) -> int:
    return point.ramp_seconds + point.runtime_seconds + TRIAL_OVERHEAD_SECONDS
