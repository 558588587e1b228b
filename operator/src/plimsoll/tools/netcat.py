"""netcat between two clients: one plain TCP stream, counted by the receiver."""

import re
from itertools import pairwise
from typing import ClassVar

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement, PeerRate
from plimsoll.tools import reading
from plimsoll.tools.base import Command, Output, PeerParameters, PeerTool, StepContext, StepKind, Timing
from plimsoll.tools.reading import SECOND, Mark


class NetcatParameters(PeerParameters):
    """netcat between clients: one plain TCP stream for each pair, for comparison with published numbers.

    The serving client sends zeros, and the loading client receives and counts them. netcat copies 8 KiB at a time in
    one thread, so on a fast network it measures itself: use iperf3.
    """

    def label(self) -> str:
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

    def peer_command(self, parameters: NetcatParameters, context: StepContext, address: str, port: int) -> Command:
        if ":" in address:
            raise ValueError(f"netcat 1.10 does not know IPv6, but the address of a peer is {address}; use iperf3")
        if context.step is StepKind.SERVE:
            return Command(argv=("nc.traditional", "-n", "-l", "-p", str(port)), stdin="/dev/zero")
        connect = ("nc.traditional", "-n", "-w", "5", address, str(port))  # within 5 s
        return Command(argv=connect, metered_seconds=context.timing.total_seconds)

    def parse(self, parameters: NetcatParameters, context: StepContext, output: Output) -> Measurement:
        timing = context.timing
        if output.exit_code:
            raise OutputError(f"netcat failed with {reading.failure(output)}")
        peers = self.outputs(context, output)
        parts = [_measured_marks(connection.stdout, timing) for connection in output.all]
        start, end = min(marks[0].moment for marks in parts), max(marks[-1].moment for marks in parts)
        rates = [
            PeerRate(peer=peer, bytes=last.done - first.done, seconds=(last.moment - first.moment) / SECOND)
            for peer, (first, *_, last) in zip(peers, parts, strict=True)
        ]
        connections = [(marks, rate.bytes) for marks, rate in zip(parts, rates, strict=True)]
        return Measurement(
            started_at=start,
            runtime=end - start,
            operations=(reading.byte_sample(Operation.READ, connections, start, end),),
            submitters=len(parts),
            peers=tuple(rates),
            # If the server closes the connection, netcat ends without an error.
            errors=reading.bounded(
                f"the connection ended after {rate.seconds:.1f} s of {timing.runtime_seconds} s"
                for rate in rates
                if rate.seconds < timing.runtime_seconds - 0.5
            ),
            warnings=reading.bounded(line for connection in output.all for line in reading.excerpt(connection.stderr)),
        )


def _measured_marks(text: str, timing: Timing) -> list[Mark]:
    (matches,), unknown = reading.sort_lines(text, _LINE)
    if unknown or not matches:
        raise OutputError(unknown[0] if unknown else "the output has no line of a second")
    marks = [Mark(moment=int(match["moment"]), done=int(match["bytes"])) for match in matches]
    for before, after in pairwise(marks):
        if after.moment <= before.moment or after.done < before.done:
            raise OutputError(f"the line {after.moment} {after.done} goes back in time or bytes: was the clock set?")
        if after.moment - before.moment > _LARGEST_GAP:
            raise OutputError(f"there is no line for {(after.moment - before.moment) / SECOND:.1f} s")
    start = reading.closest(marks, marks[0].moment + timing.ramp_seconds * SECOND)
    end = reading.closest(marks, start.moment + timing.runtime_seconds * SECOND)
    if end.moment <= start.moment:
        raise reading.ended_in_warm_up("the connection", (marks[-1].moment - marks[0].moment) / SECOND, timing)
    return marks[marks.index(start) : marks.index(end) + 1]
