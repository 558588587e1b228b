"""What comparisons compare: metrics, and the points of two runs that match."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from plimsoll.api.names import Operation
from plimsoll.api.operation import OperationResult
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.rates import counts_operations


class Metric(StrEnum):
    """A quantity: a rate per second or a latency in nanoseconds of each trial, or the line of a search."""

    IOPS = "iops"
    BYTES = "bytesPerSecond"
    MEAN = "mean"
    P50 = "p50"
    P99 = "p99"
    P999 = "p99.9"
    LINE = "line"
    """The load at which latency breaks: operations per second, or operations in flight."""

    @property
    def is_rate(self) -> bool:
        """Whether more is better; for latencies less is."""
        return self in (Metric.IOPS, Metric.BYTES, Metric.LINE)

    @property
    def percentile(self) -> str | None:
        """The key in `Latency.percentiles`; None for other metrics."""
        return self.removeprefix("p") if self in (Metric.P50, Metric.P99, Metric.P999) else None


OF_TRIALS = tuple(metric for metric in Metric if metric is not Metric.LINE)
"""The metrics with a value in each trial."""

DEFAULT_GATES = frozenset({Metric.IOPS, Metric.P99})
"""Bytes follow from operations of one size, and the mean latency from their rate and depth (Little's law): as gates
they would only make all tests stricter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionRule:
    """Which changes matter."""

    rate: float = 0.05  # the tolerated decrease of a rate, as a part of the baseline's: 0.05
    latency: float = 0.1  # the tolerated increase of a latency, likewise
    # The metrics that decide; the others are only reported. The line of a search always decides.
    gates: frozenset[Metric] = field(default=DEFAULT_GATES)

    def threshold(self, metric: Metric) -> float:
        """Return the tolerated change for the worse, as a part of the baseline."""
        return self.rate if metric.is_rate else self.latency

    def log_threshold(self, metric: Metric) -> float:
        """Return the tolerated change as a difference of logarithms."""
        return -math.log1p(-self.rate) if metric.is_rate else math.log1p(self.latency)


def worsening(metric: Metric, log_change: float) -> float:
    """Convert a change of the logarithm to a change for the worse, and vice versa."""
    return -log_change if metric.is_rate else log_change


def gates_of(rule: RegressionRule, trials: Sequence[Trial], operation: Operation) -> frozenset[Metric]:
    """Return the metrics that decide: bytes replace operations if the tool does not count these."""
    results = [result for trial in trials for result in trial.operations if result.operation is operation]
    if Metric.IOPS not in rule.gates or not results or any(map(has_operation_rate, results)):
        return rule.gates
    return rule.gates - {Metric.IOPS} | {Metric.BYTES}


def operation_text(operation: Operation, metric: Metric) -> str:
    """Return an operation for a column or a field; the line is one of all operations together."""
    return "all" if metric is Metric.LINE else operation.value


def operations_of(trials: Iterable[Trial]) -> list[Operation]:
    """Return the operations that any trial has, in the order of `Operation`."""
    done = {result.operation for trial in trials for result in trial.operations}
    return [operation for operation in Operation if operation in done]


def values_of(trials: Sequence[Trial], operation: Operation, metric: Metric) -> list[float | None]:
    """Return the value of each trial; None where it is unknown."""
    return [
        next((_value(result, metric) for result in trial.operations if result.operation is operation), None)
        for trial in trials
    ]


def _value(result: OperationResult, metric: Metric) -> float | None:
    if metric.percentile:
        return result.latency.percentiles.get(metric.percentile)
    if metric is Metric.MEAN:
        return result.latency.mean_nanoseconds
    if metric is Metric.BYTES:
        return result.rates.bytes_per_second
    return result.rates.iops if has_operation_rate(result) else None


def has_operation_rate(result: OperationResult) -> bool:
    """Whether the tool counts operations, not only bytes."""
    return counts_operations(result.rates.iops, result.rates.bytes_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two results of the same point."""

    baseline: BenchmarkResult
    candidate: BenchmarkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The points of two runs in the order of the baseline, those matched by name last, and the unmatched ones."""

    pairs: tuple[Pair, ...]
    baseline_only: tuple[BenchmarkResult, ...]
    candidate_only: tuple[BenchmarkResult, ...]


def match_points(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], *, also_by_name: bool = False
) -> Matching:
    """Match points by workload, tool, parameters and number of clients.

    The number in a point's name is its position in the sweep, so with another axis value it means another point. With
    `also_by_name` the remaining points are matched by name all the same, to compare what differs on purpose.
    """
    pairs, ours, theirs = _matched(baseline, candidate, _identity)
    if also_by_name:
        named, ours, theirs = _matched(ours, theirs, lambda result: result.spec.point)
        pairs += named
    return Matching(pairs=tuple(pairs), baseline_only=tuple(ours), candidate_only=tuple(theirs))


def _matched(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], key: Callable[[BenchmarkResult], str]
) -> tuple[list[Pair], list[BenchmarkResult], list[BenchmarkResult]]:
    ours, theirs = ([(key(result), result) for result in results] for results in (baseline, candidate))
    by_key, keys = dict(theirs), {name for name, _ in ours}
    return (
        [Pair(baseline=result, candidate=by_key[name]) for name, result in ours if name in by_key],
        [result for name, result in ours if name not in by_key],
        [result for name, result in theirs if name not in keys],
    )


def _identity(result: BenchmarkResult) -> str:
    spec = result.spec
    # An absent parameter and a null are the same: the API server drops nulls.
    parameters: dict[str, JsonValue] = {key: value for key, value in spec.parameters.items() if value is not None}
    return json.dumps([spec.workload, spec.tool, parameters, spec.clients], sort_keys=True)
