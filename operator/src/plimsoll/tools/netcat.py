"""netcat between two clients: one plain TCP stream, counted by the receiver."""

import re
from itertools import pairwise
from typing import ClassVar

from plimsoll.api.json_reader import OutputError, printable
from plimsoll.api.names import Operation
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement, PeerRate
from plimsoll.tools.base import Command, Output, PeerTool, StepContext, StepKind, Timing, ToolParameters, together
from plimsoll.tools.cast import Pairing, serving_port
from plimsoll.tools.reading import SECOND, Mark, bounded, byte_sample, closest, excerpt, failure, whole_lines
from plimsoll.tools.target import PeerTarget


class NetcatParameters(ToolParameters):
    """netcat between clients: one plain TCP stream for each pair, for comparison with published numbers.

    The serving client sends zeros, and the loading client receives and counts them. netcat copies 8 KiB at a time in
    one thread, so on a fast network it measures itself: use iperf3.

    Attributes:
        pairing: EachPair loads one pair at a time, until every client has loaded every server; OneToAll lets one client
            at a time load all servers; AllAtOnce lets all clients load one server each at the same time.

    """

    pairing: Pairing = Pairing.EACH_PAIR

    def label(self) -> str:
        """Return a short description: `netcat receive`."""
        return "netcat receive"


_LINE = re.compile(r"(?P<moment>\d{1,19}) (?P<bytes>\d{1,18})", re.ASCII)
_LARGEST_GAP = 5 * SECOND


class Netcat(PeerTool[NetcatParameters]):
    """netcat between clients, or from the run's servers to clients."""

    key: ClassVar[str] = "netcat"
    program: ClassVar[str] = "nc.traditional"
    version_argument: ClassVar[str] = "-h"
    parameters = NetcatParameters
    quantities: ClassVar[Quantities] = Quantities(operations=False, cells=True)
    server_ends_with_client: ClassVar[bool] = True

    def command(self, parameters: NetcatParameters, context: StepContext) -> Command:  # noqa: ARG002 - has no options
        """Return the commands of a step, one for each peer; ValueError for IPv6, which netcat 1.10 does not know."""
        peers = context.target_of(PeerTarget).addresses
        seconds = context.timing.total_seconds
        commands = []
        for number, address in peers.items():
            if ":" in address:
                raise ValueError(f"netcat 1.10 does not know IPv6, but client {number} has {address}; use iperf3")
            if context.step is StepKind.SERVE:
                listen = ("nc.traditional", "-n", "-l", "-p", str(serving_port(context.client, number)))
                commands.append(Command(argv=listen, stdin="/dev/zero", accepts_only=address))
            else:
                # It has to connect within 5 s.
                connect = ("nc.traditional", "-n", "-w", "5", address, str(serving_port(number, context.client)))
                commands.append(Command(argv=connect, metered_seconds=seconds))
        return together(commands)

    def is_serving(self, parameters: NetcatParameters, printed: str) -> bool:  # noqa: ARG002 - the tool's signature
        """Whether a server listens, and only to its client."""
        return "accepting only " in printed

    def parse(self, parameters: NetcatParameters, context: StepContext, output: Output) -> Measurement:  # noqa: ARG002
        """Read the meters of all connections."""
        peers, timing = context.target_of(PeerTarget).addresses, context.timing
        if output.exit_code:
            raise OutputError(f"netcat failed with {failure(output)}")
        if len(output.all) != len(peers):
            raise OutputError(f"{len(output.all)} netcats ended for {len(peers)} peers")
        parts = [_measured_marks(connection.stdout, timing) for connection in output.all]
        start, end = min(marks[0].moment for marks in parts), max(marks[-1].moment for marks in parts)
        received = [marks[-1].done - marks[0].done for marks in parts]
        seconds = [(marks[-1].moment - marks[0].moment) / SECOND for marks in parts]
        return Measurement(
            tool="netcat",
            tool_version="",
            started_at=start,
            runtime=end - start,
            operations=(byte_sample(Operation.READ, list(zip(parts, received, strict=True)), start, end),),
            submitters=len(parts),
            peers=tuple(
                PeerRate(peer=peer, bytes=total, seconds=length)
                for peer, total, length in zip(peers, received, seconds, strict=True)
            ),
            # If the server closes the connection, netcat ends without an error.
            errors=bounded(
                [
                    f"the connection ended after {length:.1f} s of {timing.runtime_seconds} s"
                    for length in seconds
                    if length < timing.runtime_seconds - 0.5
                ]
            ),
            warnings=bounded([line for connection in output.all for line in excerpt(connection.stderr)]),
        )


NETCAT = Netcat()


def _measured_marks(text: str, timing: Timing) -> list[Mark]:
    marks = []
    for line in whole_lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            raise OutputError(f"unknown line: {printable(line)}")
        marks.append(Mark(moment=int(match["moment"]), done=int(match["bytes"])))
    if not marks:
        raise OutputError("the output has no line of a second")
    for before, after in pairwise(marks):
        if after.moment <= before.moment or after.done < before.done:
            raise OutputError(f"the line {after.moment} {after.done} goes back in time or bytes: was the clock set?")
        if after.moment - before.moment > _LARGEST_GAP:
            raise OutputError(f"there is no line for {(after.moment - before.moment) / SECOND:.1f} s")
    start = closest(marks, marks[0].moment + timing.ramp_seconds * SECOND)
    end = closest(marks, start.moment + timing.runtime_seconds * SECOND)
    if end.moment <= start.moment:
        ended = (marks[-1].moment - marks[0].moment) / SECOND
        raise OutputError(
            f"the connection ended after {ended:.1f} s, before the end of its warm-up of {timing.ramp_seconds} s"
        )
    return marks[marks.index(start) : marks.index(end) + 1]
