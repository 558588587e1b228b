"""Whether a trial had come to rest: SNIA's criterion on the sum of all clients.

Over five rounds y0..y4 of equal length, with the least-squares line through them of slope k per round:

    range:  max(y) - min(y) <= 0.20 * mean(y)
    slope:  |k| * (5 - 1)   <= 0.10 * mean(y)

Source: SNIA Solid State Storage Performance Test Specification 2.0.2, its definition of steady state. There rounds
follow each other until five in a row hold; here they are fifths of a window that is as long as the user asked for.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from plimsoll.api.result import Steadiness, SteadyState
from plimsoll.measure.histogram import Histogram, HistogramError
from plimsoll.measure.series import Share, amounts_between, divided
from plimsoll.measure.window import NANOSECONDS, Interval

ROUNDS = 5
MAX_RANGE = 0.20
MAX_SLOPE = 0.10
LEAST_ROUND_SECONDS = 10
"""Shorter rounds differ by what storage does every few seconds anyway: flushes, heartbeats, garbage collection."""
ROUGHLY = 5
"""Windows too short for such rounds are held to so many times the criterion: a rate that doubles or halves, no less."""
LEAST_ROUGH_ROUND_SECONDS = 2
LEAST_ROUGH_OPERATIONS = 100
"""Of a round, on average; the rate of fewer changes by chance."""
LEAST_OPERATIONS = 10_000
"""Of a round, for a 99th percentile with 100 beyond it. With 10, chance alone moves it further than the criterion
permits in two of three trials whose latencies are log-normal (sigma 0.8) and steady; with 100 in none of sixty."""

_PERCENTILE = 99
_DECIMALS = 6


def steady_state_of(shares: Collection[Share], window: Interval) -> SteadyState | None:
    """Judge one operation over the window; None if it is too short, empty, or a client has no usable series."""
    if window.length < ROUNDS * LEAST_ROUND_SECONDS * NANOSECONDS:
        return None
    rates = _rates(shares, window)
    if not any(rates):
        return None
    p99 = _percentiles(shares, divided(window, ROUNDS))
    return SteadyState(
        round_seconds=window.length / ROUNDS / NANOSECONDS,
        rate=steadiness(rates),
        p99=steadiness(p99) if any(p99) else None,
    )


def rough_steadiness_of(shares: Collection[Share], window: Interval) -> Steadiness | None:
    """Describe the rate over a window that is too short for the criterion; None if it can be judged, or not even so."""
    seconds = window.length / ROUNDS / NANOSECONDS
    if not LEAST_ROUGH_ROUND_SECONDS <= seconds < LEAST_ROUND_SECONDS:
        return None
    rates = _rates(shares, window)
    return steadiness(rates) if sum(rates) * seconds >= ROUNDS * LEAST_ROUGH_OPERATIONS else None


def _rates(shares: Collection[Share], window: Interval) -> list[float]:
    """Return operations per second of every round; empty if a client has no usable series."""
    edges = divided(window, ROUNDS)
    amounts = amounts_between(shares, edges)
    if amounts is None:
        return []
    return [amount.per_second(end - start).ios for amount, (start, end) in zip(amounts, pairwise(edges), strict=True)]


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
    """Return the 99th percentile of every round over all clients; empty if one cannot be told."""
    try:
        merged = [Histogram.merge(_histograms(shares, round_)) for round_ in pairwise(edges)]
    except HistogramError:
        return []
    if any(histogram.total < LEAST_OPERATIONS for histogram in merged):
        return []
    found = [value for histogram in merged if (value := histogram.percentile(_PERCENTILE)) is not None]
    return found if len(found) == len(merged) else []


def _histograms(shares: Collection[Share], round_: tuple[int, int]) -> Iterator[Histogram]:
    """Yield every slice whose midpoint lies in a round.

    Raises:
        HistogramError: there are none although there should be, or some are missing or damaged.

    """
    start, end = round_
    for share in shares:
        slices, sample = share.sample.slices, share.sample
        if not sample.ios:
            continue
        if slices is None or slices.width_nanoseconds <= 0:
            raise HistogramError(f"there are no latencies over time of {sample.operation} operations")
        # The last one may be missing, and so may one that ended just before the tool did.
        if len(slices.histograms) + 1 < share.interval.length // slices.width_nanoseconds:
            raise HistogramError(f"the latencies over time of {sample.operation} operations are not complete")
        middle = share.interval.start + slices.width_nanoseconds // 2
        for index, text in enumerate(slices.histograms):
            if start <= middle + index * slices.width_nanoseconds < end:
                yield Histogram.decode(text)
