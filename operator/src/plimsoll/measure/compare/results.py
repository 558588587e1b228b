"""What a comparison found, as it is written."""

import math
from typing import NamedTuple

from pydantic import field_serializer

from plimsoll.api.model import Model
from plimsoll.api.names import Operation
from plimsoll.measure.compare.conclusion import Conclusion, bound_of
from plimsoll.measure.compare.inference import Between, LogChange
from plimsoll.measure.compare.metrics import Metric, operation_text
from plimsoll.measure.compare.sides import Side


class Change(Model):
    """A change of a metric, and the conclusion from it.

    Attributes:
        operation: in documents `all` if the metric is the line, which is one of all operations together.
        ratio: geometric mean of the candidate divided by that of the baseline; absent if they cannot be compared.
        low: lower end of the 95 % confidence interval of the ratio; it is not adjusted for other tests.
        high: upper end of it.
        bound: with a confidence of 95 % the ratio is no worse; `NoRegression` if that is within the threshold.
        between: standard deviation between repeated runs, which widens the interval; absent if unknown.
        p_value: of no change, two-sided; adjusted by Holm for all tests of its kind if the metric gates.
        p_worse: of no change for the worse, one-sided, adjusted, without the noise that points share; absent if the
            metric does not gate.
        level: what `p_worse` of a regression is below; absent likewise.
        confirmed: a regression whose whole interval is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        trials_needed: on each side, to decide an inconclusive comparison by this change alone.

    """

    operation: Operation
    metric: Metric
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    between: float | None = None
    p_value: float | None = None
    p_worse: float | None = None
    level: float | None = None
    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    trials_needed: int | None = None
    notes: tuple[str, ...] = ()

    @field_serializer("operation", when_used="json")
    def _operation_text(self, operation: Operation) -> str:
        return operation_text(operation, self.metric)


class MetricComparison(Change):
    """One metric of one operation at one point.

    Attributes:
        gates: whether it contributes to the conclusion of the whole comparison.
        in_mean: whether a mean change includes it: what this point alone leaves open is then decided by the mean.
        suspected: worse by more than the threshold, not certainly, but too probably for `NoRegression`.

    """

    gates: bool
    baseline: Side
    candidate: Side
    in_mean: bool = False
    suspected: bool = False


class MeanComparison(Change):
    """The mean change of a gating metric over the points of a workload; its trials are passes.

    Attributes:
        points: the number of points with this operation and metric.
        baseline_passes: the number of the baseline's passes.
        candidate_passes: likewise.

    """

    workload: str
    points: int
    baseline_passes: int
    candidate_passes: int


class PointComparison(Model):
    """One point; `notes` are doubts about either result as a whole."""

    baseline: str
    candidate: str
    workload: str
    label: str
    clients: int
    metrics: tuple[MetricComparison, ...]
    notes: tuple[str, ...] = ()


class Comparison(Model):
    """Two runs, compared.

    Attributes:
        reasons: the basis of the conclusion, doubts about the comparison as a whole first.
        means: of workloads with several points that can be compared.
        noise_runs: number of repeated runs behind the noise between runs; without any it is assumed to be zero.

    """

    conclusion: Conclusion
    reasons: tuple[str, ...]
    rate_threshold: float
    latency_threshold: float
    gates: tuple[Metric, ...]
    means: tuple[MeanComparison, ...]
    points: tuple[PointComparison, ...]
    baseline_only: tuple[str, ...]
    candidate_only: tuple[str, ...]
    noise_runs: int


class Ratios(NamedTuple):
    """A change of logarithms as ratios, and its deviation between runs."""

    ratio: float | None
    low: float | None
    high: float | None
    bound: float | None
    between: float | None


def ratios_of(metric: Metric, change: LogChange) -> Ratios:
    """Return what a `Change` says of a change of logarithms."""
    low, high = change.interval()
    bound = bound_of(metric, change)
    ratio, low_ratio, high_ratio, bound_ratio = map(finite_exp, (change.estimate, low, high, bound))
    return Ratios(ratio, low_ratio, high_ratio, bound_ratio, deviation_of(change.between))


def deviation_of(between: Between | None) -> float | None:
    """Return the standard deviation between runs; None if it is unknown."""
    return None if between is None else math.sqrt(between.variance)


def finite_exp(logarithm: float) -> float | None:
    """Return e to that power; None if either is not finite."""
    try:
        return math.exp(logarithm) if math.isfinite(logarithm) else None
    except OverflowError:
        return None
