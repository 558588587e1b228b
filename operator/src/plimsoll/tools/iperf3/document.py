"""iperf3's JSON document (`iperf3 --json`; iperf3: `iperf_api.c`; observed with 3.12)."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.iperf3.parameters import Direction, Iperf3Parameters, Protocol
from plimsoll.tools.reading import JsonObject, excerpt, failure, printable

SECOND = 10**9
_THREADED = (3, 16)
"""From this version on, every stream has a thread of its own."""

_VERSION = re.compile(r"iperf (\d{1,4})\.(\d{1,4})")
_TOP = frozenset({"start", "intervals", "end", "error", "title", "extra_data"})
_END = frozenset(
    {
        "streams", "sum", "sum_sent", "sum_received", "cpu_utilization_percent", "sender_tcp_congestion",
        "receiver_tcp_congestion",
    }
)  # fmt: skip
_REPEATED = frozenset({"sock_bufsize", "sndbuf_actual", "rcvbuf_actual"})
"""iperf3 prints these once for each stream, all in one object."""

_MAX_SECONDS = 10**6
_MAX_UNIX_SECONDS = 10**10
# Intervals are printed with six digits; timers of iperf3 are as exact as its event loop.
_LARGEST_GAP = SECOND // 10
_LEAST_DIFFERENCE = 2**20
"""Bytes by which the intervals of one stream may differ from its total: those before the first and after the last."""

_UNDER_WAY = 0.05
_FEW_DATAGRAMS = 4
"""What may be under way when UDP ends: a part of all bytes, or datagrams of each stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One line of the client's report; nanoseconds since the start of the part that it belongs to."""

    start: int
    end: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The output of one client.

    Attributes:
        error: iperf3's message of an error; nothing else is then known. Empty if there was none.
        connected: when the client had connected, in whole Unix seconds.
        omitted: nanoseconds of the ramp.
        intervals: of the measured part, in chronological order, without gaps.
        received: bytes that the receiver got in the measured part, and `seconds` how long it measured.
        retransmits: None for UDP, and if the kernel does not report them.
        lost_percent: None for TCP.
        thread_percent: CPU time of the busier end's threads, as a part of their time.

    """

    version: str
    error: str = ""
    connected: int = 0
    omitted: int = 0
    intervals: tuple[Interval, ...] = ()
    received: int = 0
    seconds: float = 0.0
    retransmits: int | None = None
    lost_percent: float | None = None
    thread_percent: float | None = None
    warnings: tuple[str, ...] = ()


def read_report(parameters: Iperf3Parameters, output: Output) -> Report:
    """Read the output of one client.

    Raises:
        OutputError: there is no complete document, or a field is missing, malformed, or contradicts others.

    """
    root, warnings = _read_document(output)
    start = root.child("start")
    version = start.text("version")
    if "error" in root.fields:
        # iperf3 3.12 exits with 0 nevertheless.
        return Report(version=version, error=root.text("error") or "an error without a message")
    _check_test(parameters, start.child("test_start"))
    end = root.child("end")
    intervals = _read_intervals(root)
    total = end.child("sum" if parameters.protocol is Protocol.UDP else "sum_sent")
    # Up to 3.9, UDP has only one sum.
    is_alone = parameters.protocol is Protocol.UDP and "sum_received" not in end.fields
    received = total if is_alone else end.child("sum_received")
    lost = _lost_percent(total) if parameters.protocol is Protocol.UDP else None
    got = received.count("bytes")
    if is_alone and lost is not None:
        got = round(got * (1 - lost / 100))
    elif lost is not None:
        lost = _with_unseen(parameters, lost, end.child("sum_sent"), got)
    _check_totals(parameters, intervals, end, got)
    return Report(
        version=version,
        connected=start.child("timestamp").count("timesecs", at_most=_MAX_UNIX_SECONDS),
        omitted=start.child("test_start").count("omit", at_most=_MAX_SECONDS) * SECOND,
        intervals=intervals,
        received=got,
        seconds=_seconds(received),
        retransmits=total.count("retransmits") if "retransmits" in total.fields else None,
        lost_percent=lost,
        thread_percent=_thread_percent(version, parameters.streams, end.child("cpu_utilization_percent")),
        warnings=(*warnings, *_unknown(root, end)),
    )


def _read_document(output: Output) -> tuple[JsonObject, tuple[str, ...]]:
    repeated: list[str] = []

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        counts = Counter(name for name, _ in pairs)
        repeated.extend(printable(name) for name, count in counts.items() if count > 1)
        return dict(pairs)

    if output.exit_code and not output.stdout.strip():
        raise OutputError(f"iperf3 failed with {failure(output)}")
    try:
        fields = json.loads(output.stdout, object_pairs_hook=build)
    except (ValueError, RecursionError) as error:
        words = f"{type(error).__name__}: {printable(str(error))}"
        raise OutputError(f"the JSON document is not complete: {words}, {failure(output)}") from error
    if not isinstance(fields, dict):
        raise OutputError("the output is not a JSON object")
    if again := sorted({*repeated} - _REPEATED):
        raise OutputError(f"fields occur twice in one object: {', '.join(again[:10])}")
    return JsonObject(path="", fields=fields), tuple(excerpt(output.stderr))


def _check_test(parameters: Iperf3Parameters, test: JsonObject) -> None:
    """Refuse the output of a test with other parameters."""
    reverse = int(parameters.direction is Direction.RECEIVE)
    found = (test.text("protocol"), test.count("num_streams"), test.count("reverse"))
    if found != (parameters.protocol, parameters.streams, reverse):
        raise OutputError(f"test_start has protocol, streams and reverse {found}, which were not requested")


def _read_intervals(root: JsonObject) -> tuple[Interval, ...]:
    """Return the intervals after the ramp."""
    sums = [one.child("sum") for one in root.children("intervals")]
    flags = [_flag(one, "omitted") for one in sums]
    first = flags.index(False) if False in flags else len(flags)
    if first == len(flags):
        raise OutputError("intervals has none after the ramp")
    if any(flags[first:]):
        raise OutputError("intervals has omitted ones after the ramp")
    intervals = tuple(_interval(one, is_first=not number) for number, one in enumerate(sums[first:]))
    for before, after in pairwise([Interval(start=0, end=0, bytes=0), *intervals]):
        if abs(after.start - before.end) > _LARGEST_GAP:
            raise OutputError(f"intervals has nothing from {before.end / SECOND:.1f} to {after.start / SECOND:.1f} s")
    return intervals


def _interval(fields: JsonObject, *, is_first: bool) -> Interval:
    """Read an interval. The first one may have a start from before the clock was reset at the end of the ramp."""
    start, end = (round(_bounded(fields, name) * SECOND) for name in ("start", "end"))
    if is_first and start > end - _LARGEST_GAP:
        start = 0
    if end <= start:
        raise OutputError(f"{fields.path} ends at {end / SECOND} s, before its start")
    return Interval(start=start, end=end, bytes=fields.count("bytes"))


def _flag(fields: JsonObject, name: str) -> bool:
    value = fields.fields.get(name)
    if not isinstance(value, bool):
        raise OutputError(f"{fields.path}.{name} is missing or not a boolean")
    return value


def _bounded(fields: JsonObject, name: str) -> float:
    value = fields.number(name)
    if value > _MAX_SECONDS:
        raise OutputError(f"{fields.path}.{name} is more than {_MAX_SECONDS} s")
    return value


def _check_totals(parameters: Iperf3Parameters, intervals: Sequence[Interval], end: JsonObject, got: int) -> None:
    """Refuse intervals that do not add up to the client's own total."""
    is_sender = parameters.direction is Direction.SEND
    own = got
    if is_sender:
        own = end.child("sum_sent" if parameters.protocol is Protocol.TCP else "sum").count("bytes")
    added = sum(interval.bytes for interval in intervals)
    if abs(added - own) > max(own / 20, _LEAST_DIFFERENCE * parameters.streams):
        raise OutputError(f"the intervals have {added} bytes, but the total is {own}")


def _seconds(total: JsonObject) -> float:
    seconds = _bounded(total, "seconds")
    if seconds <= 0:
        raise OutputError(f"{total.path}.seconds is 0")
    return seconds


def _lost_percent(total: JsonObject) -> float:
    lost, packets = total.count("lost_packets"), total.count("packets")
    if lost > packets:
        raise OutputError(f"{total.path} has {lost} lost packets of {packets}")
    return 100 * lost / packets if packets else 0.0


def _with_unseen(parameters: Iperf3Parameters, lost: float, sent: JsonObject, got: int) -> float:
    """Return the lost part, with what the receiver cannot know: it counts the gaps before the datagrams that arrive.

    If none arrives from some time on, only the number of bytes shows it, beyond what may be under way at the end.
    """
    bytes_sent, packets = sent.count("bytes"), sent.count("packets")
    if not bytes_sent or not packets:
        return lost
    missing = bytes_sent - got
    few = _FEW_DATAGRAMS * parameters.streams * bytes_sent / packets
    is_explained = missing <= bytes_sent * lost / 100 + max(bytes_sent * _UNDER_WAY, few)
    return lost if is_explained else 100 * missing / bytes_sent


def _thread_percent(version: str, streams: int, cpu: JsonObject) -> float:
    match = _VERSION.match(version)
    if match is None:
        raise OutputError(f"start.version is unknown: {version}")
    threads = streams if (int(match[1]), int(match[2])) >= _THREADED else 1
    return max(cpu.number("host_total"), cpu.number("remote_total")) / threads


def _unknown(root: JsonObject, end: JsonObject) -> Iterator[str]:
    for path in (*root.unknown(_TOP), *end.unknown(_END)):
        yield f"{path} is an unknown field and was ignored"
