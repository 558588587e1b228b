"""How much a quantity changed between two small samples of trials, and how certain that is.

Rates and latencies scatter in proportion to their size, and a change is a ratio, so Welch's test compares their
logarithms. It does not assume equal scatter on both sides, and keeps its error rate from three trials on, where a rank
test cannot reach 5 % at all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.measure.statistics import CONFIDENCE, t_quantile, two_sided_tail

MINIMUM_TRIALS = 3
"""On each side; the deviation of two trials is nearly meaningless."""

RECOMMENDED_TRIALS = 5
MOST_TRIALS = 100
"""No more trials than this are recommended: the measurement has to scatter less."""

_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The noise between runs: variance of the logarithms, and the number of runs behind it."""

    variance: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What the trials of other points show about the variance of a trial's logarithm.

    Attributes:
        variance: the usual one.
        freedom: how many degrees of freedom of a point's own trials it is worth.
        most: degrees of freedom of all points together: no variance can be known better.

    """

    variance: float
    freedom: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """The change of the mean logarithm of a quantity.

    With `between`, a side is one run that may be as far from the truth as repeated runs are, however many trials it
    has. The degrees of freedom are then limited by that part, which is known least precisely.

    Attributes:
        estimate: mean of the candidate's logarithms minus that of the baseline's.
        variances: sample variance (n-1) of the logarithms of baseline and candidate.
        trials: of baseline and candidate.
        between: None if the noise between runs is unknown; it is then assumed to be zero.
        freedom: degrees of freedom of the variances; None for Welch's, from the variances themselves.
        prior: None if nothing is known except the variances.

    """

    estimate: float
    variances: tuple[float, float]
    trials: tuple[int, int]
    between: Between | None = None
    freedom: float | None = None
    prior: Prior | None = None

    @property
    def variance(self) -> float:
        """The variance of a trial that gives the same error if both sides have it."""
        return self._variance(self.trials)

    @property
    def own_freedom(self) -> float:
        """The degrees of freedom of the variances."""
        return self._own_freedom(self.trials)

    def p_value(self, change: float = 0.0) -> float:
        """Return the two-sided probability of an estimate at least this far from `change` if that is the truth.

        It is below 5 % exactly if `change` is outside the 95 % confidence interval.
        """
        return self._tail(self.estimate - change, self.trials)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the confidence interval of the change."""
        error = self._error(self.trials)
        half = t_quantile((1 + confidence) / 2, self._degrees_of_freedom(self.trials)) * error if error else 0.0
        return self.estimate - half, self.estimate + half

    def trials_needed(self, margin: float, significance: float = 1 - CONFIDENCE) -> int | None:
        """Return how many trials on each side make half of the interval narrower than `margin`.

        None if that takes more than `MOST_TRIALS`. This assumes that both sides keep their scatter.
        """
        low, high = RECOMMENDED_TRIALS, MOST_TRIALS
        if self._tail(margin, (high, high)) >= significance:
            return None
        while low < high:
            middle = (low + high) // 2
            if self._tail(margin, (middle, middle)) < significance:
                high = middle
            else:
                low = middle + 1
        return low

    def _tail(self, distance: float, trials: tuple[int, int]) -> float:
        error = self._error(trials)
        if not error:
            return 0.0 if distance else 1.0
        return two_sided_tail(distance / error, self._degrees_of_freedom(trials))

    def _error(self, trials: tuple[int, int]) -> float:
        variance = self._variance(trials)
        if self.prior:
            own, lent = self._own_freedom(self.trials), self.prior.freedom
            variance = (lent * self.prior.variance + own * variance) / (lent + own)
        between = 2 * self.between.variance if self.between else 0.0
        return math.sqrt(between + variance * (1 / trials[0] + 1 / trials[1]))

    def _variance(self, trials: tuple[int, int]) -> float:
        return math.fsum(self._parts(trials)) / (1 / trials[0] + 1 / trials[1])

    def _parts(self, trials: tuple[int, int]) -> list[float]:
        return [variance / count for variance, count in zip(self.variances, trials, strict=True)]

    def _degrees_of_freedom(self, trials: tuple[int, int]) -> float:
        """Return those of the variances and of what others lend, limited by those of the noise between runs."""
        found = self._own_freedom(trials)
        if self.prior:
            found = max(found, min(found + self.prior.freedom, self.prior.most))
        return min(found, self.between.runs - 1) if self.between else found

    def _own_freedom(self, trials: tuple[int, int]) -> float:
        if self.freedom is None:
            return welch_freedom(self._parts(trials), trials)
        return self.freedom * (sum(trials) - 2) / (sum(self.trials) - 2)


def welch_freedom(parts: Sequence[float], trials: Sequence[int]) -> float:
    """Return the degrees of freedom of a sum of squared errors, one from that many trials each.

    Source: Satterthwaite, An Approximate Distribution of Estimates of Variance Components, 1946; Welch 1947.
    """
    whole = math.fsum(parts)
    if not whole:
        return sum(trials) - 2
    return 1 / math.fsum((part / whole) ** 2 / (count - 1) for part, count in zip(parts, trials, strict=True))


def log_change(baseline: Sequence[float], candidate: Sequence[float], between: Between | None = None) -> LogChange:
    """Compare two samples, each from one run.

    Raises:
        ValueError: a side has fewer than two values, or a value is not positive.

    """
    (ours, theirs), trials = map(moments_of_logarithms, (baseline, candidate)), (len(baseline), len(candidate))
    return LogChange(estimate=theirs[0] - ours[0], variances=(ours[1], theirs[1]), trials=trials, between=between)


def log_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation (n-1) of the logarithms; if small, it is the coefficient of variation.

    Raises:
        ValueError: there are fewer than two values, or one is not positive.

    """
    return math.sqrt(moments_of_logarithms(values)[1])


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down method, in the order given.

    Rejecting those below 5 % makes any false rejection in at most 5 % of cases, however the tests depend on each other.
    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
    """
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def detectable_change(
    deviation: float, trials: int, between: Between | None = None, confidence: float = CONFIDENCE
) -> float:
    """Return the change of a logarithm that is found significant in about 80 % of comparisons.

    Both sides have that many trials, with that deviation within a run. This uses the usual approximation, the sum of
    two quantiles of t instead of a non-central t: with three trials the true power is about 70 %, from five on 80 %.
    """
    degrees, apart = 2 * (trials - 1), 0.0
    if between is not None:
        degrees, apart = min(degrees, between.runs - 1), between.variance
    quantiles = t_quantile((1 + confidence) / 2, degrees) + t_quantile(_POWER, degrees)
    return quantiles * math.sqrt(2 * (apart + deviation**2 / trials))


def moments_of_logarithms(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance (n-1) of the logarithms.

    Raises:
        ValueError: there are fewer than two values, or one is not positive.

    """
    return moments([logarithm(value) for value in values])


def moments(sample: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance (n-1).

    Raises:
        ValueError: there are fewer than two values.

    """
    n = len(sample)
    if n < 2:  # noqa: PLR2004 - one value has no deviation
        raise ValueError(f"a deviation needs at least two values, not {n}")
    mean = math.fsum(sample) / n
    return mean, math.fsum((value - mean) ** 2 for value in sample) / (n - 1)


def logarithm(value: float) -> float:
    """Return the natural logarithm.

    Raises:
        ValueError: the value is not positive.

    """
    if value <= 0:
        raise ValueError(f"{value} has no logarithm: only positive quantities have a ratio")
    return math.log(value)
