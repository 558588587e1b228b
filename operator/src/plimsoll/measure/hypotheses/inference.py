"""Intervals of a ratio and of an exponent, from values that scatter in proportion to their size.

All statistics are of logarithms. Independent samples have Welch's interval; values in pairs, of the same runs, the
interval of their differences. The exponent is a slope by least squares with an intercept of its own in each block:
slope +- t(0.975, n - blocks - 1) * s / sqrt(Sxx), with s^2 the sum of squared residuals divided by the same number.
What a run multiplies all its values with is noise of neither pairs nor blocks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.statistics import CONFIDENCE, t_quantile

_QUANTILE = (1 + CONFIDENCE) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    estimate: float
    low: float
    high: float


def log_ratio(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the logarithm of the ratio of geometric means. Each side has at least two positive values."""
    (mean, variance), (other, other_variance) = _moments(_logarithms(left)), _moments(_logarithms(of))
    parts = ((variance / len(left), len(left) - 1), (other_variance / len(of), len(of) - 1))
    return _interval(mean - other, math.sqrt(parts[0][0] + parts[1][0]), _welch(parts))


def log_ratio_of_pairs(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the same from pairs: at least two of positive values."""
    pairs = zip(_logarithms(left), _logarithms(of), strict=True)
    mean, variance = _moments([one - other for one, other in pairs])
    return _interval(mean, math.sqrt(variance / len(left)), len(left) - 1)


def exponent(blocks: Sequence[Sequence[tuple[float, float]]]) -> Interval:
    """Return the exponent b of y = a * x^b, with an a for each block, from positive x and y.

    There are at least two points more than blocks, and two values of x in a block.
    """
    points = [point for block in blocks for point in _centred(block)]
    spread = math.fsum(x * x for x, _ in points)
    slope = math.fsum(x * y for x, y in points) / spread
    freedom = len(points) - len(blocks) - 1
    residuals = math.fsum((y - slope * x) ** 2 for x, y in points)
    return _interval(slope, math.sqrt(residuals / freedom / spread), freedom)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(math.fsum(_logarithms(values)) / len(values))


def _centred(block: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the logarithms of x and y, minus their means in the block."""
    logarithms = [(math.log(x), math.log(y)) for x, y in block]
    middle = math.fsum(x for x, _ in logarithms) / len(block)
    height = math.fsum(y for _, y in logarithms) / len(block)
    for x, y in logarithms:
        yield x - middle, y - height


def _logarithms(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance (n-1)."""
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _welch(parts: Sequence[tuple[float, int]]) -> float:
    """Return the degrees of freedom of Welch and Satterthwaite, from the squared error and freedom of each side."""
    whole = math.fsum(square for square, _ in parts)
    if not whole:
        return sum(freedom for _, freedom in parts)
    return 1 / math.fsum((square / whole) ** 2 / freedom for square, freedom in parts)


def _interval(estimate: float, error: float, freedom: float) -> Interval:
    half = t_quantile(_QUANTILE, freedom) * error if error else 0.0
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half)
