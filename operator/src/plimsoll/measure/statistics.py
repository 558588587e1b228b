"""Mean, deviation, confidence interval, trend and groups of the trials of a point."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import fmean, linear_regression

from plimsoll.api.operation import Statistic

CONFIDENCE = 0.95

_FRACTION_STEPS = 10_000
_SMALLEST = 1e-300
_PRECISION = 1e-15
_MOST_CORRELATED = 0.99


def mean_and_variance(sample: Collection[float]) -> tuple[float, float]:
    """Return mean and variance (n-1) of at least two values; ten times as fast as `statistics`, for simulations."""
    mean = fmean(sample)
    return mean, math.fsum((value - mean) ** 2 for value in sample) / (len(sample) - 1)


def describe(values: Sequence[float]) -> Statistic:
    """Describe one quantity over the trials of a point, all with the same weight; ValueError without a value."""
    if (n := len(values)) == 1:
        return Statistic(trials=n, mean=fmean(values))
    mean, variance = mean_and_variance(values)
    deviation = math.sqrt(variance)
    half = half_width(deviation / math.sqrt(n), n - 1)
    return Statistic(
        trials=n,
        mean=mean,
        standard_deviation=deviation,
        coefficient_of_variation=deviation / mean if mean else None,
        low=mean - half,
        high=mean + half,
    )


def half_width(error: float, degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return half the width of a Student's t confidence interval, from the standard error; 0 without an error."""
    return t_quantile((1 + confidence) / 2, degrees_of_freedom) * error if error else 0.0


@lru_cache(maxsize=1024)  # the same few for every quantity of every point
def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's distribution for a probability from 0.5 on; ValueError for impossible ones."""
    if not 0.5 <= probability < 1 or degrees_of_freedom <= 0:  # noqa: PLR2004  # the upper half
        raise ValueError(f"no quantile {probability} of t with {degrees_of_freedom} degrees of freedom")
    return _inverse(lambda t: t_two_sided_p_value(t, degrees_of_freedom), 2 * (1 - probability))


def _inverse(p_value: Callable[[float], float], tail: float) -> float:
    """Return the value above 0 at which a p-value, which decreases, has fallen to `tail`, by bisection."""
    low, high = 0.0, 1.0
    while p_value(high) > tail:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if p_value(middle) > tail else (low, middle)
    return high


def t_two_sided_p_value(t: float, degrees_of_freedom: float) -> float:
    """Return the probability that Student's t is farther from 0 than `t`: its square is F with 1 degree of freedom."""
    return f_p_value(t * t, 1, degrees_of_freedom)


def margin_of_difference(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """Return half the width of the confidence interval of the difference of two means of consecutive values.

    Student's t test with a pooled variance and equivalent sample sizes n (1 - r) / (1 + r), where r is the correlation
    of each value with the next one (Zwiers and von Storch, Journal of Climate 8, 1995), without the bias of its
    estimate (Kendall, Biometrika 41, 1954). Infinite with fewer than three values, or if one of the two has none.
    """
    if not first or not second or len(first) + len(second) < 3:  # noqa: PLR2004  # two means use up two
        return math.inf
    residuals = [[value - mean for value in values] for values in (first, second) for mean in [fmean(values)]]
    if not (squares := math.fsum(residual * residual for part in residuals for residual in part)):
        return 0.0
    products = math.fsum(one * following for part in residuals for one, following in pairwise(part))
    length = sum(len(part) ** 2 for part in residuals) / sum(map(len, residuals))
    estimate = (products / squares + 1 / length) / max(0.5, 1 - 4 / length)
    correlation = min(max(0.0, estimate), _MOST_CORRELATED)
    sizes = [max(1.0, len(part) * (1 - correlation) / (1 + correlation)) for part in residuals]
    freedom = len(first) + len(second) - 2
    return half_width(math.sqrt(squares / freedom * sum(1 / size for size in sizes)), freedom, confidence)


def f_p_value(f: float, numerator: float, denominator: float) -> float:
    """Return P(F > f) = I_x(denominator/2, numerator/2) with x = denominator / (denominator + numerator f)."""
    whole = denominator + numerator * f
    return _incomplete_beta(denominator / 2, numerator / 2, denominator / whole, numerator * f / whole)


def binomial_p_value(successes: int, trials: int, probability: float) -> float:
    """Return the probability of no more than so many successes: I_(1-p)(n - k, k + 1), the sum of the first terms."""
    if successes >= trials:
        return 1.0
    return _incomplete_beta(trials - successes, successes + 1, 1 - probability, probability)


def chi_square_p_value(chi_square: float, degrees_of_freedom: int) -> float:
    """Return the probability that chi-square with whole degrees of freedom exceeds a value from 0 on.

    It is a finite sum (Abramowitz and Stegun, 26.4.4 and 26.4.5): with h = chi_square / 2, of h^k exp(-h) / k! over
    k = 0, 1, ... below df/2, or over k = 1/2, 3/2, ... and erfc(sqrt(h)) if df is odd.
    """
    half, odd = chi_square / 2, degrees_of_freedom % 2
    if not half:
        return 1.0
    powers = (odd / 2 + step for step in range(degrees_of_freedom // 2))
    terms = (math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers)
    return math.fsum(terms) + (math.erfc(math.sqrt(half)) if odd else 0.0)


@lru_cache(maxsize=1024)
def chi_square_quantile(probability: float, degrees_of_freedom: int) -> float:
    """Return the quantile of chi-square; ValueError for impossible probabilities or degrees of freedom."""
    if not 0 < probability < 1 or degrees_of_freedom < 1:
        raise ValueError(f"no quantile {probability} of chi-square with {degrees_of_freedom} degrees of freedom")
    return _inverse(lambda value: chi_square_p_value(value, degrees_of_freedom), 1 - probability)


def least_variation(statistic: Statistic, confidence: float) -> float | None:
    """Return the lower confidence limit of the coefficient of variation of independent normal values; None without one.

    McKay's approximation as Vangel modified it ("Confidence intervals for a normal coefficient of variation", The
    American Statistician 50, 1996).
    """
    coefficient, n = statistic.coefficient_of_variation, statistic.trials
    if coefficient is None:
        return None
    quantile = chi_square_quantile(confidence, n - 1)
    return coefficient / math.sqrt(((quantile + 2) / n - 1) * coefficient**2 + quantile / (n - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The straight line of least squares through values in the order of time."""

    first: float  # its value at the first of them
    last: float  # its value at the last of them
    p_value: float  # the probability that values without a trend have one that is as clear

    @property
    def change(self) -> float:
        """The difference of its ends as a part of the values' mean; below 0 if they fall."""
        return 2 * (self.last - self.first) / (self.last + self.first)


def trend_of(values: Sequence[float]) -> Trend:
    """Return the trend of three or more equally spaced values with a mean above 0, with the p-value of Student's t."""
    n = len(values)
    slope, first = linear_regression(range(n), values)
    residuals = math.fsum((value - first - index * slope) ** 2 for index, value in enumerate(values))
    error = math.sqrt(12 * residuals / (n - 2) / (n**3 - n))
    p_value = t_two_sided_p_value(slope / error, n - 2) if error else float(not slope)
    return Trend(first=first, last=first + (n - 1) * slope, p_value=p_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoGroups:
    """Values divided where they divide most clearly: the lowest of them, and the others."""

    lows: int  # number of values in the lower group, at least one and fewer than all
    low: float  # mean of the lower group
    high: float  # mean of the others
    p_value: float  # no more than the probability that normal values of one kind divide as clearly


def two_groups_of(values: Sequence[float]) -> TwoGroups:
    """Return the division of three or more values into two groups that differ most.

    This is the test of Grubbs (Annals of Mathematical Statistics 21, 1950) for one outlier, and of Tietjen and Moore
    (Technometrics 14, 1972) for several. For given members of a group, the square of Student's t between the groups has
    an F distribution with 1 and n - 2 degrees of freedom; n! / (k! (n - k)!) groups of k values, and n / 2 sizes of the
    smaller one, could have differed as much (Bonferroni).
    """
    n, ordered = len(values), sorted(values)
    # The mean of equal values may not equal them, and this scatter of rounding would divide them for certain.
    if math.isclose(ordered[0], ordered[-1], rel_tol=1e-12):
        return TwoGroups(lows=1, low=ordered[0], high=ordered[-1], p_value=1)
    mean = fmean(ordered)
    squares = math.fsum((value - mean) ** 2 for value in ordered)
    divisions = list[TwoGroups]()
    for lows in range(1, n):
        low, high = fmean(ordered[:lows]), fmean(ordered[lows:])
        between = (high - low) ** 2 * lows * (n - lows) / n
        within = max(0.0, squares - between)
        p_value = f_p_value(between * (n - 2) / within, 1, n - 2) if within else float(not between)
        p_value = min(1.0, p_value * math.comb(n, lows) * (n // 2))
        divisions.append(TwoGroups(lows=lows, low=low, high=high, p_value=p_value))
    return min(divisions, key=lambda groups: groups.p_value)


def _incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """Return the regularised I_x(a, b); `complement` is 1 - x, passed separately to keep its precision near 1."""
    if x <= 0 or complement <= 0:
        return 0.0 if x <= 0 else 1.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(complement)
    front = math.exp(logarithm)
    # The fraction converges fast only on this side of the mean; the other side is its mirror image.
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _FRACTION_STEPS):
        m = step // 2
        if step % 2:
            coefficient = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            coefficient = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        # Neither may be zero. Simulations come here millions of times, so this is inline.
        d = 1 + coefficient * d
        d = 1 / (d if abs(d) > _SMALLEST else _SMALLEST)
        c = 1 + coefficient / c
        c = c if abs(c) > _SMALLEST else _SMALLEST
        factor = c * d
        value *= factor
        if abs(factor - 1) < _PRECISION:
            break
    return 1 / value
