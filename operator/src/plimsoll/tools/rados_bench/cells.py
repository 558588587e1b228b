"""Operations finished at certain moments -> operations per second-long cell."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from plimsoll.measure.sample import Cells
from plimsoll.tools.rados_bench.text import Point

_WIDTH = 10**9


def cells_between(points: Sequence[Point], start: Point, end: Point, *, size: int) -> Cells:
    """Return the series from one point to another; their sum is exact.

    The points are a second and some milliseconds apart, and the cells are not: between two points the operations are
    taken to be spread evenly. What had not finished at one line and had at the next is nobody's but those two's.

    Args:
        points: all that are known, in the order of time.
        start: one of them.
        end: a later one.
        size: bytes of an operation.

    """
    edges = [*range(start.nanoseconds, end.nanoseconds, _WIDTH), end.nanoseconds]
    done = [_finished(points, edge) for edge in edges]
    ios = [after - before for before, after in pairwise(done)]
    return Cells(width_nanoseconds=_WIDTH, ios=tuple(ios), bytes=tuple(count * size for count in ios))


def _finished(points: Sequence[Point], nanoseconds: int) -> float:
    index = bisect_right(points, nanoseconds, key=lambda point: point.nanoseconds)
    if index == len(points):
        return points[-1].finished
    before, after = points[index - 1], points[index]
    part = (nanoseconds - before.nanoseconds) / (after.nanoseconds - before.nanoseconds)
    return before.finished + part * (after.finished - before.finished)
