"""A toy tool with servers, whose result is a matrix: every client loads every other, one pair at a time.

Follows the recipe "Add a tool" of CONTRIBUTING.md.
"""

import asyncio
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host
from plimsoll.agent.worker import Worker
from plimsoll.api.errors import SpecError
from plimsoll.api.model import Integer
from plimsoll.api.names import AbortReason, LatencyKind, Layer, Operation, RunPhase, Verdict
from plimsoll.api.run import decode_run
from plimsoll.api.status import TrialKey
from plimsoll.cli.layers import layers_of
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.phases import Running
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import (
    Cells,
    ClientDocument,
    Clock,
    LatencySample,
    Measurement,
    OperationSample,
    PeerRate,
)
from plimsoll.measure.trial import TrialNumbers, combined, measure_trial
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import TRIAL_OVERHEAD_SECONDS, make_plan, trial_seconds
from plimsoll.protocol.messages import AgentState, ArmOrder, ServeOrder
from plimsoll.report.view import layer_sentences
from plimsoll.tools.base import Command, Output, StepContext, StepKind, Timing, Tool, ToolParameters
from plimsoll.tools.cast import Cast, RosterMember, Round, choose_clients
from plimsoll.tools.registry import LAYERS, TOOLS, loading_clients
from plimsoll.tools.target import PeerTarget, TargetKind
from support import simulation
from support.client_documents import SECOND, make_document
from support.rendezvous import PretendedWork, Setting
from support.results import ALL_LAYERS
from support.results import layer_result as layered
from support.simulation import Simulation

MEBIBYTE = 2**20
TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)


class Streams(ToolParameters):
    """Number of connections of each pair."""

    axes: ClassVar[frozenset[str]] = frozenset({"streams"})
    streams: Annotated[Integer, Field(ge=1, le=16)] = 1

    def label(self) -> str:
        return f"pairs x{self.streams}"


class Pairs(Tool[Streams]):
    """Sends from one client to another; the server prints `ready`, the client the bytes of each second."""

    key: ClassVar[str] = "toyPairs"
    program: ClassVar[str] = "toy-pairs"
    parameters = Streams
    layer: ClassVar[Layer] = Layer.NETWORK
    quantities: ClassVar[Quantities] = Quantities(operations=False, cells=True)
    target: ClassVar[TargetKind] = TargetKind.PEER
    least_runtime_seconds: ClassVar[int] = 3

    def cast(self, parameters: Streams, roster: Sequence[RosterMember], clients: int) -> Cast:
        pairs = permutations(choose_clients(roster, clients), 2)
        return Cast(rounds=tuple(Round(servers={loading: (serving,)}) for loading, serving in pairs))

    def rounds(self, parameters: Streams, clients: int, servers: int) -> int:
        return clients * (servers or clients - 1)

    def command(self, parameters: Streams, context: StepContext) -> Command:
        assert isinstance(context.target, PeerTarget)
        (address,) = context.target.addresses.values()
        does = "serve" if context.step is StepKind.SERVE else "load"
        return Command(argv=(self.program, does, address, str(parameters.streams)))

    def is_serving(self, parameters: Streams, printed: str) -> bool:
        return "ready\n" in printed

    def parse(self, parameters: Streams, context: StepContext, output: Output) -> Measurement:
        assert isinstance(context.target, PeerTarget)
        (peer,) = context.target.addresses
        sent = [int(line) for line in output.stdout.split()]
        return Measurement(
            tool=self.key,
            tool_version="1",
            started_at=output.launched_at + SECOND,
            runtime=len(sent) * SECOND,
            operations=(
                OperationSample(
                    operation=Operation.WRITE,
                    ios=0,
                    bytes=sum(sent),
                    latency=LatencySample(kind=LatencyKind.NONE),
                    cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(sent), bytes=tuple(map(float, sent))),
                ),
            ),
            peers=(PeerRate(peer=peer, bytes=sum(sent), seconds=len(sent)),),
        )


PAIRS = Pairs()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, PAIRS.key, PAIRS)


def rate(client: int, peer: int) -> int:
    """Bytes per second from one client to another: the link from 2 to 0 is slow."""
    return 10 * MEBIBYTE if (client, peer) == (2, 0) else 100 * MEBIBYTE


def document_of(client: int, armed: ArmOrder) -> ClientDocument:
    (peer,) = armed.peers
    stdout = f"{rate(client, peer)}\n" * 4
    output = Output(exit_code=0, stdout=stdout, stderr="", files={}, launched_at=armed.t0_nanoseconds)
    context = StepContext(
        step=StepKind.MEASURE,
        target=PeerTarget(addresses=armed.peers),
        timing=Timing(ramp_seconds=armed.ramp_seconds, runtime_seconds=armed.runtime_seconds),
        seed=armed.seed,
        work_directory="/work",
    )
    measurement = PAIRS.parse(Streams(), context, output)
    return make_document(client, armed.t0_nanoseconds).model_copy(update={"measurement": measurement})


class Simulated(Simulation):
    """A run whose clients send the documents of the toy's parser."""

    def document(self, client: int, armed: ArmOrder) -> ClientDocument:
        return document_of(client, armed)


class Work(PretendedWork):
    """An agent's work with the same documents."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self.served: list[dict[int, str]] = []

    async def serve(self, order: ServeOrder, ready: Any) -> None:
        self.served.append(order.peers)
        await ready()
        await asyncio.Event().wait()

    async def measure(self, armed: Any, clock: Clock) -> ClientDocument:
        await asyncio.sleep(0.05)
        return document_of(self.client, armed.order)


def plan_of(clients: int = 3) -> Plan:
    spec = {
        "clients": {"count": clients},
        "workloads": [{"name": "w", "toyPairs": {"streams": [4]}, "runtimeSeconds": 4, "rampSeconds": 1}],
        "repetitions": 1,
    }
    metadata = {"name": "run", "namespace": "bench", "uid": "u"}
    run: dict[str, Any] = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": metadata,
        "spec": spec,
    }
    return make_plan(decode_run(run), seed=1)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[TrialNumbers]:
    """Return the list that receives the numbers of each round."""
    found: list[TrialNumbers] = []

    def measure(facts: TrialFacts, documents: dict[int, ClientDocument]) -> TrialNumbers:
        found.append(measure_trial(facts, documents))
        return found[-1]

    monkeypatch.setattr(simulation, "measure_trial", measure)
    return found


def test_plan_has_no_volume_and_the_time_of_all_rounds() -> None:
    plan = plan_of()
    (point,) = plan.points
    assert (point.label, point.clients, plan.volume) == ("pairs x4", 3, None)
    assert trial_seconds(point) == 6 * (4 + 1 + TRIAL_OVERHEAD_SECONDS)


@pytest.mark.parametrize(("clients", "rounds"), [(1, 0), (65, 4160)])
def test_numbers_of_clients_with_no_round_or_too_many_are_refused(clients: int, rounds: int) -> None:
    with pytest.raises(SpecError, match=rf"toyPairs: takes {rounds} rounds with {clients} clients, but 1 to 4096"):
        plan_of(clients)


def test_every_pair_is_a_cell_and_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = noted(monkeypatch)
    simulation = Simulated(plan_of())
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    assert [client for _, _, client in simulation.touched] == [0, 0, 1, 1, 2, 2]
    assert simulation.served == [
        (serving, {loading: f"10.0.0.{loading}"}) for loading, serving in permutations(range(3), 2)
    ]
    assert combined(rounds).matrix == tuple(
        MatrixCell(
            client=client,
            peer=peer,
            client_node=f"node-{client % 2}",
            peer_node=f"node-{peer % 2}",
            iops=0,
            bytes_per_second=rate(client, peer),
        )
        for client, peer in permutations(range(3), 2)
    )


def test_a_trial_combines_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulated(plan_of())
    simulation.settle()
    (trial,) = simulation.stored["w-000"]
    assert (trial.clients, trial.verdict, trial.window) == ((0, 1, 2), Verdict.VALID, None)
    (written,) = trial.operations
    # Without the pairs of clients 0 and 2, which are on one node.
    assert written.bytes == 4 * 4 * 100 * MEBIBYTE
    assert written.rates.bytes_per_second == 100 * MEBIBYTE


def test_a_failing_server_aborts_the_trial_which_is_repeated() -> None:
    simulation = Simulated(plan_of(2))
    while not isinstance(simulation.session.phase, Running):
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        simulation.pass_time(0.05)
    assert simulation.session.phase.attempt.round.serving == (1,)
    simulation.report(1, AgentState.FAILED, "the server of toyPairs ended with exit code 1: address in use")
    simulation.settle()
    first, second = simulation.stored["w-000"]
    assert first.abort is not None
    assert first.abort.reason is AbortReason.CLIENT_LOST
    assert "address in use" in first.abort.message
    assert second.verdict is Verdict.VALID


async def test_conductor_and_agents_agree_on_who_serves_whom(tmp_path: Path) -> None:
    setting = Setting(tmp_path, plan_of(2))
    work = [Work(client) for client in range(2)]
    codes = await asyncio.gather(setting.conduct(), *(setting.agent(client, work=work[client]) for client in range(2)))
    assert codes == [EXIT_COMPLETE, 0, 0]
    assert [part.served for part in work] == [[{1: "127.0.0.1"}], [{0: "127.0.0.1"}]]
    trials = (await FilesSink(setting.results).load()).trials
    assert [trial.clients for trial in trials["w-000"]] == [(0, 1)]


# -- real processes


def worker_of(directory: Path, client: int, program: str) -> Worker:
    directory.mkdir()
    path = directory / "program"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    binaries = {PAIRS.program: str(path)}
    return Worker(client=client, node="n", volume=None, directory=directory, binaries=binaries, host=Host())


def serve_order(peers: dict[int, str]) -> ServeOrder:
    return ServeOrder(
        trial=TRIAL, tool=PAIRS.key, parameters={}, ramp_seconds=0, runtime_seconds=1, seed=1, peers=peers
    )


async def test_a_server_is_ready_before_the_load_and_ended_after_it(tmp_path: Path) -> None:
    serving = worker_of(tmp_path / "server", 1, 'sleep 0.3; echo ready; echo "$*" > asked; exec sleep 600')
    loading = worker_of(tmp_path / "client", 0, 'echo "$*" > asked; echo 1024')
    is_ready = asyncio.Event()

    async def ready() -> None:
        is_ready.set()

    before = time.monotonic()
    server = asyncio.create_task(serving.serve(serve_order({0: "10.0.0.7"}), ready))
    async with asyncio.timeout(10):
        await is_ready.wait()
    assert time.monotonic() - before >= 0.3
    order = ArmOrder(**serve_order({1: "10.0.0.8"}).model_dump(exclude={"kind"}), t0_nanoseconds=time.time_ns())
    document = await loading.measure(await loading.arm(order), Clock(offset=0, error=0))
    assert document.measurement is not None
    assert document.measurement.peers == (PeerRate(peer=1, bytes=1024, seconds=1),)
    assert (tmp_path / "client" / "measure" / "asked").read_text() == "load 10.0.0.8 1\n"
    assert (tmp_path / "server" / "serve" / "asked").read_text() == "serve 10.0.0.7 1\n"
    server.cancel()
    async with asyncio.timeout(10):
        await asyncio.wait({server})
    assert server.cancelled()


@pytest.mark.parametrize(
    ("program", "words"),
    [("echo no port >&2; exit 3", "ended with exit code 3: no port"), ("exit 0", "before any client could connect")],
)
async def test_a_server_that_does_not_start_is_an_error(tmp_path: Path, program: str, words: str) -> None:
    async def ready() -> None:
        raise AssertionError("it is not")

    with pytest.raises(PreparationError, match=words):
        await worker_of(tmp_path / "server", 1, program).serve(serve_order({0: "10.0.0.7"}), ready)


def test_layers_know_how_many_clients_send_at_the_same_time() -> None:
    assert loading_clients(PAIRS.key, {"streams": 2}, 3) == 1
    assert loading_clients("fio", {"pattern": "read"}, 3) == 3
    assert loading_clients("osdBench", {"keyringSecret": {"name": "k"}}, 3) == 1


def test_the_network_is_a_layer_of_a_report_and_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair has 60 bytes per second, one pair at a time: this limits a run with one client to 60."""
    monkeypatch.setitem(LAYERS, PAIRS.key, PAIRS.layer)
    pairs = layered("n-0", PAIRS.key, {Operation.WRITE: (60, 0)})
    pairs = pairs.model_copy(
        update={"spec": pairs.spec.model_copy(update={"parameters": {"streams": 1}, "clients": 3})}
    )
    rows = layers_of([*ALL_LAYERS, pairs])
    assert [*layer_sentences(rows)][:2] == [
        "RADOS reads reach 833 % of the limit set by the clients' network.",
        "RADOS writes reach 400 % of the limit set by the clients' network.",
    ]
    assert Layer.NETWORK in {row.layer for row in rows}
