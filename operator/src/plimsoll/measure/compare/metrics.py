"""The quantities by which results are compared, and their values in each trial.

Which way is better, and how much worse is too much, is data: everything else treats rates and latencies alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from plimsoll.api.names import Operation
from plimsoll.api.result import OperationResult, Trial


class Metric(StrEnum):
    """A quantity that every trial has one value of: a rate per second, or a latency in nanoseconds."""

    IOPS = "iops"
    BYTES = "bytesPerSecond"
    MEAN = "mean"
    P50 = "p50"
    P99 = "p99"
    P999 = "p99.9"

    @property
    def is_rate(self) -> bool:
        """Whether more of it is better; of latency less is."""
        return self in (Metric.IOPS, Metric.BYTES)

    @property
    def percentile(self) -> str | None:
        """Return the key of `Latency.percentiles`; None for what is no percentile."""
        return self.removeprefix("p") if self in (Metric.P50, Metric.P99, Metric.P999) else None


DEFAULT_GATES = frozenset({Metric.IOPS, Metric.P99})
"""Bytes follow from operations of one size, and the mean latency from their rate and depth (Little's law): as gates
they would only make every test stricter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a change matters.

    Attributes:
        rate: how much lower a rate may be, as a part of the baseline's: 0.05.
        latency: how much higher a latency may be, likewise.
        gates: the metrics that decide; the others are reported.

    """

    rate: float = 0.05
    latency: float = 0.1
    gates: frozenset[Metric] = field(default=DEFAULT_GATES)

    def threshold(self, metric: Metric) -> float:
        """Return the tolerated change for the worse, as a part of the baseline."""
        return self.rate if metric.is_rate else self.latency

    def log_threshold(self, metric: Metric) -> float:
        """Return the same as a distance between logarithms."""
        return -math.log1p(-self.rate) if metric.is_rate else math.log1p(self.latency)


def worsening(metric: Metric, log_change: float) -> float:
    """Return a change of the logarithm as a change for the worse, and the other way round."""
    return -log_change if metric.is_rate else log_change


def values_of(trials: Sequence[Trial], operation: Operation, metric: Metric) -> list[float | None]:
    """Return the value of each trial; None where it is not known."""
    return [
        next((_value(result, metric) for result in trial.operations if result.operation is operation), None)
        for trial in trials
    ]


def _value(result: OperationResult, metric: Metric) -> float | None:
    if metric.percentile:
        return result.latency.percentiles.get(metric.percentile)
    if metric is Metric.MEAN:
        return result.latency.mean_nanoseconds
    return result.rates.iops if metric is Metric.IOPS else result.rates.bytes_per_second
