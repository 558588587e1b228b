"""The lines of the agent's meter -> a measurement.

Each line has the time in Unix nanoseconds, and the bytes that netcat has read until then. The measured part lies
between the two lines closest to the end of the warm-up and to the end of the runtime, so its bytes are exact.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample, PeerRate
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.progress import SECOND, Mark, byte_cells, closest
from plimsoll.tools.reading import bounded, complete_lines, excerpt, failure, lines_so_far, live_rate, printable
from plimsoll.tools.target import PeerTarget

_LINE = re.compile(r"(?P<moment>\d{1,19}) (?P<bytes>\d{1,18})", re.ASCII)
_LARGEST_GAP = 5 * SECOND
_HALF_SECOND = SECOND // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part of one connection."""

    marks: tuple[Mark, ...]
    start: Mark
    end: Mark

    @property
    def bytes(self) -> int:
        return self.end.bytes - self.start.bytes

    @property
    def nanoseconds(self) -> int:
        return self.end.moment - self.start.moment


def parse_measurement(target: PeerTarget, timing: Timing, output: Output) -> Measurement:
    """Read the meters of all connections.

    Raises:
        OutputError: netcat failed, a line is missing or malformed, or it ended before the end of its warm-up.

    """
    if output.exit_code:
        raise OutputError(f"netcat failed with {failure(output)}")
    if len(output.all) != len(target.addresses):
        raise OutputError(f"{len(output.all)} netcats ended for {len(target.addresses)} peers")
    parts = [_measured_part(_marks(one.stdout), timing) for one in output.all]
    start, end = min(part.start.moment for part in parts), max(part.end.moment for part in parts)
    return Measurement(
        tool="netcat",
        tool_version="",
        started_at=start,
        runtime=end - start,
        operations=(_sample(parts, start, end),),
        submitters=len(parts),
        peers=tuple(
            PeerRate(peer=peer, bytes=part.bytes, seconds=part.nanoseconds / SECOND)
            for peer, part in zip(target.addresses, parts, strict=True)
        ),
        errors=bounded([message for part in parts for message in _early_end(part, timing)]),
        warnings=bounded([line for one in output.all for line in excerpt(one.stderr)]),
    )


def live_rates(printed: str) -> tuple[LiveRate, ...]:
    """Return the rate of the newest lines of a text that may begin anywhere."""
    matches = [match for line in lines_so_far(printed) if (match := _LINE.fullmatch(line))]
    counts = [(int(match["moment"]) / SECOND, int(match["bytes"])) for match in matches]
    return tuple(rate.model_copy(update={"iops": 0.0}) for rate in live_rate(Operation.READ, 1, counts))


def _marks(text: str) -> tuple[Mark, ...]:
    lines = complete_lines(text)
    marks = tuple(_mark(line) for line in lines)
    if not marks:
        raise OutputError("the output has no line of a second")
    for before, after in pairwise(marks):
        if after.moment <= before.moment or after.bytes < before.bytes:
            raise OutputError(f"the line {after.moment} {after.bytes} goes back in time or bytes: was the clock set?")
        if after.moment - before.moment > _LARGEST_GAP:
            raise OutputError(f"there is no line for {(after.moment - before.moment) / SECOND:.1f} s")
    return marks


def _mark(line: str) -> Mark:
    match = _LINE.fullmatch(line)
    if match is None:
        raise OutputError(f"unknown line: {printable(line)}")
    return Mark(moment=int(match["moment"]), bytes=int(match["bytes"]))


def _measured_part(marks: Sequence[Mark], timing: Timing) -> _Part:
    start = closest(marks, marks[0].moment + timing.ramp_seconds * SECOND)
    end = closest(marks, start.moment + timing.runtime_seconds * SECOND)
    if end.moment <= start.moment:
        ended = (marks[-1].moment - marks[0].moment) / SECOND
        raise OutputError(
            f"the connection ended after {ended:.1f} s, before the end of its warm-up of {timing.ramp_seconds} s"
        )
    return _Part(marks=tuple(marks), start=start, end=end)


def _early_end(part: _Part, timing: Timing) -> list[str]:
    """Return an error if the server closed the connection, on which netcat ends without one."""
    if part.nanoseconds >= timing.runtime_seconds * SECOND - _HALF_SECOND:
        return []
    return [f"the connection ended after {part.nanoseconds / SECOND:.1f} s of {timing.runtime_seconds} s"]


def _sample(parts: Sequence[_Part], start: int, end: int) -> OperationSample:
    series = [_cells(part, start, end) for part in parts]
    cells = tuple(sum(values) for values in zip(*series, strict=True))
    return OperationSample(
        operation=Operation.READ,
        ios=0,
        bytes=sum(part.bytes for part in parts),
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(cells), bytes=cells),
    )


def _cells(part: _Part, start: int, end: int) -> Sequence[float]:
    inside = [mark for mark in part.marks if part.start.moment <= mark.moment <= part.end.moment]
    return byte_cells(inside, start, end, total=part.bytes).bytes
