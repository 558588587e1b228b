"""The rates of a trial: what a tool reports, its rates in the common window, and whether they were steady."""

import math
from bisect import bisect
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from plimsoll.api.names import Operation
from plimsoll.api.operation import Rates, Steadiness, SteadyState
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.timeline import (
    NANOSECONDS,
    Amount,
    Interval,
    Share,
    add,
    amounts_between,
    divided,
    rounded_iops,
    union_interval,
)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

ROUNDS = 5
MAX_RANGE = 0.20
MAX_SLOPE = 0.10
LEAST_ROUND_SECONDS = 10
"""Shorter rounds differ by normal periodic work of storage: flushes, heartbeats, garbage collection."""
ROUGH_FACTOR = 5
"""In windows too short for such rounds the limits are this many times as wide: only a rate that doubles or halves
fails."""
LEAST_ROUGH_ROUND_SECONDS = 2
LEAST_ROUGH_OPERATIONS = 100
"""Per round, on average; the rate of fewer operations changes by chance."""
LEAST_OPERATIONS = 10_000
"""Per round, for a 99th percentile with 100 operations beyond it. With 10, chance alone moves it by more than the
criterion permits in two of three trials whose latencies are log-normal (sigma 0.8) and steady; with 100 in none of
sixty."""

_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """The quantities that a tool reports, besides bytes and times."""

    operations: bool = True  # the number of completed operations
    cells: bool = False  # rates between pairs of clients, the cells of a matrix

    @property
    def unit(self) -> str:
        """The unit in which I/O is counted."""
        return "operations" if self.operations else "bytes"

    def amount(self, ios: float, volume: float) -> float:
        """Return operations, or bytes if the tool does not count operations."""
        return ios if self.operations else volume


ALL_QUANTITIES = Quantities()
"""For a tool that counts operations and has no servers."""


def counts_operations(iops: float, bytes_per_second: float) -> bool:
    """Whether a recorded rate counts operations: a tool that counts only bytes records bytes without operations."""
    return bool(iops) or not bytes_per_second


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by key, both in the order given."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_operation(items: Iterable[T], operation_of: Callable[[T], Operation]) -> dict[Operation, list[T]]:
    """Group items by operation, in the order of `Operation`."""
    groups = grouped(items, operation_of)
    return {operation: groups[operation] for operation in Operation if operation in groups}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRates:
    """The rates of one operation."""

    measured: Amount  # the I/O behind the headline: that in the window
    rates: Rates
    whole_run: Rates
    sum_of_rates: Rates
    bias: float | None  # of the operations per second; None without I/O in the window


def rates_of(shares: Collection[Share], *, common: Interval | None, whole: Interval) -> OperationRates:
    """Return the rates of one operation over all clients with that operation.

    `common` is the common window of all clients of the trial, `whole` the time from their first start to their last
    end. Without a common window, for a tool whose clients do a fixed amount of work, the headline is that of the whole
    run, or of the operation's own phase.
    """
    everything = total(shares)
    phase = union_interval([share.interval for share in shares]) if any(share.is_phase for share in shares) else None
    whole_run = everything.per_second((phase or whole).length)
    measured = everything if common is None else add([share.within(common) for share in shares])
    headline = whole_run if common is None else measured.per_second(common.length)
    sum_of_rates = add([total([share]).per_second(share.interval.length) for share in shares])
    return OperationRates(
        measured=measured,
        rates=_rounded(headline),
        whole_run=_rounded(whole_run),
        sum_of_rates=_rounded(sum_of_rates),
        # The unrounded rates; a rate near 0, an operation in eleven days, has no meaningful bias.
        bias=sum_of_rates.ios / headline.ios - 1 if headline.ios > 1e-6 else None,  # noqa: PLR2004
    )


def total(shares: Collection[Share]) -> Amount:
    """Return all I/O of the clients."""
    return Amount(ios=sum(share.sample.ios for share in shares), bytes=sum(share.sample.bytes for share in shares))


def rate_text(rate: float, half_width: float | None = None) -> str:
    """Return operations per second for people, with at least three digits: `1,234 ± 5`, `2.52 ± 0.03`."""
    decimals = max(0, 2 - math.floor(math.log10(max(rate, 0.01)))) if rate else 0
    text = f"{rate:,.{decimals}f}"
    return text if half_width is None else f"{text} ± {half_width:,.{decimals}f}"


def _rounded(amount: Amount) -> Rates:
    return Rates(iops=rounded_iops(amount.ios), bytes_per_second=round(amount.bytes))


def steady_state_of(
    shares: Collection[Share], window: Interval, quantities: Quantities = ALL_QUANTITIES
) -> SteadyState | None:
    """Judge one operation over the window; None if it is too short, empty, or a client has no usable series."""
    if window.length < ROUNDS * LEAST_ROUND_SECONDS * NANOSECONDS:
        return None
    rates = _rates(shares, window, quantities)
    if not any(rates):
        return None
    try:
        p99 = _percentiles(shares, divided(window, ROUNDS))
    except HistogramError:
        p99 = []
    return SteadyState(
        round_seconds=window.length / ROUNDS / NANOSECONDS,
        rate=steadiness(rates),
        p99=steadiness(p99) if any(p99) else None,
    )


def rough_steadiness_of(
    shares: Collection[Share], window: Interval, quantities: Quantities = ALL_QUANTITIES
) -> Steadiness | None:
    """Describe the rate over a window too short for the criterion; None if it is long enough, or far too short."""
    seconds = window.length / ROUNDS / NANOSECONDS
    if not LEAST_ROUGH_ROUND_SECONDS <= seconds < LEAST_ROUND_SECONDS:
        return None
    rates = _rates(shares, window, quantities)
    return steadiness(rates) if sum(rates) * seconds >= ROUNDS * LEAST_ROUGH_OPERATIONS else None


def _rates(shares: Collection[Share], window: Interval, quantities: Quantities) -> list[float]:
    """Return the rate of each round, per second; empty if a client has no usable series."""
    edges = divided(window, ROUNDS)
    amounts = amounts_between(shares, edges)
    if amounts is None:
        return []
    rates = [amount.per_second(end - start) for amount, (start, end) in zip(amounts, pairwise(edges), strict=True)]
    return [quantities.amount(rate.ios, rate.bytes) for rate in rates]


def steadiness(rounds: Sequence[float]) -> Steadiness:
    """Apply the criterion to values whose mean is above 0."""
    middle = (len(rounds) - 1) / 2
    mean = sum(rounds) / len(rounds)
    spread = max(rounds) - min(rounds)
    slope = sum((index - middle) * value for index, value in enumerate(rounds)) / sum(
        (index - middle) ** 2 for index in range(len(rounds))
    )
    range_ratio = spread / mean
    slope_ratio = abs(slope) * (len(rounds) - 1) / mean
    return Steadiness(
        attained=range_ratio <= MAX_RANGE and slope_ratio <= MAX_SLOPE,
        rounds=tuple(round(value, _DECIMALS) for value in rounds),
        range_ratio=round(range_ratio, _DECIMALS),
        slope_ratio=round(slope_ratio, _DECIMALS),
    )


def _percentiles(shares: Collection[Share], edges: Sequence[int]) -> list[int]:
    """Return the 99th percentile of each round over all clients; empty if one is unknown.

    A slice belongs to the round in which its midpoint lies. HistogramError if slices are missing or damaged.
    """
    rounds: list[list[str]] = [[] for _ in edges[1:]]
    for share in shares:
        slices, series = [*share.slices()], share.sample.slices
        # The last one may be missing, and so may one that ended just before the tool did.
        if share.sample.ios and series and len(slices) + 1 < share.interval.length // series.width_nanoseconds:
            raise HistogramError(f"the latencies over time of {share.sample.operation} operations are incomplete")
        for piece, text in slices:
            number = bisect(edges, piece.start + piece.length // 2) - 1
            if 0 <= number < len(rounds):
                rounds[number].append(text)
    merged = [Histogram.merge_texts(texts) for texts in rounds]
    if any(histogram.total < LEAST_OPERATIONS for histogram in merged):
        return []
    percentiles = [value for histogram in merged if (value := histogram.percentile(99)) is not None]
    return percentiles if len(percentiles) == len(merged) else []
