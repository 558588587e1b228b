"""Variances that points lend each other."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.compare.tests import LogChange, digamma, inverse_trigamma, moderate, prior_of, trigamma

EULER = 0.5772156649015329
positive = st.floats(1e-3, 1e4)


def change(*variances: float, trials: tuple[int, int] = (5, 5)) -> LogChange:
    ours, theirs = variances if len(variances) > 1 else (*variances, *variances)
    return LogChange(estimate=0.1, variances=(ours, theirs), trials=trials)


def drawn(chance: random.Random, variance: float, freedom: int) -> float:
    """Return a sample variance with these degrees of freedom."""
    return variance * math.fsum(chance.gauss(0, 1) ** 2 for _ in range(freedom)) / freedom


# Functions


@pytest.mark.parametrize(
    ("x", "di", "tri"),
    [
        (1, -EULER, math.pi**2 / 6),
        (0.5, -EULER - 2 * math.log(2), math.pi**2 / 2),
        (4, 1 + 1 / 2 + 1 / 3 - EULER, math.pi**2 / 6 - 1 - 1 / 4 - 1 / 9),
    ],
)
def test_polygamma_functions_of_which_the_value_is_known(x: float, di: float, tri: float) -> None:
    assert digamma(x) == pytest.approx(di, abs=1e-12)
    assert trigamma(x) == pytest.approx(tri, abs=1e-11)


@given(positive)
def test_they_continue_as_they_must(x: float) -> None:
    assert digamma(x + 1) == pytest.approx(digamma(x) + 1 / x, rel=1e-9, abs=1e-9)
    assert trigamma(x + 1) == pytest.approx(trigamma(x) - 1 / x**2, rel=1e-6, abs=1e-9)


@given(positive)
def test_inverse_trigamma_is_the_inverse(x: float) -> None:
    assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


# Priors


def test_variances_that_differ_no_more_than_by_chance_are_worth_much() -> None:
    """Of 100 points half a standard error is 0.5 x 0.284 x sqrt(2 / 99), and d with trigamma(d / 2) of that is 100."""
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    prior = prior_of([drawn(chance, 0.0009, 8) for _ in range(100)], [8.0] * 100)
    assert prior is not None
    assert prior.variance == pytest.approx(0.0009, rel=0.1)
    assert 25 < prior.freedom < 110
    assert prior.most == 800


def test_few_points_look_alike_by_chance_and_are_worth_less() -> None:
    worth = [found.freedom for found in (prior_of([1.0] * n, [8.0] * n) for n in (2, 4, 20, 100)) if found]
    assert worth == sorted(worth)
    assert worth[0] == pytest.approx(11, abs=1)
    assert worth[-1] == pytest.approx(100, abs=5)


def test_variances_that_have_nothing_in_common_are_worth_nothing() -> None:
    prior = prior_of([10.0**-number for number in range(12)], [8.0] * 12)
    assert prior is not None
    assert prior.freedom < 0.5


def test_a_known_distribution_of_variances_is_found() -> None:
    """Variances d s^2 / chi^2 with d = 10 and s = 0.03, as the prior says."""
    chance = random.Random(2)  # noqa: S311 - numbers, not secrets
    truths = [10 * 0.0009 / math.fsum(chance.gauss(0, 1) ** 2 for _ in range(10)) for _ in range(1000)]
    prior = prior_of([drawn(chance, truth, 8) for truth in truths], [8.0] * 1000)
    assert prior is not None
    assert prior.freedom == pytest.approx(10, rel=0.2)
    assert prior.variance == pytest.approx(0.0009, rel=0.1)


def test_trials_on_a_coarse_scale_do_not_hide_what_the_others_have_in_common() -> None:
    """Some percentiles fall into the same bin of the histogram in all trials."""
    chance = random.Random(3)  # noqa: S311 - numbers, not secrets
    variances = [drawn(chance, 0.0009, 8) for _ in range(20)]
    found, whole = prior_of([0.0, *variances], [8.0] * 21), prior_of(variances, [8.0] * 20)
    assert found is not None
    assert whole is not None
    assert (found.variance, found.freedom) == (whole.variance, whole.freedom)
    assert prior_of([0.0, 0.0, 0.0, 1.0], [8.0] * 4) is None


# Changes


def test_one_point_borrows_nothing() -> None:
    alone = change(0.0009)
    assert moderate([alone]) == [alone]
    assert moderate([]) == []


def test_a_quiet_point_becomes_less_certain_and_a_noisy_one_more() -> None:
    points = [change(0.0009 * factor) for factor in (0.25, 0.8, 1, 1, 1.2, 4)]
    found = moderate(points)
    widths = [high - low for low, high in (one.interval() for one in found)]
    own = [high - low for low, high in (one.interval() for one in points)]
    assert widths == sorted(widths)
    assert widths[-1] < own[-1]
    assert statistics.stdev(widths) < statistics.stdev(own)


def test_the_ratio_of_the_sides_is_that_of_all_points() -> None:
    """A single point's Welch degrees of freedom depend on chance; here the sides scatter alike on the whole."""
    assert [one.own_freedom for one in moderate([change(1, 4), change(4, 1)])] == pytest.approx([8, 8])
    assert [one.own_freedom for one in moderate([change(0, 4), change(0, 4)])] == pytest.approx([4, 4])
    assert change(1, 4).own_freedom == pytest.approx(25 / (17 / 4))


def test_numbers_of_trials_may_differ() -> None:
    first, second = moderate([change(1, trials=(5, 5)), change(1, trials=(3, 5))])
    assert (first.own_freedom, first.variance) == pytest.approx((8, 1))
    assert second.own_freedom < 6
    assert second.variance == pytest.approx(1)


@given(st.lists(st.floats(1e-8, 1), min_size=2, max_size=12), st.floats(0.1, 10))
def test_units_of_variance_do_not_matter(variances: list[float], unit: float) -> None:
    plain, scaled = (prior_of([factor * one for one in variances], [8.0] * len(variances)) for factor in (1.0, unit))
    assert plain is not None
    assert scaled is not None
    assert scaled.freedom == pytest.approx(plain.freedom, rel=1e-5)
    assert scaled.variance == pytest.approx(unit * plain.variance, rel=1e-5)
