"""When the clients of a trial measured, and when all of them did.

    common  = [max(start), min(end)]        spread = max(start) - min(start)
    overlap = |common| / mean(end - start)

A rate over any other time than the common window overstates the storage: while some clients have not begun or are
already done, the others share all of it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from plimsoll.api.result import Window

NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A stretch of time in Unix nanoseconds; `end` is not before `start`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.end - self.start

    def clipped(self, other: "Interval") -> int:
        """Return how many nanoseconds of the other interval lie within this one."""
        return max(0, min(self.end, other.end) - max(self.start, other.start))


def common_interval(intervals: Collection[Interval]) -> Interval | None:
    """Return the time that all intervals share, of length 0 if there is none; None without intervals."""
    if not intervals:
        return None
    start = max(interval.start for interval in intervals)
    return Interval(start=start, end=max(start, min(interval.end for interval in intervals)))


def union_interval(intervals: Collection[Interval]) -> Interval | None:
    """Return the time from the first start to the last end; None without intervals."""
    if not intervals:
        return None
    return Interval(start=min(item.start for item in intervals), end=max(item.end for item in intervals))


def window_of(intervals: Collection[Interval]) -> Window | None:
    """Describe the common window; None without intervals.

    Its end is the first client's end even if that precedes the last client's start, so that the gap is visible.
    """
    common, whole = common_interval(intervals), union_interval(intervals)
    if common is None or whole is None:
        return None
    runtime = Fraction(sum(interval.length for interval in intervals), len(intervals))
    return Window(
        start_nanoseconds=common.start,
        end_nanoseconds=min(interval.end for interval in intervals),
        last_end_nanoseconds=whole.end,
        seconds=common.length / NANOSECONDS,
        whole_seconds=whole.length / NANOSECONDS,
        spread_seconds=(common.start - whole.start) / NANOSECONDS,
        overlap=float(common.length / runtime) if runtime else 0.0,
    )
