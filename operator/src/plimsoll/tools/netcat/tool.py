"""netcat (netcat-traditional 1.10) as a tool.

A serving client runs one netcat for each client that it serves, which sends zeros as fast as the connection takes them.
A loading client runs one netcat for each server, which discards what it receives. netcat reports nothing: the agent
reads how many bytes it has read from the kernel (`rchar` of `proc_pid_io(5)`), once a second. These are the bytes that
arrived, besides some KiB of program files that netcat reads at its start, which the ramp leaves out.

It cannot know when a byte was sent, how many segments were sent twice, or whether netcat or the network was the limit.
"""

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, StepKind, Tool
from plimsoll.tools.cast import Cast, RosterMember
from plimsoll.tools.command import Command, Output, together
from plimsoll.tools.netcat.output import live_rates, parse_measurement
from plimsoll.tools.netcat.parameters import NetcatParameters
from plimsoll.tools.pairing import paired, round_count
from plimsoll.tools.ports import SERVING_PORTS, serving_port
from plimsoll.tools.target import PeerTarget, TargetKind

CONNECT_SECONDS = 5


class Netcat(Tool[NetcatParameters]):
    """netcat between clients, or from the run's servers to clients."""

    key: ClassVar[str] = "netcat"
    program: ClassVar[str] = "nc.traditional"
    version_argument: ClassVar[str] = "-h"
    parameters = NetcatParameters
    layer: ClassVar[Layer] = Layer.NETWORK
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.NONE, operations=False, cells=True)
    target: ClassVar[TargetKind] = TargetKind.PEER
    server_ends_with_client: ClassVar[bool] = True
    peer_ports: ClassVar[range | None] = SERVING_PORTS
    least_runtime_seconds: ClassVar[int] = 3

    def cast(self, parameters: NetcatParameters, roster: Sequence[RosterMember], clients: int) -> Cast:
        """Return the rounds of the pairing."""
        return paired(parameters.pairing, roster, clients)

    def rounds(self, parameters: NetcatParameters, clients: int, servers: int) -> int:
        """Return the number of rounds of the pairing."""
        return round_count(parameters.pairing, clients, servers)

    def command(self, parameters: NetcatParameters, context: StepContext) -> Command:  # noqa: ARG002 - has no options
        """Return the commands of a step, one for each peer.

        Raises:
            ValueError: a peer has an IPv6 address, which netcat 1.10 does not know.

        """
        peers = context.target_of(PeerTarget).addresses
        for number, address in peers.items():
            if _is_version_6(address):
                raise ValueError(f"netcat 1.10 does not know IPv6, but client {number} has {address}; use iperf3")
        serves = context.step is StepKind.SERVE
        return together((_server if serves else _client)(context, *peer) for peer in peers.items())

    def is_serving(self, parameters: NetcatParameters, printed: str) -> bool:  # noqa: ARG002 - the tool's signature
        """Whether a server listens, and only to its client."""
        return "accepting only " in printed

    def live(self, parameters: NetcatParameters, printed: str) -> tuple[LiveRate, ...]:  # noqa: ARG002 - as above
        """Return the rate of the newest seconds."""
        return live_rates(printed)

    def parse(self, parameters: NetcatParameters, context: StepContext, output: Output) -> Measurement:  # noqa: ARG002
        """Read the output of the measuring step."""
        return parse_measurement(context.target_of(PeerTarget), context.timing, output)


NETCAT = Netcat()


def _is_version_6(address: str) -> bool:
    try:
        return isinstance(ip_address(address), IPv6Address)
    except ValueError:
        return False


def _server(context: StepContext, client: int, address: str) -> Command:
    port = str(serving_port(context.client, client))
    return Command(argv=("nc.traditional", "-n", "-l", "-p", port), stdin="/dev/zero", accepts_only=address)


def _client(context: StepContext, server: int, address: str) -> Command:
    port = str(serving_port(server, context.client))
    seconds = context.timing.ramp_seconds + context.timing.runtime_seconds
    argv = ("nc.traditional", "-n", "-w", str(CONNECT_SECONDS), address, port)
    return Command(argv=argv, metered_seconds=seconds)
