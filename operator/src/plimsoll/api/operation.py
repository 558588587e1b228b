"""The numbers of one operation, in a trial and over the repetitions of a point; parts of a `BenchmarkResult`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Count, Model, ServerOnly
from plimsoll.api.names import LatencyKind, Operation

_MAX_INTERVALS = 120
_MAX_PERCENTILES = 16

Rate = Annotated[float, ServerOnly(minimum=0)]


class Statistic(Model):
    """One quantity over the repetitions of a point."""

    # The standard deviation divides by n-1; the interval is by Student's t.
    trials: Count
    """Number of trials."""
    mean: float
    """Arithmetic mean over the trials."""
    standard_deviation: float | None = None
    """Sample standard deviation; absent for a single trial."""
    coefficient_of_variation: float | None = None
    """Standard deviation divided by the mean; absent for a single trial or a mean of 0."""
    low: float | None = None
    """Lower end of the 95 % confidence interval of the mean; absent for a single trial."""
    high: float | None = None
    """Upper end of the 95 % confidence interval of the mean; absent for a single trial."""

    @property
    def half_width(self) -> float | None:
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


class Latency(Model):
    """Latency from submission to completion."""

    kind: LatencyKind
    """What the tool reports about latency; only full has percentiles."""
    count: Count
    """Number of timed operations."""
    mean_nanoseconds: float | None = None
    """Exact mean, not derived from the histogram."""
    standard_deviation_nanoseconds: float | None = None
    """Exact sample standard deviation; absent if the tool does not report it."""
    min_nanoseconds: Count | None = None
    """Shortest latency."""
    max_nanoseconds: Count | None = None
    """Longest latency; the only number of kind maxOnly."""
    percentiles: Annotated[dict[str, Count], ServerOnly(max_length=_MAX_PERCENTILES)] = Field(default_factory=dict)
    """Percentiles by name, such as "99.9". A percentile is absent with fewer than 10 operations beyond it, and beyond
    17.05 s, where the histogram ends; see the maximum."""
    histogram: Annotated[str, ServerOnly(max_length=65536)] | None = None  # see measure.histogram.Histogram.encode
    """Compressed histogram of all latencies. plimsoll reads it; its format is documented."""


class Rates(Model):
    """Operations and bytes per second."""

    iops: Rate
    """Operations per second."""
    bytes_per_second: Count
    """Bytes per second."""


class Series(Model):
    """Rates in intervals of the time in which all clients were measuring; absent if a client does not record them."""

    interval_seconds: Annotated[int, ServerOnly(minimum=1)]
    """Length of each interval; the last one may be shorter, or up to 50 % longer."""
    iops: Annotated[tuple[Rate, ...], ServerOnly(max_length=_MAX_INTERVALS)]
    """Operations per second in each interval."""
    bytes_per_second: Annotated[tuple[Count, ...], ServerOnly(max_length=_MAX_INTERVALS)]
    """Bytes per second in each interval."""
    p99_nanoseconds: Annotated[tuple[Count, ...], ServerOnly(max_length=_MAX_INTERVALS)] = ()
    """99th percentile of latency in each interval, in nanoseconds, 0 if it is unknown; absent unless the workload has
    disturb, and if the tool does not record latencies over time."""


class SteadinessState(StrEnum):
    """Whether a quantity stayed the same over the window."""

    STEADY = "Steady"
    NOT_STEADY = "NotSteady"
    UNKNOWN = "Unknown"


class Steadiness(Model):
    """How the part of the window that differs most from the rest differs from it."""

    state: SteadinessState
    """NotSteady if the change is above its limit, 0.1 for rates and 0.2 for percentiles of latency, and above six
    standard deviations of chance. A part below a fifth of the window (in its middle a third), and any part
    of a window of fewer than ten intervals, counts only as a burst whose rate is above the rest by more than a fifth of
    the mean, in such a window by more than two fifths. Steady if there are ten intervals or more and the change is
    certainly below twice its limit. Otherwise Unknown: chance is too large for the number of operations and the length
    of the window."""
    start_seconds: float
    """Start of the part, after the start of the window."""
    end_seconds: float
    """End of the part."""
    inside: float
    """Mean of the quantity in the part, per second or in nanoseconds."""
    outside: float
    """Mean of the quantity in the rest of the window."""
    change: float
    """inside minus outside, divided by the mean over the window."""
    deviation: float
    """Standard deviation of what chance alone gives for the change."""


class OperationResult(Model):
    """The numbers of one operation, over all clients."""

    operation: Operation
    """The operation."""
    ios: Count
    """Number of operations."""
    bytes: Count
    """Number of bytes."""
    rates: Rates
    """Rates in the time in which all clients were measuring, or in the time of this operation if the tool does one
    after the other. Quote these numbers."""
    whole_run: Rates
    """All I/O divided by the time from the first start to the last end, of the trial or of this operation."""
    sum_of_rates: Rates
    """Sum of each client's I/O divided by its own runtime, as other tools print it."""
    bias: float | None = None
    """IOPS of sumOfRates divided by IOPS of rates, minus 1; absent without I/O while all clients were measuring."""
    latency: Latency
    processor_percent: Rate | None = None
    """CPU time for this operation on the client with the most, in percent of one CPU; absent if not counted."""
    series: Series | None = None
    p50_steadiness: Steadiness | None = None
    """Whether the median of latency stayed the same over the window; absent unless the workload sets the rate, and if
    the tool does not record latencies over time, or if there are too few operations."""
    p99_steadiness: Steadiness | None = None
    """Whether the 99th percentile of latency stayed the same over the window; absent if the tool does not record
    latencies over time, or if there are too few operations."""


class OperationSummary(Model):
    """One operation over the trials."""

    operation: Operation
    """The operation."""
    iops: Statistic
    """Operations per second."""
    bytes_per_second: Statistic
    """Bytes per second."""
    mean_latency: Statistic | None = None
    """Mean latency of each trial, in nanoseconds."""
    percentiles: Annotated[dict[str, Statistic], ServerOnly(max_length=_MAX_PERCENTILES)] = Field(default_factory=dict)
    """Percentiles of latency of each trial, in nanoseconds, by name, such as "99.9"."""
    latency: Latency
    """Latencies of all trials together, for display; statistics are over the trials."""
