"""A new data set for every attempt: who prepares when, and what a watcher sees of it."""

import pytest

from plimsoll.api.names import AbortReason, Outcome, RunPhase
from plimsoll.api.status import Prefill
from plimsoll.api.storage import Prepare
from plimsoll.conductor.attempt import preparation_order
from plimsoll.conductor.phases import Arming, Gathering, Preparing, Running, Settling
from plimsoll.protocol import messages
from plimsoll.protocol.messages import AgentState
from support.client_documents import make_plan
from support.simulation import Simulation

GIBIBYTE = 2**30


def simulated(*, points: int = 1, repetitions: int = 2, clients: int = 2, taking_part: int | None = None) -> Simulation:
    plan = make_plan(points=points, repetitions=repetitions, clients=clients, taking_part=taking_part, renews=True)
    return Simulation(plan)


def until_second_preparation() -> Simulation:
    """Return a simulation after its first trial, whose clients are ordered to prepare again."""
    simulation = simulated()
    simulation.until(Running)
    simulation.until(Preparing)
    return simulation


def preparing(simulation: Simulation) -> list[int]:
    """Return the clients whose order is to prepare, and who have not done so."""
    return [
        client.number
        for client in simulation.session.roster
        if isinstance(client.order, messages.PrepareOrder) and not client.is_in(AgentState.PREPARED)
    ]


def test_every_trial_is_prepared_and_settles_and_its_record_shows_that() -> None:
    simulation = simulated(points=2)
    for _ in range(4):
        simulation.until(Preparing)
        simulation.until(Settling)
        simulation.until(Running)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert not simulation.on_old_data
    assert [trial.new_data_set for trial in simulation.trials] == [True] * 4


def test_without_it_data_sets_are_prepared_once_and_the_record_is_silent() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=2))
    simulation.settle()
    assert simulation.on_old_data
    assert [trial.new_data_set for trial in simulation.trials] == [None, None]


def test_a_repeated_attempt_is_prepared_again() -> None:
    simulation = simulated(repetitions=1)
    simulation.failing.add(0)
    simulation.settle()
    assert len(simulation.trials) == 3
    assert not simulation.on_old_data


def test_an_attempt_without_any_io_leaves_the_data_sets_new() -> None:
    simulation = simulated(repetitions=1)
    simulation.arms_at[1] = simulation.seconds + 100
    simulation.until(Arming)
    simulation.until(Gathering)
    assert simulation.trials[0].abort is not None
    assert simulation.trials[0].abort.reason is AbortReason.CLIENT_NOT_ARMED
    assert simulation.session.unprepared() == []


def test_clients_that_took_no_part_still_have_new_data_sets() -> None:
    simulation = simulated(clients=3, taking_part=1)
    simulation.until(Running)
    simulation.until(Preparing)
    (used,) = {client for _, _, client in simulation.touched}
    assert preparing(simulation) == [used]
    simulation.settle()
    assert not simulation.on_old_data


def test_a_successor_of_a_conductor_that_died_in_a_trial_prepares_again() -> None:
    simulation = simulated(repetitions=1)
    simulation.until(Running)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.crash()
    simulation.until(Preparing)
    simulation.settle()
    assert [trial.outcome for trial in simulation.trials] == [Outcome.ABORTED, Outcome.MEASURED]
    assert not simulation.on_old_data


def test_a_conductor_that_dies_before_any_io_finds_new_data_sets() -> None:
    simulation = simulated(repetitions=1)
    simulation.until(Settling)
    simulation.crash()
    for agent in simulation.agents:
        simulation.poll(agent)
    assert simulation.session.unprepared() == []


def test_an_agent_that_dies_while_it_prepares_is_replaced_and_prepares() -> None:
    simulation = until_second_preparation()
    simulation.kill(simulation.agents[1])
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert not simulation.on_old_data


def test_an_interrupted_run_continues_with_a_new_data_set() -> None:
    simulation = until_second_preparation()
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED
    simulation.crash()
    simulation.settle()
    assert simulation.state.trials_done == 2
    assert len(simulation.trials) == 2
    assert not simulation.on_old_data


def test_the_rounds_of_one_trial_share_a_data_set() -> None:
    running = simulated()
    running.until(Running)
    assert isinstance(running.session.phase, Running)
    session = until_second_preparation().session
    assert len(session.unprepared()) == 2
    session.unfinished = running.session.phase.attempt
    assert session.unprepared() == []


def test_the_state_names_the_trial_and_shows_its_progress_from_zero() -> None:
    simulation = until_second_preparation()
    simulation.session.advance(simulation.moment)
    assert preparing(simulation) == [0, 1]
    state = simulation.state
    assert state.phase is RunPhase.PREPARING
    assert state.message == "new data set for w-000 pass 1: prefilling: clients 0 and 1"
    assert state.prefill == Prefill(done_bytes=0, total_bytes=2 * GIBIBYTE)
    known = simulation.session.roster.get([0])[0]
    simulation.session.report(
        messages.Report(
            epoch=simulation.session.epoch,
            client=0,
            instance=known.instance,
            sequence=known.sequence,
            state=AgentState.PREPARING,
            done_bytes=5,
            total_bytes=GIBIBYTE,
        ),
        simulation.moment,
    )
    assert simulation.state.prefill == Prefill(done_bytes=5, total_bytes=2 * GIBIBYTE)
    simulation.until(Settling)
    assert simulation.state.prefill == Prefill(done_bytes=2 * GIBIBYTE, total_bytes=2 * GIBIBYTE)
    assert simulation.state.message == "new data set for w-000 pass 1: settling for 2 s after the prefill"
    simulation.until(Running)
    assert simulation.state.prefill == Prefill(done_bytes=2 * GIBIBYTE, total_bytes=2 * GIBIBYTE)


@pytest.mark.parametrize(
    ("prepare", "must_discard"),
    [
        (Prepare(per_trial="NewDataSet"), False),
        (Prepare(per_trial="NewDataSet", prefill=False), True),
        (Prepare(prefill=False), False),
    ],
    ids=["written", "only discarded", "once"],
)
def test_storage_has_to_support_discard_where_nothing_else_renews_the_data(
    prepare: Prepare, *, must_discard: bool
) -> None:
    plan = make_plan().model_copy(update={"prepare": prepare})
    assert preparation_order(plan, 0).must_discard is must_discard
