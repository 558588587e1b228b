"""iperf3 as a tool.

A serving client runs one `iperf3 --server` for each client that it serves, on a port of its own. It accepts packets
from that client only. A loading client runs one `iperf3 --client` for each server.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, StepKind, Timing, Tool
from plimsoll.tools.cast import Cast, RosterMember
from plimsoll.tools.command import Command, Output, together
from plimsoll.tools.iperf3.output import parse_measurement
from plimsoll.tools.iperf3.parameters import MAX_OMIT_SECONDS, Direction, Iperf3Parameters, Protocol
from plimsoll.tools.pairing import paired, round_count
from plimsoll.tools.ports import SERVING_PORTS, serving_port
from plimsoll.tools.target import PeerTarget, TargetKind

CONNECT_MILLISECONDS = 5000
"""Within this time a connection succeeds, or the measurement fails."""


class Iperf3(Tool[Iperf3Parameters]):
    """iperf3 between clients, or between clients and the run's servers."""

    key: ClassVar[str] = "iperf3"
    program: ClassVar[str] = "iperf3"
    parameters = Iperf3Parameters
    layer: ClassVar[Layer] = Layer.NETWORK
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE, operations=False, cells=True)
    target: ClassVar[TargetKind] = TargetKind.PEER
    peer_ports: ClassVar[range | None] = SERVING_PORTS
    least_runtime_seconds: ClassVar[int] = 3

    def cast(self, parameters: Iperf3Parameters, roster: Sequence[RosterMember], clients: int) -> Cast:
        """Return the rounds of the pairing."""
        return paired(parameters.pairing, roster, clients)

    def rounds(self, parameters: Iperf3Parameters, clients: int, servers: int) -> int:
        """Return the number of rounds of the pairing."""
        return round_count(parameters.pairing, clients, servers)

    def command(self, parameters: Iperf3Parameters, context: StepContext) -> Command:
        """Return the commands of a step, one for each peer.

        Raises:
            ValueError: the ramp is longer than iperf3 can omit.

        """
        peers = context.target_of(PeerTarget).addresses.items()
        if context.step is StepKind.SERVE:
            return together(_server(context.client, number, address) for number, address in peers)
        if context.timing.ramp_seconds > MAX_OMIT_SECONDS:
            raise ValueError(f"iperf3 omits a ramp of at most {MAX_OMIT_SECONDS} s; lower rampSeconds")
        return together(
            Command(
                argv=(
                    "iperf3",
                    f"--client={address}",
                    f"--port={serving_port(number, context.client)}",
                    *_options(parameters, context.timing),
                )
            )
            for number, address in peers
        )

    def is_serving(self, parameters: Iperf3Parameters, printed: str) -> bool:  # noqa: ARG002 - the tool's signature
        """Whether a server listens, and only to its client."""
        return "accepting only " in printed and "Server listening on " in printed

    def parse(self, parameters: Iperf3Parameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, context.target_of(PeerTarget), context.timing, output)


IPERF3 = Iperf3()


def _server(server: int, client: int, address: str) -> Command:
    argv = ("iperf3", "--server", f"--port={serving_port(server, client)}", "--forceflush")
    return Command(argv=argv, accepts_only=address)


def _options(parameters: Iperf3Parameters, timing: Timing) -> Iterator[str]:
    yield from ("--json", "--interval=1", f"--time={timing.runtime_seconds}", f"--omit={timing.ramp_seconds}")
    yield f"--connect-timeout={CONNECT_MILLISECONDS}"
    yield f"--parallel={parameters.streams}"
    if parameters.window is not None:
        yield f"--window={parameters.window}"
    if parameters.direction is Direction.RECEIVE:
        yield "--reverse"
    if parameters.protocol is Protocol.UDP:
        yield from ("--udp", f"--bitrate={parameters.bitrate}")
        if parameters.datagram_bytes is not None:
            yield f"--length={parameters.datagram_bytes}"
