"""The conductor's decisions about a cluster that is not ready, and about clients that write before they read."""

import dataclasses

import pytest

from plimsoll.api.names import AbortReason, FailureReason, Outcome, RunPhase
from plimsoll.api.run import Disturbance
from plimsoll.api.status import OsdsSeen
from plimsoll.api.storage import DisturbedOsds
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.phases import (
    Arming,
    ClusterView,
    Disturb,
    Effect,
    Gathering,
    Gating,
    Preparing,
    Running,
    Staging,
)
from plimsoll.protocol import messages
from plimsoll.protocol.messages import AgentState
from support.client_documents import SECOND, make_plan
from support.simulation import Simulation

WELL = ClusterView(prepared=True)
OSDS = OsdsSeen(up=4, members=5)
ILL = ClusterView(prepared=True, problems=("1 of 3 OSDs are down", "8 placement groups are undersized"))


def test_clients_do_not_prepare_before_the_cluster_is_prepared() -> None:
    simulation = Simulation(make_plan(), cluster=ClusterView(prepared=False, problems=("1 of 2 images are created",)))
    simulation.run_for(seconds=30)
    assert isinstance(simulation.session.phase, Gating)
    assert (simulation.phase, simulation.state.message) == (
        RunPhase.GATHERING,
        "waiting for the cluster: 1 of 2 images are created",
    )
    assert simulation.state.registered == (0, 1)
    simulation.cluster = WELL
    simulation.until(Preparing)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_run_waits_for_the_first_view_of_its_cluster() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    simulation.cluster_answers = False
    simulation.run_for(seconds=5)
    assert simulation.state.message == "waiting for the cluster: it is being prepared"


def test_a_cluster_that_never_becomes_ready_ends_the_run_with_its_problems_and_a_remedy() -> None:
    simulation = Simulation(make_plan(), cluster=ILL)
    simulation.until(Gating)
    assert simulation.phase is RunPhase.MEASURING
    assert simulation.state.message == f"waiting for the cluster: {'; '.join(ILL.problems)}"
    simulation.settle()
    failure = simulation.state.failure
    assert failure is not None
    assert failure.reason is FailureReason.GATE_CLOSED
    assert failure.message == (
        "the cluster was not ready within timeouts.readySeconds (1000 s): 1 of 3 OSDs are down; 8 placement groups are "
        "undersized; fix this or raise the limit"
    )
    assert not simulation.touched
    assert not simulation.trials


@pytest.mark.parametrize("refusal", [FailureReason.CEPH_OPTION_REFUSED, FailureReason.CEPH_CLIENT_TOO_OLD])
def test_a_run_whose_options_or_key_are_refused_ends_at_once(refusal: FailureReason) -> None:
    problem = "option osd_op_queue takes effect only after a restart of the OSDs"
    simulation = Simulation(make_plan(), cluster=ClusterView(prepared=False, problems=(problem,), refusal=refusal))
    simulation.run_for(seconds=30)
    failure = simulation.state.failure
    assert failure is not None
    assert (failure.reason, failure.message) == (refusal, problem)
    assert not simulation.trials


@pytest.mark.fault(
    "Ceph",
    "The monitors do not answer",
    "between two trials",
    ends="no trial starts before they answer; the message shows the wait",
    within="15 s until it shows; `timeouts.readySeconds`, after which the run ends",
)
def test_no_attempt_begins_on_an_old_look_at_the_cluster() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    simulation.until(Preparing)
    simulation.cluster_answers = False
    simulation.run_for(seconds=30)
    assert isinstance(simulation.session.phase, Gating)
    assert "Ceph has not reported its status for more than 15 s" in simulation.state.message
    simulation.cluster_answers = True
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


@pytest.mark.fault(
    "Ceph",
    "An OSD fails",
    "between two trials",
    ends="the next trial waits until the cluster is healthy; no attempt is lost",
    within="as soon as it is healthy",
)
def test_a_gate_that_closes_between_trials_delays_the_next_one_and_costs_no_attempt() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=2), cluster=WELL)
    simulation.until(Running)
    simulation.cluster = ILL
    simulation.until(Gating)
    assert len(simulation.trials) == 1
    simulation.run_for(seconds=100)
    assert isinstance(simulation.session.phase, Gating)
    simulation.cluster = WELL
    simulation.settle()
    assert [trial.outcome for trial in simulation.trials] == [Outcome.MEASURED] * 2


class CountedDisturbances(Simulation):
    disturbances = 0

    def _make_durable(self, effect: Effect) -> None:
        self.disturbances += isinstance(effect, Disturb)
        super()._make_durable(effect)


@pytest.mark.parametrize("recovers", [True, False])
def test_no_disturbance_begins_before_the_cluster_has_recovered_from_the_one_before(*, recovers: bool) -> None:
    plan = make_plan(points=1, repetitions=2)
    # Shorter than a specification permits.
    outage = Disturbance.model_construct(after_seconds=1, osds=DisturbedOsds(action="Out"), for_seconds=1)
    plan = plan.model_copy(update={"points": (plan.points[0].model_copy(update={"disturb": outage}),)})
    simulation = CountedDisturbances(plan, cluster=WELL)
    simulation.until(Running)
    simulation.cluster = ILL
    simulation.run_for(seconds=900)
    assert (simulation.disturbances, len(simulation.trials)) == (1, 1)
    assert simulation.state.message == f"waiting for the cluster: {'; '.join(ILL.problems)}"
    if recovers:
        simulation.cluster = WELL
    simulation.settle()
    failure = simulation.state.failure
    if recovers:
        assert simulation.disturbances > 1
        assert failure is None
    else:
        assert simulation.disturbances == 1
        assert failure is not None
        assert failure.reason is FailureReason.GATE_CLOSED
        assert "not ready within timeouts.readySeconds (1000 s)" in failure.message


def test_a_client_that_dies_while_the_cluster_is_waited_for_prepares_again() -> None:
    simulation = Simulation(make_plan(), cluster=WELL)
    simulation.until(Preparing)
    simulation.cluster = ILL
    simulation.until(Gating)
    simulation.kill(simulation.agents[0])
    simulation.run_for(seconds=5)
    simulation.cluster = WELL
    simulation.until(Preparing)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_run_that_is_interrupted_while_it_waits_for_the_cluster_ends_interrupted() -> None:
    simulation = Simulation(make_plan(), cluster=ILL)
    simulation.until(Gating)
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED


def test_a_measured_run_does_not_wait_for_the_cluster() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1), cluster=WELL)
    simulation.settle()
    simulation.cluster = ILL
    simulation.crash()
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_an_attempt_that_died_with_a_conductor_is_recorded_before_waiting_for_the_cluster() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1), cluster=WELL)
    simulation.until(Running)
    simulation.cluster = ClusterView(prepared=False)
    simulation.crash()
    simulation.until(Gating)
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CONDUCTOR_RESTARTED


def test_a_new_conductor_knows_the_osds_that_those_before_it_have_seen() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=2), cluster=dataclasses.replace(WELL, osds=OSDS))
    simulation.until(Running)
    simulation.publish()
    fewer = OsdsSeen(up=3, members=3)
    simulation.cluster = dataclasses.replace(WELL, osds=fewer)
    simulation.crash()
    assert simulation.session.osds == OSDS
    simulation.until(Running)
    assert (simulation.session.osds, simulation.state.osds) == (OSDS, OSDS)


def test_t0_is_set_only_when_all_clients_have_written_their_data() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    simulation.staging[1] = AgentState.STAGING
    simulation.until(Staging)
    simulation.run_for(seconds=60)
    assert isinstance(simulation.session.phase, Staging)
    waiting = simulation.state
    assert (waiting.current, waiting.in_flight is None) == (None, False)
    assert simulation.state.message == "writing the data that the trial reads: client 1"
    assert not simulation.armed
    simulation.report(1, AgentState.STAGED, "")
    simulation.until(Arming)
    assert waiting.current is None
    simulation.until(Running)
    current = simulation.state.current
    assert current is not None
    assert current.starts_at * SECOND > simulation.moment.wall
    simulation.settle()
    assert [trial.outcome for trial in simulation.trials] == [Outcome.MEASURED]


def test_a_staged_client_gets_the_same_seed_and_parameters_when_it_is_armed() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, clients=1, reads=True))
    simulation.until(Staging)
    stage = simulation.session.roster.get([0])[0].order
    simulation.until(Arming)
    arm = simulation.session.roster.get([0])[0].order
    assert isinstance(stage, messages.StageOrder)
    assert isinstance(arm, messages.ArmOrder)
    assert stage.model_dump(exclude={"kind"}) == arm.model_dump(exclude={"kind"})


def test_a_client_that_cannot_be_staged_aborts_the_attempt_with_its_message() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    simulation.staging[1] = AgentState.FAILED
    simulation.until(Staging)
    simulation.until(Gathering)
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.CLIENT_NOT_STAGED
    assert trial.abort.message == "client 1 on node-1: no space"
    assert not simulation.armed


def test_clients_have_long_to_be_staged_but_not_for_ever() -> None:
    timings = Timings()
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True), timings)
    simulation.staging[1] = AgentState.STAGING
    simulation.until(Staging)
    simulation.run_for(seconds=timings.staging_grace + 5 * timings.work_factor + 5 - 1)
    assert isinstance(simulation.session.phase, Staging)
    simulation.run_for(seconds=2)
    trial = simulation.trials[0]
    assert trial.abort is not None
    assert trial.abort.message == (
        "client 1 did not write the data that the trial reads within 655 s; check the storage for stalled I/O"
    )


def test_a_run_that_is_interrupted_while_its_clients_are_staged_records_it() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, reads=True))
    simulation.until(Staging)
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED
    assert [trial.abort.reason for trial in simulation.trials if trial.abort] == [AbortReason.INTERRUPTED]


def test_a_tool_that_cleans_up_has_longer_to_answer() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=1, clients=1, reads=True), Timings())
    simulation.until(Running)
    phase = simulation.session.phase
    assert isinstance(phase, Running)
    ends_at = phase.attempt.ends_at
    simulation.poll(simulation.agents[0])
    simulation.agents[0].started = False
    while not simulation.trials:
        simulation.pass_time(1)
        simulation.poll(simulation.agents[0])
        simulation.work()
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.TOOL_OVERRAN
    assert simulation.moment.wall - ends_at > (45 + 5 + 60) * SECOND


CALM = dataclasses.replace(WELL, risks=frozenset())
NEARFULL = dataclasses.replace(WELL, risks=frozenset({"OSD_NEARFULL"}))
FULL = dataclasses.replace(CALM, full_pools=("p",))


@pytest.mark.fault(
    "Ceph",
    "An OSD becomes nearly full, a monitor leaves the quorum, or a pool reaches its quota",
    "under the load of a run",
    ends="`Succeeded=False`, `ClusterAtRisk` or `QuotaReached`; the load stops",
    within="15 s after Ceph reports it",
)
@pytest.mark.parametrize("phase", [Preparing, Staging, Arming, Running])
@pytest.mark.parametrize(
    ("before", "danger", "reason", "words"),
    [
        (CALM, NEARFULL, FailureReason.CLUSTER_AT_RISK, "OSD_NEARFULL appeared while the run loaded the cluster"),
        (
            NEARFULL,
            dataclasses.replace(WELL, risks=frozenset({"OSD_NEARFULL", "MON_DOWN"})),
            FailureReason.CLUSTER_AT_RISK,
            "MON_DOWN appeared while",
        ),
        (CALM, FULL, FailureReason.QUOTA_REACHED, "pool p has reached its quota"),
    ],
)
def test_a_danger_ends_the_run_with_the_attempt_that_is_in_flight(
    phase: type, before: ClusterView, danger: ClusterView, reason: FailureReason, words: str
) -> None:
    simulation = Simulation(make_plan(reads=phase is Staging), cluster=before)
    if phase is Staging:
        simulation.staging[0] = AgentState.STAGING
    simulation.until(phase)
    simulation.cluster = danger
    simulation.settle()
    failure = simulation.state.failure
    assert failure is not None
    assert failure.reason is reason
    assert failure.message.startswith(words)
    aborted = [trial.abort for trial in simulation.trials]
    assert [abort.reason for abort in aborted if abort] == ([] if phase is Preparing else [AbortReason(reason)])
    assert all(abort and abort.message == failure.message for abort in aborted)
    assert all(agent.left for agent in simulation.agents)


@pytest.mark.parametrize("under_load", [NEARFULL, WELL, CALM])
def test_what_was_there_before_the_load_ends_no_run(under_load: ClusterView) -> None:
    """Not even if Ceph says nothing for a while."""
    simulation = Simulation(make_plan(points=1, repetitions=2), cluster=NEARFULL)
    simulation.until(Running)
    simulation.cluster = under_load
    simulation.run_for(seconds=1)
    simulation.cluster = NEARFULL
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE


def test_a_risk_that_appears_between_trials_is_left_to_the_gate() -> None:
    simulation = Simulation(make_plan(points=1, repetitions=2), cluster=CALM)
    simulation.until(Running)
    simulation.cluster = dataclasses.replace(ILL, risks=frozenset())
    simulation.until(Gating)
    simulation.cluster = dataclasses.replace(NEARFULL, problems=ILL.problems)
    simulation.run_for(seconds=5)
    simulation.cluster = NEARFULL
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [trial.outcome for trial in simulation.trials] == [Outcome.MEASURED] * 2
