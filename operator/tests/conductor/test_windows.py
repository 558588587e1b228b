"""Trials and maintenance windows."""

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.api.names import FailureReason, Outcome, RunPhase
from plimsoll.api.status import Failure
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.phases import AwaitingWindow, Ended, Preparing, Running
from plimsoll.plan.expand import estimate, trial_seconds
from plimsoll.plan.windows import WINDOWS, Windows
from support.client_documents import EPOCH, SECOND, make_plan
from support.simulation import Simulation

START = datetime.fromtimestamp(EPOCH / SECOND + 100, tz=UTC)


def window(begins: timedelta, ends: timedelta) -> Windows:
    """Return a window on the day of the simulation, in whole minutes from its start."""
    begin, end = (START + begins).strftime("%H:%M"), (START + ends).strftime("%H:%M")
    return WINDOWS.validate_python([{"days": [f"{START + begins:%a}"], "from": begin, "to": end}])


def simulation(windows: Windows, **plan: Any) -> Simulation:
    return Simulation(make_plan(**plan), Timings(lost_after=1e9, windows=windows))


def ends(simulated: Simulation) -> list[datetime]:
    return [datetime.fromisoformat(trial.finished_at) for trial in simulated.trials]


def failure_of(simulated: Simulation) -> Failure:
    phase = simulated.session.phase
    assert isinstance(phase, Ended)
    assert phase.failure is not None
    return phase.failure


def test_a_run_in_an_open_window_does_not_wait() -> None:
    simulated = simulation(window(timedelta(hours=-1), timedelta(hours=1)))
    simulated.settle()
    assert simulated.phase is RunPhase.COMPLETE
    assert max(ends(simulated)) < START + timedelta(minutes=5)


def test_a_run_waits_for_a_window_and_says_until_when() -> None:
    simulated = simulation(window(timedelta(hours=1), timedelta(hours=2)), total_seconds=600)
    simulated.until(AwaitingWindow)
    opens = (START + timedelta(hours=1)).replace(second=0)
    state = simulated.state
    assert state.phase is RunPhase.WAITING_FOR_WINDOW
    assert f"waiting until {opens:%Y-%m-%dT%H:%M:%SZ}" in state.message
    simulated.pass_time(1800)
    simulated.run_for(5)
    assert isinstance(simulated.session.phase, AwaitingWindow)
    # The wait does not count: the limit of the run is ten minutes.
    assert simulated.state.elapsed_seconds == state.elapsed_seconds
    simulated.pass_time(1800)
    simulated.settle()
    assert simulated.phase is RunPhase.COMPLETE
    assert {trial.outcome for trial in simulated.trials} == {Outcome.MEASURED}
    assert min(ends(simulated)) > opens


def test_no_trial_starts_that_would_end_outside() -> None:
    simulated = simulation(window(timedelta(hours=-1), timedelta(minutes=1)), points=1, repetitions=40)
    simulated.until(AwaitingWindow)
    closes = (START + timedelta(minutes=1)).replace(second=0)
    point = simulated.plan.points[0]
    measured = len(simulated.trials)
    assert 0 < measured < 40
    assert max(ends(simulated)) <= closes
    assert simulated.moment.time + timedelta(seconds=trial_seconds(point)) > closes
    # A week later, with the data sets of the first window.
    simulated.pass_time(7 * 24 * 3600 - 1800)
    simulated.until(Running)
    assert len(simulated.trials) == measured


def test_a_conductor_that_dies_while_it_waits_is_replaced_by_one_that_waits() -> None:
    simulated = simulation(window(timedelta(hours=1), timedelta(hours=2)))
    simulated.until(AwaitingWindow)
    simulated.publish()
    simulated.crash()
    simulated.until(AwaitingWindow)
    simulated.pass_time(3600)
    simulated.settle()
    assert simulated.phase is RunPhase.COMPLETE


def test_a_suspended_run_does_not_wait() -> None:
    simulated = simulation(window(timedelta(hours=1), timedelta(hours=2)))
    simulated.until(AwaitingWindow)
    simulated.session.stop()
    simulated.session.advance(simulated.moment)
    assert simulated.phase is RunPhase.INTERRUPTED


def test_a_preparation_ends_with_its_window() -> None:
    simulated = simulation(window(timedelta(hours=-1), timedelta(minutes=10)))
    simulated.until(Preparing)
    simulated.pass_time(400)
    simulated.session.advance(simulated.moment)
    assert isinstance(simulated.session.phase, Preparing)
    simulated.pass_time(300)
    simulated.session.advance(simulated.moment)
    failure = failure_of(simulated)
    assert failure.reason is FailureReason.PREPARATION_FAILED
    assert "when the maintenance window closed at" in failure.message


def test_a_run_whose_trial_fits_into_no_window_fails() -> None:
    simulated = simulation(window(timedelta(hours=1), timedelta(hours=1, minutes=1)))
    plan = simulated.plan
    points = tuple(point.model_copy(update={"runtime_seconds": 3600}) for point in plan.points)
    simulated.plan = plan.model_copy(update={"points": points})
    simulated.session = simulated.new_session()
    simulated.until(Ended)
    failure = failure_of(simulated)
    assert failure.reason is FailureReason.DEADLINE_EXCEEDED
    seconds = estimate(plan).preparation_seconds + trial_seconds(points[0])
    assert f"takes {seconds} s" in failure.message
    assert "no maintenance window is that long" in failure.message
