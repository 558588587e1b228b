"""A session whose run has servers: who loads, who serves, and the matrix that is recorded."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.agent.worker import Armed
from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, RunPhase, Verdict
from plimsoll.api.result import Matrix, ResultStatus, Trial
from plimsoll.api.status import TrialKey
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.phases import Effect, Gathering, RecordAttempt, Running
from plimsoll.conductor.session import Session
from plimsoll.conductor.sink import FilesSink, read_results
from plimsoll.measure.sample import Cells, ClientDocument, Clock, LatencySample, Measurement, OperationSample, PeerRate
from plimsoll.plan.document import Plan
from plimsoll.protocol.messages import AgentState, ArmOrder
from plimsoll.tools.registry import TOOLS
from support.client_documents import SECOND, make_document
from support.rendezvous import PretendedWork, Setting
from support.simulation import Simulation
from support.specs import KEY, PAIRS, pairs_plan

MEBIBYTE = 2**20


def pairs_document(
    client: int, armed: ArmOrder, t0: int, rate: float = 100 * MEBIBYTE, **fields: Any
) -> ClientDocument:
    """Return what a client sends that sent at that rate to each of its peers; `fields` are of its peers' rates."""
    sent = round(4 * rate)
    written = OperationSample(
        operation=Operation.WRITE,
        ios=0,
        bytes=sent * len(armed.peers),
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * 4, bytes=(rate * len(armed.peers),) * 4),
    )
    measurement = Measurement(
        tool=KEY,
        tool_version="1",
        started_at=t0 + SECOND,
        runtime=4 * SECOND,
        operations=(written,),
        peers=tuple(PeerRate(peer=peer, bytes=sent, seconds=4, **fields) for peer in armed.peers),
    )
    return make_document(client, t0).model_copy(update={"measurement": measurement})


SERVERS = {"placement": "ClientNodes", "count": 3}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, KEY, PAIRS)


class Simulated(Simulation):
    """A run whose clients send at 100 MiB/s, except over the link from client 1 to server 4."""

    def __init__(self, plan: Plan, slow: float = 10 * MEBIBYTE) -> None:
        self.statuses: dict[str, ResultStatus] = {}
        self.slow = slow
        super().__init__(plan)

    def node(self, client: int) -> str:
        return f"node-{client}"

    def new_session(self) -> Session:
        session = super().new_session()
        matrices = {
            name: status.summary.matrix
            for name, status in self.statuses.items()
            if status.summary and status.summary.matrix
        }
        trials = {point.name: session.ledger.trials[point.name] for point in self.plan.points}
        session.ledger = Ledger(self.plan, trials, matrices)
        return session

    def document(self, client: int, armed: ArmOrder) -> ClientDocument:
        if not armed.peers:
            return super().document(client, armed)
        is_slow = client == 1 and 4 in armed.peers
        return pairs_document(client, armed, self.t0, self.slow if is_slow else 100 * MEBIBYTE)

    def _make_durable(self, effect: Effect) -> None:
        super()._make_durable(effect)
        if isinstance(effect, RecordAttempt):
            self.statuses[effect.point] = effect.status


def simulated(*workloads: dict[str, Any], clients: int = 2, slow: float = 10 * MEBIBYTE, **spec: Any) -> Simulated:
    return Simulated(pairs_plan(*workloads, clients=clients, **{"servers": SERVERS, **spec}), slow)


def matrix_of(simulation: Simulated, point: str = "w0-000") -> Matrix:
    summary = simulation.statuses[point].summary
    assert summary is not None
    assert summary.matrix is not None
    return summary.matrix


def test_every_client_loads_every_server_and_servers_never_load() -> None:
    simulation = simulated()
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert {client for _, _, client in simulation.touched} == {0, 1}
    assert simulation.served == [(server, {client: f"10.0.0.{client}"}) for client in (0, 1) for server in (2, 3, 4)]
    (trial,) = simulation.stored["w0-000"]
    assert trial.clients == (0, 1, 2, 3, 4)


def test_the_slow_link_is_named_with_its_nodes_and_makes_the_point_suspect() -> None:
    simulation = simulated(repetitions=3)
    simulation.settle()
    status = simulation.statuses["w0-000"]
    assert status.verdict is Verdict.SUSPECT
    assert [finding.reason for finding in status.findings] == ["LinkOutlier"]
    assert status.findings[0].message.startswith(
        "pass 0 (also passes 1 and 2): client 1 (node node-1) to client 4 (node node-4): 83.9 Mbit/s, 10 % of "
        "the median of the others, 839 Mbit/s"
    )
    matrix = matrix_of(simulation)
    assert matrix.trials == 3
    assert [(pair.client, pair.peer) for pair in matrix.pairs() if pair.is_outlier] == [(1, 4)]
    assert matrix.bytes_per_second == (*(100 * MEBIBYTE,) * 5, 10 * MEBIBYTE)


def test_equal_links_are_valid() -> None:
    simulation = simulated(repetitions=3, slow=99 * MEBIBYTE)
    simulation.settle()
    assert simulation.statuses["w0-000"].verdict is Verdict.VALID


@pytest.mark.parametrize(("pairing", "rounds"), [("OneToAll", 2), ("AllAtOnce", 1)])
def test_several_servers_serve_at_once(pairing: str, rounds: int) -> None:
    simulation = simulated({KEY: {"pairing": pairing}}, slow=100 * MEBIBYTE, repetitions=3)
    simulation.settle()
    assert simulation.statuses["w0-000"].verdict is Verdict.VALID
    assert len(matrix_of(simulation).clients) == (6 if pairing == "OneToAll" else 2)
    assert len({post.round_number for post in simulation.posts}) == rounds


def test_only_clients_prepare_data_sets() -> None:
    storage = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}
    simulation = simulated({KEY: {}}, {"fio": {}}, storage=storage)
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [bool(agent.prepared_bytes) for agent in simulation.agents] == [True, True, False, False, False]
    (trial,) = simulation.stored["w1-000"]
    assert trial.clients == (0, 1)


def test_the_session_waits_for_its_servers() -> None:
    simulation = simulated()
    simulation.agents[3].stopped = True
    for _ in range(50):
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.05)
    assert simulation.state.missing == (3,)
    assert simulation.touched == []


def test_a_lost_server_aborts_the_trial_which_is_repeated() -> None:
    simulation = simulated(slow=100 * MEBIBYTE)
    while not isinstance(simulation.session.phase, Running):
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.05)
    simulation.report(2, AgentState.FAILED, "the server ended")
    simulation.settle()
    first, second = simulation.stored["w0-000"]
    assert first.abort is not None
    assert first.abort.reason is AbortReason.CLIENT_LOST
    assert "the server ended" in first.abort.message
    assert (second.outcome, matrix_of(simulation).trials) == (Outcome.MEASURED, 1)


def between_rounds() -> Simulated:
    """Return a run whose first round has been judged, before its second one begins."""
    simulation = simulated(repetitions=1)
    simulation.until(Running)
    simulation.until(Gathering)
    assert simulation.session.unfinished
    assert simulation.state.in_flight == TrialKey(point="w0-000", pass_number=0, attempt=0)
    return simulation


def test_a_conductor_that_dies_between_two_rounds_leaves_the_attempt() -> None:
    simulation = between_rounds()
    simulation.publish()
    simulation.crash()
    simulation.settle()
    first, second = simulation.stored["w0-000"]
    assert first.abort is not None
    assert (first.abort.reason, first.abort.after_start) == (AbortReason.CONDUCTOR_RESTARTED, True)
    assert second.outcome is Outcome.MEASURED


def test_a_run_that_is_suspended_between_two_rounds_leaves_the_attempt() -> None:
    simulation = between_rounds()
    simulation.session.stop()
    simulation.settle()
    assert simulation.phase is RunPhase.INTERRUPTED
    (trial,) = simulation.stored["w0-000"]
    assert trial.abort is not None
    assert (trial.abort.reason, trial.abort.after_start) == (AbortReason.INTERRUPTED, True)


def test_a_new_conductor_extends_the_recorded_matrix() -> None:
    simulation = simulated(repetitions=3)
    recorded: Callable[[], tuple[Trial, ...]] = lambda: simulation.stored.get("w0-000", ())  # noqa: E731 - one word
    while len(recorded()) < 2:
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.05)
    simulation.crash()
    simulation.settle()
    assert matrix_of(simulation).trials == 3


def test_an_invalid_round_makes_the_trial_invalid_and_its_cells_do_not_count() -> None:
    class Broken(Simulated):
        def document(self, client: int, armed: ArmOrder) -> ClientDocument:
            document = super().document(client, armed)
            return document.model_copy(update={"exit_code": 1}) if self.slow and 4 in armed.peers else document

    simulation = Broken(pairs_plan(servers=SERVERS))
    simulation.settle()
    trials = simulation.stored["w0-000"]
    assert [trial.verdict for trial in trials] == [Verdict.INVALID] * 3
    assert trials[0].findings[0].message.startswith("round 3 (also round 6): ")
    status = simulation.statuses["w0-000"]
    assert (status.verdict, status.summary) == (Verdict.INVALID, None)


def test_a_trial_of_rounds_has_no_window_and_is_not_called_unsteady() -> None:
    simulation = simulated(slow=100 * MEBIBYTE, repetitions=3)
    simulation.settle()
    for trial in simulation.stored["w0-000"]:
        assert (trial.window, trial.stalls, trial.steadiness, trial.findings) == (None, None, None, ())
        (written,) = trial.operations
        assert (written.series, written.operation) == (None, Operation.WRITE)


class Work(PretendedWork):
    """An agent's work with the same documents."""

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        await asyncio.sleep(0.05)
        return pairs_document(self.client, armed.order, time.time_ns(), retransmits=self.client)


async def test_conductor_and_agents_agree_on_servers_and_the_matrix_is_stored(tmp_path: Path) -> None:
    plan = pairs_plan(clients=2, servers={"placement": "ClientNodes", "count": 1})
    setting = Setting(tmp_path, plan)
    agents = (setting.agent(client, work=Work(client)) for client in range(3))
    assert await asyncio.gather(setting.conduct(), *agents) == [EXIT_COMPLETE, 0, 0, 0]
    (result,) = read_results(setting.results)
    assert result.status.summary is not None
    matrix = result.status.summary.matrix
    assert matrix is not None
    assert (matrix.clients, matrix.peers, matrix.retransmits) == ((0, 1), (2, 2), (0, 1))
    assert (await FilesSink(setting.results).load()).matrices == {"w0-000": matrix}
