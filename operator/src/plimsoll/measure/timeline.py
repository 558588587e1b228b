"""Time in a trial: the clients' windows, lists of intervals, and I/O per second on the wall clock."""

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from plimsoll.api.operation import Series
from plimsoll.api.result import Window
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.sample import OperationSample

NANOSECONDS = 10**9
MAX_INTERVALS = 120


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


def covering(intervals: Iterable[Interval]) -> Interval:
    """Return the time from the first start to the last end; ValueError without intervals."""
    starts, ends = zip(*((interval.start, interval.end) for interval in intervals), strict=True)
    return Interval(start=min(starts), end=max(ends))


def window_of(intervals: Collection[Interval]) -> Window | None:
    """Describe the common window, whose end shows a gap before the last client's start; None without intervals."""
    if (common := common_interval(intervals)) is None:
        return None
    whole = covering(intervals)
    runtimes = sum(interval.length for interval in intervals)
    return Window(
        start_nanoseconds=common.start,
        end_nanoseconds=min(interval.end for interval in intervals),
        last_end_nanoseconds=whole.end,
        seconds=common.length / NANOSECONDS,
        whole_seconds=whole.length / NANOSECONDS,
        spread_seconds=(common.start - whole.start) / NANOSECONDS,
        overlap=common.length * len(intervals) / runtimes if runtimes else 0.0,
    )


def both(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the intersection of two lists."""
    shared, first, second = list[Interval](), 0, 0
    while first < len(some) and second < len(others):
        one, other = some[first], others[second]
        start, end = max(one.start, other.start), min(one.end, other.end)
        if start < end:
            shared.append(Interval(start=start, end=end))
        first, second = (first + 1, second) if one.end <= other.end else (first, second + 1)
    return shared


def joined(stretches: Iterable[Interval], *, wider_by: int = 0) -> list[Interval]:
    """Return the union of all intervals that have a length, each extended at both ends."""
    union = list[Interval]()
    for stretch in sorted((item for item in stretches if item.length > 0), key=lambda item: item.start):
        start, end = stretch.start - wider_by, stretch.end + wider_by
        if union and union[-1].end >= start:
            before = union.pop()
            start, end = before.start, max(before.end, end)
        union.append(Interval(start=start, end=end))
    return union


def without(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the time in the first list that is not in the second."""
    if not some:
        return []
    begin, end = some[0].start, some[-1].end
    inner = both(others, [Interval(start=begin, end=end)])
    starts, ends = [begin, *(stretch.end for stretch in inner)], [*(stretch.start for stretch in inner), end]
    free = [Interval(start=start, end=end) for start, end in zip(starts, ends, strict=True) if start < end]
    return both(some, free)


def length_of(stretches: Iterable[Interval]) -> int:
    return sum(stretch.length for stretch in stretches)


class Coverage:
    """Answers, in logarithmic time, how much of an interval lies in a list of ordered and disjoint intervals."""

    def __init__(self, stretches: Sequence[Interval]) -> None:
        self._stretches = stretches
        self._starts = [stretch.start for stretch in stretches]
        self._before = [*accumulate((stretch.length for stretch in stretches), initial=0)]

    def within(self, interval: Interval) -> int:
        """Return how many nanoseconds of the interval they cover."""
        return self._until(interval.end) - self._until(interval.start)

    def _until(self, moment: int) -> int:
        if (index := bisect_right(self._starts, moment) - 1) < 0:
            return 0
        return self._before[index] + min(self._stretches[index].length, moment - self._starts[index])


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """I/O in operations and bytes; fractional where a cell of a series was cut."""

    ios: float
    bytes: float

    def per_second(self, nanoseconds: int) -> "Amount":
        """Return the rate over that time; 0 if it has no length."""
        factor = NANOSECONDS / nanoseconds if nanoseconds else 0.0
        return Amount(ios=self.ios * factor, bytes=self.bytes * factor)


def add(amounts: Collection[Amount]) -> Amount:
    return Amount(ios=math.fsum(item.ios for item in amounts), bytes=math.fsum(item.bytes for item in amounts))


@dataclass(frozen=True, slots=True)
class Curve:
    """A client's cumulative I/O at each edge of its cells, from the start of measuring on."""

    interval: Interval
    width: int
    ios: Sequence[float]
    bytes: Sequence[float]

    def until(self, moments: Iterable[int]) -> list[tuple[float, float]]:
        """Return operations and bytes until each of the moments in Unix nanoseconds."""
        ios, volume, width, last = self.ios, self.bytes, self.width, len(self.ios) - 2
        start, length = self.interval.start, self.interval.length
        # The last cell ends with the measurement and may be shorter.
        last_width = length - last * width
        amounts = []
        for moment in moments:
            passed = min(max(0, moment - start), length)
            index = min(passed // width, last)
            part = (passed - index * width) / (width if index < last else last_width)
            amounts.append((_between(ios, index, part), _between(volume, index, part)))
        return amounts


@dataclass(frozen=True, kw_only=True)
class Share:
    """One client's part of an operation, and when the client measured it: from the beginning on, if that is unknown."""

    sample: OperationSample
    interval: Interval

    @property
    def is_phase(self) -> bool:
        """Whether the client did this operation before or after its others."""
        return self.sample.runtime is not None

    @cached_property
    def curve(self) -> Curve | None:
        """The series; None if it is missing, does not cover the client's time, or does not add up to its totals."""
        cells, sample = self.sample.cells, self.sample
        if cells is None or not (_adds_up(cells.ios, sample.ios) and _adds_up(cells.bytes, sample.bytes)):
            return None
        number, width = len(cells.ios), cells.width_nanoseconds
        if number != len(cells.bytes) or not (number - 1) * width < self.interval.length <= number * width:
            return None
        sums = (array("d", accumulate(counts, initial=0.0)) for counts in (cells.ios, cells.bytes))
        return Curve(self.interval, width, *sums)

    @property
    def lacks_series(self) -> bool:
        """Whether there was I/O and its distribution over time is unknown."""
        return bool(self.sample.ios or self.sample.bytes) and self.curve is None

    def within(self, window: Interval) -> Amount:
        """Return the I/O in the window; without a usable series from the mean rate, which the caller must report."""
        curve = self.curve
        if curve is None:
            part = self.interval.clipped(window) / self.interval.length if self.interval.length else 0.0
            return Amount(ios=self.sample.ios * part, bytes=self.sample.bytes * part)
        (ios_before, bytes_before), (ios, volume) = curve.until((window.start, window.end))
        return Amount(ios=ios - ios_before, bytes=volume - bytes_before)

    def slices(self) -> Iterator[tuple[Interval, str]]:
        """Yield each slice of the latencies over time, encoded; HistogramError if the tool kept none."""
        sample, slices = self.sample, self.sample.slices
        if not sample.ios:
            return
        if slices is None or slices.width_nanoseconds <= 0:
            raise HistogramError(f"there are no latencies over time of {sample.operation} operations")
        for index, text in enumerate(slices.histograms):
            start = self.interval.start + index * slices.width_nanoseconds
            yield Interval(start=start, end=start + slices.width_nanoseconds), text

    def slices_in(self, part: Interval) -> Iterator[str]:
        """Yield the slices that end in a part of the time, but for their last tenth: the last one may end too late."""
        return (text for piece, text in self.slices() if part.start < piece.start + piece.length * 9 // 10 <= part.end)


def rounded_iops(rate: float) -> float:
    """Return operations per second as they are published: with 3 decimals, and with 6 below 1, as for slow syncs."""
    return round(rate, 3 if rate >= 1 else 6)


def divided(window: Interval, parts: int) -> list[int]:
    """Return the edges of that many equal parts."""
    return [window.start + window.length * part // parts for part in range(parts + 1)]


def amounts_between(shares: Collection[Share], edges: Sequence[int]) -> list[Amount] | None:
    """Return all clients' I/O between consecutive edges; None if a client has no usable series."""
    if any(share.lacks_series for share in shares):
        return None
    totals = [(0.0, 0.0)] * len(edges)
    for share in shares:
        if share.curve is not None:
            done = zip(totals, share.curve.until(edges), strict=True)
            totals = [(ios + more, volume + bytes_) for (ios, volume), (more, bytes_) in done]
    return [Amount(ios=after[0] - before[0], bytes=after[1] - before[1]) for before, after in pairwise(totals)]


def histograms_between(shares: Iterable[Share], edges: Sequence[int]) -> list[Histogram]:
    """Return all clients' latencies between consecutive edges, of slices by midpoint; HistogramError without them."""
    slices = (piece for share in shares for piece in share.slices())
    texts = defaultdict[int, list[str]](list)
    for time, text in slices:
        texts[bisect_right(edges, time.start + time.length // 2) - 1].append(text)
    return [Histogram.merge_texts(texts[number]) for number in range(len(edges) - 1)]


def series_of(shares: Collection[Share], window: Interval) -> Series | None:
    """Return the throughput of one operation over the window; None if a client has no usable series.

    The intervals are the fewest whole seconds that give no more than 120 of them. The remainder at the end is an
    interval of its own if it is at least half as long, and otherwise part of the previous one.
    """
    if not window.length:
        return None
    seconds = -(-window.length // (MAX_INTERVALS * NANOSECONDS))
    width = seconds * NANOSECONDS
    number = max(1, (window.length + width // 2) // width)
    edges = [*(window.start + index * width for index in range(number)), window.end]
    if (amounts := amounts_between(shares, edges)) is None:
        return None
    rates = [amount.per_second(end - start) for amount, (start, end) in zip(amounts, pairwise(edges), strict=True)]
    return Series(
        interval_seconds=seconds,
        iops=tuple(rounded_iops(rate.ios) for rate in rates),
        bytes_per_second=tuple(round(rate.bytes) for rate in rates),
    )


def _between(done: Sequence[float], index: int, part: float) -> float:
    return done[index] * (1 - part) + done[index + 1] * part


def _adds_up(cells: Sequence[float], expected: int) -> bool:
    # Except for rounding of doubles; a sum with NaN or infinity is close to no number.
    return min(cells, default=0.0) >= 0 and math.isclose(math.fsum(cells), expected, rel_tol=1e-9, abs_tol=1e-6)
