"""What the trials of a pass share."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Metric, Operation
from plimsoll.measure.compare.significance import Series, Trials, logarithms_of, mean_change, mean_over
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


def test_mean_over_points_is_that_of_the_passes_means() -> None:
    found = mean_over([series(1, 2, 3), series(3, 6, 3)])
    assert found.mean == 3
    assert found.values == pytest.approx((2, 4, 3))
    assert found.variance == pytest.approx(1)


@given(sides)
def test_with_all_trials_the_variance_is_that_of_the_passes_means(points: list[list[float]]) -> None:
    found = mean_over([series(*values) for values in points])
    means = [statistics.fmean(values) for values in zip(*points, strict=True)]
    assert found.mean == pytest.approx(statistics.fmean(means), abs=1e-9)
    assert found.variance == pytest.approx(statistics.variance(means), abs=1e-9)
    assert found.values == pytest.approx(means, abs=1e-9)


def test_a_point_that_lacks_a_pass_still_counts_like_the_others() -> None:
    """Its mean is 20 though it lacks a pass, and the others' mean of that pass does not move the whole."""
    found = mean_over([series(1, 2, 3), {0: 19.0, 2: 21.0}])
    assert found.mean == 11
    assert len(found.values) == 3


def test_the_error_of_a_mean_with_missing_trials_is_right() -> None:
    """2000 means of 5 points, of which each lacks one of 5 passes, with a correlation of 0.5."""
    chance = random.Random(4)  # noqa: S311 - numbers, not secrets
    means, squared_errors = [], []
    for _ in range(2000):
        shared = [chance.gauss(0, 1) for _ in range(5)]
        points = [{one: shared[one] + chance.gauss(0, 1) for one in range(5) if one != point} for point in range(5)]
        found = mean_over(points)
        means.append(found.mean)
        squared_errors.append(found.variance / 5)
    assert statistics.fmean(squared_errors) == pytest.approx(statistics.variance(means), rel=0.12)


def test_one_trial_of_a_point_is_not_enough() -> None:
    with pytest.raises(ValueError, match="at least two trials"):
        mean_over([series(1, 2), series(1)])


def test_mean_change_counts_passes_and_not_trials() -> None:
    points = [Trials(baseline=series(1, 2, 3), candidate=series(2, 3, 4)) for _ in range(100)]
    found = mean_change(points)
    assert found.estimate == pytest.approx(1)
    assert found.trials == (3, 3)
    assert found.variances == pytest.approx((1, 1))
