"""The lines that `ping -D -n` prints (iputils: `ping_common.c`; observed with 20221126).

    [1795557591.346568] 108 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.043 ms

The time in brackets is that of the reply. Round-trip times have three digits, and not less than a microsecond.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from plimsoll.api.names import Operation
from plimsoll.api.state import LiveRate
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import complete_lines, failure, lines_so_far, live_rate, printable

SECOND = 10**9
SEQUENCE = 2**16
"""ICMP counts requests in 16 bits."""

_MILLISECOND = 10**6
_STAMP = r"\[(?P<seconds>\d{1,10})\.(?P<micros>\d{6})\]"
_REPLY = re.compile(
    rf"{_STAMP} (?P<bytes>\d{{1,6}}) bytes from \S+: icmp_seq=(?P<number>\d{{1,5}}) (?:ttl|hlim)=\d+ "
    r"time=(?P<time>\d{1,9}(?:\.\d{1,3})?) ms(?P<again> \(DUP!\))?",
    re.ASCII,
)
_HEADER = re.compile(r"PING \S+ ?\(\S+\) .*bytes.*|--- \S+ ping statistics ---", re.ASCII)
_COUNTS = re.compile(
    r"(?P<sent>\d{1,12}) packets transmitted, (?P<received>\d{1,12}) received,(?: \+(?P<again>\d{1,12}) duplicates,)?"
    r"(?: \+\d+ corrupted,)?(?: \+\d+ errors,)? [\d.e+-]+% packet loss, "
    r"time (?P<milliseconds>\d{1,12})ms",
    re.ASCII,
)
_TIMES = re.compile(r"rtt min/avg/max/mdev = [\d.]+/[\d.]+/[\d.]+/[\d.]+ ms(?:, pipe \d+)?.*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to one request.

    Attributes:
        number: of the request, counted from 1 without an end.
        sent_at: Unix nanoseconds.
        nanoseconds: the round-trip time.

    """

    number: int
    sent_at: int
    nanoseconds: int

    @property
    def received_at(self) -> int:
        """Unix nanoseconds."""
        return self.sent_at + self.nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PingReport:
    """The output of one ping.

    Attributes:
        replies: in the order of their requests, without duplicates.
        sent: the number of requests.
        lasted: nanoseconds from the first request to the end.
        warnings: unknown lines, such as the errors that routers report, and the number of duplicates.

    """

    replies: tuple[Reply, ...]
    sent: int
    lasted: int
    warnings: tuple[str, ...]


def read_report(output: Output) -> PingReport:
    """Read the output of one ping.

    Raises:
        OutputError: it failed, got no reply, or a line is missing or contradicts others.

    """
    lines = _parse_lines(output.stdout)
    counts = lines.counts
    if counts is None:
        raise OutputError(f"ping printed no number of packets, {failure(output, *lines.unknown)}")
    if not lines.replies or output.exit_code:
        got = f"{counts['sent']} requests got {len(lines.replies)} replies"
        raise OutputError(f"{got}, {failure(output, *lines.unknown)}")
    if not lines.has_times:
        raise OutputError("ping printed no round-trip times at its end")
    first = [match for match in lines.replies if not match["again"]]
    if len(first) != int(counts["received"]):
        raise OutputError(f"{counts['received']} replies were received, but {len(first)} were printed")
    replies = _replies(first)
    if replies[-1].number > int(counts["sent"]):
        raise OutputError(f"{counts['sent']} requests were sent, but number {replies[-1].number} was answered")
    again = len(lines.replies) - len(first)
    doubled = [f"{again} replies arrived twice"] if again else []
    return PingReport(
        replies=replies,
        sent=int(counts["sent"]),
        lasted=int(counts["milliseconds"]) * _MILLISECOND,
        warnings=(*lines.unknown, *doubled),
    )


def live_rates(printed: str) -> tuple[LiveRate, ...]:
    """Return the rate of the replies in a text that may begin anywhere."""
    matches = [match for line in lines_so_far(printed) if (match := _REPLY.fullmatch(line))]
    counts = [(_received_at(match) / SECOND, number) for number, match in enumerate(matches)]
    return live_rate(Operation.ROUND_TRIP, 0, [counts[0], counts[-1]] if counts else [])


@dataclass(slots=True, kw_only=True)
class _Lines:
    """The lines by kind."""

    replies: list[re.Match[str]] = field(default_factory=list)
    counts: re.Match[str] | None = None
    has_times: bool = False
    unknown: list[str] = field(default_factory=list)


def _parse_lines(text: str) -> _Lines:
    found = _Lines()
    for line in complete_lines(text):
        if reply := _REPLY.fullmatch(line):
            found.replies.append(reply)
        elif counts := _COUNTS.fullmatch(line):
            found.counts = counts
        elif _TIMES.fullmatch(line):
            found.has_times = True
        elif not _HEADER.fullmatch(line):
            found.unknown.append(f"unknown line: {printable(line)}")
    return found


def _replies(matches: Sequence[re.Match[str]]) -> tuple[Reply, ...]:
    """Return the replies in order; OutputError if a request was answered twice."""
    found: dict[int, Reply] = {}
    newest = 0
    for match in matches:
        number = _unwrapped(int(match["number"]), newest)
        newest = max(newest, number)
        if number in found:
            raise OutputError(f"request {number} was answered twice")
        nanoseconds = round(float(match["time"]) * _MILLISECOND)
        received_at = _received_at(match)
        found[number] = Reply(number=number, sent_at=received_at - nanoseconds, nanoseconds=nanoseconds)
    return tuple(found[number] for number in sorted(found))


def _received_at(match: re.Match[str]) -> int:
    return int(match["seconds"]) * SECOND + int(match["micros"]) * 1000


def _unwrapped(number: int, newest: int) -> int:
    """Return the number of a request whose 16 bits are `number`: the one closest to the newest answered one."""
    return max(0, number + SEQUENCE * round((newest - number) / SEQUENCE))
