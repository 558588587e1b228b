"""A tool between clients, and runs with it that have servers."""

from collections.abc import Sequence
from typing import Any, ClassVar

from plimsoll.api.model import Integer
from plimsoll.api.names import LatencyKind, Layer, Operation
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Cells, ClientDocument, LatencySample, Measurement, OperationSample, PeerRate
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.messages import ArmOrder
from plimsoll.tools.base import Command, Output, StepContext, Tool, ToolParameters
from plimsoll.tools.cast import Cast, Pairing, RosterMember, paired, round_count
from plimsoll.tools.target import TargetKind
from support.simulated_plan import SECOND, make_document

KEY = "pairs"
MEBIBYTE = 2**20
SERVERS = {"placement": "ClientNodes", "count": 2}


class Parameters(ToolParameters):
    """The pairs that are active at the same time."""

    axes: ClassVar[frozenset[str]] = frozenset({"streams"})
    pairing: Pairing = Pairing.EACH_PAIR
    streams: Integer = 1

    def label(self) -> str:
        return f"{self.pairing} x{self.streams}"


class Pairs(Tool[Parameters]):
    """Sends from one client to another."""

    key: ClassVar[str] = KEY
    program: ClassVar[str] = KEY
    parameters = Parameters
    layer: ClassVar[Layer] = Layer.NETWORK
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE, operations=False, cells=True)
    target: ClassVar[TargetKind] = TargetKind.PEER
    least_runtime_seconds: ClassVar[int] = 3

    def cast(self, parameters: Parameters, roster: Sequence[RosterMember], clients: int) -> Cast:
        return paired(parameters.pairing, roster, clients)

    def rounds(self, parameters: Parameters, clients: int, servers: int) -> int:
        return round_count(parameters.pairing, clients, servers)

    def command(self, parameters: Parameters, context: StepContext) -> Command:
        return Command(argv=(self.program, context.step))

    def parse(self, parameters: Parameters, context: StepContext, output: Output) -> Measurement:
        raise NotImplementedError


PAIRS = Pairs()


def pairs_run(*workloads: dict[str, Any], clients: int = 2, **spec: Any) -> BenchmarkRun:
    """Return a run without storage whose workloads run the tool, by default one; None removes a field."""
    fields: dict[str, Any] = {
        "clients": {"count": clients},
        "servers": dict(SERVERS),
        "workloads": [{"name": f"w{n}", **one} for n, one in enumerate(workloads or ({KEY: {}},))],
        "repetitions": 1,
        **spec,
    }
    for workload in fields["workloads"]:
        workload |= {"runtimeSeconds": 4, "rampSeconds": 1}
    return decode_run(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "run", "namespace": "bench", "uid": "u"},
            "spec": {name: value for name, value in fields.items() if value is not None},
        }
    )


def pairs_plan(*workloads: dict[str, Any], **spec: Any) -> Plan:
    """Return the plan of such a run."""
    return make_plan(pairs_run(*workloads, **spec), seed=1)


def pairs_document(client: int, armed: ArmOrder, rate: float = 100 * MEBIBYTE, **fields: Any) -> ClientDocument:
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
        started_at=armed.t0_nanoseconds + SECOND,
        runtime=4 * SECOND,
        operations=(written,),
        peers=tuple(PeerRate(peer=peer, bytes=sent, seconds=4, **fields) for peer in armed.peers),
    )
    return make_document(client, armed.t0_nanoseconds).model_copy(update={"measurement": measurement})
