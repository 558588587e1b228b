"""Intervals of ratios and exponents: known values, and laws that hold for all samples."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.hypotheses.decide import Interval, exponent, log_ratio, log_ratio_of_pairs

T_1, T_2, T_4 = 12.706204736174694, 4.302652729749462, 2.7764451051977934

positive = st.floats(1e-3, 1e12)
samples = st.lists(positive, min_size=3, max_size=10)
units = st.floats(1e-6, 1e6)


def numbers(interval: Interval) -> tuple[float, float, float]:
    return interval.estimate, interval.low, interval.high


def test_a_ratio_of_known_samples() -> None:
    """The logarithms are 4, 5, 6 and 1, 2, 3: variances of 1, so that s^2 = 1/3 + 1/3 with 4 degrees of freedom."""
    found = log_ratio([math.exp(n) for n in (4, 5, 6)], [math.exp(n) for n in (1, 2, 3)])
    half = T_4 * math.sqrt(2 / 3)
    assert numbers(found) == pytest.approx((3, 3 - half, 3 + half))


def test_sides_with_unequal_scatter_have_the_freedom_of_welch() -> None:
    """With one side certain, the other one's two degrees of freedom remain."""
    found = log_ratio([math.exp(n) for n in (4, 5, 6)], [1, 1, 1, 1, 1])
    half = T_2 * math.sqrt(1 / 3)
    assert numbers(found) == pytest.approx((5, 5 - half, 5 + half))


def test_a_ratio_of_known_pairs() -> None:
    found = log_ratio_of_pairs([math.exp(n) for n in (2, 4, 9)], [math.exp(n) for n in (1, 2, 6)])
    half = T_2 * math.sqrt(1 / 3)
    assert numbers(found) == pytest.approx((2, 2 - half, 2 + half))


def test_an_exponent_of_known_points() -> None:
    """Logarithms x = -1, 0, 1 and y = 0, 0, 3: b = 1.5, residuals 0.5, -1, 0.5, and one degree of freedom."""
    found = exponent([[(math.exp(x), math.exp(y)) for x, y in ((-1, 0), (0, 0), (1, 3))]])
    half = T_1 * math.sqrt(1.5 / 2)
    assert numbers(found) == pytest.approx((1.5, 1.5 - half, 1.5 + half))


def test_blocks_have_their_own_level() -> None:
    blocks = [[(x, level * x**0.7) for x in (1, 2, 4)] for level in (1, 10, 1000)]
    assert numbers(exponent(blocks)) == pytest.approx((0.7, 0.7, 0.7), abs=1e-9)
    together = exponent([[point for block in blocks for point in block]])
    assert together.estimate == pytest.approx(0.7)
    assert together.high > 3


def test_equal_values_are_certain() -> None:
    assert numbers(log_ratio([3] * 3, [2] * 5)) == pytest.approx((math.log(1.5),) * 3)
    assert numbers(exponent([[(x, 7.0) for x in (1, 2, 4)]])) == (0, 0, 0)


@given(samples, samples, units)
def test_units_do_not_matter(left: list[float], of: list[float], unit: float) -> None:
    scaled = log_ratio([unit * one for one in left], [unit * one for one in of])
    assert numbers(scaled) == pytest.approx(numbers(log_ratio(left, of)), abs=1e-6)


@given(samples, samples)
def test_swapped_sides_invert_ratio_and_interval(left: list[float], of: list[float]) -> None:
    found, swapped = log_ratio(left, of), log_ratio(of, left)
    assert numbers(found) == pytest.approx((-swapped.estimate, -swapped.high, -swapped.low), abs=1e-6)


@given(st.lists(st.tuples(positive, positive), min_size=3, max_size=10))
def test_swapped_pairs_invert_ratio_and_interval(pairs: list[tuple[float, float]]) -> None:
    left, of = zip(*pairs, strict=True)
    found, swapped = log_ratio_of_pairs(left, of), log_ratio_of_pairs(of, left)
    assert numbers(found) == pytest.approx((-swapped.estimate, -swapped.high, -swapped.low), abs=1e-6)


axes = st.lists(st.integers(1, 2**20), min_size=3, max_size=8, unique=True)


@given(axes, st.floats(-3, 3), st.floats(1e-3, 1e9))
def test_the_exponent_of_a_power_law_is_exact(axis: list[int], power: float, factor: float) -> None:
    found = exponent([[(x, factor * x**power) for x in axis]])
    # A narrow axis such as 2^20 and its neighbours leaves few digits of the exponent.
    precision = 1e-12 / min(1, math.log(max(axis) / min(axis)))
    assert found.estimate == pytest.approx(power, abs=precision)


@given(axes, st.data(), units, units)
def test_units_of_neither_axis_matter(axis: list[int], data: st.DataObject, unit: float, other: float) -> None:
    ys = data.draw(st.lists(st.floats(1, 1e6), min_size=len(axis), max_size=len(axis)))
    found = exponent([[*zip(axis, ys, strict=True)]])
    scaled = exponent([[(unit * x, other * y) for x, y in zip(axis, ys, strict=True)]])
    assert numbers(scaled) == pytest.approx(numbers(found), rel=1e-4, abs=1e-4)


@given(samples, samples, st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter(left: list[float], of: list[float], chance: random.Random) -> None:
    shuffled = [chance.sample(one, len(one)) for one in (left, of)]
    assert log_ratio(*shuffled) == log_ratio(left, of)
    points = [*zip(range(1, 20), left, strict=False)]
    assert numbers(exponent([chance.sample(points, len(points))])) == pytest.approx(numbers(exponent([points])))
