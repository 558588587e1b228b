import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.statistics import describe, margin_of_difference, t_quantile, t_two_sided_p_value

# From tables with this many digits; those for 1, 2 and 4 degrees of freedom also have closed forms, tested below.
TABLE = {
    1: 12.706204736174694,
    2: 4.302652729749462,
    3: 3.1824463052837078,
    4: 2.7764451051977934,
    5: 2.5705818356363146,
    9: 2.262157162798205,
    10: 2.228138851986274,
    19: 2.0930240544083087,
    30: 2.0422724563012378,
    100: 1.9839715185235518,
    1000: 1.9623390808264083,
}
values = st.floats(0, 1e12)


@pytest.mark.parametrize(("degrees", "expected"), TABLE.items())
def test_quantiles_equal_the_table(degrees: int, expected: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0.5, 0.9995))
def test_quantiles_equal_their_closed_forms(probability: float) -> None:
    assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-9, abs=1e-9)
    alpha = 4 * probability * (1 - probability)
    two = (2 * probability - 1) * math.sqrt(2 / alpha)
    four = 2 * math.sqrt(max(0.0, math.cos(math.acos(math.sqrt(alpha)) / 3) / math.sqrt(alpha) - 1))
    assert t_quantile(probability, 2) == pytest.approx(two, rel=1e-9, abs=1e-9)
    assert t_quantile(probability, 4) == pytest.approx(four, rel=1e-7, abs=1e-7)


@given(st.floats(0.01, 0.99), st.floats(0.5, 500))
def test_quantile_inverts_the_distribution_and_is_symmetric(probability: float, degrees: float) -> None:
    t = t_quantile(probability, degrees)
    assert t_two_sided_p_value(t, degrees) / 2 == pytest.approx(min(probability, 1 - probability), rel=1e-9)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-t, rel=1e-6, abs=1e-9)


def test_many_degrees_of_freedom_approach_the_normal_distribution() -> None:
    assert t_quantile(0.975, 1e9) == pytest.approx(statistics.NormalDist().inv_cdf(0.975), abs=1e-6)


@pytest.mark.parametrize(("probability", "degrees"), [(0, 1), (1, 1), (0.9, 0), (math.nan, 1), (0.9, -2)])
def test_impossible_quantile_is_refused(probability: float, degrees: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, degrees)


def test_describe_known_values() -> None:
    statistic = describe([2, 4, 4, 4, 5, 5, 7, 9])
    assert (statistic.trials, statistic.mean) == (8, 5)
    assert statistic.standard_deviation == pytest.approx(math.sqrt(32 / 7))
    assert statistic.coefficient_of_variation == pytest.approx(math.sqrt(32 / 7) / 5)
    half = 2.364624251592784 * math.sqrt(32 / 7) / math.sqrt(8)
    assert statistic.low == pytest.approx(5 - half, abs=1e-9)
    assert statistic.high == pytest.approx(5 + half, abs=1e-9)


def test_interval_of_three_trials_is_2_48_deviations_wide() -> None:
    statistic = describe([99, 100, 101])
    assert statistic.high == pytest.approx(100 + 2.4841, abs=1e-3)


def test_one_trial_has_neither_deviation_nor_interval() -> None:
    assert describe([7]).model_dump(exclude_none=True) == {"trials": 1, "mean": 7.0}


def test_equal_trials_have_an_interval_of_no_width() -> None:
    statistic = describe([5, 5, 5])
    assert (statistic.standard_deviation, statistic.low, statistic.high) == (0, 5, 5)


def test_mean_of_zero_has_no_coefficient_of_variation() -> None:
    assert describe([0, 0]).coefficient_of_variation is None


def test_nothing_cannot_be_described() -> None:
    with pytest.raises(ValueError, match="nothing to describe"):
        describe([])


@given(st.lists(values, min_size=2, max_size=20))
def test_describe_agrees_with_the_standard_library(numbers: list[float]) -> None:
    statistic = describe(numbers)
    assert statistic.mean == pytest.approx(statistics.fmean(numbers))
    assert statistic.standard_deviation == pytest.approx(statistics.stdev(numbers), rel=1e-6, abs=1e-3)
    assert statistic.low is not None
    assert statistic.high is not None
    assert statistic.low <= statistic.mean <= statistic.high


def test_margin_of_independent_values_is_that_of_the_pooled_t_test() -> None:
    """Values that alternate have no positive correlation: variances 1.5 and 6 with 4 + 4 values."""
    first, second = [1.0, 3.0, 1.0, 3.0], [10.0, 14.0, 10.0, 14.0]
    pooled = (4 * 1 + 4 * 4) / 6
    expected = t_quantile(0.975, 6) * math.sqrt(pooled * (1 / 4 + 1 / 4))
    assert margin_of_difference(first, second) == pytest.approx(expected)
    assert margin_of_difference(first, second, 0.99) > expected


@pytest.mark.parametrize(("first", "second"), [([], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], []), ([1.0], [2.0])])
def test_margin_of_too_few_values_is_infinite(first: list[float], second: list[float]) -> None:
    assert margin_of_difference(first, second) == math.inf


def test_margin_of_values_without_scatter_is_none() -> None:
    assert margin_of_difference([1.0, 1.0], [5.0]) == 0.0


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.7])
def test_margin_covers_the_difference_of_equal_means_of_values_that_resemble_their_neighbours(memory: float) -> None:
    """Of 1500 differences, 95 % are to be within the margin; independent values would give half the margin at 0.7."""
    chance = random.Random(1995)  # noqa: S311 - numbers, not secrets

    def part(length: int) -> list[float]:
        value, values = chance.gauss(0, 1), list[float]()
        for _ in range(length):
            value = memory * value + math.sqrt(1 - memory**2) * chance.gauss(0, 1)
            values.append(value)
        return values

    pairs = [(part(40), part(30)) for _ in range(1500)]
    covered = sum(
        abs(statistics.fmean(first) - statistics.fmean(second)) <= margin_of_difference(first, second)
        for first, second in pairs
    )
    assert 0.90 <= covered / len(pairs) <= 0.97
