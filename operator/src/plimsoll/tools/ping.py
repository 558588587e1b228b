"""ping between two clients: the distribution of round-trip times."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.json_reader import OutputError, printable
from plimsoll.api.model import Integer
from plimsoll.api.names import Operation
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement, OperationSample, PeerRate
from plimsoll.tools.base import Command, Output, PeerParameters, PeerTool, StepContext, Timing
from plimsoll.tools.reading import MILLISECOND, SECOND, bounded, cells_of_operations, excerpt, failure, sort_lines


class PingParameters(PeerParameters):
    """ping between clients: the distribution of round-trip times of ICMP echo requests.

    The kernel of the serving client answers, so the time of no other program is included.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"size"})
    size_axis: ClassVar[str] = "size"

    # ping stores the time of a request in its data, in 16 bytes.
    size: Annotated[Integer, Field(ge=16, le=65_507, description="Bytes of data in a request.")] = 56
    """Axis: bytes of data in each request, without 28 bytes of headers. More than 1472 are sent in several packets
    where the MTU is 1500."""
    interval_milliseconds: Annotated[Integer, Field(ge=10, le=1000)] = 10
    """Least time between two requests of a pair; the kernel may round it up to its timer."""

    def label(self) -> str:
        return f"ping {self.size} bytes every {self.interval_milliseconds} ms"


_MAX_REQUESTS = 800_000  # their replies fit into the output that the agent reads
_SEQUENCE = 2**16  # ICMP counts requests in 16 bits
_STAMP = r"\[(?P<seconds>\d{1,10})\.(?P<micros>\d{6})\]"
_REPLY = re.compile(
    rf"{_STAMP} (?P<bytes>\d{{1,6}}) bytes from \S+: icmp_seq=(?P<number>\d{{1,5}}) (?:ttl|hlim)=\d+ "
    r"time=(?P<time>\d{1,9}(?:\.\d{1,3})?) ms(?P<remarks>(?: \([^()]{1,80}\))*)",
    re.ASCII,
)
_OTHER = re.compile(r"PING \S+ ?\(\S+\) .*bytes.*|--- \S+ ping statistics ---|rtt min/avg/max/mdev = .*", re.ASCII)
_COUNTS = re.compile(
    r"(?P<sent>\d{1,12}) packets transmitted, (?P<received>\d{1,12}) received,(?: \+\d{1,12} duplicates,)?"
    r"(?: \+\d+ corrupted,)?(?: \+\d+ errors,)? [\d.e+-]+% packet loss, "
    r"time (?P<milliseconds>\d{1,12})ms",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    number: int  # of the request, counted from 1 without an end
    sent_at: int  # Unix nanoseconds
    nanoseconds: int  # the round-trip time


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part of one ping: its replies, and the requests of it that were lost."""

    start: int
    end: int
    replies: list[_Reply]
    lost: int
    warnings: list[str]  # of the whole output


class Ping(PeerTool[PingParameters]):
    """ping between clients, or between clients and the run's servers."""

    key: ClassVar[str] = "ping"
    program: ClassVar[str] = "ping"
    version_argument: ClassVar[str] = "-V"
    parameters = PingParameters
    quantities: ClassVar[Quantities] = Quantities(cells=True)
    has_server: ClassVar[bool] = False
    sysctls: ClassVar[Mapping[str, str]] = {"net.ipv4.ping_group_range": "0 2147483647"}

    def peer_command(self, parameters: PingParameters, context: StepContext, address: str, port: int) -> Command:
        # One second more, so that the last measured requests can be answered.
        seconds = context.timing.total_seconds + 1
        interval = parameters.interval_milliseconds
        if seconds * 1000 > _MAX_REQUESTS * interval:
            raise ValueError(f"takes more than {_MAX_REQUESTS} requests in {seconds} s; raise intervalMilliseconds")
        options = ("-D", "-n", f"-i{interval / 1000:.3f}", f"-s{parameters.size}", f"-w{seconds}")
        return Command(argv=("ping", *options, address))

    def parse(self, parameters: PingParameters, context: StepContext, output: Output) -> Measurement:
        parts = [_measured_part(pinged, parameters, context.timing) for pinged in output.all]
        peers = self.outputs(context, output)
        start, end = min(part.start for part in parts), max(part.end for part in parts)
        replies = [reply for part in parts for reply in part.replies]
        # The last second also has the replies that came after it.
        seconds = -(-(end - start) // SECOND)
        received = (reply.sent_at + reply.nanoseconds - start for reply in replies)
        counts = Counter(min(seconds - 1, max(0, moment // SECOND)) for moment in received)
        sample = OperationSample(
            operation=Operation.ROUND_TRIP,
            ios=len(replies),
            bytes=0,
            lost_ios=sum(part.lost for part in parts),
            latency=sample_of([reply.nanoseconds for reply in replies]),
            cells=cells_of_operations((float(counts[second]) for second in range(seconds)), size=0.0),
        )
        return Measurement(
            started_at=start,
            runtime=end - start,
            operations=(sample,),
            submitters=len(parts),
            peers=tuple(
                PeerRate(
                    peer=peer,
                    ios=len(part.replies),
                    bytes=0,
                    seconds=(part.end - part.start) / SECOND,
                    round_trip_nanoseconds=median(reply.nanoseconds for reply in part.replies),
                )
                for peer, part in zip(peers, parts, strict=True)
            ),
            warnings=bounded(line for part in parts for line in part.warnings),
        )


def _measured_part(output: Output, parameters: PingParameters, timing: Timing) -> _Part:
    (answers, counts, _), unknown = sort_lines(output.stdout, _REPLY, _COUNTS, _OTHER)
    if not counts:
        raise OutputError(f"ping printed no number of packets, {failure(output, *unknown)}")
    sent, received = int(counts[-1]["sent"]), int(counts[-1]["received"])
    remarks = Counter(remark for match in answers for remark in re.findall(r"\((.*?)\)", match["remarks"]))
    # ping does not count damaged replies.
    replies = _replies([match for match in answers if not re.search(r"DUP!|BAD CHECKSUM!", match["remarks"])])
    if not replies or output.exit_code:
        raise OutputError(f"{sent} requests got {len(replies)} replies, {failure(output, *unknown)}")
    if len(replies) != received:
        raise OutputError(f"{received} replies were received, but {len(replies)} were printed")
    first = replies[0]
    if replies[-1].number > sent:
        raise OutputError(f"{sent} requests were sent, but number {replies[-1].number} was answered")
    began = first.sent_at - (first.number - 1) * parameters.interval_milliseconds * MILLISECOND
    ended = began + int(counts[-1]["milliseconds"]) * MILLISECOND
    start = began + timing.ramp_seconds * SECOND
    end = start + timing.runtime_seconds * SECOND
    if ended < end - SECOND:
        raise OutputError(f"ping ended {(end - ended) / SECOND:.1f} s before the end of its runtime")
    inside = [reply for reply in replies if start <= reply.sent_at < end]
    if not inside:
        raise OutputError(f"no reply to a request after the ramp of {timing.ramp_seconds} s")
    # Requests without a reply were sent evenly between those with one, or until the end, when some were under way.
    lost, due = 0, min(end, ended - max(reply.nanoseconds for reply in replies))
    for before, after in pairwise([*replies, _Reply(number=sent + 1, sent_at=ended, nanoseconds=0)]):
        for number in range(before.number + 1, after.number):
            part = (number - before.number) / (after.number - before.number)
            lost += start <= before.sent_at + round(part * (after.sent_at - before.sent_at)) < due
    noted = [f"{count} replies have the remark ({printable(remark)})" for remark, count in remarks.items()]
    return _Part(start=start, end=end, replies=inside, lost=lost, warnings=[*excerpt(output.stderr), *unknown, *noted])


def _replies(matches: Iterable[re.Match[str]]) -> list[_Reply]:
    """Return the replies in the order of their requests; OutputError if one was answered twice."""
    replies: dict[int, _Reply] = {}
    newest = 0
    for match in matches:
        # The number closest to the newest answered one that has these 16 bits.
        low_bits = int(match["number"])
        number = max(0, low_bits + _SEQUENCE * round((newest - low_bits) / _SEQUENCE))
        newest = max(newest, number)
        if number in replies:
            raise OutputError(f"request {number} was answered twice")
        nanoseconds = round(float(match["time"]) * MILLISECOND)
        received_at = int(match["seconds"]) * SECOND + int(match["micros"]) * 1000
        replies[number] = _Reply(number=number, sent_at=received_at - nanoseconds, nanoseconds=nanoseconds)
    return [replies[number] for number in sorted(replies)]
