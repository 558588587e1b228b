"""The catalogue of all metrics; docs/metrics.md is generated from it.

Metrics use base units and no percentages. `namespace` and `run` are those of the BenchmarkRun: scrape with
`honorLabels`, or Prometheus renames them to `exported_namespace` and `exported_run`. Results have no pod, node or UID
as a label.
"""

from dataclasses import dataclass
from enum import StrEnum


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


QUANTILES = {"50": "0.5", "95": "0.95", "99": "0.99", "99.9": "0.999"}
"""Percentile in a result -> value of the label `quantile`."""

_RUN = ("namespace", "run")
_POINT = (*_RUN, "workload", "point")
_OPERATION = (*_POINT, "operation")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def _gauge(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}", MetricType.GAUGE, source, labels, text)


def _quantiles(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}", MetricType.SUMMARY, source, (*labels, "quantile"), text)


def _counter(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}_total", MetricType.COUNTER, source, labels, text)


def _histogram(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"plimsoll_{name}_seconds", MetricType.HISTOGRAM, source, labels, text, _SECONDS)


# -- results: of every BenchmarkResult with numbers, the newest ones if there are too many

RESULT_INFO = _gauge(
    Source.RESULTS,
    "result_info",
    (*_POINT, "tool", "parameters", "clients"),
    "1 for every result with a verdict; its labels describe the measurement.",
)
RESULT_IOPS = _gauge(
    Source.RESULTS,
    "result_operations_per_second",
    _OPERATION,
    "Rate over the common window of all clients, or over the time of their work without one; mean over the trials that "
    "count.",
)
RESULT_IOPS_BOUND = _gauge(
    Source.RESULTS,
    "result_operations_per_second_bound",
    (*_OPERATION, "bound"),
    "Ends, low and high, of the 95 % confidence interval of that rate; absent with a single trial.",
)
RESULT_BYTES = _gauge(Source.RESULTS, "result_bytes_per_second", _OPERATION, "The same rate in bytes.")
RESULT_LATENCY = _quantiles(
    Source.RESULTS,
    "result_latency_seconds",
    _OPERATION,
    "Latency, from the merged histograms of all clients and trials; absent if the tool records none.",
)
RESULT_LATENCY_MEAN = _gauge(
    Source.RESULTS,
    "result_latency_mean_seconds",
    _OPERATION,
    "Exact mean latency of all operations; absent if the tool does not time them.",
)
RESULT_VERDICT = _gauge(
    Source.RESULTS,
    "result_verdict",
    (*_POINT, "verdict"),
    "1 for the verdict of the result, 0 for the others. Numbers of an Invalid result are not exposed.",
)
RESULT_TRIALS = _gauge(Source.RESULTS, "result_trials", _POINT, "Number of trials behind the numbers.")
RESULT_STALL = _gauge(
    Source.RESULTS,
    "result_stall_seconds",
    _POINT,
    "Seconds without any completed operation, in the trial with the most; absent if no trial has a series.",
)
RESULT_OVERLAP = _gauge(
    Source.RESULTS,
    "result_overlap_ratio",
    _POINT,
    "Common window divided by the mean runtime of the clients, in the trial with the least.",
)
RESULT_SPREAD = _gauge(
    Source.RESULTS,
    "result_start_spread_seconds",
    _POINT,
    "Last start minus first start of the clients, in the trial with the most.",
)
RESULT_LINK_MEDIAN = _gauge(
    Source.RESULTS,
    "result_link_median_bytes_per_second",
    _POINT,
    "Median rate of the pairs of clients; only of tools that measure between clients.",
)
RESULT_LINK_LEAST = _gauge(
    Source.RESULTS,
    "result_link_least_bytes_per_second",
    _POINT,
    "Rate of the slowest pair of clients; likewise.",
)
RESULT_TIME = _gauge(
    Source.RESULTS,
    "result_completion_timestamp_seconds",
    _POINT,
    "When the last trial that counts ended: the time of the numbers, independent of the scrape.",
)
RESULTS_OMITTED = _gauge(
    Source.RESULTS,
    "results_omitted",
    (),
    "Results that are not exposed because there are too many, or because a newer one has the same labels.",
)
RESULTS_UNREADABLE = _gauge(
    Source.RESULTS,
    "results_unreadable",
    (),
    "Results that this operator cannot read, such as those of a later version; its log has the reason.",
)

# -- runs: of every BenchmarkRun

RUN_INFO = _gauge(
    Source.RUNS,
    "run_info",
    (*_RUN, "status", "verdict"),
    "1 for every run; its labels have the values that `kubectl get brun` shows.",
)
RUN_CONDITION = _gauge(
    Source.RUNS,
    "run_condition",
    (*_RUN, "condition", "reason"),
    "A condition of a run: 1 if it is True, 0 if it is False, -1 if it is Unknown.",
)
RUN_POINTS = _gauge(
    Source.RUNS,
    "run_points",
    (*_RUN, "state"),
    "Points of a run: planned, completed, and invalid (a part of the completed ones).",
)
RUN_START = _gauge(Source.RUNS, "run_start_timestamp_seconds", _RUN, "When the run was admitted; absent before.")
RUN_COMPLETION = _gauge(Source.RUNS, "run_completion_timestamp_seconds", _RUN, "When the run ended; absent before.")
RUN_ESTIMATE = _gauge(
    Source.RUNS,
    "run_estimated_completion_timestamp_seconds",
    _RUN,
    "Estimated end of the run's last trial; absent before measuring and after the end.",
)
RUNS_OMITTED = _gauge(
    Source.RUNS,
    "runs_omitted",
    (),
    "Runs that are not exposed because there are too many; unfinished and newer runs come first.",
)

# -- the operator

OPERATOR_INFO = _gauge(
    Source.OPERATOR, "operator_info", ("version",), "Always 1; the label is the version of this operator."
)
OPERATOR_RUNS = _gauge(
    Source.OPERATOR, "operator_runs", ("status",), "Number of runs that `kubectl get brun` shows with this status."
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

LIVE_PHASE = _gauge(Source.CONDUCTOR, "live_phase", (*_RUN, "phase"), "1 for the conductor's phase, 0 for the others.")
LIVE_CLIENTS = _gauge(
    Source.CONDUCTOR,
    "live_clients",
    (*_RUN, "state"),
    "Clients by state: planned, registered, missing, armed (for the current trial), and measuring.",
)
LIVE_TRIALS = _gauge(
    Source.CONDUCTOR,
    "live_trials",
    (*_RUN, "state"),
    "Trials of the run: planned, and done (without need for a further attempt).",
)
LIVE_ATTEMPTS = _counter(
    Source.CONDUCTOR, "live_attempts", (*_RUN, "outcome", "verdict"), "Attempts at trials that this conductor recorded."
)
LIVE_TRIAL_INFO = _gauge(
    Source.CONDUCTOR, "live_trial_info", (*_POINT, "parameters", "pass", "attempt"), "1 for the current trial."
)
LIVE_TRIAL_ELAPSED = _gauge(
    Source.CONDUCTOR,
    "live_trial_elapsed_ratio",
    _RUN,
    "Elapsed part of the current trial, ramp included; 0 before it starts; absent between trials.",
)
LIVE_IOPS = _gauge(
    Source.CONDUCTOR,
    "live_operations_per_second",
    (*_OPERATION,),
    "Sum of the rates that the tools of all clients report while they run: to watch, not to quote. Absent between "
    "trials, and while no tool reports rates: fio does not during the ramp, and osdBench, bonnie, iperf3 and "
    "kubeBurner never do.",
)
LIVE_BYTES = _gauge(Source.CONDUCTOR, "live_bytes_per_second", (*_OPERATION,), "The same rate in bytes.")
LIVE_REPORTING = _gauge(
    Source.CONDUCTOR,
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
LIVE_PREFILL = _gauge(
    Source.CONDUCTOR, "live_prefill_bytes", (*_RUN, "state"), "The data set of all clients: total, and done."
)
LIVE_GATE = _gauge(
    Source.CONDUCTOR,
    "live_gate_open",
    _RUN,
    "1 if the Ceph cluster is ready for a trial, 0 if the trial has to wait; absent if no cluster is watched.",
)

METRICS: tuple[MetricFamily, ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, MetricFamily)
)
"""All of them, in the order above."""
