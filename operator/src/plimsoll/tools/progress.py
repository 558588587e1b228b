"""What a tool has done until certain moments -> a series with cells of one second."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.measure.sample import Cells

SECOND = 10**9
_CLOSE = SECOND // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The bytes moved until a moment, in nanoseconds."""

    moment: int
    bytes: int


def closest(marks: Sequence[Mark], moment: int) -> Mark:
    """Return the mark that is closest to a moment."""
    return min(marks, key=lambda mark: abs(mark.moment - moment))


def byte_cells(marks: Sequence[Mark], start: int, end: int, *, total: int) -> Cells:
    """Return the bytes of each second from `start` to `end`, two of the marks' moments.

    Marks are about a second apart. A mark close to the end of a second counts as its end, so that an interval without
    bytes remains a second without any; bytes between two other marks are spread evenly. The cells are scaled so that
    their sum is exactly `total`: what arrived, where the marks are of what was sent.
    """
    edges = [*range(start, end, SECOND), end]
    moved = [_until(marks, edge) for edge in edges]
    whole = moved[-1] - moved[0]
    scaled = [total * (done - moved[0]) / whole if whole else 0.0 for done in moved]
    # Without a mark that moved, the total arrived at an unknown time: the series does not match, which is a finding.
    cells = tuple(after - before for before, after in pairwise(scaled))
    return Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(cells), bytes=cells)


def _until(marks: Sequence[Mark], moment: int) -> float:
    index = bisect_right(marks, moment, key=lambda mark: mark.moment)
    if index == len(marks):
        return marks[-1].bytes
    if not index:
        return marks[0].bytes
    before, after = marks[index - 1], marks[index]
    # The last mark is the end of the series, which need not be that of a second.
    near = closest((before, after) if index < len(marks) - 1 else (before,), moment)
    if abs(near.moment - moment) < _CLOSE:
        return near.bytes
    part = (moment - before.moment) / (after.moment - before.moment)
    return before.bytes + part * (after.bytes - before.bytes)
