"""How much a quantity changed between two sets of trials, how certain that is, and what follows.

Regression: the estimate is beyond the threshold, and the one-sided p-value, adjusted by Holm's method over everything
that gates, is below 2 %. The test is Welch's, on the logarithms of the trials' values; of several points on their mean
in each pass. It assumes that the passes of a run are independent of each other, and that runs differ by nothing else.
Rounds of a suite have a test of their own (`suite.judging`).
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from plimsoll.api.names import Metric, Operation
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.values import Identity, Pair, RegressionRule, by_identity, check_distinct, worsening
from plimsoll.measure.statistics import CONFIDENCE, half_width, mean_and_variance, t_two_sided_p_value
from plimsoll.measure.summary import MINIMUM_TRIALS, complete, values_of

MINIMUM_RUNS = 2
REGRESSION_LEVEL = 0.02  # probability of any false alarm, one-sided and adjusted; the threshold makes them rarer
ROUND_LEVEL = 0.01  # the same of a round of a suite
_LEVEL = 1 - CONFIDENCE
"""Of three tests: that a change is beyond the threshold (one-sided, adjusted), that it is not (`NoRegression`:
one-sided, not adjusted), and that a metric that does not gate has changed at all (two-sided, not adjusted)."""
RECOMMENDED_TRIALS = 5
MOST_TRIALS = 100  # no more trials than this are recommended: the measurement has to scatter less

Series = Mapping[int, float]  # a point's trials: pass -> logarithm
Group = tuple[str, Operation, Metric]  # workload, operation and metric: what has a mean change


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenVariance:
    """The noise between runs: variance of the logarithms, and the number of runs behind it."""

    variance: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """The change of the mean logarithm of a quantity."""

    estimate: float  # mean of the candidate's logarithms minus the baseline's
    variances: tuple[float, float]  # sample variance (n-1) of the logarithms of baseline and candidate
    trials: tuple[int, int]  # of baseline and candidate
    # Then a side is one run that may be as far from the truth as repeated runs are, whose number limits the degrees of
    # freedom; None if the noise between runs is unknown: it is assumed to be zero.
    between: BetweenVariance | None = None
    freedom: float | None = None  # degrees of freedom of the variances; None for Welch's, from the variances themselves
    may_be_lower: bool = False  # whether the estimate is an upper bound, and the truth may be lower by any amount
    may_be_higher: bool = False  # whether it is a lower bound, and the truth may be higher

    def p_lower(self, truth: float = 0.0) -> float:
        """Return the one-sided probability of an estimate at most this low."""
        return 1.0 if self.may_be_higher else self._tail(truth - self.estimate, self.trials)

    def p_higher(self, truth: float = 0.0) -> float:
        """Return the one-sided probability of an estimate at least this high."""
        return 1.0 if self.may_be_lower else self._tail(self.estimate - truth, self.trials)

    def p_value(self, truth: float = 0.0) -> float:
        """Return the two-sided p-value, below 5 % exactly if `truth` is outside the 95 % confidence interval."""
        return min(1.0, 2 * min(self.p_lower(truth), self.p_higher(truth)))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the confidence interval of the change; an end of it is infinite if only a bound is known."""
        half = half_width(*self._error(self.trials), confidence)
        return (
            -math.inf if self.may_be_lower else self.estimate - half,
            math.inf if self.may_be_higher else self.estimate + half,
        )

    def trials_needed(self, margin: float, level: float) -> int | None:
        """Return how many trials on each side make a distance significant, one-sided; None above `MOST_TRIALS`."""
        numbers = range(RECOMMENDED_TRIALS, MOST_TRIALS + 1)
        index = bisect_left(numbers, True, key=lambda number: self._tail(margin, (number, number)) < level)  # noqa: FBT003
        return numbers[index] if index < len(numbers) else None

    def _tail(self, distance: float, trials: tuple[int, int]) -> float:
        error, degrees = self._error(trials)
        if not error:
            return 0.0 if distance > 0 else 1.0
        half = t_two_sided_p_value(distance / error, degrees) / 2
        return half if distance > 0 else 1 - half

    def _error(self, trials: tuple[int, int]) -> tuple[float, float]:
        """Return the standard error with so many trials, and its freedom (Satterthwaite 1946, Welch 1947)."""
        parts = [(variance / count, count) for variance, count in zip(self.variances, trials, strict=True)]
        whole, degrees = math.fsum(part for part, _ in parts), sum(trials) - 2.0
        if self.freedom is not None:
            degrees = self.freedom * degrees / (sum(self.trials) - 2)
        elif whole:
            degrees = 1 / math.fsum((part / whole) ** 2 / (count - 1) for part, count in parts)
        if self.between is None:
            return math.sqrt(whole), degrees
        return math.sqrt(2 * self.between.variance + whole), min(degrees, self.between.runs - 1)


def log_change(baseline: Iterable[float], candidate: Iterable[float]) -> LogChange:
    """Compare two samples of at least two positive values, each from one run."""
    return change_of([*map(math.log, baseline)], [*map(math.log, candidate)])


def holm(p_values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm (A Simple Sequentially Rejective Multiple Test Procedure, 1979), weighted.

    The probability of any false rejection is at most the level, however the tests depend on each other.
    """
    adjusted = [0.0] * len(p_values)
    left, worst = math.fsum(weights), 0.0
    for index in sorted(range(len(p_values)), key=lambda test: p_values[test] / weights[test]):
        worst = max(worst, min(1.0, left / weights[index] * p_values[index]))
        adjusted[index] = worst
        left -= weights[index]
    return adjusted


def logarithms_of(trials: Sequence[Trial], operation: Operation, metric: Metric) -> Series:
    """Return the logarithms of a metric in trials, at most one per pass; trials without a value are left out."""
    values = zip(trials, values_of(trials, operation, metric), strict=True)
    return {trial.pass_number: math.log(value) for trial, value in values if value is not None}


def change_of(
    baseline: Collection[float], candidate: Collection[float], between: BetweenVariance | None = None
) -> LogChange:
    """Return the change from one set of logarithms to another, at least two each."""
    ours, theirs = mean_and_variance(baseline), mean_and_variance(candidate)
    return LogChange(
        estimate=theirs[0] - ours[0],
        variances=(ours[1], theirs[1]),
        trials=(len(baseline), len(candidate)),
        between=between,
    )


def pass_means(points: Sequence[Series]) -> Series:
    """Return the mean over points of each pass that has all of them: what one point shares with another is in it."""
    common = sorted(set.intersection(*map(set, points)))
    return {number: fmean(series[number] for series in points) for number in common}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of one metric of one operation at one point, at least two on both sides."""

    group: Group  # the mean change that it is a part of
    point: str
    gates: bool
    baseline: Series
    candidate: Series
    between: BetweenVariance | None = None

    @property
    def change(self) -> LogChange:
        return change_of(self.baseline.values(), self.candidate.values(), self.between)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A change that is tested, with its weight in the family."""

    metric: Metric
    change: LogChange
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A change, and whether it is significant."""

    change: LogChange
    p_value: float  # of the hypothesis of no change, two-sided; adjusted for the other tests if the metric gates
    p_worse: float | None = None  # the same, one-sided, for a change for the worse; None if the metric does not gate
    level: float = REGRESSION_LEVEL  # the part of the family's level that this test has if no other one is significant
    worse: bool  # whether it is significantly worse
    better: bool  # whether it is significantly better
    suspicious: bool = False  # whether it is worse at a level of 5 %


def weights(points: int) -> tuple[float, float]:
    """Return the weights of the mean over so many points, and of each of them; a single point is its own mean."""
    return (0.5, 0.5 / points) if points > 1 else (1.0, 1.0)


def point_members(samples: Sequence[Sample]) -> list[Member]:
    """Return what the gating samples test, in their order."""
    points = Counter(sample.group for sample in samples if sample.gates)
    return [
        Member(metric=sample.group[2], change=sample.change, weight=weights(points[sample.group])[1])
        for sample in samples
        if sample.gates
    ]


def assess(tests: Sequence[Member], level: float = REGRESSION_LEVEL) -> list[Assessment]:
    """Assess all changes that a comparison tests, as one family with this one-sided level."""
    of_all = [test.weight for test in tests]
    worse = holm([test.change.p_lower() if test.metric.is_rate else test.change.p_higher() for test in tests], of_all)
    differing = holm([test.change.p_value() for test in tests], of_all)
    return [
        Assessment(
            change=test.change,
            p_value=p_value,
            p_worse=p_worse,
            level=level * test.weight / sum(of_all),
            worse=p_worse < level,
            better=worsening(test.metric, test.change.estimate) < 0 and p_value < 2 * level,
            suspicious=p_worse < _LEVEL,
        )
        for test, p_worse, p_value in zip(tests, worse, differing, strict=True)
    ]


def assess_alone(metric: Metric, change: LogChange) -> Assessment:
    p_value, worse = change.p_value(), worsening(metric, change.estimate) > 0
    noticed = p_value < _LEVEL
    return Assessment(change=change, p_value=p_value, worse=worse and noticed, better=noticed and not worse)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The conclusion from a change."""

    conclusion: Conclusion
    confirmed: bool = False  # the whole confidence interval of a regression is beyond the threshold
    improved: bool = False  # significantly better, and by more than the threshold
    suspected: bool = False  # inconclusive, and prevents `NoRegression` of points whose mean is within the threshold
    trials_needed: int | None = None  # on each side, for an inconclusive change of this size and scatter
    note: str = ""  # the reason for an inconclusive judgement


def conclude(metric: Metric, assessment: Assessment, rule: RegressionRule) -> Judgement:
    """Judge a change; if undecided, say how many trials would find it, or rule out one beyond the threshold."""
    change, threshold = assessment.change, rule.log_threshold(metric)
    worse, at_threshold = worsening(metric, change.estimate), worsening(metric, threshold)
    is_beyond = worse > threshold
    if assessment.worse and is_beyond:
        return Judgement(conclusion=Conclusion.REGRESSION, confirmed=change.p_value(at_threshold) < 1 - CONFIDENCE)
    within = change.p_higher(at_threshold) if metric.is_rate else change.p_lower(at_threshold)
    if within < _LEVEL:
        return Judgement(conclusion=Conclusion.NO_REGRESSION, improved=assessment.better and -worse > threshold)
    level = assessment.level if is_beyond else _LEVEL
    needed, note = change.trials_needed(worse if is_beyond else threshold - worse, level), ""
    if needed is None and change.between is not None:
        note = (
            f"too near the noise between the {change.between.runs} --noise runs, which more trials do not reduce; "
            "pass more --noise runs, or find what differs between them"
        )
    elif needed is None and is_beyond:
        note = "too noisy for any reasonable number of trials; measure for longer, or find the source of the noise"
    elif needed is None:
        note = "too near the threshold for any reasonable number of trials; measure for longer, or change the threshold"
    suspected = assessment.suspicious and is_beyond
    return Judgement(conclusion=Conclusion.INCONCLUSIVE, suspected=suspected, trials_needed=needed, note=note)


def between_variance_of_runs(runs: Iterable[Sequence[float | None]]) -> BetweenVariance | None:
    """Return the noise between runs beyond the scatter of their trials; None if it is unknown."""
    usable = (values for run in runs if (values := complete(run)) and min(values) > 0)
    return between_variance_of_logarithms([*map(math.log, values)] for values in usable)


def between_variance_of_logarithms(runs: Iterable[Collection[float]]) -> BetweenVariance | None:
    """Return the same from logarithms."""
    moments = [(*mean_and_variance(values), len(values)) for values in runs if len(values) >= MINIMUM_TRIALS]
    return between_variance([(mean, scatter / trials) for mean, scatter, trials in moments])


def between_variance(runs: Sequence[tuple[float, float]]) -> BetweenVariance | None:
    """Return the same from each run's mean and its squared error."""
    if len(runs) < MINIMUM_RUNS:
        return None
    _, spread = mean_and_variance([mean for mean, _ in runs])
    return BetweenVariance(variance=max(0.0, spread - fmean(error for _, error in runs)), runs=len(runs))


@dataclass(frozen=True, kw_only=True)
class Floor:
    """Repeated runs without a change, which show the noise between runs; RepeatsError if a run is given twice."""

    runs: Sequence[Sequence[BenchmarkResult]] = ()

    def __post_init__(self) -> None:
        check_distinct(self.runs)

    def runs_of(self, pairs: Sequence[Pair]) -> list[list[BenchmarkResult]]:
        """Return the results of the baseline's points, from each run that has all of them."""
        identities = by_identity(pair.baseline for pair in pairs)
        return [
            [points[identity] for identity in identities]
            for points in self._points_of_runs
            if all(identity in points for identity in identities)
        ]

    @cached_property
    def _points_of_runs(self) -> list[dict[Identity, BenchmarkResult]]:
        return [by_identity(run) for run in self.runs]
