"""Intervals of a ratio and of an exponent, from values that scatter in proportion to their size.

All statistics are of logarithms. The interval of a ratio is Welch's, that of an exponent the usual one of a slope by
least squares: slope +- t(0.975, n-2) * s / sqrt(Sxx), with s^2 the sum of squared residuals / (n-2).
"""

import math
from collections.abc import Sequence
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
    (mean, variance), (other, other_variance) = _moments(left), _moments(of)
    parts = ((variance / len(left), len(left) - 1), (other_variance / len(of), len(of) - 1))
    return _interval(mean - other, math.sqrt(parts[0][0] + parts[1][0]), _welch(parts))


def exponent(points: Sequence[tuple[float, float]]) -> Interval:
    """Return the exponent b of y = a * x^b, from positive x and y: at least three points, with two values of x."""
    xs, ys = ([math.log(point[axis]) for point in points] for axis in (0, 1))
    middle, height = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    spread = math.fsum((x - middle) ** 2 for x in xs)
    slope = math.fsum((x - middle) * (y - height) for x, y in zip(xs, ys, strict=True)) / spread
    residuals = math.fsum((y - height - slope * (x - middle)) ** 2 for x, y in zip(xs, ys, strict=True))
    freedom = len(points) - 2
    return _interval(slope, math.sqrt(residuals / freedom / spread), freedom)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance (n-1) of the logarithms."""
    logarithms = [*map(math.log, values)]
    mean = math.fsum(logarithms) / len(logarithms)
    return mean, math.fsum((one - mean) ** 2 for one in logarithms) / (len(logarithms) - 1)


def _welch(parts: Sequence[tuple[float, int]]) -> float:
    """Return the degrees of freedom of Welch and Satterthwaite, from the squared error and freedom of each side."""
    whole = math.fsum(square for square, _ in parts)
    if not whole:
        return sum(freedom for _, freedom in parts)
    return 1 / math.fsum((square / whole) ** 2 / freedom for square, freedom in parts)


def _interval(estimate: float, error: float, freedom: float) -> Interval:
    half = t_quantile(_QUANTILE, freedom) * error if error else 0.0
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half)
