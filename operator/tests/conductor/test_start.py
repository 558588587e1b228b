"""A conductor that starts beside its clients: how long it waits for them, and when the run's time starts to count."""

from plimsoll.api.names import FailureReason, RunPhase
from plimsoll.api.run import Timeouts
from plimsoll.conductor.phases import ClusterView
from plimsoll.plan.document import Plan
from support.client_documents import make_plan
from support.simulation import Simulation

TIMEOUTS = Timeouts(provision_seconds=500, ready_seconds=100, total_seconds=1000)


def plan() -> Plan:
    return make_plan(points=1, repetitions=1).model_copy(update={"timeouts": TIMEOUTS})


def stop_client(simulation: Simulation, *, stopped: bool) -> None:
    simulation.agents[1].stopped = stopped


def failure_of(simulation: Simulation) -> FailureReason | None:
    failure = simulation.state.failure
    return failure.reason if failure else None


def test_clients_may_register_after_ready_seconds_and_that_time_does_not_count() -> None:
    simulation = Simulation(plan(), job="job-1")
    stop_client(simulation, stopped=True)
    simulation.pass_time(400)
    simulation.session.advance(simulation.moment)
    assert (simulation.phase, simulation.state.gathered) == (RunPhase.GATHERING, "")
    assert simulation.state.elapsed_seconds == 0
    stop_client(simulation, stopped=False)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert simulation.state.gathered == "job-1"
    assert 0 < simulation.state.elapsed_seconds < 100


def test_a_cluster_may_become_ready_as_late_as_the_clients() -> None:
    unprepared = ClusterView(prepared=False, problems=("the pool is being changed",))
    simulation = Simulation(plan(), job="job-1", cluster=unprepared)
    stop_client(simulation, stopped=True)
    simulation.session.advance(simulation.moment)
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert failure_of(simulation) is None
    stop_client(simulation, stopped=False)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.session.advance(simulation.moment)
    assert simulation.state.gathered == "job-1"
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert failure_of(simulation) is FailureReason.GATE_CLOSED


def test_clients_that_never_register_end_the_run() -> None:
    simulation = Simulation(plan(), job="job-1")
    stop_client(simulation, stopped=True)
    simulation.pass_time(601)
    simulation.session.advance(simulation.moment)
    assert simulation.state.failure is not None
    assert simulation.state.failure.reason is FailureReason.CLIENTS_NOT_READY


def test_a_client_that_is_lost_later_has_ready_seconds_to_return() -> None:
    simulation = Simulation(plan(), job="job-1")
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.session.advance(simulation.moment)
    assert simulation.state.gathered == "job-1"
    simulation.publish()
    simulation.crash()
    stop_client(simulation, stopped=True)
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert simulation.state.failure is not None


def test_the_conductor_of_another_job_waits_for_all_clients_again() -> None:
    simulation = Simulation(plan(), job="job-1")
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.session.advance(simulation.moment)
    simulation.publish()
    simulation.job = "job-2"
    simulation.crash()
    stop_client(simulation, stopped=True)
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert (simulation.phase, simulation.state.gathered) == (RunPhase.GATHERING, "")


def test_without_a_job_the_clients_have_ready_seconds_from_the_start() -> None:
    simulation = Simulation(plan())
    stop_client(simulation, stopped=True)
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert simulation.state.failure is not None
    assert simulation.state.gathered == ""
