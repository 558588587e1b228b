"""What the trials of a pass share."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Metric, Operation
from plimsoll.measure.compare.significance import Series, change_of, logarithms_of, pass_means
from support.results import measured, trial

finite = st.floats(-10, 10)
sides = st.integers(2, 5).flatmap(
    lambda passes: st.lists(st.lists(finite, min_size=passes, max_size=passes), min_size=1, max_size=5)
)


def series(*values: float) -> Series:
    return dict(enumerate(values))


def test_values_are_logarithms_by_pass() -> None:
    trials = [trial(3, measured(100)), trial(1, measured(10))]
    assert logarithms_of(trials, Operation.READ, Metric.IOPS) == {3: math.log(100), 1: math.log(10)}


# Means


def test_the_mean_over_points_is_one_value_for_each_pass() -> None:
    assert pass_means([series(1, 2, 3), series(3, 6, 3)]) == series(2, 4, 3)


@given(sides)
def test_of_one_point_it_is_the_point_and_the_order_of_points_does_not_matter(points: list[list[float]]) -> None:
    of_points = [series(*values) for values in points]
    assert pass_means(of_points[:1]) == of_points[0]
    assert pass_means(of_points[::-1]) == pytest.approx(pass_means(of_points))


def test_a_pass_that_lacks_a_point_has_no_mean() -> None:
    """Otherwise the fast points would speak for the pass in which a slow one is missing."""
    assert pass_means([series(1, 2, 3), {0: 19.0, 2: 21.0}]) == {0: 10, 2: 12}


def test_the_error_of_a_mean_is_that_of_passes_whatever_their_points_share() -> None:
    """2000 means of 5 points over 5 passes, with a correlation of 0.5; a sixth pass lacks a point."""
    chance = random.Random(4)  # noqa: S311 - numbers, not secrets
    means, squared_errors = [], []
    for _ in range(2000):
        shared = [chance.gauss(0, 1) for _ in range(6)]
        points = [{one: shared[one] + chance.gauss(0, 1) for one in range(6) if one or point} for point in range(5)]
        values = [*pass_means(points).values()]
        means.append(statistics.fmean(values))
        squared_errors.append(statistics.variance(values) / len(values))
    assert statistics.fmean(squared_errors) == pytest.approx(statistics.variance(means), rel=0.12)


def test_a_mean_change_counts_passes_and_not_trials() -> None:
    sides = [pass_means([series(*values)] * 100) for values in ((1, 2, 3), (2, 3, 4))]
    found = change_of(sides[0].values(), sides[1].values())
    assert found.estimate == pytest.approx(1)
    assert found.trials == (3, 3)
    assert found.variances == pytest.approx((1, 1))
