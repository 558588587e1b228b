"""A conductor that starts beside its clients: how long it waits for them, and when the run's time starts to count."""

from typing import Any

import pytest

from plimsoll.api.names import FailureReason, RunPhase
from plimsoll.api.run import Timeouts
from plimsoll.conductor.phases import ClusterView
from plimsoll.plan.document import Plan
from support.client_documents import make_plan
from support.simulation import Simulation

TIMEOUTS = Timeouts(provision_seconds=500, ready_seconds=100, total_seconds=1000)


def plan() -> Plan:
    return make_plan(points=1, repetitions=1).model_copy(update={"timeouts": TIMEOUTS})


def without_client(seconds: int, **options: Any) -> Simulation:
    """Return a run that has waited so long for one of its clients."""
    simulation = Simulation(plan(), **options)
    wait_without_client(simulation, seconds)
    return simulation


def wait_without_client(simulation: Simulation, seconds: int) -> None:
    simulation.agents[1].stopped = True
    simulation.session.advance(simulation.moment)
    simulation.pass_time(seconds)
    simulation.session.advance(simulation.moment)


def gather(simulation: Simulation) -> None:
    """Have all clients register."""
    simulation.agents[1].stopped = False
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.session.advance(simulation.moment)
    assert simulation.state.gathered == simulation.job == "job-1"


def failure_of(simulation: Simulation) -> FailureReason | None:
    failure = simulation.state.failure
    return failure.reason if failure else None


def test_clients_may_register_after_ready_seconds_and_that_time_does_not_count() -> None:
    simulation = without_client(400, job="job-1")
    assert (simulation.phase, simulation.state.gathered) == (RunPhase.GATHERING, "")
    assert simulation.state.elapsed_seconds == 0
    gather(simulation)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert 0 < simulation.state.elapsed_seconds < 100


def test_a_cluster_may_become_ready_as_late_as_the_clients() -> None:
    unprepared = ClusterView(prepared=False, problems=("the pool is being changed",))
    simulation = without_client(101, job="job-1", cluster=unprepared)
    assert failure_of(simulation) is None
    gather(simulation)
    simulation.pass_time(101)
    simulation.session.advance(simulation.moment)
    assert failure_of(simulation) is FailureReason.GATE_CLOSED


@pytest.mark.parametrize(("seconds", "options"), [(601, {"job": "job-1"}), (101, {})], ids=["with a job", "without"])
def test_clients_that_never_register_end_the_run(seconds: int, options: dict[str, str]) -> None:
    simulation = without_client(seconds, **options)
    assert (failure_of(simulation), simulation.state.gathered) == (FailureReason.CLIENTS_NOT_READY, "")


@pytest.mark.parametrize(("job", "failure"), [("job-1", FailureReason.CLIENTS_NOT_READY), ("job-2", None)])
def test_a_client_that_is_lost_later_has_ready_seconds_unless_the_conductor_is_of_another_job(
    job: str, failure: FailureReason | None
) -> None:
    simulation = Simulation(plan(), job="job-1")
    gather(simulation)
    simulation.publish()
    simulation.job = job
    simulation.crash()
    wait_without_client(simulation, 101)
    assert failure_of(simulation) is failure
    if failure is None:
        assert (simulation.phase, simulation.state.gathered) == (RunPhase.GATHERING, "")
