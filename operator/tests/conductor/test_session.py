"""The conductor's decisions, case by case."""

import pytest

from plimsoll.api.names import AbortReason, Cause, FailureReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import Stalls
from plimsoll.api.storage import Precondition, Prepare
from plimsoll.conductor.attempt import INTERRUPTED, Moment
from plimsoll.conductor.phases import Arming, Gathering, JudgeAttempt, Preparing, Recording, Running, Settling
from plimsoll.conductor.roster import Client
from plimsoll.measure.attempts import replaced_attempts
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.summary import summarise
from plimsoll.protocol import messages
from plimsoll.protocol.messages import AgentState, ArmOrder, RefusedError
from plimsoll.tools.cast import choose_clients
from support.client_documents import make_document, make_plan
from support.simulation import Simulation


def test_a_run_without_faults_is_measured_once_and_valid() -> None:
    simulation = Simulation(make_plan(points=3, clients=2, repetitions=2))
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert len(simulation.trials) == 6
    assert {trial.verdict for trial in simulation.trials} == {Verdict.VALID}
    assert {trial.operations[0].rates.iops for trial in simulation.trials} == {200}
    assert {trial.stalls for trial in simulation.trials} == {Stalls(seconds=0.0, worst_client_seconds=0.0)}


def test_a_trial_is_judged_by_what_the_network_can_carry() -> None:
    plan = make_plan(points=1, repetitions=1).model_copy(update={"network_bytes_per_second": 10**9})
    simulation = Simulation(plan)
    simulation.until(Running)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.pass_time(10)
    for agent in simulation.agents:
        simulation.poll(agent)
    effect = simulation.session.take_effect()
    assert isinstance(effect, JudgeAttempt)
    assert effect.facts.network_bytes_per_second == 10**9


def test_a_document_posted_for_another_client_is_refused_and_does_not_count() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    phase = simulation.session.phase
    assert isinstance(phase, Running)
    post = messages.ResultPost(
        epoch=simulation.session.epoch,
        client=1,
        instance="1/0",
        trial=phase.attempt.key,
        document=make_document(0, phase.attempt.t0),
    )
    with pytest.raises(RefusedError, match=r"document\.client is 0, but it was posted as client 1's") as refused:
        simulation.session.post(post, simulation.moment)
    assert refused.value.code == "BadRequest"
    assert not phase.attempt.documents
    simulation.settle()
    assert [trial.verdict for trial in simulation.trials] == [Verdict.VALID]


@pytest.mark.parametrize(("taking_part", "nexts"), [(3, {0: 1, 1: 2, 2: 0}), (2, {0: 1, 1: 0})])
def test_clients_are_ordered_to_read_what_the_next_one_that_takes_part_wrote(
    taking_part: int, nexts: dict[int, int]
) -> None:
    plan = make_plan(points=1, repetitions=1, clients=3, taking_part=taking_part)
    (point,) = plan.points
    reading = plan.model_copy(update={"points": (point.model_copy(update={"reads_next_client": True}),)})
    for one, wanted in ((reading, nexts), (plan, dict.fromkeys(nexts))):
        simulation = Simulation(one)
        simulation.settle()
        assert {agent.client: agent.armed.data_of for agent in simulation.agents if agent.armed} == wanted


def test_prefill_comes_before_the_first_trial_and_settles() -> None:
    simulation = Simulation(make_plan())
    simulation.until(Preparing)
    assert not simulation.touched
    simulation.until(Settling)
    simulation.until(Running)


def test_a_client_that_is_lost_while_others_prepare_has_ready_seconds_to_return() -> None:
    simulation = Simulation(make_plan(clients=3))
    simulation.until(Preparing)
    simulation.agents[1].stopped = True
    for seconds, phase in ((30, RunPhase.PREPARING), (1001, RunPhase.FAILED)):
        simulation.pass_time(seconds)
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.session.advance(simulation.moment)
        assert simulation.phase is phase
    assert simulation.state.failure is not None
    assert simulation.state.failure.reason is FailureReason.CLIENTS_NOT_READY


def test_the_state_shows_what_the_clients_prepare() -> None:
    plan = make_plan(clients=3)
    precondition = Precondition(block_size=4096, seconds=600)
    simulation = Simulation(plan.model_copy(update={"prepare": Prepare(precondition=precondition)}))
    simulation.until(Preparing)
    order = simulation.session.roster.get([0])[0].order
    assert isinstance(order, messages.PrepareOrder)
    assert order.precondition == precondition
    assert simulation.state.message == "prefilling: clients 0, 1 and 2"
    simulation.report(0, AgentState.PREPARING, "overwriting at random, 35 of 600 s")
    simulation.report(2, AgentState.PREPARING, "overwriting at random, 34 of 600 s")
    assert simulation.state.message == "prefilling: client 1; overwriting at random, 35 of 600 s: clients 0 and 2"
    simulation.report(1, AgentState.PREPARING, "overwriting at random, 1 of 600 s")
    assert simulation.state.message == "overwriting at random, 35 of 600 s: clients 0, 1 and 2"


def test_a_client_that_never_registers_ends_the_run_and_is_named() -> None:
    simulation = Simulation(make_plan(clients=3))
    for agent in simulation.agents[:2]:
        simulation.poll(agent)
    simulation.pass_time(1001)
    simulation.session.advance(simulation.moment)
    state = simulation.state
    assert state.phase is RunPhase.FAILED
    assert state.failure is not None
    assert state.failure.reason is FailureReason.CLIENTS_NOT_READY
    assert "2" in state.failure.message


@pytest.mark.parametrize(("on_volume", "cause"), [(False, None), (True, Cause.STORAGE)])
def test_an_agent_that_is_not_armed_in_time_aborts_all_before_any_io(*, on_volume: bool, cause: Cause | None) -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=not on_volume))
    simulation.arms_at[1] = 150.0
    simulation.until(Arming)
    begun = simulation.seconds
    simulation.until(Gathering)
    assert simulation.seconds - begun == pytest.approx(30.5, abs=0.1)
    (trial,) = simulation.trials
    assert trial.outcome is Outcome.ABORTED
    assert trial.abort is not None
    assert (trial.abort.reason, trial.abort.cause) == (AbortReason.CLIENT_NOT_ARMED, cause)
    assert "client 1 did not report within 30.5 s" in trial.abort.message
    assert trial.abort.after_start is None
    assert not simulation.touched
    simulation.settle()
    assert [trial.outcome for trial in simulation.trials] == [Outcome.ABORTED, Outcome.MEASURED]


@pytest.mark.parametrize(("looks_at_files", "cause"), [(False, None), (True, Cause.STORAGE)])
def test_an_agent_that_fails_to_arm_aborts_all_with_its_message(*, looks_at_files: bool, cause: Cause | None) -> None:
    plan = make_plan(points=1, repetitions=1)
    points = tuple(point.model_copy(update={"reads_next_client": looks_at_files}) for point in plan.points)
    simulation = Simulation(plan.model_copy(update={"points": points}))
    simulation.until(Arming)
    simulation.report(1, AgentState.FAILED, "no such file")
    simulation.until(Gathering)
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert (trial.abort.reason, trial.abort.cause) == (AbortReason.CLIENT_NOT_ARMED, cause)
    assert "no such file" in trial.abort.message
    assert not simulation.touched


def test_an_agent_that_stops_across_t0_is_late_and_is_named() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    simulation.agents[1].stopped = True
    simulation.until(Gathering, without=(1,))
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.LATE_CLIENT
    assert "client 1" in trial.abort.message
    simulation.settle()
    assert [trial.outcome for trial in simulation.trials] == [Outcome.ABORTED, Outcome.MEASURED]


def test_a_replaced_agent_aborts_its_trial_and_prefills_again() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    simulation.kill(simulation.agents[0])
    simulation.until(Preparing)
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CLIENT_LOST
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_conductor_that_dies_leaves_an_aborted_attempt_and_its_successor_does_not_prefill_again() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    simulation.crash()
    simulation.until(Running)
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CONDUCTOR_RESTARTED
    simulation.settle()
    attempts = simulation.stored["w-000"]
    assert [attempt.epoch for attempt in attempts] == ["epoch-2", "epoch-2"]


@pytest.mark.parametrize(("phase", "is_seen"), [(Arming, None), (Running, True)])
def test_an_attempt_whose_conductor_died_under_load_is_one_whose_rates_could_be_seen(
    phase: type, *, is_seen: bool | None
) -> None:
    """Who kills the conductor of each trial that looks bad is found like one who suspends the run."""
    simulation = Simulation(make_plan(points=1, repetitions=2))
    for _ in range(2):
        simulation.until(phase)
        if phase is Running:
            simulation.run_for(3)
        simulation.publish()
        simulation.crash()
        simulation.until(Gathering)
    simulation.settle()
    aborts = [trial.abort for trial in simulation.trials if trial.abort]
    assert [(abort.reason, abort.after_start) for abort in aborts] == [(AbortReason.CONDUCTOR_RESTARTED, is_seen)] * 2
    assert len(replaced_attempts(simulation.trials)) == (2 if is_seen else 0)
    findings = [finding.reason for finding in summarise(simulation.trials, 2).findings]
    assert ("AttemptsReplaced" in findings) is bool(is_seen)


def test_a_repeated_attempt_has_other_random_blocks() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Arming)
    seeds = [order.seed for client in simulation.session.roster if isinstance(order := client.order, ArmOrder)]
    simulation.crash()
    simulation.until(Arming)
    later = [order.seed for client in simulation.session.roster if isinstance(order := client.order, ArmOrder)]
    assert len({*seeds, *later}) == 4


def test_a_post_of_an_earlier_epoch_is_acknowledged_and_discarded() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.settle()
    stale = simulation.posts[0]
    assert simulation.post(stale) is False
    simulation.crash()
    assert simulation.post(stale) is False


def test_an_invalid_trial_is_repeated_at_most_twice_and_every_attempt_is_kept() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.failing.add(0)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [(trial.attempt, trial.verdict) for trial in simulation.stored["w-000"]] == [
        (0, Verdict.INVALID),
        (1, Verdict.INVALID),
        (2, Verdict.INVALID),
    ]


def test_interruptions_do_not_use_up_a_trial_s_attempts() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    for _ in range(5):
        simulation.until(Running)
        simulation.session.stop()
        simulation.settle()
        assert simulation.phase is RunPhase.INTERRUPTED
        simulation.publish()
        simulation.crash()
        for agent in list(simulation.agents):
            simulation.kill(agent)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [trial.outcome for trial in simulation.stored["w-000"]] == [Outcome.ABORTED] * 5 + [Outcome.MEASURED]


def test_an_attempt_shows_whether_it_was_interrupted_after_its_load_had_begun() -> None:
    """Also if the conductor's clock has been set back meanwhile."""
    simulation = Simulation(make_plan(points=1, repetitions=1))
    aborts = []
    for phase in (Arming, Running):
        simulation.until(phase)
        assert isinstance(simulation.session.phase, Arming | Running)
        attempt = simulation.session.phase.attempt
        aborts.append(attempt.aborted(INTERRUPTED, Moment(seconds=0, wall=1)).abort)
    assert [abort.after_start for abort in aborts if abort] == [None, True]


def test_the_total_deadline_includes_earlier_conductors() -> None:
    simulation = Simulation(make_plan(points=2, repetitions=2, total_seconds=60))
    simulation.until(Running)
    simulation.pass_time(30)
    simulation.publish()
    simulation.crash()
    simulation.pass_time(35)
    simulation.settle()
    state = simulation.state
    assert state.failure is not None
    assert state.failure.reason is FailureReason.DEADLINE_EXCEEDED


def test_a_run_that_is_measured_is_complete_however_late_its_last_trial_was_stored() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, clients=1))
    simulation.until(Recording)
    simulation.pass_time(simulation.plan.timeouts.total_seconds)
    simulation.session.stop()
    simulation.settle()
    assert (simulation.phase, simulation.state.failure) == (RunPhase.COMPLETE, None)
    assert simulation.state.trials_done == simulation.state.trials_total


def test_a_new_conductor_of_a_measured_run_is_complete_even_after_the_deadline() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.settle()
    simulation.publish()
    simulation.pass_time(1)
    assert simulation.stored_state is not None
    late = float(simulation.plan.timeouts.total_seconds)
    simulation.stored_state = simulation.stored_state.model_copy(update={"elapsed_seconds": late})
    simulation.crash()
    simulation.settle()
    assert (simulation.phase, simulation.state.failure) == (RunPhase.COMPLETE, None)


def test_a_refused_document_aborts_the_attempt_with_the_client_s_message() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.report(1, AgentState.FAILED, "its result was refused (TooLarge): 20 MiB")
    simulation.work()
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.RESULT_REFUSED
    assert trial.abort.message == "client 1 on node-1: its result was refused (TooLarge): 20 MiB"


@pytest.mark.fault(
    "Conductor and clients",
    "A tool does not end",
    "after its runtime",
    ends="the trial is aborted (`ToolOverran`) and repeated",
    within="45 s after the planned end",
)
def test_a_tool_that_never_ends_is_aborted_and_named() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    for agent in simulation.agents:
        simulation.poll(agent)
    simulation.agents[1].started = False
    for _ in range(200):
        simulation.pass_time(0.2)
        for agent in simulation.agents:
            simulation.session.client(agent.client, agent.instance, agent.epoch, simulation.moment)
        simulation.poll(simulation.agents[0])
        simulation.work()
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.TOOL_OVERRAN
    assert "client 1" in trial.abort.message


def test_two_processes_of_one_client_do_not_both_take_part() -> None:
    simulation = Simulation(make_plan(clients=1))
    old = simulation.agents[0]
    simulation.poll(old)
    simulation.kill(old)
    simulation.poll(simulation.agents[0])
    simulation.poll(old)
    assert old.left
    with pytest.raises(RefusedError, match="replaced"):
        simulation.session.register(
            messages.Registration(protocol=1, client=0, instance="other", attempt=0, node="n"), simulation.moment
        )


def test_a_lost_process_with_a_high_attempt_number_does_not_lock_out_another() -> None:
    simulation = Simulation(make_plan(clients=1))
    newest = messages.Registration(protocol=1, client=0, instance="a", attempt=messages.MAX_ATTEMPT, node="n")
    successor = messages.Registration(protocol=1, client=0, instance="b", attempt=1, node="n")
    simulation.session.register(newest, simulation.moment)
    with pytest.raises(RefusedError, match="replaced"):
        simulation.session.register(successor, simulation.moment)
    simulation.pass_time(simulation.session.timings.lost_after + 1)
    assert simulation.session.register(successor, simulation.moment).instance == "b"


def test_an_unknown_client_is_refused() -> None:
    simulation = Simulation(make_plan(clients=1))
    with pytest.raises(RefusedError, match="not one of"):
        simulation.session.register(
            messages.Registration(protocol=1, client=5, instance="x", node="n"), simulation.moment
        )


def test_clients_are_chosen_round_robin_over_nodes() -> None:
    nodes = ["a", "a", "a", "b", "b", "c"]
    clients = [
        Client(number=number, instance="", attempt=0, node=node, last_contact=0) for number, node in enumerate(nodes)
    ]
    assert choose_clients(clients, 3) == (0, 3, 5)
    assert choose_clients(clients, 4) == (0, 1, 3, 5)
    assert choose_clients(clients, 6) == (0, 1, 2, 3, 4, 5)


def test_an_interrupted_conductor_keeps_its_agents_for_the_next_one() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1))
    simulation.until(Running)
    simulation.session.stop()
    simulation.settle()
    for agent in simulation.agents:
        simulation.poll(agent)
    assert simulation.session.is_over(simulation.moment)
    assert not any(agent.left for agent in simulation.agents)
    simulation.publish()
    simulation.crash()
    phases = set()
    while simulation.phase is not RunPhase.COMPLETE:
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.05)
        phases.add(simulation.phase)
    assert RunPhase.PREPARING not in phases, "what is prepared stays prepared"
    simulation.settle()
    for agent in simulation.agents:
        simulation.poll(agent)
    assert all(agent.left for agent in simulation.agents), "the last conductor dismisses them"


def test_a_client_that_is_replaced_on_another_node_between_trials_makes_the_point_suspect() -> None:
    """Also if the conductor is another one by then; in its place, a replaced client changes nothing."""
    nodes = {0: "node-0", 1: "node-1"}

    class Moving(Simulation):
        def node(self, client: int) -> str:
            return nodes[client]

        def document(self, client: int, armed: messages.ArmOrder) -> ClientDocument:
            return make_document(client, self.t0, node=nodes[client])

    for node, is_changed in (("node-1", False), ("node-9", True)):
        nodes[1] = "node-1"
        simulation = Moving(make_plan(points=1, clients=2, repetitions=2))
        simulation.until(Recording)
        simulation.until(Gathering)
        nodes[1] = node
        simulation.kill(simulation.agents[1])
        simulation.crash()
        simulation.settle()
        status = simulation.session.ledger.status("w-000", None)
        assert [finding.reason for finding in status.findings] == ["ClientsChanged"] * is_changed
        places = [place.node for trial in status.trials for place in trial.places]
        assert places == ["node-0", "node-1", *["node-9"] * is_changed]
