"""Arrivals that never came, because the depth was full when they were due: coordinated omission.

A client whose depth is full submits nothing, and does not catch up afterwards. A storage that freezes for a second is
then seen by as many operations as the depth permits, however many were due in that second: 64 of 10,000 are less than
1 %, and no percentile that matters shows them.

How many are missing is known only at most. While a storage completes nothing, an operation that is in flight during a
whole wait for a place takes at least as long as the wait, and as many are as the depth permits. So the parts of all
waits beyond some time are together at most those of all latencies beyond it, divided by the depth.

A storage that is slow for a while, instead of freezing, makes each wait short, and yet places become free more slowly
than arrivals come: by Little's law, where operations take longer than depth / rate. While the depth is full, a latency
L stands for the share L / depth of the time, in which rate x L / depth operations arrive and one completes. So at most
the sum of rate / depth x (L - depth / rate) is missing, and no more than submissions themselves do not explain.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from plimsoll.api.line import Objective
from plimsoll.api.result import Latency, OperationResult
from plimsoll.measure.checking import checks
from plimsoll.measure.histogram import OPEN_BIN, Histogram, HistogramError, bin_midpoint
from plimsoll.measure.line.load import PartialLoad
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.window import NANOSECONDS

MOST_OMITTED = 0.01
"""From this share of the arrivals on, those that never came matter, whatever share of them may be late."""


def omits_arrivals(offer: Offer, loads: Sequence[OperationResult], whole: PartialLoad, clients: int) -> bool:
    """Whether so many arrivals are missing that an objective says nothing about those that should have come.

    Only to be asked where the depth was full at times. It was for too long if the missing arrivals that would have been
    late, with the operations that were late, are more than the objective permits, or are 1 % of all by themselves. No
    more can be missing than were not achieved.
    """
    completed = whole.operations - _missing(whole)
    for objective in offer.search.objectives:
        omitted = omitted_arrivals(offer, loads, whole, clients, objective)
        if omitted and omitted >= MOST_OMITTED * (completed + omitted):
            return True
        if omitted and any(_breaks(objective, one, omitted * _share(offer, one, loads)) for one in loads):
            return True
    return False


def _breaks(objective: Objective, one: OperationResult, omitted: float) -> bool:
    """Whether those that were late of an operation, and never came, are as many as an objective permits to be late."""
    late = late_operations(one.latency, objective.latency_nanoseconds)
    return late + omitted >= float(1 - Fraction(objective.percentile) / 100) * (one.latency.count + omitted)


def _share(offer: Offer, one: OperationResult, loads: Sequence[OperationResult]) -> float:
    """Return the part of all arrivals that are of an operation, 0 to 1; all of them, if it is unknown."""
    return offer.shares.get(one.operation, 1.0) if len(loads) > 1 else 1.0


def omitted_arrivals(
    offer: Offer, loads: Sequence[OperationResult], whole: PartialLoad, clients: int, objective: Objective
) -> float:
    """Return how many operations that never came at most would have taken longer than an objective permits."""
    if not offer.depth:
        return 0.0
    rate, latencies = offer.load / clients, [one.latency for one in loads]
    kept_up = offer.depth / rate
    in_freezes = rate / offer.depth * seconds_beyond(latencies, objective.latency_nanoseconds)
    while_slow = rate / offer.depth * seconds_beyond(latencies, kept_up * NANOSECONDS)
    explained = whole.achieved / clients * checks.THINKING_SECONDS
    return max(min(_missing(whole), in_freezes), min(_missing(whole, explained), while_slow))


def _missing(whole: PartialLoad, explained: float = 0.0) -> float:
    """Return how many operations were not achieved, without an explained share of all."""
    return max(0.0, 1 - whole.achieved / whole.offered - explained) * whole.operations


def seconds_beyond(latencies: Iterable[Latency], nanoseconds: float) -> float:
    """Return by how many seconds all operations together took longer than this; 0 without a histogram."""
    beyond = (
        count * (_longest(latency, index) - nanoseconds)
        for latency in latencies
        for index, count in _counts(latency)
        if bin_midpoint(index) > nanoseconds
    )
    return math.fsum(beyond) / NANOSECONDS


def _longest(latency: Latency, index: int) -> int:
    """Return what the operations of a bin took, in nanoseconds; at most, where it is open."""
    return max(bin_midpoint(index), latency.max_nanoseconds or 0) if index == OPEN_BIN else bin_midpoint(index)


def late_operations(latency: Latency, nanoseconds: int) -> int:
    """Return how many operations took longer than this; 0 without a histogram."""
    return sum(count for index, count in _counts(latency) if bin_midpoint(index) > nanoseconds)


def _counts(latency: Latency) -> Iterable[tuple[int, int]]:
    try:
        return Histogram.decode(latency.histogram or "").counts.items()
    except HistogramError:
        return ()
