"""How much a quantity changed between two sets of trials, how certain that is, and what follows."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.compare.values import Metric, Pair, RegressionRule, match_points, values_of, worsening
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


_DOUBT = 0.5
"""In standard errors of the variance between logarithms of variances."""

_CHANCES = (-1.15, -0.32, 0.32, 1.15)
"""Normal deviates in the middle of quarters of their distribution."""

_ASYMPTOTIC_FROM = 10.0
_STEPS = 50
_PRECISION = 1e-10


def moderate(changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes of one quantity at several points, each with what the others lend it."""
    if len(changes) < 2:  # noqa: PLR2004 - one point has nothing to borrow
        return [*changes]
    shared = _with_common_freedom(changes)
    prior = prior_of([change.variance for change in shared], [change.own_freedom for change in shared])
    return [replace(change, prior=prior) for change in shared]


def prior_of(variances: Sequence[float], freedoms: Sequence[float]) -> Prior | None:
    """Return what variances with these degrees of freedom have in common; None if fewer than two are above 0.

    A variance of 0 comes from a scale that is too coarse for the scatter, such as the bins of a histogram.
    """
    known = [(variance, freedom) for variance, freedom in zip(variances, freedoms, strict=True) if variance > 0]
    if len(known) < 2:  # noqa: PLR2004 - one has nothing in common
        return None
    logarithms = [math.log(variance) - digamma(freedom / 2) + math.log(freedom / 2) for variance, freedom in known]
    mean, points = math.fsum(logarithms) / len(logarithms), len(logarithms)
    explained = math.fsum(trigamma(freedom / 2) for _, freedom in known) / points
    seen = math.fsum((one - mean) ** 2 for one in logarithms) / (points - 1)
    differing = max(0.0, seen - explained) + _DOUBT * explained * math.sqrt(2 / (points - 1))
    freedom = 2 * inverse_trigamma(differing)
    variance = math.exp(mean + digamma(freedom / 2) - math.log(freedom / 2))
    return Prior(variance=variance, freedom=freedom, most=math.fsum(freedoms))


def usual_worths(points: int, freedom: float) -> tuple[float, ...]:
    """Return degrees of freedom that points lend each other whose variances are the same in truth.

    Such variances differ by chance by more or less than was to be expected; the cases returned are equally likely.
    """
    error = trigamma(freedom / 2) * math.sqrt(2 / (points - 1))
    return tuple(2 * inverse_trigamma((max(0.0, chance) + _DOUBT) * error) for chance in _CHANCES)


def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function, for x > 0 (DLMF 5.11.2 and 5.5.2)."""
    below = 0.0
    while x < _ASYMPTOTIC_FROM:
        below += 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return math.log(x) - 1 / (2 * x) - series - below


def trigamma(x: float) -> float:
    """Return the derivative of `digamma`, for x > 0 (DLMF 5.15.8 and 5.15.5)."""
    below = 0.0
    while x < _ASYMPTOTIC_FROM:
        below += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return (1 + 1 / (2 * x) + series) / x + below


def inverse_trigamma(value: float) -> float:
    """Return the x > 0 with this `trigamma`, for value > 0.

    `trigamma` lies between 1/x and 1/x + 1/x^2, so that x is between 1/value and 1/value + 1.
    """
    low, high = 1 / value, 1 / value + 1
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if trigamma(middle) > value:
            low = middle
        else:
            high = middle
        if high - low < _PRECISION * high:
            break
    return (low + high) / 2


def _with_common_freedom(changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes with degrees of freedom by the ratio of both sides' variances over all points.

    Those of a single point depend on its variances by chance, and look fewer the more these differ.
    """
    ours = math.fsum(change.variances[0] for change in changes)
    theirs = math.fsum(change.variances[1] for change in changes)
    return [
        replace(
            change,
            freedom=welch_freedom((ours / change.trials[0], theirs / change.trials[1]), change.trials),
        )
        for change in changes
    ]


EXACT_UP_TO = 20
"""The largest sample for which every arrangement is counted."""

_CLUSTER = 2
_GAP = 1.5


def mann_whitney(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the exact two-sided p-value of the Mann-Whitney test, by midranks, with the given ties.

    It is the share of all choices of as many ranks as `one` has whose sum is at least as far from its expectation.
    From 6 and 6 values on it can be as small as 0.002; with 3 and 3 it is never below 0.1.

    Raises:
        ValueError: a sample is empty, or has more than `EXACT_UP_TO` values.

    """
    if not (0 < len(one) <= EXACT_UP_TO and 0 < len(other) <= EXACT_UP_TO):
        raise ValueError(f"each side needs 1 to {EXACT_UP_TO} values, not {len(one)} and {len(other)}")
    ranks = _doubled_midranks([*one, *other])
    sums = _sums_of_subsets(ranks, len(one))
    # Ranks and expectation are doubled, so that all numbers are whole.
    centre = len(one) * (len(ranks) + 1)
    distance = abs(sum(ranks[: len(one)]) - centre)
    extreme = sum(count for total, count in sums.items() if abs(total - centre) >= distance)
    return extreme / math.comb(len(ranks), len(one))


def falls_into_two(values: Sequence[float]) -> bool:
    """Whether values look like those of two different states of a system.

    They do if a gap, with at least two values on either side, is more than 1.5 times as wide as either group. Of 8
    normally distributed values 3 % do, of 10 less than 1 %; of two states ten deviations apart 9 in 10 do.
    """
    ordered = sorted(values)
    return any(
        upper[0] - lower[-1] > _GAP * max(lower[-1] - lower[0], upper[-1] - upper[0])
        for lower, upper in ((ordered[:cut], ordered[cut:]) for cut in range(_CLUSTER, len(ordered) - _CLUSTER + 1))
    )


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value; equal values have the mean of their ranks."""
    ordered = sorted(values)
    first = {value: index for index, value in reversed(list(enumerate(ordered)))}
    ties = Counter(ordered)
    return [2 * first[value] + ties[value] + 1 for value in values]


def _sums_of_subsets(numbers: Sequence[int], size: int) -> Counter[int]:
    """Return sum -> number of subsets of that size with this sum."""
    by_size: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for number in numbers:
        for chosen in range(size, 0, -1):
            for total, count in by_size[chosen - 1].items():
                by_size[chosen][total + number] += count
    return by_size[size]


Series = Mapping[int, float]
"""A point's trials: pass -> logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The trials of a point on both sides; both have at least two."""

    baseline: Series
    candidate: Series
    between: Between | None = None

    @property
    def sides(self) -> tuple[Series, Series]:
        """Baseline and candidate."""
        return self.baseline, self.candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class SideMean:
    """The mean over points and passes of one side.

    Attributes:
        values: the mean over points in each pass, as if all points had a trial in it.
        variance: of such a value; the mean's squared error is this divided by their number.

    """

    mean: float
    variance: float
    values: tuple[float, ...]


def series_of(trials: Sequence[Trial], operation: Operation, metric: Metric) -> Series:
    """Return the logarithms of a metric in trials, of which every pass has at most one; without those of no value.

    Raises:
        ValueError: a value is not positive.

    """
    values = zip(trials, values_of(trials, operation, metric), strict=True)
    return {trial.pass_number: logarithm(value) for trial, value in values if value is not None}


def change_of(trials: Trials) -> LogChange:
    """Return the change of one point, from its own trials."""
    (ours, theirs) = (moments([*side.values()]) for side in trials.sides)
    return _change(theirs[0] - ours[0], (ours[1], theirs[1]), trials)


def mean_over(points: Sequence[Series]) -> SideMean:
    """Return the mean over points of one side, all with the same weight.

    Its error is that of a sum over passes, which are independent, whatever trials of one pass have in common. A pass in
    which points are missing contributes the trials that it has.

    Raises:
        ValueError: a point has fewer than two trials.

    """
    if any(len(series) < 2 for series in points):  # noqa: PLR2004 - one trial has no deviation
        raise ValueError("a mean over points needs at least two trials of each")
    mean = math.fsum(_mean(series) for series in points) / len(points)
    passes = sorted({one for series in points for one in series})
    weighted = [_weighted(series, len(passes), len(points)) for series in points]
    parts = [math.fsum(own[one] for own in weighted if one in own) for one in passes]
    _, variance = moments([mean + part for part in parts])
    return SideMean(mean=mean, variance=variance, values=tuple(mean + part for part in parts))


def mean_change(points: Sequence[Trials], between: Between | None = None) -> LogChange:
    """Return the mean change over points; it counts passes, not trials."""
    ours, theirs = (mean_over([point.sides[side] for point in points]) for side in (0, 1))
    return LogChange(
        estimate=theirs.mean - ours.mean,
        variances=(ours.variance, theirs.variance),
        trials=(len(ours.values), len(theirs.values)),
        between=between,
    )


def changes_apart(points: Sequence[Trials]) -> list[LogChange]:
    """Return the change of each point without the part that the trials of a pass share, as far as they do.

    That part is estimated from the deviations of trials from their point's mean. These do not depend on the points'
    changes, so without any change it is as likely to make one look larger as to make it look smaller.
    """
    if len(points) < 2:  # noqa: PLR2004 - one point has no others
        return [change_of(point) for point in points]
    deviations = [[deviations_of(point.sides[side]) for point in points] for side in (0, 1)]
    weight = weight_of_others(shared_correlation(deviations), len(points))
    apart = [_without_others(side, weight) for side in deviations]
    estimates = [_mean(point.candidate) - _mean(point.baseline) for point in points]
    whole = math.fsum(estimates)
    return [
        _change(
            estimate - weight * (whole - estimate) / (len(points) - 1),
            (_mean_square(apart[0][index]), _mean_square(apart[1][index])),
            point,
        )
        for index, (estimate, point) in enumerate(zip(estimates, points, strict=True))
    ]


def _change(estimate: float, variances: tuple[float, float], trials: Trials) -> LogChange:
    return LogChange(
        estimate=estimate,
        variances=variances,
        trials=(len(trials.baseline), len(trials.candidate)),
        between=trials.between,
    )


def shared_correlation(sides: Sequence[Sequence[Series]]) -> float:
    """Return the correlation of trials of one pass, at least 0, from their deviations on both sides."""
    products = squares = 0.0
    pairs = trials = 0
    for points in sides:
        for one in {one for deviations in points for one in deviations}:
            found = [deviations[one] for deviations in points if one in deviations]
            square = math.fsum(value * value for value in found)
            products += math.fsum(found) ** 2 - square
            squares += square
            pairs += len(found) * (len(found) - 1)
            trials += len(found)
    return max(0.0, products / pairs) / (squares / trials) if pairs and squares else 0.0


def weight_of_others(correlation: float, points: int) -> float:
    """Return the weight of the mean of the other points that explains most of a trial's deviation."""
    return correlation * (points - 1) / (1 + correlation * (points - 2))


def _without_others(points: Sequence[Series], weight: float) -> list[Series]:
    """Return the deviations of each point less those of the others in the same pass, with that weight."""
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for deviations in points:
        for one, value in deviations.items():
            sums[one] = sums.get(one, 0.0) + value
            counts[one] = counts.get(one, 0) + 1
    return [
        {one: value - weight * (sums[one] - value) / max(1, counts[one] - 1) for one, value in deviations.items()}
        for deviations in points
    ]


def _weighted(series: Series, passes: int, points: int) -> Series:
    """Return the deviations of a point's trials as parts of the passes' means.

    Those of fewer trials lie nearer to their own mean, as n - 1 to n.
    """
    nearer = (len(series) - 1) / len(series) * passes / (passes - 1)
    factor = passes / len(series) / points / math.sqrt(nearer)
    return {one: factor * value for one, value in deviations_of(series).items()}


def deviations_of(series: Series) -> Series:
    """Return the deviations of a point's trials from their mean."""
    mean = _mean(series)
    return {one: value - mean for one, value in series.items()}


def _mean(series: Series) -> float:
    return math.fsum(series.values()) / len(series)


def _mean_square(deviations: Series) -> float:
    return math.fsum(value * value for value in deviations.values()) / (len(deviations) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The probability of any false alarm of one kind of test, one-sided, for all rates and for all latencies."""

    rate: float
    latency: float

    def of(self, metric: Metric) -> float:
        """Return the level of all tests of the metric's kind."""
        return self.rate if metric.is_rate else self.latency


ALONE = Level(rate=0.02, latency=0.01)
"""Of a comparison of one point."""

MEANS = Level(rate=0.006, latency=0.003)
"""Of the mean changes of workloads with several points."""

POINTS = Level(rate=0.0065, latency=0.001)
"""Of single points among several."""

DOUBT = Level(rate=0.026, latency=0.004)
"""Of single points that prevent `NoRegression`, and without which there is no regression of a point."""

OWN = 0.01
"""Of the test by a point's own trials alone, not adjusted: variances of others may not describe this point."""

_NOTICED = 0.05
"""Of metrics that do not gate, two-sided and not adjusted."""

Group = tuple[str, Operation, Metric]
"""Workload, operation and metric: what has a mean change."""

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of one metric of one operation at one point, on both sides."""

    workload: str
    point: str
    operation: Operation
    metric: Metric
    gates: bool
    trials: Trials

    @property
    def group(self) -> Group:
        """The mean change that it is a part of."""
        return self.workload, self.operation, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A change, and whether it is significant.

    Attributes:
        change: of a point, with a variance to which the other points contributed.
        p_value: of no change, two-sided; adjusted for the other tests if the metric gates.
        p_worse: of no change for the worse, one-sided, adjusted, without noise that points share; None if the metric
            does not gate.
        level: the value that `p_worse` has to be below; None likewise.
        tests: the number of tests that both are adjusted for.
        worse: whether it is significantly worse.
        better: whether it is significantly better.
        doubtful: whether it is worse by the test that prevents `NoRegression`.

    """

    change: LogChange
    p_value: float
    p_worse: float | None = None
    level: float | None = None
    tests: int = 1
    worse: bool
    better: bool
    doubtful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAssessment:
    """The mean change of a workload's points; `values` are the logarithms' means in the passes of both sides."""

    group: Group
    points: int
    values: tuple[Sequence[float], Sequence[float]]
    assessment: Assessment


def grouped(items: Sequence[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Return the items by key, both in the order given."""
    found: dict[_K, list[_T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def assess_means(samples: Sequence[Sample], between: Mapping[Group, Between]) -> list[MeanAssessment]:
    """Assess the mean changes of gating metrics, of workloads that have several points."""
    gating = grouped([sample for sample in samples if sample.gates], lambda sample: sample.group)
    several = {group: [one.trials for one in found] for group, found in gating.items() if len(found) > 1}
    changes = [mean_change(trials, between.get(group)) for group, trials in several.items()]
    metrics = [metric for _, _, metric in several]
    assessed = by_level(metrics, changes, changes, MEANS)
    return [
        MeanAssessment(group=group, points=len(trials), values=_pass_values(trials), assessment=assessment)
        for (group, trials), assessment in zip(several.items(), assessed, strict=True)
    ]


def assess_points(samples: Sequence[Sample], regressed: Collection[Group] = ()) -> list[Assessment]:
    """Assess the changes of single points.

    The noise that a workload's points share is subtracted from them, unless their mean regressed: what they share is
    no noise then.
    """
    own = [change_of(sample.trials) for sample in samples]
    plain = _moderated(samples, own)
    found = [_unadjusted(sample.metric, change) for sample, change in zip(samples, plain, strict=True)]
    gating = [index for index, sample in enumerate(samples) if sample.gates]
    metrics, shown = [samples[index].metric for index in gating], [plain[index] for index in gating]
    if len({samples[index].point for index in gating}) <= 1:
        assessed = by_level(metrics, shown, shown, ALONE)
    else:
        apart = _apart(samples, plain, regressed)
        assessed = [
            confirmed(metric, assessment, doubt, own[index])
            for index, metric, assessment, doubt in zip(
                gating,
                metrics,
                by_level(metrics, shown, [apart[index] for index in gating], POINTS),
                by_level(metrics, shown, shown, DOUBT),
                strict=True,
            )
        ]
    for index, assessment in zip(gating, assessed, strict=True):
        found[index] = assessment
    return found


def by_level(
    metrics: Sequence[Metric], shown: Sequence[LogChange], tested: Sequence[LogChange], level: Level
) -> list[Assessment]:
    """Assess changes by the p-values of those tested in their place, rates and latencies each as one family.

    `shown` are the changes that are reported; a single list for both if a change is tested as it is.
    """
    worse = [_for_the_worse(metric, change) for metric, change in zip(metrics, tested, strict=True)]
    differing = [change.p_value() for change in shown]
    rates = [metric.is_rate for metric in metrics]
    adjusted = zip(_holm_by_kind(rates, worse), _holm_by_kind(rates, differing), strict=True)
    return [
        Assessment(
            change=change,
            p_value=p_value,
            p_worse=p_worse,
            level=level.of(metric),
            tests=rates.count(metric.is_rate),
            worse=p_worse < level.of(metric),
            better=worsening(metric, change.estimate) < 0 and p_value < 2 * level.of(metric),
            doubtful=p_worse < level.of(metric),
        )
        for metric, change, (p_worse, p_value) in zip(metrics, shown, adjusted, strict=True)
    ]


def confirmed(metric: Metric, assessment: Assessment, doubt: Assessment, own: LogChange) -> Assessment:
    """Return an assessment that is worse only if the other tests of the point agree."""
    agree = doubt.worse and _for_the_worse(metric, own) < OWN
    return replace(assessment, worse=assessment.worse and agree, doubtful=doubt.worse)


def _unadjusted(metric: Metric, change: LogChange) -> Assessment:
    p_value, worse = change.p_value(), worsening(metric, change.estimate) > 0
    noticed = p_value < _NOTICED
    return Assessment(change=change, p_value=p_value, worse=worse and noticed, better=noticed and not worse)


def _moderated(samples: Sequence[Sample], changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes with variances shared by all points with the same operation and metric."""
    found = [*changes]
    for indices in grouped(
        range(len(samples)), lambda index: (samples[index].operation, samples[index].metric)
    ).values():
        for index, change in zip(indices, moderate([changes[index] for index in indices]), strict=True):
            found[index] = change
    return found


def _apart(samples: Sequence[Sample], plain: Sequence[LogChange], regressed: Collection[Group]) -> list[LogChange]:
    """Return the moderated changes without shared noise; those of workloads that regressed as they are."""
    found = [*plain]
    for indices in grouped(range(len(samples)), lambda index: samples[index].group).values():
        for index, change in zip(indices, changes_apart([samples[index].trials for index in indices]), strict=True):
            found[index] = change
    moderated = _moderated(samples, found)
    return [
        old if sample.group in regressed else new for sample, old, new in zip(samples, plain, moderated, strict=True)
    ]


def _for_the_worse(metric: Metric, change: LogChange) -> float:
    """Return the one-sided p-value of no change for the worse."""
    half = change.p_value() / 2
    return half if worsening(metric, change.estimate) > 0 else 1 - half


def _holm_by_kind(rates: Sequence[bool], p_values: Sequence[float]) -> list[float]:
    adjusted = {
        kind: iter(holm([p_value for rate, p_value in zip(rates, p_values, strict=True) if rate is kind]))
        for kind in (True, False)
    }
    return [next(adjusted[rate]) for rate in rates]


def _pass_values(points: Sequence[Trials]) -> tuple[Sequence[float], Sequence[float]]:
    return mean_over([one.baseline for one in points]).values, mean_over([one.candidate for one in points]).values


_RANKS_FROM = 6
"""The least values on each side for ranks to contradict Welch's test; with fewer, ranks are too coarse."""

_RANKS_AGREE = 0.05

_ONE_SIDED = 2 * (1 - CONFIDENCE)
"""The two-sided significance of one bound with a confidence of 95 %."""


class Conclusion(StrEnum):
    """The conclusion of a comparison."""

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The conclusion from a change.

    Attributes:
        confirmed: the whole confidence interval of a regression is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        suspected: an inconclusive change that prevents `NoRegression` of points whose mean is within the threshold.
        trials_needed: on each side, for an inconclusive change of this size and scatter.
        note: the reason for an inconclusive judgement.

    """

    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    suspected: bool = False
    trials_needed: int | None = None
    note: str = ""


def conclude(
    metric: Metric, assessment: Assessment, values: tuple[Sequence[float], Sequence[float]], rule: RegressionRule
) -> Judgement:
    """Judge the change between two samples; `values` are the samples, or their logarithms."""
    threshold = rule.log_threshold(metric)
    worse = worsening(metric, assessment.change.estimate)
    # How likely a change by the threshold looks like this one, or like one that is farther away.
    at_threshold = assessment.change.p_value(worsening(metric, threshold))
    if assessment.worse and worse > threshold:
        return _regression(values, confirmed=at_threshold < 1 - CONFIDENCE)
    if worse < threshold and at_threshold < _ONE_SIDED:
        improved = assessment.better and -worse > threshold
        return Judgement(conclusion=Conclusion.NO_REGRESSION, improved=improved)
    return _unclear(assessment, worse, threshold)


def bound_of(metric: Metric, change: LogChange) -> float:
    """Return the logarithm of the ratio than which the change is no worse, with a confidence of 95 %."""
    low, high = change.interval(1 - _ONE_SIDED)
    return low if metric.is_rate else high


def _regression(values: tuple[Sequence[float], Sequence[float]], *, confirmed: bool) -> Judgement:
    """Return a regression, unless ranks, which ignore the size of outliers, contradict it."""
    sizes = [len(side) for side in values]
    if min(sizes) >= _RANKS_FROM and max(sizes) <= EXACT_UP_TO:
        by_ranks = mann_whitney(*values)
        if by_ranks >= _RANKS_AGREE:
            note = f"significant by its t-test, but not by ranks (Mann-Whitney p {by_ranks:.2g}); look for outliers"
            return Judgement(conclusion=Conclusion.INCONCLUSIVE, suspected=True, note=note)
    return Judgement(conclusion=Conclusion.REGRESSION, confirmed=confirmed)


def _unclear(assessment: Assessment, worse: float, threshold: float) -> Judgement:
    """Return how many trials would decide it: to find a change beyond the threshold, or to rule one out."""
    change = assessment.change
    if worse > threshold:
        significance = 1 - CONFIDENCE if assessment.level is None else 2 * assessment.level / assessment.tests
        needed = change.trials_needed(worse, significance)
    else:
        needed = change.trials_needed(threshold - worse, _ONE_SIDED)
    if needed:
        # Several tests have to agree, so that even as many as there are may not have been enough.
        needed = max(needed, min(change.trials) + 1)
    return Judgement(
        conclusion=Conclusion.INCONCLUSIVE,
        suspected=assessment.doubtful and worse > threshold,
        trials_needed=needed,
        note="" if needed else _hopeless(assessment, worse, threshold),
    )


def _hopeless(assessment: Assessment, worse: float, threshold: float) -> str:
    between = assessment.change.between
    if between is not None:
        return (
            f"too near the noise between the {between.runs} --noise runs, which more trials do not reduce; "
            "pass more --noise runs, or find what differs between them"
        )
    if worse > threshold:
        return "too noisy for any reasonable number of trials; measure for longer, or find the source of the noise"
    return "too near the threshold for any reasonable number of trials; measure for longer, or change the threshold"


MINIMUM_RUNS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The noise of a quantity, by source; `within` is the standard deviation of a run's trials."""

    within: float
    between: Between

    @property
    def whole(self) -> float:
        """The standard deviation of trials of different runs."""
        return math.hypot(self.within, math.sqrt(self.between.variance))


def components_of(runs: Sequence[Sequence[float | None]]) -> Components | None:
    """Return the components of the logarithms' variance, from the trials of each run; None if they are unknown.

    The part between runs is the variance of the runs' means, minus what the scatter of their trials explains, and never
    below 0. A run with fewer than `MINIMUM_TRIALS` trials, or without a positive value in one, is excluded.
    """
    known = [[value for value in run if value is not None and value > 0] for run in runs]
    whole = [values for values, run in zip(known, runs, strict=True) if len(values) == len(run) >= MINIMUM_TRIALS]
    if len(whole) < MINIMUM_RUNS:
        return None
    found = [moments_of_logarithms(values) for values in whole]
    freedom = sum(len(run) - 1 for run in whole)
    within = math.fsum(variance * (len(run) - 1) for (_, variance), run in zip(found, whole, strict=True)) / freedom
    between = _between(
        [mean for mean, _ in found], [variance / len(run) for (_, variance), run in zip(found, whole, strict=True)]
    )
    return Components(within=math.sqrt(within), between=between)


def between_means(runs: Sequence[Sequence[Series]]) -> Between | None:
    """Return the noise between runs in the mean over points, from each run's points; None if it is unknown.

    A run in which a point has fewer than `MINIMUM_TRIALS` trials is excluded.
    """
    whole = [points for points in runs if points and all(len(series) >= MINIMUM_TRIALS for series in points)]
    if len(whole) < MINIMUM_RUNS:
        return None
    means = [mean_over(points) for points in whole]
    return _between([one.mean for one in means], [one.variance / len(one.values) for one in means])


def _between(means: Sequence[float], squared_errors: Sequence[float]) -> Between:
    """Return the variance of runs' means beyond their errors."""
    _, spread = moments(means)
    explained = math.fsum(squared_errors) / len(squared_errors)
    return Between(variance=max(0.0, spread - explained), runs=len(means))


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Repeated runs without a change, from which a comparison derives the noise between runs."""

    runs: Sequence[Sequence[BenchmarkResult]] = ()

    def results_of(self, pair: Pair) -> list[BenchmarkResult]:
        """Return the results of the baseline's point, one from each run that has it."""
        found = (match_points([pair.baseline], run).pairs for run in self.runs)
        return [pairs[0].candidate for pairs in found if pairs]

    def runs_of(self, pairs: Sequence[Pair]) -> list[list[BenchmarkResult]]:
        """Return the results of the baseline's points, from each run that has all of them."""
        points = [pair.baseline for pair in pairs]
        found = (match_points(points, run).pairs for run in self.runs)
        return [[pair.candidate for pair in matched] for matched in found if len(matched) == len(points)]
