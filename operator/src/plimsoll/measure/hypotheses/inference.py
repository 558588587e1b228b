"""Intervals of a ratio and of an exponent, from values that scatter in proportion to their size.

All statistics are of logarithms. Independent samples have Welch's interval; values in pairs, of the same runs, the
interval of their differences. The exponent is a slope by least squares with an intercept of its own in each block:
slope +- t(0.975, n - blocks - 1) * s / sqrt(Sxx), with s^2 the sum of squared residuals divided by the same number.
What a run multiplies all its values with is noise of neither pairs nor blocks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.inference import log_change, moments
from plimsoll.measure.compare.lines import LineChange, Position
from plimsoll.measure.statistics import CONFIDENCE, t_quantile

_QUANTILE = (1 + CONFIDENCE) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95 % confidence interval; one end of it is infinite if only the other one is known."""

    estimate: float
    low: float
    high: float

    @property
    def is_open(self) -> bool:
        """Whether an end is unknown, and so is the estimate."""
        return math.isinf(self.low) or math.isinf(self.high)


def log_ratio(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the logarithm of the ratio of geometric means. Each side has at least two positive values."""
    change = log_change(of, left)
    low, high = change.interval()
    return Interval(estimate=change.estimate, low=low, high=high)


def log_ratio_of_pairs(left: Sequence[float], of: Sequence[float]) -> Interval:
    """Return the same from pairs: at least two of positive values."""
    mean, variance = moments([math.log(one) - math.log(other) for one, other in zip(left, of, strict=True)])
    return _interval(mean, math.sqrt(variance / len(left)), len(left) - 1)


def log_ratio_of_lines(left: Sequence[Position], of: Sequence[Position]) -> Interval:
    """Return the same of lines, from their own intervals: at least one on each side."""
    change = LineChange(baseline=_mean_position(of), candidate=_mean_position(left))
    low, high = change.interval()
    return Interval(estimate=change.estimate, low=low, high=high)


def _mean_position(lines: Sequence[Position]) -> Position:
    """Return the mean of several lines with the error that follows from theirs."""
    number = len(lines)
    return Position(
        value=math.fsum(one.value for one in lines) / number,
        down=math.hypot(*(one.down for one in lines)) / number,
        up=math.hypot(*(one.up for one in lines)) / number,
        probes=min(one.probes for one in lines),
        is_estimate=all(one.is_estimate for one in lines),
    )


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
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _centred(block: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the logarithms of x and y, minus their means in the block."""
    logarithms = [(math.log(x), math.log(y)) for x, y in block]
    middle = math.fsum(x for x, _ in logarithms) / len(block)
    height = math.fsum(y for _, y in logarithms) / len(block)
    for x, y in logarithms:
        yield x - middle, y - height


def _interval(estimate: float, error: float, freedom: float) -> Interval:
    half = t_quantile(_QUANTILE, freedom) * error if error else 0.0
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half)
