"""What the tools that count operations line by line have in common while they run."""

import math
from collections.abc import Sequence

from plimsoll.api.names import Operation
from plimsoll.api.state import LiveRate

_SPAN_LINES = 3
"""The newest lines whose ends a rate is taken over: with a line every second, the last two seconds."""


def ended_lines(said: str) -> list[str]:
    """Return the whole lines in a text that may break off anywhere, without spaces at their ends."""
    *ended, _ = said.split("\n")
    return [line.rstrip() for line in ended]


def rate_of(operation: Operation, size: int, counts: Sequence[tuple[float, int]]) -> tuple[LiveRate, ...]:
    """Return the rate between the newest counts of operations, of so many bytes each; each has its time in seconds.

    Empty if there are no two, or if they go back: a clock was set, or what was read is not what it seems.
    """
    newest = counts[-_SPAN_LINES:]
    if not newest:
        return ()
    seconds, done = newest[-1][0] - newest[0][0], newest[-1][1] - newest[0][1]
    if seconds <= 0 or done < 0 or not math.isfinite(done / seconds):
        return ()
    iops = done / seconds
    return (LiveRate(operation=operation, iops=iops, bytes_per_second=round(iops * size)),)
