"""The catalogue of all metrics; docs/metrics.md is generated from it.

Metrics use base units and no percentages. `namespace`, `run` and `suite` are those of the BenchmarkRun or
BenchmarkSuite: scrape with `honorLabels`, or Prometheus renames them to `exported_namespace` and so on. Results have no
pod, node or UID as a label.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class MetricType(StrEnum):
    """The Prometheus type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    """Only quantiles, without count and sum: only a summary may have the label `quantile`."""


class Source(StrEnum):
    """The program that exposes a metric, and its subject."""

    RESULTS = "results"
    RUNS = "runs"
    SUITES = "suites"
    OPERATOR = "operator"
    CONDUCTOR = "conductor"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric family.

    Attributes:
        name: with the unit, and `_total` for a counter.
        labels: names of all its labels, in order.
        help: one sentence: the meaning of a value, and when there is none.
        buckets: upper edges of a histogram.

    """

    name: str
    kind: MetricType
    source: Source
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _gauge(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}", MetricType.GAUGE, source, labels, text)


def _quantiles(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    """Return a summary of which only quantiles are exposed."""
    return MetricFamily(f"plimsoll_{name}", MetricType.SUMMARY, source, (*labels, "quantile"), text)


def _counter(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}_total", MetricType.COUNTER, source, labels, text)


def _histogram(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}_seconds", MetricType.HISTOGRAM, source, labels, text, _SECONDS)


_result_gauge = partial(_gauge, Source.RESULTS)
_run_gauge = partial(_gauge, Source.RUNS)
_suite_gauge = partial(_gauge, Source.SUITES)
_operator_gauge = partial(_gauge, Source.OPERATOR)
_live_gauge = partial(_gauge, Source.CONDUCTOR)

QUANTILES = {"50": "0.5", "95": "0.95", "99": "0.99", "99.9": "0.999"}
"""Percentile in a result -> value of the label `quantile`."""

_RUN = ("namespace", "run")
_POINT = (*_RUN, "workload", "point")
_OPERATION = (*_POINT, "operation")
_SUITE = ("namespace", "suite")
_COMPARISON = (*_SUITE, "comparison", "variant")
_HYPOTHESIS = (*_SUITE, "hypothesis", "variant")

# -- results: of every BenchmarkResult with numbers, the newest ones if there are too many

RESULT_INFO = _result_gauge(
    "result_info",
    (*_POINT, "tool", "parameters", "clients"),
    "1 for every result with a verdict; its labels describe the measurement.",
)
RESULT_IOPS = _result_gauge(
    "result_operations_per_second",
    _OPERATION,
    "Rate over the common window of all clients, or over the time of their work without one; mean over the trials that "
    "count.",
)
RESULT_IOPS_BOUND = _result_gauge(
    "result_operations_per_second_bound",
    (*_OPERATION, "bound"),
    "Ends, low and high, of the 95 % confidence interval of that rate; absent with a single trial.",
)
RESULT_BYTES = _result_gauge("result_bytes_per_second", _OPERATION, "The same rate in bytes.")
RESULT_LATENCY = _quantiles(
    Source.RESULTS,
    "result_latency_seconds",
    _OPERATION,
    "Latency, from the merged histograms of all clients and trials; absent if the tool records none.",
)
RESULT_LATENCY_MEAN = _result_gauge(
    "result_latency_mean_seconds",
    _OPERATION,
    "Exact mean latency of all operations; absent if the tool does not time them.",
)
RESULT_VERDICT = _result_gauge(
    "result_verdict",
    (*_POINT, "verdict"),
    "1 for the verdict of the result, 0 for the others. Numbers of an Invalid result are not exposed.",
)
RESULT_TRIALS = _result_gauge("result_trials", _POINT, "Number of trials behind the numbers.")
RESULT_STALL = _result_gauge(
    "result_stall_seconds",
    _POINT,
    "Seconds without any completed operation, in the trial with the most; absent if no trial has a series.",
)
RESULT_OVERLAP = _result_gauge(
    "result_overlap_ratio",
    _POINT,
    "Common window divided by the mean runtime of the clients, in the trial with the least.",
)
RESULT_SPREAD = _result_gauge(
    "result_start_spread_seconds", _POINT, "Last start minus first start of the clients, in the trial with the most."
)
RESULT_LINK_MEDIAN = _result_gauge(
    "result_link_median_bytes_per_second",
    _POINT,
    "Median rate of the pairs of clients; only of tools that measure between clients.",
)
RESULT_LINK_LEAST = _result_gauge(
    "result_link_least_bytes_per_second", _POINT, "Rate of the slowest pair of clients; likewise."
)
RESULT_LINE_INFO = _result_gauge(
    "result_line_info",
    (*_POINT, "ending", "objectives"),
    "1 for every search for the line with numbers; its labels say why it ended, and what had to hold: `p99 <= 5 ms`.",
)
RESULT_LINE_RATE = _result_gauge(
    "result_line_operations_per_second",
    _POINT,
    "The line of a search that varied the rate: the load at which half of the trials meet the objectives. It is an "
    "estimate and not a rate of any trial; absent if it is outside of the loads that may be offered.",
)
RESULT_LINE_RATE_BOUND = _result_gauge(
    "result_line_operations_per_second_bound",
    (*_POINT, "bound"),
    "Ends, low and high, of the 95 % interval of the line; an end outside of the loads that may be offered is absent.",
)
RESULT_LINE_DEPTH = _result_gauge(
    "result_line_operations_in_flight", _POINT, "The line of a search that varied the depth, likewise."
)
RESULT_LINE_DEPTH_BOUND = _result_gauge(
    "result_line_operations_in_flight_bound",
    (*_POINT, "bound"),
    "Ends, low and high, of the 95 % interval of that line, likewise.",
)
RESULT_LINE_PROBES = _result_gauge(
    "result_line_probes",
    _POINT,
    "Number of probes of a search for the line; plimsoll_result_trials is the number of those that count.",
)
RESULT_TIME = _result_gauge(
    "result_completion_timestamp_seconds",
    _POINT,
    "When the last trial that counts ended: the time of the numbers, independent of the scrape.",
)
RESULTS_OMITTED = _result_gauge(
    "results_omitted",
    (),
    "Results that are not exposed because there are too many, or because a newer one has the same labels.",
)
RESULTS_UNREADABLE = _result_gauge(
    "results_unreadable",
    (),
    "Results that this operator cannot read, such as those of a later version; its log has the reason.",
)

# -- runs: of every BenchmarkRun

RUN_INFO = _run_gauge(
    "run_info",
    (*_RUN, "status", "verdict"),
    "1 for every run; its labels have the values that `kubectl get brun` shows.",
)
RUN_CONDITION = _run_gauge(
    "run_condition",
    (*_RUN, "condition", "reason"),
    "A condition of a run: 1 if it is True, 0 if it is False, -1 if it is Unknown.",
)
RUN_POINTS = _run_gauge(
    "run_points", (*_RUN, "state"), "Points of a run: planned, completed, and invalid (a part of the completed ones)."
)
RUN_START = _run_gauge("run_start_timestamp_seconds", _RUN, "When the run was admitted; absent before.")
RUN_COMPLETION = _run_gauge("run_completion_timestamp_seconds", _RUN, "When the run ended; absent before.")
RUN_ESTIMATE = _run_gauge(
    "run_estimated_completion_timestamp_seconds",
    _RUN,
    "Estimated end of the run's last trial; absent before measuring and after the end.",
)
RUNS_OMITTED = _run_gauge(
    "runs_omitted", (), "Runs that are not exposed because there are too many; unfinished and newer runs come first."
)

# -- suites: of every BenchmarkSuite

SUITE_INFO = _suite_gauge(
    "suite_info",
    (*_SUITE, "status", "verdict"),
    "1 for every suite; its labels have the values that `kubectl get bsuite` shows.",
)
SUITE_CONDITION = _suite_gauge(
    "suite_condition",
    (*_SUITE, "condition", "reason"),
    "A condition of a suite, such as Regressed: 1 if it is True, 0 if it is False, -1 if it is Unknown.",
)
SUITE_ROUND_VERDICT = _suite_gauge(
    "suite_round_verdict",
    (*_SUITE, "verdict"),
    "1 for the verdict of the last round, 0 for the others; absent before the end of the first round.",
)
SUITE_ROUND_COMPLETION = _suite_gauge(
    "suite_round_completion_timestamp_seconds",
    _SUITE,
    "When the last round ended that was evaluated, so not Failed or Superseded; absent before.",
)
SUITE_ROUND_START = _suite_gauge(
    "suite_round_start_timestamp_seconds",
    (*_SUITE, "cause"),
    "When the active round started, and why; absent without one.",
)
SUITE_ROUND_RUNS = _suite_gauge(
    "suite_round_runs", (*_SUITE, "state"), "Runs of the active round: planned, and done; absent without one."
)
SUITE_ROUNDS = _suite_gauge("suite_rounds", (*_SUITE, "verdict"), "Former rounds in the status of a suite, by verdict.")
SUITE_ROUNDS_ACCEPTED = _suite_gauge(
    "suite_rounds_accepted",
    _SUITE,
    "Former rounds that the next one is compared with; a verdict other than Inconclusive needs 3.",
)
SUITE_ROUNDS_FAILED = _suite_gauge(
    "suite_rounds_failed", _SUITE, "Failed rounds since the last one that was evaluated."
)
SUITE_NEXT_SCHEDULE = _suite_gauge(
    "suite_next_schedule_timestamp_seconds",
    _SUITE,
    "When the next scheduled round starts; in the past while that round waits; absent without a schedule.",
)
SUITE_LAST_SCHEDULE = _suite_gauge(
    "suite_last_schedule_timestamp_seconds", _SUITE, "Last scheduled time for which a round started; absent before."
)
SUITE_COMPARISON_VERDICT = _suite_gauge(
    "suite_comparison_verdict",
    (*_COMPARISON, "verdict"),
    "1 for the verdict of a comparison in the last round that was evaluated, 0 for the others.",
)
SUITE_COMPARISON_CHANGE = _suite_gauge(
    "suite_comparison_change_ratio",
    _COMPARISON,
    "Mean change that the comparison found, as a part of the baseline; less than 0 is worse. Absent if unknown.",
)
SUITE_COMPARISON_BOUND = _suite_gauge(
    "suite_comparison_change_bound_ratio",
    (*_COMPARISON, "bound"),
    "Ends, low and high, of the 95 % confidence interval of that change.",
)
SUITE_HYPOTHESIS_VERDICT = _suite_gauge(
    "suite_hypothesis_verdict",
    (*_HYPOTHESIS, "verdict"),
    "1 for the verdict of a hypothesis in the last round that was evaluated, 0 for the others. `variant` is empty if "
    "the hypothesis names its variants itself.",
)
SUITE_HYPOTHESIS_ESTIMATE = _suite_gauge(
    "suite_hypothesis_estimate",
    _HYPOTHESIS,
    "The ratio as a part of 1, or the exponent, that the hypothesis is about; absent if unknown.",
)
SUITE_HYPOTHESIS_BOUND = _suite_gauge(
    "suite_hypothesis_estimate_bound",
    (*_HYPOTHESIS, "bound"),
    "Ends, low and high, of the 95 % confidence interval of that estimate.",
)
SUITES_OMITTED = _suite_gauge("suites_omitted", (), "Suites that are not exposed because there are too many.")

# -- the operator

OPERATOR_INFO = _operator_gauge("operator_info", ("version",), "Always 1; the label is the version of this operator.")
OPERATOR_RUNS = _operator_gauge(
    "operator_runs", ("status",), "Number of runs that `kubectl get brun` shows with this status."
)
OPERATOR_SUITES = _operator_gauge(
    "operator_suites", ("status",), "Number of suites that `kubectl get bsuite` shows with this status."
)
OPERATOR_STEP = _histogram(
    Source.OPERATOR,
    "operator_step_duration",
    ("step",),
    "Duration of a step in reconciling a run: observe, decide, say (write the status), act, or remove (a deleted run).",
)
OPERATOR_STEP_ERRORS = _counter(
    Source.OPERATOR,
    "operator_step_errors",
    ("reason",),
    "Failed reconciliations of runs, by reason: the class of the API's answer, or Unexpected.",
)
OPERATOR_REQUESTS = _histogram(
    Source.OPERATOR,
    "operator_api_request_duration",
    ("verb",),
    "Duration of the operator's requests to the API server, without retries and without kopf's own watches.",
)
OPERATOR_REQUEST_ERRORS = _counter(
    Source.OPERATOR,
    "operator_api_request_errors",
    ("verb", "code"),
    "Requests that the API server refused, by HTTP status, or did not answer (code is then empty). 404 and 409 are "
    "normal: the object does not exist yet, or exists already.",
)
OPERATOR_ENDED = _counter(
    Source.OPERATOR,
    "operator_runs_ended",
    ("reason",),
    "Runs that ended while this process ran, by the reason of the condition Succeeded.",
)
OPERATOR_LAG = _histogram(
    Source.OPERATOR, "operator_loop_lag", (), "Delay of the event loop's wake-ups, measured every second."
)

# -- the conductor: the current run

LIVE_PHASE = _live_gauge("live_phase", (*_RUN, "phase"), "1 for the conductor's phase, 0 for the others.")
LIVE_CLIENTS = _live_gauge(
    "live_clients",
    (*_RUN, "state"),
    "Clients by state: planned, registered, missing, armed (for the current trial), and measuring.",
)
LIVE_TRIALS = _live_gauge(
    "live_trials", (*_RUN, "state"), "Trials of the run: planned, and done (without need for a further attempt)."
)
LIVE_ATTEMPTS = _counter(
    Source.CONDUCTOR, "live_attempts", (*_RUN, "outcome", "verdict"), "Attempts at trials that this conductor recorded."
)
LIVE_TRIAL_INFO = _live_gauge("live_trial_info", (*_POINT, "parameters", "pass", "attempt"), "1 for the current trial.")
LIVE_TRIAL_ELAPSED = _live_gauge(
    "live_trial_elapsed_ratio",
    _RUN,
    "Elapsed part of the current trial, ramp included; 0 before it starts; absent between trials.",
)
LIVE_IOPS = _live_gauge(
    "live_operations_per_second",
    _OPERATION,
    "Sum of the rates that the tools of all clients report while they run: to watch, not to quote. Absent between "
    "trials, and while no tool reports rates: only fio and radosBench do, and fio not during the ramp.",
)
LIVE_BYTES = _live_gauge("live_bytes_per_second", _OPERATION, "The same rate in bytes.")
LIVE_REPORTING = _live_gauge(
    "live_clients_reporting",
    _RUN,
    "Clients whose rates are in that sum, 0 before the first report; absent between trials.",
)
LIVE_LATENCY = _quantiles(
    Source.CONDUCTOR,
    "live_latency_seconds",
    _OPERATION,
    "Latency of this conductor's last trial that is not Invalid, merged over clients: tools report it at their end.",
)
LIVE_PREFILL = _live_gauge("live_prefill_bytes", (*_RUN, "state"), "The data set of all clients: total, and done.")
LIVE_GATE = _live_gauge(
    "live_gate_open",
    _RUN,
    "1 if the Ceph cluster is ready for a trial, 0 if the trial has to wait; absent if no cluster is watched.",
)

METRICS: tuple[MetricFamily, ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, MetricFamily)
)
"""All of them, in the order above."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric; `labels` in the order of the metric's.

    Raises:
        ValueError: the number of labels is not that of the metric.

    """

    metric: MetricFamily
    labels: tuple[str, ...]
    value: float

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has {len(self.metric.labels)} labels, not {len(self.labels)}")


def known_samples(labels: tuple[str, ...], *values: tuple[MetricFamily, float | None]) -> Iterator[Sample]:
    """Yield a sample of each metric whose value is known."""
    for metric, value in values:
        if value is not None:
            yield Sample(metric, labels, value)


def bound_samples(
    metric: MetricFamily, labels: tuple[str, ...], low: float | None, high: float | None
) -> Iterator[Sample]:
    """Yield the known ends of an interval, with the label `bound` after the others."""
    for bound, value in (("low", low), ("high", high)):
        yield from known_samples((*labels, bound), (metric, value))
