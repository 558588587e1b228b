"""The lead to T0: from the time that clients needed to arm before, and never at the cost of a trial."""

import pytest

from plimsoll.api.names import AbortReason, Outcome, RunPhase
from plimsoll.api.status import TrialKey
from plimsoll.conductor.attempt import Attempt, Lead, Timings
from plimsoll.conductor.phases import Arming
from plimsoll.conductor.roster import Roster
from plimsoll.measure.sample import Clock
from plimsoll.protocol.messages import PROTOCOL_VERSION, Registration
from plimsoll.tools.cast import Cast, Round
from support.client_documents import make_plan
from support.simulation import Simulation

TIMINGS = Timings(lead_least=0.3, lead_most=5.0)


def attempt(number: int = 0) -> Attempt:
    key = TrialKey(point="w-000", pass_number=0, attempt=number)
    cast = Cast(rounds=(Round(servers={0: (), 1: ()}),))
    return Attempt(key=key, point=make_plan().points[0], cast=cast, new_data_set=False)


def roster(round_trip: float = 0.0) -> Roster:
    found = Roster(1, lost_after=1.0)
    registration = Registration(protocol=PROTOCOL_VERSION, client=0, instance="i", attempt=0, node="n")
    found.register(registration, 0.0).clock = Clock(offset=0.0, error=round_trip / 2)
    return found


def lead_after(*armings: float) -> Lead:
    lead = Lead(TIMINGS)
    for seconds in armings:
        lead.record_arming(attempt(), seconds, in_time=True)
    return lead


@pytest.mark.parametrize(
    ("armings", "round_trip", "expected"),
    [
        ((), 0.0, 0.408),
        ((0.01,), 0.0, 0.3),
        ((0.1, 0.01), 0.0, 0.4),
        ((9.0,), 0.0, 5.0),
        ((0.01,), 0.2, 2.0),
        ((), 0.2, 2.008),
    ],
)
def test_the_lead_follows_the_slowest_arming_and_round_trip_within_bounds(
    armings: tuple[float, ...], round_trip: float, expected: float
) -> None:
    assert lead_after(*armings).seconds(attempt(), roster(round_trip)) == pytest.approx(expected)


def test_a_further_attempt_gets_the_full_lead_and_more() -> None:
    assert lead_after(0.01).seconds(attempt(1), roster()) == pytest.approx(2 * 1.008)
    assert lead_after(0.5).seconds(attempt(2), roster()) == pytest.approx(3 * 2.008)


def test_a_slow_arming_is_forgotten_after_some_trials() -> None:
    assert lead_after(1.0, *[0.01] * 15).seconds(attempt(), roster()) == pytest.approx(4.0)
    assert lead_after(1.0, *[0.01] * 16).seconds(attempt(), roster()) == pytest.approx(0.3)


def test_only_the_first_t0_of_a_first_attempt_is_postponed_and_only_once() -> None:
    lead, tried = Lead(TIMINGS), attempt()
    assert lead.record_arming(tried, 1.0, in_time=False)
    assert not lead.record_arming(tried, 1.0, in_time=False)
    assert not lead.record_arming(attempt(1), 1.0, in_time=False)


def test_the_release_has_as_much_time_as_arming_took() -> None:
    assert Lead(TIMINGS).margin(attempt(), 0.5) == 0.5
    assert lead_after(0.1).margin(attempt(), 0.15) == 0.15
    assert lead_after(0.1).margin(attempt(), 0.01) == TIMINGS.go_margin
    assert lead_after(0.1).margin(attempt(1), 0.5) == TIMINGS.go_margin


def until_second_arming(simulation: Simulation) -> Arming:
    for _ in range(1000):
        simulation.work()
        phase = simulation.session.phase
        if isinstance(phase, Arming) and simulation.stored:
            return phase
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.01)
    raise AssertionError(simulation.session.phase)


def test_clients_that_armed_quickly_get_a_short_lead() -> None:
    simulation = Simulation(make_plan(points=2, clients=2, repetitions=1))
    phase = until_second_arming(simulation)
    assert phase.attempt.t0 - simulation.moment.wall <= 0.3e9


def test_t0_is_postponed_for_a_client_that_arms_more_slowly_and_no_attempt_is_lost() -> None:
    simulation = Simulation(make_plan(points=2, clients=2, repetitions=1))
    phase = until_second_arming(simulation)
    first = phase.attempt.t0
    simulation.pass_time(0.5)
    simulation.session.advance(simulation.moment)
    assert simulation.session.phase is not phase
    assert isinstance(simulation.session.phase, Arming)
    assert phase.attempt.t0 >= first + 1e9
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert {trial.outcome for stored in simulation.stored.values() for trial in stored} == {Outcome.MEASURED}


def test_a_client_that_does_not_arm_ends_the_attempt_without_any_io() -> None:
    simulation = Simulation(make_plan(points=2, clients=2, repetitions=1))
    phase = until_second_arming(simulation)
    touched = len(simulation.touched)
    for _ in range(2):
        simulation.pass_time(6.0)
        simulation.session.advance(simulation.moment)
    simulation.work()
    (aborted,) = [trial for trial in simulation.stored[phase.attempt.key.point] if trial.abort]
    assert aborted.abort is not None
    assert aborted.abort.reason is AbortReason.CLIENT_NOT_ARMED
    assert len(simulation.touched) == touched
