"""Two groups of trials are two states of a system."""

import random

import pytest

from plimsoll.measure.compare.sides import is_bimodal


def test_two_states_are_seen() -> None:
    assert is_bimodal([100, 101, 99, 100, 150, 151, 149, 150])


@pytest.mark.parametrize(
    "values", [[100, 101, 99, 100, 102, 98, 101, 500], [100] * 8, [1, 2, 3, 4, 5, 6, 7, 8], [], [1, 9]]
)
def test_an_outlier_a_trend_and_equal_values_are_no_two_states(values: list[float]) -> None:
    assert not is_bimodal(values)


def test_one_state_is_seldom_taken_for_two_and_two_for_one() -> None:
    chance = random.Random(3)  # noqa: S311 - numbers, not secrets
    normal = sum(is_bimodal([chance.gauss(0, 1) for _ in range(8)]) for _ in range(2000))
    mixed = sum(is_bimodal([chance.gauss(10 * (index % 2), 1) for index in range(8)]) for _ in range(2000))
    assert normal / 2000 < 0.045
    assert mixed / 2000 > 0.9
