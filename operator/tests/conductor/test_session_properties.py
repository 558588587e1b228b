"""Whatever dies, stalls, is late or repeated: every planned trial is recorded exactly once."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from plimsoll.api.names import Outcome, RunPhase, Verdict
from plimsoll.conductor.ledger import MAX_ATTEMPTS, is_settled
from plimsoll.conductor.phases import ClusterView, Ended
from plimsoll.protocol.messages import AgentState
from support.client_documents import make_plan
from support.simulation import Simulation

AGENT = st.integers(min_value=0, max_value=2)
CLUSTER = st.sampled_from(
    [
        ClusterView(prepared=True),
        ClusterView(prepared=False),
        ClusterView(prepared=True, problems=("1 of 3 OSDs are down",)),
    ]
)


class RunUnderFaults(RuleBasedStateMachine):
    """Random steps of agents, conductor, clock and fate."""

    simulation: Simulation

    @initialize(
        taking_part=st.integers(min_value=1, max_value=3),
        reads=st.booleans(),
        renews=st.booleans(),
        cluster=st.none() | CLUSTER,
    )
    def begin(self, taking_part: int, cluster: ClusterView | None, *, reads: bool, renews: bool) -> None:
        plan = make_plan(points=2, clients=3, taking_part=taking_part, repetitions=2, reads=reads, renews=renews)
        self.simulation = Simulation(plan, cluster=cluster)

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0, 3.5, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.simulation.pass_time(seconds)

    @rule(rounds=st.integers(min_value=1, max_value=30))
    def all_work(self, rounds: int) -> None:
        for _ in range(rounds):
            while self.simulation.work():
                pass
            for agent in list(self.simulation.agents):
                self.simulation.poll(agent)
            self.simulation.pass_time(0.1)

    @rule(number=AGENT)
    def agent_works(self, number: int) -> None:
        self.simulation.poll(self.simulation.agents[number])

    @rule(number=AGENT)
    def agent_dies(self, number: int) -> None:
        self.simulation.kill(self.simulation.agents[number])

    @rule(number=AGENT, stopped=st.booleans())
    def agent_is_stopped_or_continued(self, number: int, *, stopped: bool) -> None:
        self.simulation.agents[number].stopped = stopped

    @rule(number=AGENT, fails=st.booleans())
    def tool_fails(self, number: int, *, fails: bool) -> None:
        (self.simulation.failing.add if fails else self.simulation.failing.discard)(number)

    @rule(number=AGENT, state=st.sampled_from([AgentState.STAGED, AgentState.STAGING, AgentState.FAILED]))
    def client_is_staged_or_not(self, number: int, state: AgentState) -> None:
        self.simulation.staging[number] = state

    @rule(cluster=CLUSTER, answers=st.booleans())
    def cluster_changes(self, cluster: ClusterView, *, answers: bool) -> None:
        if self.simulation.cluster is not None:
            self.simulation.cluster, self.simulation.cluster_answers = cluster, answers

    @rule(before=st.booleans())
    def conductor_dies_around_an_effect(self, *, before: bool) -> None:
        self.simulation.work(crash_before=before, crash_after=not before)

    @rule()
    def conductor_dies(self) -> None:
        self.simulation.crash()

    @rule()
    def state_is_published(self) -> None:
        self.simulation.publish()

    @rule(data=st.data())
    def post_comes_again(self, data: Any) -> None:
        if self.simulation.posts:
            self.simulation.post(data.draw(st.sampled_from(self.simulation.posts)))

    @rule()
    def user_interrupts_and_resumes(self) -> None:
        self.simulation.session.stop()
        self.simulation.settle()
        self.simulation.publish()
        self.simulation.crash()
        for agent in list(self.simulation.agents):
            self.simulation.kill(agent)

    @invariant()
    def attempts_are_numbered_without_gap_or_double(self) -> None:
        for trials in self.simulation.stored.values():
            for number in range(self.simulation.plan.repetitions):
                attempts = [trial for trial in trials if trial.pass_number == number]
                assert [trial.attempt for trial in attempts] == list(range(len(attempts)))
                assert not any(is_settled(attempts[:count]) for count in range(len(attempts))), "one too many"

    @invariant()
    def no_client_does_io_before_all_are_armed(self) -> None:
        by_attempt: dict[Any, set[int]] = {}
        for epoch, key, client in self.simulation.touched:
            by_attempt.setdefault((epoch, key), set()).add(client)
        for attempt, clients in by_attempt.items():
            planned = self.simulation.plan.points[0].clients
            assert len(self.simulation.armed[attempt]) >= planned
            assert clients <= self.simulation.armed[attempt]

    @invariant()
    def no_client_is_armed_before_all_are_staged(self) -> None:
        if not self.simulation.plan.points[0].parameters:
            return
        for attempt, clients in self.simulation.armed.items():
            assert len(self.simulation.staged[attempt]) >= self.simulation.plan.points[0].clients
            assert clients <= self.simulation.staged[attempt]

    @invariant()
    def no_attempt_meets_the_data_of_another_if_every_one_begins_with_a_new_data_set(self) -> None:
        if self.simulation.plan.renews_data_sets:
            assert not self.simulation.on_old_data
            assert all(trial.new_data_set for trial in self.simulation.trials)

    def teardown(self) -> None:
        simulation = self.simulation
        simulation.failing.clear()
        simulation.staging.clear()
        simulation.cluster_answers = True
        if simulation.cluster is not None:
            simulation.cluster = ClusterView(prepared=True)
        simulation.settle()
        while simulation.phase is RunPhase.INTERRUPTED:
            simulation.crash()
            simulation.settle()
        assert isinstance(simulation.session.phase, Ended)
        if simulation.phase is not RunPhase.COMPLETE:
            assert simulation.session.phase.failure is not None
            return
        for point in simulation.plan.points:
            for number in range(simulation.plan.repetitions):
                attempts = [trial for trial in simulation.stored[point.name] if trial.pass_number == number]
                assert is_settled(attempts)
                good = [t for t in attempts if t.outcome is Outcome.MEASURED and t.verdict is not Verdict.INVALID]
                assert len(good) == 1 or (not good and len(attempts) >= MAX_ATTEMPTS)


RunUnderFaults.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestRunUnderFaults = RunUnderFaults.TestCase
