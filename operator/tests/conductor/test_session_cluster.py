"""The conductor's decisions about a cluster that it has to wait for, and about clients that write before they read."""

from plimsoll.api.names import AbortReason, FailureReason, Outcome, RunPhase
from plimsoll.api.result import Trial
from plimsoll.conductor.gating import View
from plimsoll.conductor.phases import Arming, Gathering, Gating, Preparing, Running, Staging
from plimsoll.conductor.timings import Timings
from plimsoll.protocol import messages
from plimsoll.protocol.messages import AgentState
from support.simulation import SECOND, Simulation, make_plan

WELL = View(prepared=True)
ILL = View(prepared=True, problems=("1 of 3 OSDs are down", "8 placement groups are undersized"))


def until(simulation: Simulation, phase: type, *, limit: int = 2000) -> None:
    """Let everything run until the session is in a phase."""
    for _ in range(limit):
        if isinstance(simulation.session.phase, phase):
            return
        simulation.work()
        for agent in simulation.agents:
            if not isinstance(simulation.session.phase, phase):
                simulation.poll(agent)
        simulation.pass_time(0.05 if not isinstance(simulation.session.phase, phase) else 0.0)
    message = f"never {phase.__name__}, but {simulation.session.phase}"
    raise AssertionError(message)


def work(simulation: Simulation, *, seconds: float) -> None:
    """Let everything run for a while."""
    for _ in range(int(seconds * 10)):
        while simulation.work():
            pass
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.1)


def trials(simulation: Simulation) -> list[Trial]:
    return [trial for stored in simulation.stored.values() for trial in stored]


def test_clients_do_not_prepare_before_the_cluster_is_prepared() -> None:
    simulation = Simulation(make_plan(), cluster=View(prepared=False, problems=("1 of 2 images are made",)))
    work(simulation, seconds=30)
    assert isinstance(simulation.session.phase, Gating)
    assert (simulation.phase, simulation.state.message) == (
        RunPhase.GATHERING,
        "waiting for the cluster: 1 of 2 images are made",
    )
    assert simulation.state.registered == (0, 1)
    simulation.cluster = WELL
    until(simulation, Preparing)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_cluster_that_nobody_has_looked_at_yet_is_waited_for() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    simulation.cluster_answers = False
    work(simulation, seconds=5)
    assert simulation.state.message == "waiting for the cluster: it is being prepared"


def test_a_cluster_that_never_becomes_ready_ends_the_run_with_its_problems_and_what_to_do() -> None:
    simulation = Simulation(make_plan(), cluster=ILL)
    until(simulation, Gating)
    assert simulation.phase is RunPhase.MEASURING
    assert simulation.state.message == f"waiting for the cluster: {'; '.join(ILL.problems)}"
    simulation.settle()
    failure = simulation.state.failure
    assert failure is not None
    assert failure.reason is FailureReason.CLUSTER_NOT_READY
    assert failure.message == (
        "the cluster was not ready within timeouts.readySeconds (1000 s): 1 of 3 OSDs are down; 8 placement groups are "
        "undersized; mend it, or raise the limit"
    )
    assert not simulation.touched
    assert not trials(simulation)


def test_no_attempt_begins_on_an_old_look_at_the_cluster() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    until(simulation, Preparing)
    simulation.cluster_answers = False
    work(simulation, seconds=30)
    assert isinstance(simulation.session.phase, Gating)
    assert "Ceph has not said for more than 15 s how it is" in simulation.state.message
    simulation.cluster_answers = True
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_gate_that_closes_between_trials_delays_the_next_one_and_costs_no_attempt() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=2), cluster=WELL)
    until(simulation, Running)
    simulation.cluster = ILL
    until(simulation, Gating)
    assert len(trials(simulation)) == 1
    work(simulation, seconds=100)
    assert isinstance(simulation.session.phase, Gating)
    simulation.cluster = WELL
    simulation.settle()
    assert [trial.outcome for trial in trials(simulation)] == [Outcome.MEASURED] * 2


def test_a_client_that_dies_while_the_cluster_is_waited_for_prepares_again() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    until(simulation, Preparing)
    simulation.cluster = ILL
    until(simulation, Gating)
    simulation.kill(simulation.agents[0])
    work(simulation, seconds=5)
    simulation.cluster = WELL
    until(simulation, Preparing)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_run_that_is_interrupted_while_it_waits_for_the_cluster_ends_interrupted() -> None:
    simulation = Simulation(make_plan(), cluster=ILL)
    until(simulation, Gating)
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED


def test_a_run_that_is_measured_does_not_wait_for_the_cluster_any_more() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1), cluster=WELL)
    simulation.settle()
    simulation.cluster = ILL
    simulation.crash()
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_what_died_with_a_conductor_is_recorded_before_the_cluster_is_waited_for() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1), cluster=WELL)
    until(simulation, Running)
    simulation.cluster = View(prepared=False)
    simulation.crash()
    until(simulation, Gating)
    (trial,) = trials(simulation)
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CONDUCTOR_RESTARTED


def test_t0_is_set_only_when_all_clients_have_written_what_they_will_read() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    simulation.staging[1] = AgentState.STAGING
    until(simulation, Staging)
    work(simulation, seconds=60)
    assert isinstance(simulation.session.phase, Staging)
    waiting = simulation.state
    assert (waiting.current, waiting.in_flight is None) == (None, False)
    assert simulation.state.message == "writing what the trial reads: client 1"
    assert not simulation.armed
    simulation.report(1, AgentState.STAGED, "")
    until(simulation, Arming)
    current = simulation.state.current
    assert current is not None
    assert current.starts_at * SECOND > simulation.moment.wall
    simulation.settle()
    assert [trial.outcome for trial in trials(simulation)] == [Outcome.MEASURED]


def test_a_staged_client_gets_the_same_seed_and_parameters_when_it_is_armed() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, clients=1, reads=True))
    until(simulation, Staging)
    stage = simulation.session.roster.get([0])[0].order
    until(simulation, Arming)
    arm = simulation.session.roster.get([0])[0].order
    assert isinstance(stage, messages.Stage)
    assert isinstance(arm, messages.Arm)
    assert stage.model_dump(exclude={"kind"}) == arm.model_dump(exclude={"kind", "t0_nanoseconds"})


def test_a_client_that_cannot_be_staged_aborts_the_attempt_in_its_own_words() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    simulation.staging[1] = AgentState.FAILED
    until(simulation, Staging)
    until(simulation, Gathering)
    (trial,) = trials(simulation)
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CLIENT_NOT_STAGED
    assert trial.abort.message == "client 1 on node-1: no space"
    assert not simulation.armed


def test_clients_have_long_to_be_staged_but_not_for_ever() -> None:
    timings = Timings()
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True), timings)
    simulation.staging[1] = AgentState.STAGING
    until(simulation, Staging)
    work(simulation, seconds=timings.staging_grace + 5 * timings.work_factor + 5 - 1)
    assert isinstance(simulation.session.phase, Staging)
    work(simulation, seconds=2)
    trial = trials(simulation)[0]
    assert trial.abort is not None
    assert trial.abort.message == "client 1 did not write within 655 s what the trial reads; is the storage stuck?"


def test_a_run_that_is_interrupted_while_its_clients_are_staged_records_it() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    until(simulation, Staging)
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED
    assert [trial.abort.reason for trial in trials(simulation) if trial.abort] == [AbortReason.INTERRUPTED]


def test_a_tool_that_cleans_up_has_longer_to_answer() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, clients=1, reads=True), Timings())
    until(simulation, Running)
    phase = simulation.session.phase
    assert isinstance(phase, Running)
    ends_at = phase.attempt.ends_at
    simulation.poll(simulation.agents[0])
    simulation.agents[0].started = False
    while not trials(simulation):
        simulation.pass_time(1)
        simulation.poll(simulation.agents[0])
        simulation.work()
    (trial,) = trials(simulation)
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.TOOL_OVERRAN
    assert simulation.moment.wall - ends_at > (45 + 5 + 60) * SECOND
