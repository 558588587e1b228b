"""T0 is chosen once all clients are armed, however long that takes, and lies as far ahead as `Go` needs."""

import pytest

from plimsoll.api.names import AbortReason, Outcome, RunPhase
from plimsoll.api.status import TrialKey
from plimsoll.conductor.attempt import Attempt, Timings
from plimsoll.conductor.phases import Arming, Running, Signal
from plimsoll.conductor.roster import Roster
from plimsoll.measure.sample import Clock
from plimsoll.protocol.messages import PROTOCOL_VERSION, ArmOrder, GoOrder, Registration
from plimsoll.tools.cast import Cast, Round
from support.client_documents import SECOND, make_plan
from support.simulation import Simulation

TIMINGS = Timings(lead=0.2, lead_alone=0.05, lead_per_round_trip=4.0, lead_per_client=0.004, lead_growth=3.0)


@pytest.mark.parametrize(
    ("clients", "round_trip", "number", "expected"),
    [
        (1, 0.0, 0, 0.054),
        (2, 0.0, 0, 0.208),
        (64, 0.0, 0, 0.456),
        (2, 0.1, 0, 0.608),
        (1, 0.1, 0, 0.454),
        (2, 0.0, 1, 0.624),
        (2, 0.1, 2, 5.472),
        (2, 0.0, 20, 1.872),
    ],
)
def test_the_lead_grows_with_clients_the_slowest_round_trip_and_attempts(
    clients: int, round_trip: float, number: int, expected: float
) -> None:
    roster = Roster(clients, lost_after=1.0)
    for client in range(clients):
        registration = Registration(protocol=PROTOCOL_VERSION, client=client, instance="i", attempt=0, node="n")
        roster.register(registration, 0.0).clock = Clock(offset=0.0, error=0.0 if client else round_trip / 2)
    key = TrialKey(point="w-000", pass_number=0, attempt=number)
    cast = Cast(rounds=(Round(servers=dict.fromkeys(range(clients), ())),))
    plan = make_plan()
    attempt = Attempt(plan=plan, roster=roster, timings=TIMINGS, epoch="", key=key, point=plan.points[0], cast=cast)
    assert attempt.lead_seconds == pytest.approx(expected)


def test_clients_that_arm_slowly_delay_t0_and_cost_no_attempt() -> None:
    simulation = Simulation(make_plan(points=1, clients=64, repetitions=1))
    simulation.until(Arming)
    simulation.arms_at = {client: simulation.seconds + client / 4 for client in range(64)}
    simulation.until(Running)
    assert simulation.seconds >= max(simulation.arms_at.values())
    (armed,) = simulation.armed.values()
    assert len(armed) == 64
    assert isinstance(simulation.session.phase, Running)
    lead = simulation.session.phase.attempt.t0 - simulation.moment.wall
    assert 0 < lead < SECOND
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [trial.outcome for trial in simulation.trials] == [Outcome.MEASURED]


def test_no_client_is_released_before_it_is_stored_that_it_may_start() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    session = simulation.session
    simulation.until(Arming)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.pass_time(10)
    session.advance(simulation.moment)
    orders = [client.order for client in session.roster]
    assert all(isinstance(order, ArmOrder) for order in orders)
    assert simulation.state.in_flight_t0_nanoseconds > 0
    assert simulation.state.current is None
    assert session.take_effect() is Signal.RELEASE
    session.release(simulation.moment)
    (t0,) = {order.t0_nanoseconds for client in session.roster if isinstance(order := client.order, GoOrder)}
    assert t0 > simulation.moment.wall


def test_a_client_that_is_lost_while_it_is_stored_keeps_the_others_from_starting() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Arming)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.kill(simulation.agents[0])
    simulation.poll(simulation.agents[0])
    while not simulation.trials:
        assert simulation.work()
    assert [trial.abort.reason for trial in simulation.trials if trial.abort] == [AbortReason.CLIENT_LOST]
    assert not simulation.touched


def test_a_go_that_comes_too_late_costs_the_attempt_and_the_next_has_more_time() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    assert isinstance(simulation.session.phase, Running)
    first = simulation.session.phase.attempt.t0 - simulation.moment.wall
    simulation.pass_time(first / SECOND + 0.3)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.until(Running)
    assert not simulation.touched
    assert [trial.abort.reason for trial in simulation.trials if trial.abort] == [AbortReason.LATE_CLIENT]
    assert isinstance(simulation.session.phase, Running)
    assert simulation.session.phase.attempt.t0 - simulation.moment.wall > 2.5 * first
