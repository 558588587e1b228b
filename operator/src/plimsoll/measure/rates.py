"""Operations and bytes per second of one operation over all clients of a trial, in three ways.

    rates        = sum over clients of their I/O inside the common window / |common|
    whole_run    = sum over clients of all their I/O / (max(end) - min(start))
    sum_of_rates = sum over clients of (all their I/O / their own runtime)
    bias         = sum_of_rates / rates - 1

If the storage is the bottleneck, its clients share one total whoever is running, so `sum_of_rates` overstates it by
spread / runtime, however many clients there are. It is published because it is what other tools print.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from plimsoll.api.result import Rates
from plimsoll.measure.sample import Cells, OperationSample
from plimsoll.measure.window import NANOSECONDS, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One client's part of an operation, and when the client was measuring."""

    sample: OperationSample
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """I/O in operations and bytes; not whole where an interval of a series was cut."""

    ios: float
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRates:
    """The rates of one operation.

    Attributes:
        measured: what the headline is made of: the I/O inside the window.
        bias: of the operations per second; None without I/O inside the window.

    """

    measured: Amount
    rates: Rates
    whole_run: Rates
    sum_of_rates: Rates
    bias: float | None


def rates_of(shares: Collection[Share], *, common: Interval | None, whole: Interval) -> OperationRates:
    """Return the rates of one operation over all clients that did it.

    `common` is the common window of all clients of the trial, `whole` the time from their first start to their last
    end. Without a common window, for a tool whose clients do a fixed amount of work and not for a fixed time, the
    headline is that of the whole run.
    """
    everything = total(shares)
    whole_run = _per_second(everything, whole.length)
    measured = everything if common is None else _add([amount_within(share, common) for share in shares])
    headline = whole_run if common is None else _per_second(measured, common.length)
    own = _add([_per_second(total([share]), share.interval.length) for share in shares])
    return OperationRates(
        measured=measured,
        rates=_rounded(headline),
        whole_run=_rounded(whole_run),
        sum_of_rates=_rounded(own),
        bias=_bias(own.ios, headline.ios),
    )


def total(shares: Collection[Share]) -> Amount:
    """Return all I/O of the clients."""
    return Amount(ios=sum(share.sample.ios for share in shares), bytes=sum(share.sample.bytes for share in shares))


def amount_within(share: Share, window: Interval) -> Amount:
    """Return a client's I/O inside the window.

    A cell that the window's edge cuts counts by the part of it that lies inside: exact for a steady rate, and off by at
    most one cell's I/O at either edge. Without a usable series the client's mean rate is taken to hold all the time;
    whoever calls must say so beside the number.
    """
    sample, interval = share.sample, share.interval
    if sample.cells is None or not series_is_usable(share):
        part = interval.clipped(window) / interval.length if interval.length else 0.0
        return Amount(ios=sample.ios * part, bytes=sample.bytes * part)
    parts = _parts_within(_extents(sample.cells, interval), window)
    return Amount(ios=_weighted(sample.cells.ios, parts), bytes=_weighted(sample.cells.bytes, parts))


def series_is_usable(share: Share) -> bool:
    """Return whether the series is there, covers the client's time, and adds up to the client's totals."""
    cells = share.sample.cells
    return (
        cells is not None
        and _covers(cells, share.interval)
        and _adds_up(cells.ios, share.sample.ios)
        and _adds_up(cells.bytes, share.sample.bytes)
    )


def _covers(cells: Cells, interval: Interval) -> bool:
    number, width = len(cells.ios), cells.width_nanoseconds
    return number == len(cells.bytes) and (number - 1) * width < interval.length <= number * width


def _adds_up(cells: Sequence[float], expected: int) -> bool:
    """Allow for what doubles round, nothing more."""
    return all(0 <= cell < math.inf for cell in cells) and math.isclose(
        math.fsum(cells), expected, rel_tol=1e-9, abs_tol=1e-6
    )


def _extents(cells: Cells, interval: Interval) -> list[Interval]:
    """Return when each cell was; the last one ends with the measurement."""
    starts = range(interval.start, interval.end, cells.width_nanoseconds)
    return [Interval(start=start, end=min(start + cells.width_nanoseconds, interval.end)) for start in starts]


def _parts_within(extents: Sequence[Interval], window: Interval) -> list[float]:
    return [extent.clipped(window) / extent.length for extent in extents]


def _weighted(cells: Sequence[float], parts: Sequence[float]) -> float:
    return math.fsum(cell * part for cell, part in zip(cells, parts, strict=True))


def _add(amounts: Sequence[Amount]) -> Amount:
    return Amount(ios=math.fsum(item.ios for item in amounts), bytes=math.fsum(item.bytes for item in amounts))


def _per_second(amount: Amount, nanoseconds: int) -> Amount:
    if not nanoseconds:
        return Amount(ios=0.0, bytes=0.0)
    return Amount(ios=amount.ios * NANOSECONDS / nanoseconds, bytes=amount.bytes * NANOSECONDS / nanoseconds)


def _rounded(amount: Amount) -> Rates:
    return Rates(iops=round(amount.ios), bytes_per_second=round(amount.bytes))


def _bias(own: float, headline: float) -> float | None:
    """Compare the unrounded rates; next to nothing inside the window has no meaningful bias."""
    return own / headline - 1 if headline > 1e-6 else None  # noqa: PLR2004  # one operation in eleven days
