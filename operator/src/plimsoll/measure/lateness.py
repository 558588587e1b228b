"""Latency from when an operation was due, for an offered rate: the wait that latency from submission leaves out.

While all places of the depth are taken, operations that are due wait in the tool, and no latency contains that wait
("coordinated omission": G. Tene, How NOT to Measure Latency, 2013). Two things show it:

- A gap between completions: in *g* seconds without one, at most the depth *d* of the *r* * *g* operations that are due
  can start. The others wait for up to *g* - *d* / *r*, all times down to 0 being equally frequent.
- At a depth of 1, latency is the service time of a queue with one server: of operation *n* with latency *s*, the next
  one, due *p* later, waits for `w(n+1) = max(0, w(n) + s(n) - p)` (Lindley 1952, "The theory of queues with a single
  server"). Latencies are taken as independent; on storage that slows down at times they are not, and waits are longer.

Each job of a tool has its own depth and part of the rate: its operations wait even if another job is idle.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import accumulate

from plimsoll.api.operation import Latency
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint, histogram_of
from plimsoll.measure.intake import Offer
from plimsoll.measure.sample import Gaps
from plimsoll.measure.timeline import NANOSECONDS

MUCH_LONGER = 2  # times: at a depth of 1, a busy machine delays single operations, and the following ones by less
_PERCENTILES = ("99", "95", "90", "50")  # the first that is published is judged; a higher one often has few events
_MOST_REPLAYED = 65_536  # operations of a replayed queue; of more, quantiles stand for them
_MILLISECOND = 10**6

_Longer = Callable[[float], float]  # nanoseconds -> the share of operations that took longer from when they were due


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """How a percentile changes if latency counts from when operations were due."""

    percentile: str  # such as "99"
    published: float  # from submission, in nanoseconds
    from_due: float  # from when they were due
    longest: float  # that it may be: so many times as long, or longer by chance
    waited: float  # share of the operations that were due while all places were taken, 0 to 1
    late: float  # share that took longer than the published percentile, counted from when they were due


def lateness_of(offer: Offer, latency: Latency, gaps: Sequence[Gaps | None], jobs: int = 1) -> Lateness | None:
    """Return the least that the latencies of a trial leave out, by the better evidence; None without evidence.

    The latency covers all operations except syncs. `gaps` has those of each client, or None if its tool reports none.
    """
    percentile = next((name for name in _PERCENTILES if name in latency.percentiles), None)
    if percentile is None or not offer.depth or not gaps:
        return None
    try:
        histogram = histogram_of(latency)
    except HistogramError:
        return None
    period, depth = len(gaps) * NANOSECONDS / offer.load, offer.depth // jobs
    published, beyond = latency.percentiles[percentile], 1 - float(percentile) / 100
    # After equal times, the first operation may be due a whole period after the beginning of a gap.
    places = depth + (0 if offer.at_random else 1)
    lengths = [length * _MILLISECOND for client in gaps if client for length in client.lengths]
    # How long the first operation that found no place in each gap waited.
    longest = [wait for length in lengths if (wait := length - places * jobs * period) > 0]
    ways = [_by_gaps(histogram, longest, period, is_caught_up=not offer.at_random)]
    if depth == 1 and not offer.at_random:
        ways.append(_by_replay(histogram, jobs * period))
    cases = [
        Lateness(
            percentile=percentile,
            published=published,
            from_due=_percentile(longer, beyond, published),
            longest=max(MUCH_LONGER * published, _longest_by_chance(histogram, beyond)),
            waited=waited,
            late=longer(published),
        )
        for waited, longer in ways
    ]
    return max(cases, key=lambda case: case.from_due)


def _longest_by_chance(histogram: Histogram, beyond: float) -> float:
    """Return the upper confidence limit of the percentile that this share of the operations exceeds, by its rank."""
    number = histogram.total * beyond
    least = number - 3 * math.sqrt(number * (1 - beyond))  # three deviations of the rank
    remaining = histogram.total
    for index, count in histogram.counts.items():
        remaining -= count
        if remaining <= least:
            return bin_midpoint(index)
    return math.inf


def _by_gaps(
    histogram: Histogram, longest: Sequence[float], period: float, *, is_caught_up: bool
) -> tuple[float, _Longer]:
    """Return the share that waited in gaps, and the distribution; replayed arrivals that are omitted never come."""
    values, until = [bin_midpoint(index) for index in histogram.counts], [*accumulate(histogram.counts.values())]
    waiting = math.fsum(longest) / period
    total = histogram.total + (0.0 if is_caught_up else waiting)

    def longer(nanoseconds: float) -> float:
        place = bisect_right(values, nanoseconds)
        submitted = histogram.total - (until[place - 1] if place else 0)
        return (submitted + math.fsum(max(0.0, wait - nanoseconds) for wait in longest) / period) / total

    return waiting / total, longer


def _by_replay(histogram: Histogram, period: float) -> tuple[float, _Longer]:
    """Return the same for a queue with one server and the latencies of the trial."""
    values, until = [bin_midpoint(index) for index in histogram.counts], [*accumulate(histogram.counts.values())]
    number = min(histogram.total, _MOST_REPLAYED)
    step, wait, waited = histogram.total / number, 0.0, 0
    times = list[float]()
    for place in (rank for rank in _replay_order() if rank < number):
        taken = values[bisect_left(until, (place + 0.5) * step)]
        times.append(wait + taken)
        waited += wait > 0
        wait = max(0.0, wait + taken - period)
    times.sort()
    return waited / number, lambda nanoseconds: 1 - bisect_right(times, nanoseconds) / number


@cache
def _replay_order() -> tuple[int, ...]:
    """Return the ranks of latencies in a fixed order that is independent of them."""
    digests = (blake2b(rank.to_bytes(4, "big"), digest_size=8).digest() for rank in range(_MOST_REPLAYED))
    return tuple(rank for _, rank in sorted(zip(digests, range(_MOST_REPLAYED), strict=True)))


def _percentile(longer: _Longer, beyond: float, least: float) -> float:
    """Return the shortest time from `least` on that at most this share exceeds."""
    low, high = least, least
    while longer(high) > beyond:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if longer(middle) > beyond else (low, middle)
    return high
