import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.compare.tests import EXACT_UP_TO, falls_into_two, mann_whitney

few = st.lists(st.integers(0, 5), min_size=1, max_size=5)


def by_trying(one: list[int], other: list[int]) -> float:
    """Count every way to deal the values into two hands, by U instead of rank sums."""
    everything = [*one, *other]

    def distance(chosen: tuple[int, ...]) -> float:
        left = [everything[index] for index in chosen]
        right = [everything[index] for index in range(len(everything)) if index not in chosen]
        wins = sum((a > b) + (a == b) / 2 for a in left for b in right)
        return abs(wins - len(left) * len(right) / 2)

    observed = distance(tuple(range(len(one))))
    ways = [distance(chosen) for chosen in combinations(range(len(everything)), len(one))]
    return sum(way >= observed for way in ways) / len(ways)


@given(few, few)
def test_p_value_is_that_of_all_arrangements_also_with_ties(one: list[int], other: list[int]) -> None:
    assert mann_whitney(one, other) == pytest.approx(by_trying(one, other))


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.1), (4, 0.0286), (5, 0.0079), (6, 0.0022), (8, 0.00016)])
def test_smallest_p_values_are_those_of_the_tables(n: int, smallest: float) -> None:
    assert mann_whitney(range(n), range(n, 2 * n)) == pytest.approx(smallest, rel=0.05)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.lists(st.floats(0.1, 10), min_size=1, max_size=8))
def test_only_order_matters_and_the_sides_are_alike(one: list[float], other: list[float]) -> None:
    p = mann_whitney(one, other)
    assert 0 < p <= 1
    assert mann_whitney(other, one) == pytest.approx(p)
    assert mann_whitney([2 * value for value in one], [2 * value for value in other]) == pytest.approx(p)


@pytest.mark.parametrize("size", [0, EXACT_UP_TO + 1])
def test_what_cannot_be_counted_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"each side needs 1 to {EXACT_UP_TO} values"):
        mann_whitney([1.0] * size, [1.0])


def test_largest_sample_is_counted() -> None:
    assert mann_whitney(range(EXACT_UP_TO), range(EXACT_UP_TO, 2 * EXACT_UP_TO)) < 1e-10


def test_two_states_are_seen() -> None:
    assert falls_into_two([100, 101, 99, 100, 150, 151, 149, 150])


@pytest.mark.parametrize(
    "values", [[100, 101, 99, 100, 102, 98, 101, 500], [100] * 8, [1, 2, 3, 4, 5, 6, 7, 8], [], [1, 9]]
)
def test_an_outlier_a_trend_and_equal_values_are_no_two_states(values: list[float]) -> None:
    assert not falls_into_two(values)


def test_one_state_is_seldom_taken_for_two_and_two_for_one() -> None:
    chance = random.Random(3)  # noqa: S311 - numbers, not secrets
    normal = sum(falls_into_two([chance.gauss(0, 1) for _ in range(8)]) for _ in range(2000))
    mixed = sum(falls_into_two([chance.gauss(10 * (index % 2), 1) for index in range(8)]) for _ in range(2000))
    assert normal / 2000 < 0.045
    assert mixed / 2000 > 0.9
