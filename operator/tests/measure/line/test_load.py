"""Whether a load was achieved, as far as chance explains."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.line.observe import EDGE_SHARE, PartialLoad, mean_in_flight, tolerated_shortfall


@pytest.mark.parametrize(
    ("operations", "achieved", "is_achieved"),
    [
        (60_000, 988, True),  # 1.22 %
        (60_000, 987.5, False),
        (1_000_000, 990, True),  # 0.3 %: 1 % is larger
        (1_000_000, 989.9, False),
        (900, 902.6, True),  # 9.75 %
        (900, 902.4, False),
        (9, 251, True),  # 3 of 9 come by chance, 2 do not
        (9, 249, False),
        (4, 63, True),
        (4, 62, False),
        (2, 0, True),  # nothing can be said of two operations
    ],
)
def test_a_load_is_achieved_up_to_one_percent_or_three_deviations(
    operations: float,
    achieved: float,
    is_achieved: bool,  # noqa: FBT001 - a case
) -> None:
    assert PartialLoad(offered=1000, achieved=achieved, operations=operations).is_achieved() is is_achieved


@given(st.floats(0.1, 1e9), st.integers(1, 1000))
def test_more_operations_tolerate_no_larger_shortfall_and_more_parts_no_smaller_one(
    operations: float, among: int
) -> None:
    tolerated = tolerated_shortfall(operations, among)
    assert 0.01 <= tolerated <= 1
    assert tolerated_shortfall(2 * operations, among) <= tolerated <= tolerated_shortfall(operations, among + 1)
    assert tolerated_shortfall(operations) <= max(0.01, 3 / math.sqrt(operations))


@pytest.mark.parametrize(("expected", "parts"), [(10, 1), (100, 1), (10_000, 1), (20, 100)])
def test_chance_alone_rarely_makes_a_load_fall_short(expected: float, parts: int) -> None:
    """Of 4000 trials 5 are expected to, and the exact distribution of few arrivals may double that."""
    chance, trials, short = random.Random(1), 4000, 0  # noqa: S311 - numbers, not secrets
    for _ in range(trials // parts):
        done = [_arrivals(expected, chance) for _ in range(parts)]
        loads = [PartialLoad(offered=expected, achieved=one, operations=expected) for one in done]
        short += not all(load.is_achieved(among=parts) for load in loads)
    assert short <= max(1, 15 // parts)


def _arrivals(expected: float, chance: random.Random) -> int:
    """Return a Poisson number; above 100 by its normal approximation."""
    if expected > 100:
        return round(chance.gauss(expected, math.sqrt(expected)))
    number, now = 0, chance.expovariate(expected)
    while now < 1:
        number, now = number + 1, now + chance.expovariate(expected)
    return number


def test_what_is_unavoidable_explains_no_more_than_a_quarter_of_a_depth() -> None:
    least = 64 * (1 - EDGE_SHARE)
    for operations in (0, 5, 10**6):
        load = PartialLoad(offered=64, achieved=least, operations=operations, unavoidable=0.9)
        assert load.is_achieved()
        assert not PartialLoad(offered=64, achieved=least - 1, operations=operations, unavoidable=0.9).is_achieved()
    assert not PartialLoad(offered=64, achieved=60, operations=10**6, unavoidable=0.01).is_achieved()


def test_the_operations_in_flight_are_unknown_without_the_latency_of_some() -> None:
    assert mean_in_flight([(1000, 2e6), (500, 4e6), (0, None)]) == 4
    assert mean_in_flight([(1000, 2e6), (500, None)]) is None
