"""Whether a trial was in steady state, by SNIA's criterion on the sum of all clients.

Over five rounds y0..y4 of equal length, with the least-squares line through them of slope k per round:

    range:  max(y) - min(y) <= 0.20 * mean(y)
    slope:  |k| * (5 - 1)   <= 0.10 * mean(y)

Source: the definition of steady state in the SNIA Solid State Storage Performance Test Specification 2.0.2. There,
rounds are added until five in a row meet the criterion; here they are fifths of a window of the requested length.
"""

from bisect import bisect
from collections.abc import Collection, Sequence
from itertools import pairwise

from plimsoll.api.result import Steadiness, SteadyState
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.quantities import ALL_QUANTITIES, Quantities
from plimsoll.measure.series import Share, amounts_between, divided
from plimsoll.measure.window import NANOSECONDS, Interval

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

_PERCENTILE = 99
_DECIMALS = 6


def steady_state_of(
    shares: Collection[Share], window: Interval, quantities: Quantities = ALL_QUANTITIES
) -> SteadyState | None:
    """Judge one operation over the window; None if it is too short, empty, or a client has no usable series."""
    if window.length < ROUNDS * LEAST_ROUND_SECONDS * NANOSECONDS:
        return None
    rates = _rates(shares, window, quantities)
    if not any(rates):
        return None
    p99 = _percentiles(shares, divided(window, ROUNDS))
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
    """Return the 99th percentile of each round over all clients; empty if one is unknown."""
    try:
        merged = [Histogram.merge_texts(texts) for texts in _histograms(shares, edges)]
    except HistogramError:
        return []
    if any(histogram.total < LEAST_OPERATIONS for histogram in merged):
        return []
    found = [value for histogram in merged if (value := histogram.percentile(_PERCENTILE)) is not None]
    return found if len(found) == len(merged) else []


def _histograms(shares: Collection[Share], edges: Sequence[int]) -> list[list[str]]:
    """Return the text forms of the slices of each round: of those whose midpoints lie in it.

    Raises:
        HistogramError: slices are missing.

    """
    rounds: list[list[str]] = [[] for _ in edges[1:]]
    for share in shares:
        found, kept = [*share.slices()], share.sample.slices
        # The last one may be missing, and so may one that ended just before the tool did.
        if share.sample.ios and kept and len(found) + 1 < share.interval.length // kept.width_nanoseconds:
            raise HistogramError(f"the latencies over time of {share.sample.operation} operations are incomplete")
        for piece, text in found:
            number = bisect(edges, piece.start + piece.length // 2) - 1
            if 0 <= number < len(rounds):
                rounds[number].append(text)
    return rounds
