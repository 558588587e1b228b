import math
import random
import statistics

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.measure.statistics import (
    binomial_p_value,
    chi_square_p_value,
    chi_square_quantile,
    describe,
    least_variation,
    margin_of_difference,
    t_quantile,
    t_two_sided_p_value,
    trend_of,
    two_groups_of,
)

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


@given(st.floats(0.5, 0.99), st.floats(0.5, 500))
def test_quantile_inverts_the_distribution(probability: float, degrees: float) -> None:
    t = t_quantile(probability, degrees)
    assert t_two_sided_p_value(t, degrees) / 2 == pytest.approx(1 - probability, rel=1e-9)


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
    with pytest.raises(ValueError, match="at least one"):
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


CHI_SQUARE_TABLE = {
    (0.95, 1): 3.841458820694124,
    (0.99, 1): 6.634896601021213,
    (0.99, 2): 9.210340371976182,
    (0.99, 3): 11.344866730144373,
    (0.99, 4): 13.276704135987622,
    (0.99, 5): 15.086272469388991,
    (0.995, 2): 10.596634733096073,
    (0.99, 9): 21.665994333461924,
    (0.99, 10): 23.209251158954356,
    (0.99, 100): 135.80672317102676,
    (0.05, 10): 3.9402991361190605,
}
"""From tables with this many digits."""


@pytest.mark.parametrize(("case", "expected"), CHI_SQUARE_TABLE.items())
def test_quantiles_of_chi_square_equal_the_table(case: tuple[float, int], expected: float) -> None:
    assert chi_square_quantile(*case) == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.001, 0.999))
def test_quantiles_of_chi_square_equal_their_closed_forms(probability: float) -> None:
    normal = statistics.NormalDist().inv_cdf((1 + probability) / 2)
    assert chi_square_quantile(probability, 1) == pytest.approx(normal**2, rel=1e-6, abs=1e-12)
    assert chi_square_quantile(probability, 2) == pytest.approx(-2 * math.log(1 - probability), rel=1e-9)


@given(st.floats(0.01, 0.99), st.integers(1, 300))
def test_quantile_of_chi_square_inverts_the_distribution(probability: float, degrees: int) -> None:
    value = chi_square_quantile(probability, degrees)
    assert chi_square_p_value(value, degrees) == pytest.approx(1 - probability, rel=1e-9)


@given(st.integers(0, 40), st.integers(1, 40), st.floats(0.001, 0.999))
def test_the_binomial_distribution_is_the_sum_of_its_terms(successes: int, trials: int, probability: float) -> None:
    terms = (
        math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
        for k in range(min(successes, trials) + 1)
    )
    assert binomial_p_value(successes, trials, probability) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-15)


@given(st.floats(0.01, 200), st.integers(1, 60))
def test_chi_square_with_two_more_degrees_of_freedom_exceeds_a_value_more_often(value: float, degrees: int) -> None:
    """By the density of the distribution (Abramowitz and Stegun 26.4.8)."""
    half = value / 2
    term = math.exp(degrees / 2 * math.log(half) - half - math.lgamma(degrees / 2 + 1))
    more = chi_square_p_value(value, degrees + 2)
    assert more - chi_square_p_value(value, degrees) == pytest.approx(term, rel=1e-6, abs=1e-12)


def test_chi_square_is_above_0() -> None:
    assert [chi_square_p_value(0, degrees) for degrees in (1, 2, 9)] == [1, 1, 1]


@pytest.mark.parametrize(("probability", "degrees"), [(0, 1), (1, 1), (0.9, 0), (math.nan, 1)])
def test_impossible_quantile_of_chi_square_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        chi_square_quantile(probability, degrees)


def share_beyond(limit: float, variation: float, n: int) -> float:
    """Return how often n normal values have a coefficient of variation above the limit.

    Mean and deviation are independent: the mean is normal, and (n - 1) s^2 / sigma^2 is chi-square.
    """
    means = statistics.NormalDist(1, variation / math.sqrt(n))
    step = means.stdev / 200
    total = 0.0
    for index in range(-2000, 2001):
        mean = 1 + index * step
        tail = chi_square_p_value((n - 1) * (limit * mean / variation) ** 2, n - 1)
        total += means.pdf(mean) * step * (tail if mean > 0 else 1.0)
    return total


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("variation", [0.05, 0.1, 0.2])
def test_least_variation_exceeds_the_true_one_as_often_as_its_confidence_says(n: int, variation: float) -> None:
    low, high = 0.0, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        least = least_variation(describe(with_variation(middle, n)), 0.99)
        assert least is not None
        low, high = (middle, high) if least < variation else (low, middle)
    assert share_beyond(high, variation, n) == pytest.approx(0.01, rel=0.06)


def with_variation(coefficient: float, n: int) -> list[float]:
    """Return n values with this coefficient of variation."""
    deviations = [index - (n - 1) / 2 for index in range(n)]
    usual = statistics.stdev(deviations)
    return [1 + coefficient * deviation / usual for deviation in deviations]


def test_values_that_do_not_vary_have_a_variation_of_nothing_and_one_value_has_none() -> None:
    assert least_variation(describe([5, 5, 5]), 0.99) == 0
    assert least_variation(describe([5]), 0.99) is None
    assert least_variation(describe([0, 0, 0]), 0.99) is None


def test_trend_of_known_values() -> None:
    """The slope is 0.6 with a standard error of 0.2828: t is 2.121 with 3 degrees of freedom."""
    trend = trend_of([2, 4, 5, 4, 5])
    assert (trend.first, trend.last) == pytest.approx((2.8, 5.2))
    assert trend.change == pytest.approx(2.4 / 4)
    assert trend.p_value == pytest.approx(0.1240, abs=1e-4)


@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=20))
def test_trend_agrees_with_the_standard_library(numbers: list[float]) -> None:
    trend, places = trend_of(numbers), range(len(numbers))
    slope, intercept = statistics.linear_regression(places, numbers)
    scale = max(numbers)
    assert trend.first == pytest.approx(intercept, abs=1e-6 * scale)
    assert trend.last == pytest.approx(intercept + slope * places[-1], abs=1e-6 * scale)
    assert 0 <= trend.p_value <= 1
    assert trend_of(numbers[::-1]).p_value == pytest.approx(trend.p_value, rel=1e-3, abs=1e-6)


def test_trend_without_residuals_is_certain_and_of_equal_values_there_is_none() -> None:
    assert trend_of([1, 2, 3, 4]).p_value == 0
    assert (trend_of([7, 7, 7]).p_value, trend_of([7, 7, 7]).change) == (1, 0)


def test_an_outlier_is_tested_as_grubbs_does() -> None:
    """Eight masses of uranium isotopes, with one outlier (NIST/SEMATECH e-Handbook, 1.3.5.17.1): G = 2.4687."""
    masses = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    groups, n = two_groups_of(masses), len(masses)
    g = (max(masses) - statistics.fmean(masses)) / statistics.stdev(masses)
    assert g == pytest.approx(2.4687, abs=1e-4)
    t = math.sqrt(n * (n - 2) * g * g / ((n - 1) ** 2 - n * g * g))
    assert (groups.lows, groups.high) == (7, 245.57)
    assert groups.p_value == pytest.approx(4 * n * t_two_sided_p_value(t, n - 2), rel=1e-9)


def test_two_groups_of_known_values() -> None:
    """Means 2 and 10, squares between 6 * 64 / 4 = 96 and within 4, so that F = 96, and 20 / 2 * 2 * 3 divisions."""
    groups = two_groups_of([3, 9, 2, 10, 1, 11])
    assert (groups.lows, groups.low, groups.high) == (3, 2, 10)
    assert groups.p_value == pytest.approx(20 * 3 * t_two_sided_p_value(math.sqrt(96), 4))


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=20), st.floats(1e-3, 1e3))
@example([69.08898187213197] * 4, 1.25)
def test_neither_order_nor_unit_of_values_matters_to_their_groups(numbers: list[float], unit: float) -> None:
    groups, scaled = two_groups_of(numbers), two_groups_of([unit * number for number in reversed(numbers)])
    assert scaled.p_value == pytest.approx(groups.p_value, rel=1e-3, abs=1e-6)
    assert groups.low <= groups.high or groups.low == pytest.approx(groups.high)


@pytest.mark.parametrize("n", [3, 5, 8, 12])
def test_normal_values_have_two_groups_by_chance_no_more_often_than_the_p_value_says(n: int) -> None:
    chance = random.Random(n)  # noqa: S311 - numbers, not secrets
    clear = sum(two_groups_of([chance.gauss(10, 1) for _ in range(n)]).p_value < 0.01 for _ in range(2000))
    assert clear <= 30


def test_equal_values_have_no_groups() -> None:
    assert two_groups_of([7, 7, 7]).p_value == 1
    assert two_groups_of([7, 7, 8]).p_value == pytest.approx(0, abs=1e-6)
