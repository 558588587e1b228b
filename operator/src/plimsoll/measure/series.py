"""A client's I/O over time on the wall clock, and the sum of all clients' in equal intervals.

A series is kept as what had been done until each edge of its cells. Inside a cell the I/O is taken to be even, so that
any stretch of time has its share of a cell that it cuts: exact for a steady rate, and off by at most one cell's I/O at
either end of the stretch.
"""

import math
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from plimsoll.api.result import Series
from plimsoll.measure.sample import Cells, OperationSample
from plimsoll.measure.window import NANOSECONDS, Interval

MAX_INTERVALS = 120
"""Results are bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """I/O in operations and bytes; not whole where an interval of a series was cut."""

    ios: float
    bytes: float

    def per_second(self, nanoseconds: int) -> "Amount":
        """Return it as a rate over that time; nothing in no time."""
        factor = NANOSECONDS / nanoseconds if nanoseconds else 0.0
        return Amount(ios=self.ios * factor, bytes=self.bytes * factor)


def add(amounts: Collection[Amount]) -> Amount:
    """Return the sum."""
    return Amount(ios=math.fsum(item.ios for item in amounts), bytes=math.fsum(item.bytes for item in amounts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a client had done until each edge of its cells, the start of measuring included."""

    interval: Interval
    width: int
    ios: Sequence[float]
    bytes: Sequence[float]

    def until(self, moment: int) -> tuple[float, float]:
        """Return operations and bytes until then, Unix nanoseconds."""
        passed = min(max(moment - self.interval.start, 0), self.interval.length)
        index = min(passed // self.width, len(self.ios) - 2)
        # The last cell ends with the measurement and may be shorter.
        length = min(self.width, self.interval.length - index * self.width)
        part = (passed - index * self.width) / length
        return _between(self.ios, index, part), _between(self.bytes, index, part)


@dataclass(frozen=True, kw_only=True)
class Share:
    """One client's part of an operation, and when the client was measuring."""

    sample: OperationSample
    interval: Interval

    @cached_property
    def curve(self) -> Curve | None:
        """The series; None if there is none, or if it does not cover the client's time or add up to its totals."""
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
        """Whether nothing is known of when its I/O was done, and there was some."""
        return bool(self.sample.ios) and self.curve is None

    def within(self, window: Interval) -> Amount:
        """Return the I/O inside the window.

        Without a usable series the client's mean rate is taken to hold all the time; whoever calls must say so beside
        the number.
        """
        curve = self.curve
        if curve is None:
            part = self.interval.clipped(window) / self.interval.length if self.interval.length else 0.0
            return Amount(ios=self.sample.ios * part, bytes=self.sample.bytes * part)
        (ios_before, bytes_before), (ios, volume) = curve.until(window.start), curve.until(window.end)
        return Amount(ios=ios - ios_before, bytes=volume - bytes_before)


def rounded_iops(rate: float) -> float:
    """Return operations per second as they are published: with 3 decimals, with 6 if there is not one in a second.

    A sync may take seconds: rounded to whole operations, 2.52 and 2.48 per second would be 3 and 2.
    """
    return round(rate, 3 if rate >= 1 else 6)


def divided(window: Interval, parts: int) -> list[int]:
    """Return the edges of that many equal parts, to the nanosecond."""
    return [window.start + window.length * part // parts for part in range(parts + 1)]


def amounts_between(shares: Collection[Share], edges: Sequence[int]) -> list[Amount] | None:
    """Return all clients' I/O between each two edges; None if a client has no usable series."""
    if any(share.lacks_series for share in shares):
        return None
    totals = [(0.0, 0.0)] * len(edges)
    for share in shares:
        if share.curve is not None:
            done = map(share.curve.until, edges)
            totals = [(ios + more, volume + bytes_) for (ios, volume), (more, bytes_) in zip(totals, done, strict=True)]
    return [Amount(ios=after[0] - before[0], bytes=after[1] - before[1]) for before, after in pairwise(totals)]


def series_of(shares: Collection[Share], window: Interval) -> Series | None:
    """Return the throughput of one operation over the window; None if a client has no usable series.

    The intervals are as many whole seconds long as it takes to have no more than 120. What is left at the end is an
    interval of its own if it is at least half as long, and else part of the one before: the rate of a few milliseconds
    says nothing.
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
    """Allow for what doubles round, nothing more."""
    return all(0 <= cell < math.inf for cell in cells) and math.isclose(
        math.fsum(cells), expected, rel_tol=1e-9, abs_tol=1e-6
    )
