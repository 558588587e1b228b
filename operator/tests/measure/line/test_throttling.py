"""The theory that the tests on a throttled device compare with."""

import math
import random
from itertools import pairwise

from support.simulated_storage import SLICE_SECONDS, Throttle, in_flight, poisson

LIMIT = Throttle(permits_per_second=100, depth=64, percent=99, latency=0.05, ramp=0, runtime=2)


def test_permits_of_one_slice_are_kept() -> None:
    """20 permits are there at the start of the second slice, and 10 more in each slice after it."""
    waits = LIMIT.waits([0.1] * 35)
    assert waits[:20] == [0.0] * 20
    assert all(math.isclose(wait, 0.1) for wait in waits[20:30])
    assert all(math.isclose(wait, 0.2) for wait in waits[30:])


def test_operations_leave_in_order_and_never_faster_than_permitted() -> None:
    arrivals = poisson(120, 20, random.Random(1))  # noqa: S311 - numbers, not secrets
    leaving = [arrival + wait for arrival, wait in zip(arrivals, LIMIT.waits(arrivals), strict=True)]
    assert all(first <= second + 1e-9 for first, second in pairwise(leaving))
    slices = [int(time / SLICE_SECONDS + 1e-6) for time in leaving]
    for count in (1, 2, 10):
        busiest = max(sum(end - count <= number < end for number in slices) for end in range(count, 200))
        assert busiest <= (count + 1) * LIMIT.permits, "the permits of these slices, and of the one before"
    assert len(leaving) > 2000


def test_in_flight_counts_those_that_wait() -> None:
    arrivals = [0.1] * 20 + [0.11, 0.12, 0.3]
    assert in_flight(arrivals, LIMIT.waits(arrivals))[-3:] == [1, 2, 1]


def test_half_of_the_trials_hold_at_the_line() -> None:
    line = LIMIT.line(trials=100)
    assert 0.35 < LIMIT.share_met(line, trials=100) < 0.65
    assert LIMIT.share_met(0.7 * line, trials=50) > 0.9
    assert LIMIT.share_met(1.4 * line, trials=50) < 0.1
