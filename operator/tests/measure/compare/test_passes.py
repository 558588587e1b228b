"""What the trials of a pass share."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.measure.compare.tests import Series, Trials, change_of, changes_apart, mean_change, mean_over, series_of
from plimsoll.measure.compare.values import Metric
from support.repeated import measured, trial
from support.sweeps import Sweep

finite = st.floats(-10, 10)
sides = st.integers(2, 5).flatmap(
    lambda passes: st.lists(st.lists(finite, min_size=passes, max_size=passes), min_size=1, max_size=5)
)


def series(*values: float) -> Series:
    return dict(enumerate(values))


def trials_of(sweep: Sweep, chance: random.Random) -> list[Trials]:
    return [sample.trials for sample in sweep.samples(chance, {}) if sample.metric is Metric.IOPS]


def test_values_are_logarithms_by_pass() -> None:
    trials = [trial(3, measured(100)), trial(1, measured(10))]
    assert series_of(trials, Operation.READ, Metric.IOPS) == {3: math.log(100), 1: math.log(10)}


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


# A point apart from the others


def test_noise_of_passes_is_subtracted_and_the_change_of_one_point_is_not() -> None:
    """All points vary alike from pass to pass; one of five also loses 1."""
    rhythm = (0.0, 1.0, -1.0, 2.0, -2.0)
    own = ((0.1, -0.1, 0, 0, 0), (0, 0.1, -0.1, 0, 0), (0, 0, 0.1, -0.1, 0), (0, 0, 0, 0.1, -0.1), (-0.1, 0, 0, 0, 0.1))
    points = [
        Trials(
            baseline=series(*(a + b for a, b in zip(rhythm, noise, strict=True))),
            candidate=series(*(0.5 + a + b - (index == 0) for a, b in zip(rhythm, noise, strict=True))),
        )
        for index, noise in enumerate(own)
    ]
    first, second = changes_apart(points)[:2]
    assert change_of(points[0]).estimate == pytest.approx(-0.5)
    assert first.estimate == pytest.approx(-1, abs=0.05)
    assert second.estimate == pytest.approx(0.25, abs=0.05)
    assert first.variance < 0.02 * change_of(points[0]).variance


def test_without_common_noise_nothing_much_is_subtracted() -> None:
    points = trials_of(Sweep(points=50), random.Random(5))  # noqa: S311 - numbers, not secrets
    plain, apart = [change_of(one) for one in points], changes_apart(points)
    assert [one.estimate for one in apart] == pytest.approx([one.estimate for one in plain], abs=0.01)


def test_a_point_alone_is_compared_as_it_is() -> None:
    (point,) = trials_of(Sweep(points=1), random.Random(6))  # noqa: S311 - numbers, not secrets
    assert changes_apart([point]) == [change_of(point)]


def test_trials_without_any_scatter_share_nothing() -> None:
    points = [Trials(baseline=series(1, 1), candidate=series(2, 2))] * 2
    assert [one.estimate for one in changes_apart(points)] == [1, 1]


def test_missing_passes_are_not_in_what_the_others_share() -> None:
    """One side of a point lacks a pass, and one pass has a trial of only one point."""
    points = [
        Trials(baseline=series(1, 2, 3, 5), candidate=series(1, 2, 3)),
        Trials(baseline=series(1, 2, 3), candidate={0: 1.0, 2: 3.0}),
    ]
    found = changes_apart(points)
    assert [one.trials for one in found] == [(4, 3), (3, 2)]
    assert all(math.isfinite(one.estimate) and one.variance >= 0 for one in found)
