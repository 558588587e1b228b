"""Arrivals that never came, because the depth was full when they were due: coordinated omission.

A client whose depth is full submits nothing, and does not catch up afterwards. A storage that freezes for a second is
then seen by as many operations as the depth permits, however many were due in that second: 64 of 10,000 are less than
1 %, and no percentile that matters shows them.

How long the depth was full is not known, but how long at most. An operation that is in flight during a whole wait takes
at least as long as the wait, and as many are as the depth permits. So the parts of all waits beyond some time are
together at most those of all latencies beyond it, divided by the depth.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from plimsoll.api.line import Objective
from plimsoll.api.result import Latency, OperationResult
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint
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
        late = sum(late_operations(one.latency, objective.latency_nanoseconds) for one in loads)
        permitted = float(1 - Fraction(objective.percentile) / 100)
        due = completed + omitted
        if omitted and (omitted >= MOST_OMITTED * due or late + omitted >= permitted * due):
            return True
    return False


def omitted_arrivals(
    offer: Offer, loads: Sequence[OperationResult], whole: PartialLoad, clients: int, objective: Objective
) -> float:
    """Return how many operations at most were due for longer than an objective permits while the depth was full."""
    if not offer.depth:
        return 0.0
    waited = seconds_beyond((one.latency for one in loads), objective.latency_nanoseconds) / offer.depth
    return min(_missing(whole), offer.load / clients * waited)


def _missing(whole: PartialLoad) -> float:
    return max(0.0, 1 - whole.achieved / whole.offered) * whole.operations


def seconds_beyond(latencies: Iterable[Latency], nanoseconds: int) -> float:
    """Return by how many seconds all operations together took longer than this; 0 without a histogram."""
    beyond = (
        count * (bin_midpoint(index) - nanoseconds)
        for latency in latencies
        for index, count in _counts(latency)
        if bin_midpoint(index) > nanoseconds
    )
    return math.fsum(beyond) / NANOSECONDS


def late_operations(latency: Latency, nanoseconds: int) -> int:
    """Return how many operations took longer than this; 0 without a histogram."""
    return sum(count for index, count in _counts(latency) if bin_midpoint(index) > nanoseconds)


def _counts(latency: Latency) -> Iterable[tuple[int, int]]:
    try:
        return Histogram.decode(latency.histogram or "").counts.items()
    except HistogramError:
        return ()
