"""iperf3 between two clients: what TCP or UDP carries, counted by the receiver."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.json_reader import JsonNode, OutputError, printable
from plimsoll.api.model import BlockSize, Integer, Rule, ServerOnly, Size
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement, PeerRate
from plimsoll.tools.base import Command, Output, PeerParameters, PeerTool, StepContext, StepKind
from plimsoll.tools.reading import MILLISECOND, SECOND, Mark, bounded, byte_sample, excerpt, failure

_MAX_OMIT_SECONDS = 60  # the limit of `--omit` before iperf3 3.18
_USES_UDP = "self.protocol.exists(protocol, protocol == 'UDP')"


class Iperf3Parameters(PeerParameters):
    """iperf3 between clients: the rate that TCP or UDP reaches, counted by the receiver."""

    axes: ClassVar[frozenset[str]] = frozenset({"streams", "window", "direction", "protocol"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=f"has(self.bitrate) || !{_USES_UDP}",
            holds=lambda iperf3: iperf3.bitrate is not None or iperf3.protocol != "UDP",
            message="must be set for UDP, which does not find its rate itself; set the bits per second of a stream",
            field_path=".bitrate",
            reason="FieldValueRequired",
        ),
        # A point does not know the other protocols of its workload, which may need them.
        Rule(
            rule=f"!has(self.bitrate) || {_USES_UDP}",
            message="applies only to UDP, because TCP finds its rate itself; remove it, or use protocol UDP",
            field_path=".bitrate",
        ),
        Rule(
            rule=f"!has(self.datagramBytes) || {_USES_UDP}",
            message="applies only to UDP; remove it, or use protocol UDP",
            field_path=".datagramBytes",
        ),
    )
    workload_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=f"!has(self.iperf3) || self.rampSeconds <= {_MAX_OMIT_SECONDS}",
            holds=lambda point: point.workload.ramp_seconds <= _MAX_OMIT_SECONDS,
            message=f"must be at most {_MAX_OMIT_SECONDS} with iperf3, which omits no more; lower it",
            field_path=".rampSeconds",
        ),
    )

    streams: Annotated[Integer, Field(ge=1, le=128, description="Connections of each pair.")] = 1
    """Axis: connections of each pair, at the same time."""
    window: Annotated[BlockSize, Field(ge=1024, le=64 * 2**20)] | None = Field(
        default=None, description="A number of bytes, or a quantity such as 256Ki or 4Mi."
    )
    """Axis: size of a socket's buffers, which limits the TCP window, from 1Ki to 64Mi. The kernel chooses if absent,
    which is best on most networks."""
    direction: Annotated[Literal["Send", "Receive"], Field(description="Send or Receive.")] = "Send"
    """Axis: Send if the loading client sends, Receive if it receives."""
    protocol: Annotated[Literal["TCP", "UDP"], Field(description="TCP or UDP.")] = "TCP"
    """Axis: TCP or UDP."""
    bitrate: (
        Annotated[
            Size,
            Field(ge=10_000, le=999 * 10**9),
            ServerOnly(pattern=r"^([1-9][0-9]{1,8}k|[1-9][0-9]{0,5}M|[1-9][0-9]{0,2}G)$"),
        ]
        | None
    ) = None
    """Bits per second of every stream of UDP, from 10k to 999G: a quantity such as 500M. Required for UDP."""
    datagram_bytes: Annotated[Integer, Field(ge=16, le=65_507)] | None = None
    """Bytes of every datagram of UDP; what fits into a packet of the path if absent."""

    def label(self) -> str:
        window = f" window {format_quantity(self.window)}" if self.window else ""
        rate = f" {self.bitrate} bit/s each" if self.protocol == "UDP" else ""
        return f"iperf3 {self.direction} {self.protocol} x{self.streams}{window}{rate}"


_VERSION = re.compile(r"iperf (\d{1,4})\.(\d{1,4})")
_MAX_SECONDS = 10**6
# Intervals are printed with six digits; timers of iperf3 are as exact as its event loop.
_LARGEST_GAP = SECOND // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    version: str
    error: str = ""  # iperf3's message of an error; nothing else is then known. Empty if there was none.
    marks: Sequence[Mark] = ()  # the client's own intervals after the ramp, in Unix nanoseconds
    is_uncertain: bool = False  # whether these moments are
    received: int = 0  # bytes that the receiver got in the measured part, and `seconds` how long it measured
    seconds: float = 0.0
    retransmits: int | None = None  # None for UDP, and if the kernel does not report them
    lost_percent: float | None = None  # None for TCP
    # CPU time of the busier end's threads, as a part of their time; None if neither end reports it
    thread_percent: float | None = None
    warnings: Sequence[str] = ()


class Iperf3(PeerTool[Iperf3Parameters]):
    """iperf3 between clients, or between clients and the run's servers."""

    key: ClassVar[str] = "iperf3"
    program: ClassVar[str] = "iperf3"
    parameters = Iperf3Parameters
    quantities: ClassVar[Quantities] = Quantities(operations=False, cells=True)

    def peer_command(self, parameters: Iperf3Parameters, context: StepContext, address: str, port: int) -> Command:
        if context.step is StepKind.SERVE:
            return Command(argv=("iperf3", "--server", f"--port={port}", "--forceflush"))
        is_udp, timing = parameters.protocol == "UDP", context.timing
        options = (
            *("--json", "--interval=1", f"--time={timing.runtime_seconds}", f"--omit={timing.ramp_seconds}"),
            # In milliseconds.
            "--connect-timeout=5000",
            f"--parallel={parameters.streams}",
            *([f"--window={parameters.window}"] if parameters.window is not None else []),
            *(["--reverse"] if parameters.direction == "Receive" else []),
            *(["--udp", f"--bitrate={parameters.bitrate}"] if is_udp else []),
            *([f"--length={parameters.datagram_bytes}"] if is_udp and parameters.datagram_bytes is not None else []),
        )
        return Command(argv=("iperf3", f"--client={address}", f"--port={port}", *options))

    def is_serving(self, parameters: Iperf3Parameters, printed: str) -> bool:
        return super().is_serving(parameters, printed) and "Server listening on " in printed

    def parse(self, parameters: Iperf3Parameters, context: StepContext, output: Output) -> Measurement:
        reports = [_read_report(parameters, client) for client in output.all]
        if errors := [report.error for report in reports if report.error]:
            version, launched_at = reports[0].version, output.launched_at
            return Measurement(
                tool_version=version, started_at=launched_at, runtime=0, operations=(), errors=bounded(errors)
            )
        peers = self.outputs(context, output)
        start, end = (
            min(report.marks[0].moment for report in reports),
            max(report.marks[-1].moment for report in reports),
        )
        connections = [(report.marks, report.received) for report in reports]
        operation = Operation.WRITE if parameters.direction == "Send" else Operation.READ
        threads = [report.thread_percent for report in reports if report.thread_percent is not None]
        # The bytes that UDP sent are a part of the requested ones.
        requested = (parameters.bitrate or 0) * parameters.streams * context.timing.runtime_seconds / 8
        arrived = [(report.received, 1 - (report.lost_percent or 0.0) / 100) for report in reports]
        paces = [received / share / requested if share else 1.0 for received, share in arrived] if requested else []
        return Measurement(
            tool_version=reports[0].version,
            started_at=start,
            start_is_estimated=any(report.is_uncertain for report in reports),
            runtime=end - start,
            operations=(byte_sample(operation, connections, start, end),),
            submitters=parameters.streams * len(reports),
            thread_percent=max(threads, default=None),
            pace=min(paces, default=None),
            peers=tuple(
                PeerRate(
                    peer=peer,
                    bytes=report.received,
                    seconds=report.seconds,
                    retransmits=report.retransmits,
                    lost_percent=report.lost_percent,
                )
                for peer, report in zip(peers, reports, strict=True)
            ),
            errors=bounded(f"exit code {client.exit_code}" for client in output.all if client.exit_code),
            warnings=bounded(line for report in reports for line in report.warnings),
        )


def _read_report(parameters: Iperf3Parameters, output: Output) -> _Report:
    if output.exit_code and not output.stdout.strip():
        raise OutputError(f"iperf3 failed with {failure(output)}")
    try:
        root = JsonNode.parse(output.stdout)
    except OutputError as error:
        raise OutputError(f"{error}, {failure(output)}") from error
    start = root["start"]
    version = start["version"].line()
    if "error" in root:
        # Before 3.14, iperf3 exits with 0 nevertheless.
        return _Report(version=version, error=root["error"].line() or "an error without a message")
    test = start["test_start"]
    actual = (test["protocol"].line(), test["num_streams"].count(), test["reverse"].count())
    if actual != (parameters.protocol, parameters.streams, int(parameters.direction == "Receive")):
        raise OutputError(f"test_start has protocol, streams and reverse {actual}, which were not requested")
    end = root["end"]
    marks = _read_marks(root)
    total = end["sum" if parameters.protocol == "UDP" else "sum_sent"]
    received_bytes, lost_percent, doubts = _received(parameters, end)
    # The intervals have to add up to the client's own total.
    client_total = total["bytes"].count() if parameters.direction == "Send" else received_bytes
    # Apart from what each stream moved before the first interval and after the last.
    if abs(marks[-1].done - client_total) > max(client_total / 20, 2**20 * parameters.streams):
        raise OutputError(f"the intervals have {marks[-1].done} bytes, but the total is {client_total}")
    seconds = end["sum_received"]["seconds"].number(at_most=_MAX_SECONDS)
    if seconds <= 0:
        raise OutputError("end.sum_received.seconds is 0")
    timestamp = start["timestamp"]
    # Before 3.20, only the whole second.
    connected = (
        timestamp["timemillisecs"].count(at_most=10**13) * MILLISECOND
        if "timemillisecs" in timestamp
        else timestamp["timesecs"].count(at_most=10**10) * SECOND
    )
    placed, is_uncertain = _place(marks, connected, test["omit"].count(at_most=_MAX_SECONDS) * SECOND, output)
    release = _VERSION.match(version)
    if release is None:
        raise OutputError(f"start.version is unknown: {version}")
    # Since 3.16, every stream has a thread of its own.
    threads = parameters.streams if (int(release[1]), int(release[2])) >= (3, 16) else 1
    ends = [end.number_or_none("cpu_utilization_percent", name) for name in ("host_total", "remote_total")]
    return _Report(
        version=version,
        marks=placed,
        is_uncertain=is_uncertain,
        received=received_bytes,
        seconds=seconds,
        retransmits=None if (count := total.number_or_none("retransmits")) is None else int(count),
        lost_percent=lost_percent,
        thread_percent=max((percent / threads for percent in ends if percent is not None), default=None),
        warnings=[*excerpt(output.stderr), *doubts],
    )


def _read_marks(root: JsonNode) -> list[Mark]:
    """Return the bytes moved until the end of each interval after the ramp."""
    sums = [interval["sum"] for interval in root["intervals"].elements()]
    flags = [fields["omitted"].flag() for fields in sums]
    if False not in flags:
        raise OutputError("intervals has none after the ramp")
    first = flags.index(False)
    if any(flags[first:]):
        raise OutputError("intervals has omitted ones after the ramp")
    marks = [Mark(moment=0, done=0)]
    for fields in sums[first:]:
        start, end = (round(fields[name].number(at_most=_MAX_SECONDS) * SECOND) for name in ("start", "end"))
        # The first one may have a start from before the clock was reset at the end of the ramp.
        if len(marks) == 1 and start > end - _LARGEST_GAP:
            start = 0
        if end <= start:
            raise OutputError(f"{fields.path} ends at {end / SECOND} s, before its start")
        before = marks[-1]
        if abs(start - before.moment) > _LARGEST_GAP:
            raise OutputError(f"intervals has nothing from {before.moment / SECOND:.1f} to {start / SECOND:.1f} s")
        marks.append(Mark(moment=end, done=before.done + fields["bytes"].count()))
    return marks


def _received(parameters: Iperf3Parameters, end: JsonNode) -> tuple[int, float | None, list[str]]:
    """Return the received bytes, the lost part of UDP in percent, and warnings; None for TCP, or if it is unknown.

    The receiver counts the gaps before arriving datagrams, before 3.14 also those of the ramp, but not what follows the
    last one. So the bytes decide if they contradict the count by more than may be under way, or if it is impossible.
    """
    received = end["sum_received"]["bytes"].count()
    if parameters.protocol == "TCP":
        return received, None, []
    total = end["sum"]
    lost, packets = (total.value_or_none(name) for name in ("lost_packets", "packets"))
    lost_percent = None
    # A boolean is an int to Python.
    if type(lost) is int and type(packets) is int and 0 <= lost <= packets:
        lost_percent = 100 * lost / max(packets, 1)
    sent = end.get("sum_sent")
    sent_bytes, sent_packets = (sent and sent.number_or_none(name) for name in ("bytes", "packets"))
    if sent_bytes and sent_packets:
        # A twentieth of all bytes, or four datagrams of each stream.
        under_way = max(sent_bytes / 20, 4 * parameters.streams * sent_bytes / sent_packets)
        missing = max(0, sent_bytes - received)
        if lost_percent is None or abs(missing - sent_bytes * lost_percent / 100) > under_way:
            lost_percent = 100 * missing / sent_bytes if received <= sent_bytes + under_way else None
    doubt = f"the loss is unknown: {total.path} has {printable(lost)} lost packets of {printable(packets)}"
    return received, lost_percent, [] if lost_percent is not None else [doubt]


def _place(marks: Sequence[Mark], connected: int, omitted: int, output: Output) -> tuple[list[Mark], bool]:
    """Return the marks with Unix nanoseconds, and whether these are uncertain; `omitted` is the ramp."""
    earliest = max(output.launched_at, connected)
    latest = output.finished_at - omitted - marks[-1].moment
    if latest < earliest - SECOND // 20:
        more = f"{(earliest - latest) / SECOND:.1f} s more"
        raise OutputError(f"iperf3 reports {more} than passed between its start and its end: was the clock set?")
    began = (earliest + latest) // 2 + omitted
    return [replace(mark, moment=began + mark.moment) for mark in marks], latest - earliest > SECOND // 2
