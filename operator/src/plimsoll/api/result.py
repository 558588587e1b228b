"""`BenchmarkResult`: the numbers of one point. Spec is identity, status is what was measured.

Bytes per second are whole, latencies whole nanoseconds; operations per second, ratios, deviations and intervals are
numbers. Everything here is bounded, so that an object stays far below what the API server stores.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from plimsoll.api.model import Model
from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.numbers import ClientNumbers
from plimsoll.api.provenance import ToolUse
from plimsoll.api.surroundings import ClusterSummary, Osds, Spread


class Statistic(Model):
    """One quantity over the repetitions of a point.

    Attributes:
        trials: number of trials.
        mean: arithmetic mean over the trials.
        standard_deviation: sample standard deviation (n-1); absent for a single trial.
        coefficient_of_variation: standard deviation divided by mean; absent for one trial or a mean of 0.
        low: lower end of the 95 % confidence interval of the mean (Student's t); absent for a single trial.
        high: upper end of it.

    """

    trials: int
    mean: float
    standard_deviation: float | None = None
    coefficient_of_variation: float | None = None
    low: float | None = None
    high: float | None = None


class Latency(Model):
    """A latency distribution, submission to completion.

    Attributes:
        kind: what the tool knows; without `full` there are no percentiles.
        count: number of operations that were timed.
        mean_nanoseconds: exact mean, not derived from the histogram.
        standard_deviation_nanoseconds: exact, n-1.
        percentiles: `"99.9"` -> nanoseconds; absent with fewer than 10 operations beyond it, and beyond 17.05 s,
            where the histogram ends: see the maximum.
        histogram: `plimsoll.measure.histogram.Histogram.encode`.

    """

    kind: LatencyKind
    count: int
    mean_nanoseconds: float | None = None
    standard_deviation_nanoseconds: float | None = None
    min_nanoseconds: int | None = None
    max_nanoseconds: int | None = None
    percentiles: dict[str, int] = Field(default_factory=dict)
    histogram: str | None = None


class Rates(Model):
    """Operations and bytes per second; slow operations have decimals that matter."""

    iops: float
    bytes_per_second: int


class Series(Model):
    """One operation over time, over all clients: the common window in intervals of equal length.

    Attributes:
        interval_seconds: length of each interval, a whole number; the last one may be shorter, or half as long again.
        iops: operations per second in each interval, at most 120 of them.
        bytes_per_second: the same in bytes.

    """

    interval_seconds: int
    iops: tuple[float, ...]
    bytes_per_second: tuple[int, ...]


class Steadiness(Model):
    """SNIA's criterion for one quantity: over five rounds, range <= 20 % and slope excursion <= 10 % of the mean.

    Attributes:
        rounds: its mean in each of five equal rounds of the common window; for a percentile, that of each round.
        range_ratio: (maximum - minimum) / mean.
        slope_ratio: change over the window by the least-squares line, divided by the mean; not negative.

    """

    attained: bool
    rounds: tuple[float, ...]
    range_ratio: float
    slope_ratio: float


class SteadyState(Model):
    """Whether an operation had come to rest. Source: SNIA SSS PTS 2.0.2, applied to the sum of all clients.

    Attributes:
        round_seconds: length of a round; below 10 s nothing is judged and this whole object is absent.
        rate: of operations per second.
        p99: of the 99th percentile of completion latency; absent if the tool keeps no latencies over time, or a round
            has too few operations.

    """

    round_seconds: float
    rate: Steadiness
    p99: Steadiness | None = None


class Stalls(Model):
    """Seconds of the common window without any completed operation.

    Attributes:
        seconds: in which no client completed anything.
        worst_client_seconds: the same for the client that stood still longest.
        worst_client: that client; absent if none stood still.

    """

    seconds: float
    worst_client_seconds: float
    worst_client: int | None = None


class OperationResult(Model):
    """What one operation did during one trial, over all clients.

    Attributes:
        rates: over the common window; the headline.
        whole_run: all I/O divided by the time from the first start to the last end.
        sum_of_rates: each client's own I/O divided by its own runtime, added up: what others print.
        bias: sum_of_rates IOPS divided by headline IOPS, minus 1; absent without I/O in the window.
        series: throughput over time; absent if a client has none.
        steady_state: absent if the window is too short to judge.

    """

    operation: Operation
    ios: int
    bytes: int
    rates: Rates
    whole_run: Rates
    sum_of_rates: Rates
    bias: float | None = None
    latency: Latency
    series: Series | None = None
    steady_state: SteadyState | None = None


class Window(Model):
    """When the clients of a trial were measuring. Times are Unix nanoseconds on the clients' clocks.

    Attributes:
        start_nanoseconds: the last client's start.
        end_nanoseconds: the first client's end; not after start if the clients never ran together.
        last_end_nanoseconds: the last client's end.
        seconds: length of the common window, 0 if there is none.
        whole_seconds: from the first client's start to the last client's end: what `whole_run` is divided by.
        spread_seconds: last start minus first start.
        overlap: common window divided by the mean runtime of the clients, 0 to 1.

    """

    start_nanoseconds: int
    end_nanoseconds: int
    last_end_nanoseconds: int
    seconds: float
    whole_seconds: float
    spread_seconds: float
    overlap: float


class Finding(Model):
    """One check that did not hold.

    Attributes:
        reason: CamelCase, from the closed list of `plimsoll.measure.checking.checks`.
        verdict: what it makes of the trial.
        message: the measured value, the limit, and what to do.

    """

    reason: str
    verdict: Verdict
    message: str
    clients: tuple[int, ...] = ()


class Abort(Model):
    """Why an attempt produced no numbers."""

    reason: AbortReason
    message: str


class HostSummary(Model):
    """What a client's host did during the measured part. Ratios are 0 to 1, rates bytes per second.

    Attributes:
        cpu: processors that the client used, on average; absent if unknown.
        cpu_limit: processors that it may use at most; absent without a limit.
        throttled_seconds: how long its quota stopped it; absent if unknown.
        node_cpu_busy: part of the node's processors that was not idle.
        memory_bytes: used by the client, page cache included; absent if unknown.
        device_busy: part of the time in which the block device had something to do; absent if there is none.
        device_queue: operations that were with the device, on average.

    """

    cpu: float | None = None
    cpu_limit: float | None = None
    throttled_seconds: float | None = None
    node_cpu_busy: float
    memory_bytes: int | None = None
    received_bytes_per_second: int
    sent_bytes_per_second: int
    device_read_bytes_per_second: int | None = None
    device_written_bytes_per_second: int | None = None
    device_busy: float | None = None
    device_queue: float | None = None


class Hosts(Model):
    """What the hosts of all clients did, in the terms of `HostSummary`; absent is what none of them told.

    Attributes:
        clients: whose host could be observed.

    """

    clients: int
    cpu: Spread | None = None
    throttled_seconds: Spread | None = None
    node_cpu_busy: Spread | None = None
    memory_bytes: Spread | None = None
    received_bytes_per_second: Spread | None = None
    sent_bytes_per_second: Spread | None = None
    device_busy: Spread | None = None


class ClientSummary(Model):
    """One client's part of a trial.

    Attributes:
        start_offset_seconds: its start of measuring after the first client's.
        iops: its own operations divided by its own runtime.
        clock_offset_seconds: conductor's clock minus the client's; absent if it could not be measured.
        stall_seconds: seconds of the common window in which it completed nothing; absent without a series.
        host: absent if the host could not be observed.

    """

    client: int
    node: str
    start_offset_seconds: float
    runtime_seconds: float
    iops: float
    clock_offset_seconds: float | None = None
    clock_error_seconds: float | None = None
    stall_seconds: float | None = None
    host: HostSummary | None = None


class Trial(Model):
    """One attempt at one measured repetition of a point.

    Attributes:
        pass_number: which repetition, from 0.
        attempt: from 0; a later one replaces an aborted or invalid one.
        epoch: identity of the conductor process that ran it.
        clients: the clients that took part.
        stalls: absent if a client has no series.
        hosts: of all clients; absent if no host could be observed.
        slowest: the clients with the lowest rates, at most 8.
        osds: absent unless the tool measures OSDs.
        cluster: absent if nobody was to look at one.
        tool: absent if no client answered.

    """

    pass_number: int
    attempt: int
    epoch: str
    clients: ClientNumbers
    outcome: Outcome
    started_at: str
    finished_at: str
    abort: Abort | None = None
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    window: Window | None = None
    stalls: Stalls | None = None
    operations: tuple[OperationResult, ...] = ()
    hosts: Hosts | None = None
    slowest: tuple[ClientSummary, ...] = ()
    osds: Osds | None = None
    cluster: ClusterSummary | None = None
    tool: ToolUse | None = None
    warnings: tuple[str, ...] = ()


class OperationSummary(Model):
    """One operation over the repetitions of a point.

    Attributes:
        latency: all trials' histograms merged, for display; statistics use the trials' own percentiles.
        percentiles: `"99"` -> the percentile of each trial as a statistic over the trials.

    """

    operation: Operation
    iops: Statistic
    bytes_per_second: Statistic
    mean_latency: Statistic | None = None
    percentiles: dict[str, Statistic] = Field(default_factory=dict)
    latency: Latency


class Summary(Model):
    """The point's numbers over the trials that count."""

    trials: int
    operations: tuple[OperationSummary, ...]


class ResultMeta(Model):
    """Metadata of a result object."""

    name: str
    namespace: str
    labels: dict[str, str] = Field(default_factory=dict)


class ResultSpec(Model):
    """What the numbers are of."""

    run: str
    run_uid: str
    point: str
    workload: str
    tool: str
    label: str
    parameters: dict[str, JsonValue]
    clients: int
    runtime_seconds: int
    ramp_seconds: int
    repetitions: int


class Fingerprint(Model):
    """What the numbers are of, in two parts, so that two results know whether they may be compared.

    Attributes:
        identity: what was asked for and of what: results are comparable if this is equal.
        context: everything else that may explain a difference; printed beside a comparison.
        identity_sha256: of `identity` as JSON with sorted keys and no spaces.
        context_sha256: of `context`, likewise.

    """

    identity: dict[str, JsonValue]
    context: dict[str, JsonValue]
    identity_sha256: str
    context_sha256: str


class ResultStatus(Model):
    """What was measured. `final` once every planned trial of the point is recorded."""

    trials: tuple[Trial, ...] = ()
    summary: Summary | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    environment: dict[str, JsonValue] = Field(default_factory=dict)
    fingerprint: Fingerprint | None = None
    final: bool = False


class BenchmarkResult(Model):
    """The result object of one point."""

    api_version: Annotated[Literal["plimsoll.dev/v1alpha1"], Field()] = "plimsoll.dev/v1alpha1"
    kind: Annotated[Literal["BenchmarkResult"], Field()] = "BenchmarkResult"
    metadata: ResultMeta
    spec: ResultSpec
    status: ResultStatus = ResultStatus()
