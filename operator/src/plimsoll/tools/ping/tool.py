"""ping (iputils) as a tool. It has no server: the kernel of the serving client answers."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from plimsoll.api.names import LatencyKind, Layer
from plimsoll.api.state import LiveRate
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepContext, StepKind, Tool
from plimsoll.tools.cast import Cast, RosterMember
from plimsoll.tools.command import Command, Output, together
from plimsoll.tools.pairing import paired, round_count
from plimsoll.tools.ping.output import parse_measurement
from plimsoll.tools.ping.parameters import TAIL_SECONDS, PingParameters
from plimsoll.tools.ping.text import live_rates
from plimsoll.tools.target import PeerTarget, TargetKind

MAX_REQUESTS = 800_000
"""Their replies fit into the output that the agent reads."""


class Ping(Tool[PingParameters]):
    """ping between clients, or between clients and the run's servers."""

    key: ClassVar[str] = "ping"
    program: ClassVar[str] = "ping"
    version_argument: ClassVar[str] = "-V"
    parameters = PingParameters
    layer: ClassVar[Layer] = Layer.NETWORK
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.FULL, bytes=False, cells=True)
    target: ClassVar[TargetKind] = TargetKind.PEER
    has_server: ClassVar[bool] = False
    sysctls: ClassVar[Mapping[str, str]] = {"net.ipv4.ping_group_range": "0 2147483647"}
    least_runtime_seconds: ClassVar[int] = 3

    def cast(self, parameters: PingParameters, roster: Sequence[RosterMember], clients: int) -> Cast:
        """Return the rounds of the pairing."""
        return paired(parameters.pairing, roster, clients)

    def rounds(self, parameters: PingParameters, clients: int, servers: int) -> int:
        """Return the number of rounds of the pairing."""
        return round_count(parameters.pairing, clients, servers)

    def command(self, parameters: PingParameters, context: StepContext) -> Command:
        """Return the commands of the measurement, one for each peer.

        Raises:
            ValueError: there are too many requests.

        """
        if context.step is StepKind.SERVE:
            raise ValueError("ping has no server")
        seconds = context.timing.ramp_seconds + context.timing.runtime_seconds + TAIL_SECONDS
        if seconds * 1000 > MAX_REQUESTS * parameters.interval_milliseconds:
            raise ValueError(f"takes more than {MAX_REQUESTS} requests in {seconds} s; raise intervalMilliseconds")
        options = (
            "-D",
            "-n",
            f"-i{parameters.interval_milliseconds / 1000:.3f}",
            f"-s{parameters.size}",
            f"-w{seconds}",
        )
        addresses = context.target_of(PeerTarget).addresses.values()
        return together(Command(argv=("ping", *options, address)) for address in addresses)

    def live(self, parameters: PingParameters, printed: str) -> tuple[LiveRate, ...]:  # noqa: ARG002 - no size needed
        """Return the rate of the newest replies."""
        return live_rates(printed)

    def parse(self, parameters: PingParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        return parse_measurement(parameters, context.target_of(PeerTarget), context.timing, output)


PING = Ping()
