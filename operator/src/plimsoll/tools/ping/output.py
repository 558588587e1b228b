"""The outputs of pings -> a measurement.

The first request starts the time. The measured part begins after the ramp and has exactly the requested length; it
contains the replies to the requests that were sent in it. ping runs for a second longer; a request is lost if no reply
has come by then, although the longest round trip would have been over. When a lost request was sent is unknown: between
those of its neighbours. Losses before the first reply are not counted; the ramp leaves them out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.api.names import Operation
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.sample import Cells, Measurement, OperationSample, PeerRate
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.ping.parameters import PingParameters
from plimsoll.tools.ping.text import SECOND, PingReport, Reply, read_report
from plimsoll.tools.reading import bounded, excerpt
from plimsoll.tools.target import PeerTarget

_MILLISECOND = 10**6
_LARGEST_STEP = SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part of one ping: its replies, and the requests of it that were lost."""

    start: int
    end: int
    replies: tuple[Reply, ...]
    lost: int


def parse_measurement(parameters: PingParameters, target: PeerTarget, timing: Timing, output: Output) -> Measurement:
    """Read the outputs of a measurement.

    Raises:
        OutputError: a ping failed, a line is missing or malformed, or it ended before its measured part.

    """
    reports = [read_report(one) for one in output.all]
    if len(reports) != len(target.addresses):
        raise OutputError(f"{len(reports)} pings ended for {len(target.addresses)} peers")
    parts = [_measured_part(report, parameters, timing) for report in reports]
    start, end = min(part.start for part in parts), max(part.end for part in parts)
    return Measurement(
        tool="ping",
        tool_version="",
        started_at=start,
        runtime=end - start,
        operations=(_sample(parts, start, end),),
        submitters=len(parts),
        peers=tuple(
            PeerRate(peer=peer, ios=len(part.replies), bytes=0, seconds=(part.end - part.start) / SECOND)
            for peer, part in zip(target.addresses, parts, strict=True)
        ),
        warnings=bounded(
            [line for one, report in zip(output.all, reports, strict=True) for line in _remarks(one, report)]
        ),
    )


def _remarks(output: Output, report: PingReport) -> Iterator[str]:
    yield from excerpt(output.stderr)
    yield from report.warnings


def _measured_part(report: PingReport, parameters: PingParameters, timing: Timing) -> _Part:
    first = report.replies[0]
    began = first.sent_at - (first.number - 1) * parameters.interval_milliseconds * _MILLISECOND
    ended = began + report.lasted
    start = began + timing.ramp_seconds * SECOND
    end = start + timing.runtime_seconds * SECOND
    if ended < end - _LARGEST_STEP:
        raise OutputError(f"ping ended {(end - ended) / SECOND:.1f} s before the end of its runtime")
    inside = tuple(reply for reply in report.replies if start <= reply.sent_at < end)
    if not inside:
        raise OutputError(f"no reply to a request after the ramp of {timing.ramp_seconds} s")
    longest = max(reply.nanoseconds for reply in report.replies)
    lost = sum(start <= moment < min(end, ended - longest) for moment in _lost_at(report, ended))
    return _Part(start=start, end=end, replies=inside, lost=lost)


def _lost_at(report: PingReport, ended: int) -> Iterator[int]:
    """Yield when the requests without a reply were sent: evenly between those with one, or until the end."""
    last = Reply(number=report.sent + 1, sent_at=ended, nanoseconds=0)
    for before, after in pairwise([*report.replies, last]):
        for number in range(before.number + 1, after.number):
            part = (number - before.number) / (after.number - before.number)
            yield before.sent_at + round(part * (after.sent_at - before.sent_at))


def _sample(parts: Sequence[_Part], start: int, end: int) -> OperationSample:
    replies = [reply for part in parts for reply in part.replies]
    return OperationSample(
        operation=Operation.ROUND_TRIP,
        ios=len(replies),
        bytes=0,
        lost_ios=sum(part.lost for part in parts),
        latency=sample_of([reply.nanoseconds for reply in replies]),
        cells=_cells([reply.received_at for reply in replies], start, end),
    )


def _cells(moments: Sequence[int], start: int, end: int) -> Cells:
    """Return the replies per second; the last second also has those that came after it."""
    number = -(-(end - start) // SECOND)
    counts = Counter(min(number - 1, max(0, (moment - start) // SECOND)) for moment in moments)
    ios = tuple(float(counts[index]) for index in range(number))
    return Cells(width_nanoseconds=SECOND, ios=ios, bytes=(0.0,) * number)
