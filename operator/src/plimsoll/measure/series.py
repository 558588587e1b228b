"""A client's I/O over time on the wall clock, and the sum over all clients in equal intervals.

A series contains the cumulative I/O at each edge of its cells. I/O is assumed to be even within a cell, so an interval
that cuts a cell gets its share of it: exact for a steady rate, and off by at most one cell's I/O at either end.
"""

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from plimsoll.api.result import Series
from plimsoll.measure.histogram import HistogramError
from plimsoll.measure.sample import Cells, OperationSample
from plimsoll.measure.window import NANOSECONDS, Interval

MAX_INTERVALS = 120


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
    """Return the sum."""
    return Amount(ios=math.fsum(item.ios for item in amounts), bytes=math.fsum(item.bytes for item in amounts))


@dataclass(frozen=True, slots=True, kw_only=True)
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
        found = []
        for moment in moments:
            passed = moment - start
            if passed <= 0:
                found.append((0.0, 0.0))
            elif passed >= length:
                found.append((ios[-1], volume[-1]))
            else:
                index = passed // width
                part = (passed - index * width) / (width if index < last else last_width)
                found.append((_between(ios, index, part), _between(volume, index, part)))
        return found


@dataclass(frozen=True, kw_only=True)
class Share:
    """One client's part of an operation, and when the client measured it.

    An operation with its own runtime counts as if it had begun with the measurement: its real start is unknown.
    """

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
        if (
            cells is None
            or not _covers(cells, self.interval)
            or not _adds_up(cells.ios, sample.ios)
            or not _adds_up(cells.bytes, sample.bytes)
        ):
            return None
        return Curve(
            interval=self.interval,
            width=cells.width_nanoseconds,
            ios=array("d", accumulate(cells.ios, initial=0.0)),
            bytes=array("d", accumulate(cells.bytes, initial=0.0)),
        )

    @property
    def lacks_series(self) -> bool:
        """Whether there was I/O and its distribution over time is unknown."""
        return bool(self.sample.ios or self.sample.bytes) and self.curve is None

    def within(self, window: Interval) -> Amount:
        """Return the I/O inside the window.

        Without a usable series this assumes the client's mean rate all the time; the caller must report that with the
        number.
        """
        curve = self.curve
        if curve is None:
            part = self.interval.clipped(window) / self.interval.length if self.interval.length else 0.0
            return Amount(ios=self.sample.ios * part, bytes=self.sample.bytes * part)
        (ios_before, bytes_before), (ios, volume) = curve.until((window.start, window.end))
        return Amount(ios=ios - ios_before, bytes=volume - bytes_before)

    def slices(self) -> Iterator[tuple[Interval, str]]:
        """Yield each slice of the latencies over time, encoded; none without operations.

        Raises:
            HistogramError: the tool kept no slices.

        """
        sample, slices = self.sample, self.sample.slices
        if not sample.ios:
            return
        if slices is None or slices.width_nanoseconds <= 0:
            raise HistogramError(f"there are no latencies over time of {sample.operation} operations")
        for index, text in enumerate(slices.histograms):
            start = self.interval.start + index * slices.width_nanoseconds
            yield Interval(start=start, end=start + slices.width_nanoseconds), text


def rounded_iops(rate: float) -> float:
    """Return operations per second as they are published: with 3 decimals, below 1 with 6.

    A sync may take seconds: rounded to whole operations, 2.52 and 2.48 per second would be 3 and 2.
    """
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


def series_of(shares: Collection[Share], window: Interval) -> Series | None:
    """Return the throughput of one operation over the window; None if a client has no usable series.

    The intervals are the fewest whole seconds that give no more than 120 of them. The remainder at the end is an
    interval of its own if it is at least half as long, and otherwise part of the previous one: the rate of a few
    milliseconds is meaningless.
    """
    if not window.length:
        return None
    seconds = -(-window.length // (MAX_INTERVALS * NANOSECONDS))
    width = seconds * NANOSECONDS
    number = max(1, (window.length + width // 2) // width)
    edges = [*(window.start + index * width for index in range(number)), window.end]
    amounts = amounts_between(shares, edges)
    if amounts is None:
        return None
    rates = [amount.per_second(end - start) for amount, (start, end) in zip(amounts, pairwise(edges), strict=True)]
    return Series(
        interval_seconds=seconds,
        iops=tuple(rounded_iops(rate.ios) for rate in rates),
        bytes_per_second=tuple(round(rate.bytes) for rate in rates),
    )


def _between(done: Sequence[float], index: int, part: float) -> float:
    return done[index] + (done[index + 1] - done[index]) * part


def _covers(cells: Cells, interval: Interval) -> bool:
    number, width = len(cells.ios), cells.width_nanoseconds
    return number == len(cells.bytes) and (number - 1) * width < interval.length <= number * width


def _adds_up(cells: Sequence[float], expected: int) -> bool:
    """Whether the cells add up, except for rounding of doubles; a sum with NaN or infinity is close to no number."""
    return min(cells, default=0.0) >= 0 and math.isclose(math.fsum(cells), expected, rel_tol=1e-9, abs_tol=1e-6)
