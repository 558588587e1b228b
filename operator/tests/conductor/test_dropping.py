"""Dropping caches before a trial: once on every node, before any client is armed, and never without a record."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.environment import CephDescription, Environment
from plimsoll.api.names import AbortReason, Cause, Outcome
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import MAX_LISTED, NodeCaches, OsdCaches
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.phases import Arming, Dropping, Effect, Running, Signal
from plimsoll.conductor.roster import Roster
from plimsoll.plan.document import Plan
from plimsoll.protocol import messages
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import AgentState, DropCachesOrder
from support.client_documents import make_plan
from support.simulation import SimulatedAgent, Simulation

TOKEN = "the conductor's token"


def node_of(client: int) -> str:
    """Return the node of a simulated client."""
    return f"node-{client % 2}"


def drop_on(node: str, osds: OsdCaches | None = None) -> CacheDrop:
    """Return what an agent sends after the caches of a node were dropped."""
    caches = NodeCaches(node=node, dropped_at="2026-11-21T12:00:00Z", before_bytes=2**30, after_bytes=2**20)
    return CacheDrop(node=caches, osds=osds)


class ColdSimulation(Simulation):
    """See `Simulation`.

    Attributes:
        drops: the nodes whose caches were dropped, in order, with the trial and the order.
        behaviour: clients that fail (Failed), never answer (Idle), or reach the helper of the node with that name.

    """

    def __init__(self, plan: Plan, timings: Timings | None = None) -> None:
        self.drops: list[tuple[TrialKey, str, messages.DropCachesOrder]] = []
        self.behaviour: dict[int, AgentState | str] = {}
        super().__init__(plan, timings)

    def _acknowledge(self, effect: Effect) -> None:
        if effect is Signal.READ_TOKEN:
            self.session.authorized(TOKEN)
        else:
            super()._acknowledge(effect)

    def _obey(self, agent: SimulatedAgent) -> None:
        if isinstance(agent.order, messages.DropCachesOrder):
            self._drop(agent, agent.order)
        else:
            super()._obey(agent)

    def _drop(self, agent: SimulatedAgent, order: messages.DropCachesOrder) -> None:
        behaviour = self.behaviour.get(agent.client, node_of(agent.client))
        if behaviour == AgentState.FAILED:
            self.report(agent.client, AgentState.FAILED, "the helper did not drop the caches (status 500): no")
        elif behaviour != AgentState.IDLE:
            self.drops.append((order.trial, behaviour, order))
            osds = OsdCaches(count=3, osds=(0, 1, 2)) if order.fsid else None
            self._report_drop(agent, drop_on(behaviour, osds))

    def _report_drop(self, agent: SimulatedAgent, caches: CacheDrop) -> None:
        report = messages.Report(
            epoch=agent.epoch,
            client=agent.client,
            instance=agent.instance,
            sequence=agent.after,
            state=AgentState.DROPPED,
            caches=caches,
        )
        self.session.report(report, self.moment)
        self.session.advance(self.moment)


FSID = "6d04ba56-a6f8-4d33-82bc-29ea547a8cf9"


def plan(*, clients: int = 4, reads: bool = False, taking_part: int | None = None) -> Plan:
    return make_plan(points=1, clients=clients, repetitions=1, reads=reads, taking_part=taking_part, drops_caches=True)


def dropping_phase(simulation: Simulation) -> Dropping:
    phase = simulation.session.phase
    assert isinstance(phase, Dropping)
    return phase


@pytest.mark.parametrize("reads", [False, True])
def test_each_node_drops_its_caches_once_before_any_client_arms(*, reads: bool) -> None:
    simulation = ColdSimulation(plan(reads=reads))
    simulation.until(Dropping)
    assert bool(simulation.staged) == reads, "what a trial reads is written before its caches are dropped"
    simulation.until(Arming)
    assert sorted(node for _, node, _ in simulation.drops) == ["node-0", "node-1"]
    assert not simulation.armed
    simulation.settle()
    (trial,) = simulation.trials
    assert trial.outcome is Outcome.MEASURED
    assert trial.caches is not None
    assert trial.caches.node_count == 2
    assert [(one.node, one.before_bytes, one.after_bytes) for one in trial.caches.nodes] == [
        ("node-0", 2**30, 2**20),
        ("node-1", 2**30, 2**20),
    ]
    assert trial.caches.osds is None


def test_every_trial_begins_with_cold_caches() -> None:
    simulation = ColdSimulation(replace_repetitions(plan(), 3))
    simulation.settle()
    assert [len([one for one, _, _ in simulation.drops if one.pass_number == number]) for number in range(3)] == [2] * 3
    assert all(trial.caches is not None for trial in simulation.trials)


def replace_repetitions(known: Plan, repetitions: int) -> Plan:
    return known.model_copy(update={"repetitions": repetitions, "order": known.order * repetitions})


def test_a_run_that_drops_no_caches_orders_and_records_none() -> None:
    simulation = ColdSimulation(make_plan(points=1, repetitions=1))
    simulation.settle()
    assert not simulation.drops
    assert [trial.caches for trial in simulation.trials] == [None]


def test_the_token_is_in_the_orders_and_in_no_text_about_them() -> None:
    simulation = ColdSimulation(plan())
    simulation.until(Arming)
    for _, _, order in simulation.drops:
        assert order.token == TOKEN
        assert TOKEN not in repr(order)


def test_nodes_without_load_keep_their_caches() -> None:
    simulation = ColdSimulation(plan(taking_part=1))
    simulation.settle()
    assert [node for _, node, _ in simulation.drops] == ["node-0"]


def test_the_osds_of_the_cluster_drop_their_caches_after_all_nodes() -> None:
    """The nodes write their dirty data to them."""
    simulation = ColdSimulation(plan())
    simulation.session.describe = lambda: Environment(ceph=CephDescription(fsid=FSID))
    simulation.settle()
    assert [order.fsid for _, _, order in simulation.drops] == [None, None, FSID]
    (trial,) = simulation.trials
    assert trial.caches is not None
    assert trial.caches.osds is not None
    assert (trial.caches.osds.count, trial.caches.osds.osds) == (3, (0, 1, 2))


@pytest.mark.parametrize(
    ("osds", "dropped"),
    [
        (OsdCaches(count=3, osds=(0, 1, 2)), True),
        (OsdCaches(count=0, reason="the helper has no key of a Ceph administrator"), False),
        (None, False),
    ],
)
def test_osds_that_kept_their_caches_have_warm_ones(osds: OsdCaches | None, *, dropped: bool) -> None:
    simulation = ColdSimulation(plan())
    simulation.until(Running)
    phase = simulation.session.phase
    assert isinstance(phase, Running)
    assert phase.attempt.caches is not None
    phase.attempt.caches = phase.attempt.caches.model_copy(update={"osds": osds})
    facts = phase.attempt.facts
    assert (facts.dropped_node_caches, facts.dropped_osd_caches) == (True, dropped)


def test_a_node_that_fails_to_drop_its_caches_aborts_the_attempt_with_its_name() -> None:
    simulation = ColdSimulation(plan())
    simulation.behaviour[1] = AgentState.FAILED
    simulation.until(Dropping)
    simulation.settle()
    assert {trial.outcome for trial in simulation.trials} == {Outcome.ABORTED}
    assert len(simulation.trials) == 3
    for trial in simulation.trials:
        assert trial.abort is not None
        assert trial.abort.reason is AbortReason.CACHES_NOT_DROPPED
        assert trial.abort.cause is None
        assert "client 1 on node-1: the helper did not drop the caches (status 500): no" in trial.abort.message
    assert not simulation.touched, "warm caches are not measured"


def test_a_node_that_does_not_answer_aborts_the_attempt_after_its_time_limit() -> None:
    simulation = ColdSimulation(plan(), Timings(dropping=30.0, dropping_grace=5.0))
    simulation.behaviour[0] = AgentState.IDLE
    simulation.until(Dropping)
    simulation.run_for(1)
    assert simulation.state.message == "dropping the caches of node-0"
    simulation.run_for(33)
    assert not simulation.trials
    simulation.run_for(3)
    assert simulation.trials[0].abort is not None
    assert simulation.trials[0].abort.reason is AbortReason.CACHES_NOT_DROPPED
    assert "the caches of node-0 were not dropped within 35 s" in simulation.trials[0].abort.message
    # Dirty data may not have reached the storage.
    assert simulation.trials[0].abort.cause is Cause.STORAGE


def test_the_helper_of_another_node_does_not_count() -> None:
    simulation = ColdSimulation(plan())
    simulation.behaviour[1] = "node-7"
    simulation.until(Dropping)
    simulation.settle()
    assert simulation.trials[0].abort is not None
    assert "client 1 on node-1: the helper of node node-7 answered" in simulation.trials[0].abort.message
    assert not simulation.touched


@pytest.mark.parametrize("reads", [False, True])
def test_a_process_that_is_lost_while_it_drops_caches_aborts_the_attempt(*, reads: bool) -> None:
    simulation = ColdSimulation(plan(reads=reads))
    simulation.behaviour[0] = AgentState.IDLE
    simulation.until(Dropping)
    simulation.run_for(0.5)
    simulation.behaviour.clear()
    simulation.kill(simulation.agents[0])
    simulation.settle()
    first, second = simulation.trials
    assert first.abort is not None
    assert first.abort.reason is AbortReason.CLIENT_LOST
    assert second.outcome is Outcome.MEASURED


def test_an_interruption_while_caches_are_dropped_is_recorded() -> None:
    simulation = ColdSimulation(plan())
    simulation.behaviour[0] = AgentState.IDLE
    simulation.until(Dropping)
    simulation.session.stop()
    simulation.settle()
    (trial,) = simulation.trials
    assert trial.abort is not None
    assert trial.abort.reason is AbortReason.INTERRUPTED


def test_a_conductor_that_dies_meanwhile_drops_the_caches_again() -> None:
    simulation = ColdSimulation(plan())
    simulation.behaviour[0] = AgentState.IDLE
    simulation.until(Dropping)
    simulation.run_for(0.5)
    simulation.behaviour.clear()
    simulation.crash()
    simulation.settle()
    first, second = simulation.trials
    assert first.abort is not None
    assert first.abort.reason is AbortReason.CONDUCTOR_RESTARTED
    assert second.caches is not None
    assert second.caches.node_count == 2


def test_no_client_is_ordered_before_the_shell_has_read_the_token() -> None:
    simulation = ColdSimulation(plan())
    simulation.until(Dropping)
    phase = dropping_phase(simulation)
    phase.token = None
    phase.give(None)
    assert not phase.chosen


@given(st.integers(1, 9), st.sets(st.integers(0, 8)))
def test_a_trial_is_measured_only_if_every_node_with_load_dropped_its_caches(clients: int, failing: set[int]) -> None:
    simulation = ColdSimulation(plan(clients=clients))
    simulation.behaviour = dict.fromkeys(failing & set(range(clients)), AgentState.FAILED)
    simulation.until(Dropping)
    simulation.settle()
    # The client with the lowest number of each node drops its caches.
    fails = bool({0, 1} & set(range(clients)) & failing)
    last = simulation.trials[-1]
    assert (last.outcome is Outcome.ABORTED) == fails
    assert bool(simulation.touched) == (not fails)
    nodes = {node_of(client) for client in range(clients)}
    if not fails:
        assert last.caches is not None
        assert {one.node for one in last.caches.nodes} == nodes


def test_a_record_lists_a_bounded_number_of_nodes() -> None:
    simulation = ColdSimulation(plan(clients=2))
    simulation.until(Running)
    roster, chosen = Roster(200, lost_after=20.0), {}
    for number in range(200):
        client = replace(simulation.session.roster.get([0])[0], number=number, node=f"node-{number:03d}")
        client.give(DropCachesOrder(trial=simulation.drops[0][0], limit_seconds=1))
        roster._clients[number] = client
        chosen[client.node] = number
        client.answered, client.state = client.sequence, AgentState.DROPPED
        client.caches = drop_on(client.node)
    phase = simulation.session.phase
    assert isinstance(phase, Running)
    attempt = replace(phase.attempt, roster=roster)
    found = Dropping(attempt=attempt, deadline=0.0, token="", chosen=chosen).dropped_caches
    assert found.node_count == 200
    assert [one.node for one in found.nodes] == [f"node-{number:03d}" for number in range(MAX_LISTED)]
