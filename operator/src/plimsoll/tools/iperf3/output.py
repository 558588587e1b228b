"""The outputs of iperf3's clients -> a measurement.

Every client reports each second what it sent or received itself. The receiver's total comes from the other end, and
that is what counts: what was sent may still be in buffers. The series of a sender is scaled to that total.

iperf3 prints its start only as a whole second: when it had connected, which is before the first byte. It certainly
began after that and after the agent had launched it, and it certainly had ended when the agent saw it end. Between
these two limits lie connecting before the test and exchanging results after it, usually some milliseconds; the start is
taken from the middle. If they are further apart than half a second, it counts as estimated.
"""

from dataclasses import dataclass

from plimsoll.api.names import LatencyKind
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample, PeerRate
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.iperf3.document import SECOND, Report, read_report
from plimsoll.tools.iperf3.parameters import Iperf3Parameters, Protocol
from plimsoll.tools.progress import Mark, byte_cells
from plimsoll.tools.reading import bounded
from plimsoll.tools.target import PeerTarget

_UNCERTAIN = SECOND // 2
_CLOCK_STEP = SECOND // 20
_LEAST_OF_BITRATE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """One client's report, and the bytes that it moved until moments in Unix nanoseconds."""

    report: Report
    marks: tuple[Mark, ...]
    is_uncertain: bool


def parse_measurement(parameters: Iperf3Parameters, target: PeerTarget, timing: Timing, output: Output) -> Measurement:
    """Read the outputs of a measurement.

    Raises:
        OutputError: a document is incomplete, or a field is missing, malformed, or contradicts others.

    """
    reports = [(read_report(parameters, one), one) for one in output.all]
    errors = [report.error for report, _ in reports if report.error]
    if errors:
        return Measurement(
            tool="iperf3",
            tool_version=reports[0][0].version,
            started_at=output.launched_at,
            runtime=0,
            operations=(),
            errors=bounded(errors),
        )
    if len(reports) != len(target.addresses):
        raise OutputError(f"{len(reports)} clients of iperf3 ended for {len(target.addresses)} peers")
    placed = [_place(report, one) for report, one in reports]
    start = min(one.marks[0].moment for one in placed)
    end = max(one.marks[-1].moment for one in placed)
    return Measurement(
        tool="iperf3",
        tool_version=reports[0][0].version,
        started_at=start,
        start_is_estimated=any(one.is_uncertain for one in placed),
        runtime=end - start,
        operations=(_sample(parameters, placed, start, end),),
        submitters=parameters.streams * len(placed),
        thread_percent=max(one.report.thread_percent or 0.0 for one in placed),
        peers=tuple(_rate(peer, one.report) for peer, one in zip(target.addresses, placed, strict=True)),
        errors=bounded([f"exit code {one.exit_code}" for _, one in reports if one.exit_code]),
        warnings=bounded([line for one in placed for line in (*one.report.warnings, *_slow(parameters, timing, one))]),
    )


def _place(report: Report, output: Output) -> _Placed:
    """Find the time of a report; OutputError if the clock was set meanwhile."""
    length = report.omitted + report.intervals[-1].end
    earliest = max(output.launched_at, report.connected * SECOND)
    latest = output.finished_at - length
    if latest < earliest - _CLOCK_STEP:
        missing = f"{(earliest - latest) / SECOND:.1f} s"
        raise OutputError(
            f"iperf3 reports {missing} more than passed between its start and its end: was the clock set?"
        )
    began = (earliest + latest) // 2 + report.omitted
    marks = [Mark(moment=began, bytes=0)]
    for interval in report.intervals:
        marks.append(Mark(moment=began + interval.end, bytes=marks[-1].bytes + interval.bytes))
    return _Placed(report=report, marks=tuple(marks), is_uncertain=latest - earliest > _UNCERTAIN)


def _sample(parameters: Iperf3Parameters, placed: list[_Placed], start: int, end: int) -> OperationSample:
    series = [byte_cells(one.marks, start, end, total=one.report.received).bytes for one in placed]
    cells = tuple(sum(values) for values in zip(*series, strict=True))
    return OperationSample(
        operation=parameters.direction.operation,
        ios=0,
        bytes=sum(one.report.received for one in placed),
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(cells), bytes=cells),
    )


def _rate(peer: int, report: Report) -> PeerRate:
    return PeerRate(
        peer=peer,
        bytes=report.received,
        seconds=report.seconds,
        retransmits=report.retransmits,
        lost_percent=report.lost_percent,
    )


def _slow(parameters: Iperf3Parameters, timing: Timing, placed: _Placed) -> list[str]:
    """Return a warning if UDP was sent more slowly than requested."""
    if parameters.protocol is not Protocol.UDP or parameters.bitrate is None:
        return []
    requested = parameters.bitrate * parameters.streams * timing.runtime_seconds / 8
    kept = 1 - (placed.report.lost_percent or 0.0) / 100
    sent = placed.report.received / kept if kept else requested
    if sent >= _LEAST_OF_BITRATE * requested:
        return []
    return [f"UDP sent {100 * sent / requested:.0f} % of the requested bitrate: the sender could not send faster"]
