"""What a tool has done until certain moments -> a series with cells of one second."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.measure.sample import Cells

SECOND = 10**9


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

    Marks are about a second apart, so bytes between two marks are spread evenly. The cells are scaled so that their sum
    is exactly `total`: what arrived, where the marks are of what was sent.
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
    before, after = marks[max(0, index - 1)], marks[index]
    part = (moment - before.moment) / (after.moment - before.moment) if after.moment > before.moment else 0.0
    return before.bytes + part * (after.bytes - before.bytes)
