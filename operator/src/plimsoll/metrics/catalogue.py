"""Every metric there is. Nothing is exposed that does not stand here, and docs/metrics.md is made from it.

Base units, no percentages. `namespace` and `run` are those of the BenchmarkRun: scrape with `honorLabels`, or
Prometheus calls them `exported_namespace` and `exported_run`. No pod, node or UID is a label of a result.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The Prometheus type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    """Quantiles alone, without count and sum: only of a summary may `quantile` be a label."""


class Source(StrEnum):
    """Which program exposes a metric, and what it is about."""

    RESULTS = "results"
    RUNS = "runs"
    OPERATOR = "operator"
    CONDUCTOR = "conductor"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family.

    Attributes:
        name: with the unit, and `_total` for a counter.
        labels: names of all its labels, in order.
        help: one sentence: what a value means, and when there is none.
        buckets: upper edges of a histogram.

    """

    name: str
    kind: Kind
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


def _gauge(source: Source, name: str, labels: tuple[str, ...], text: str) -> Metric:
    return Metric(f"plimsoll_{name}", Kind.GAUGE, source, labels, text)


def _quantiles(source: Source, name: str, labels: tuple[str, ...], text: str) -> Metric:
    return Metric(f"plimsoll_{name}", Kind.SUMMARY, source, (*labels, "quantile"), text)


def _counter(source: Source, name: str, labels: tuple[str, ...], text: str) -> Metric:
    return Metric(f"plimsoll_{name}_total", Kind.COUNTER, source, labels, text)


def _histogram(source: Source, name: str, labels: tuple[str, ...], text: str) -> Metric:
    return Metric(f"plimsoll_{name}_seconds", Kind.HISTOGRAM, source, labels, text, _SECONDS)


# -- results: of every BenchmarkResult that has numbers, the newest ones if there are too many

RESULT_INFO = _gauge(
    Source.RESULTS,
    "result_info",
    (*_POINT, "tool", "parameters", "clients"),
    "1 for every result that has a verdict; its labels say what was measured.",
)
RESULT_IOPS = _gauge(
    Source.RESULTS,
    "result_operations_per_second",
    _OPERATION,
    "Rate over the common window of all clients, mean over the trials that count.",
)
RESULT_IOPS_BOUND = _gauge(
    Source.RESULTS,
    "result_operations_per_second_bound",
    (*_OPERATION, "bound"),
    "Ends, low and high, of the 95 % confidence interval of that rate; absent with a single trial.",
)
RESULT_BYTES = _gauge(
    Source.RESULTS,
    "result_bytes_per_second",
    _OPERATION,
    "The same in bytes.",
)
RESULT_LATENCY = _quantiles(
    Source.RESULTS,
    "result_latency_seconds",
    _OPERATION,
    "Latency, from the histograms of all clients and trials merged; absent if the tool keeps none.",
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
    "1 for the verdict that the numbers have, 0 for the others. Numbers of an Invalid result are not exposed.",
)
RESULT_TRIALS = _gauge(
    Source.RESULTS,
    "result_trials",
    _POINT,
    "Number of trials that the numbers are of.",
)
RESULT_STALL = _gauge(
    Source.RESULTS,
    "result_stall_seconds",
    _POINT,
    "Seconds without any completed operation, of the trial that has most; absent if no trial has a series.",
)
RESULT_OVERLAP = _gauge(
    Source.RESULTS,
    "result_overlap_ratio",
    _POINT,
    "Common window divided by the mean runtime of the clients, of the trial that has least.",
)
RESULT_SPREAD = _gauge(
    Source.RESULTS,
    "result_start_spread_seconds",
    _POINT,
    "Last start minus first start of the clients, of the trial that has most.",
)
RESULT_TIME = _gauge(
    Source.RESULTS,
    "result_completion_timestamp_seconds",
    _POINT,
    "When the last trial that counts ended: the time that the numbers are of, whenever they are scraped.",
)
RESULTS_OMITTED = _gauge(
    Source.RESULTS,
    "results_omitted",
    (),
    "Results that are not exposed because there are too many, or a newer one has the same labels.",
)
RESULTS_UNREADABLE = _gauge(
    Source.RESULTS,
    "results_unreadable",
    (),
    "Results that this operator cannot read, as those of a later version; its log says why.",
)

# -- runs: of every BenchmarkRun

RUN_INFO = _gauge(
    Source.RUNS,
    "run_info",
    (*_RUN, "status", "verdict"),
    "1 for every run; its labels are what `kubectl get brun` shows.",
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
    "Points of a run: planned, completed, and invalid, which are completed too.",
)
RUN_START = _gauge(
    Source.RUNS,
    "run_start_timestamp_seconds",
    _RUN,
    "When the run was admitted; absent before.",
)
RUN_COMPLETION = _gauge(
    Source.RUNS,
    "run_completion_timestamp_seconds",
    _RUN,
    "When the run ended; absent before.",
)
RUN_ESTIMATE = _gauge(
    Source.RUNS,
    "run_estimated_completion_timestamp_seconds",
    _RUN,
    "When the run's last trial should be over; absent before measuring and after the end.",
)
RUNS_OMITTED = _gauge(
    Source.RUNS,
    "runs_omitted",
    (),
    "Runs that are not exposed because there are too many; those that go on and the newest ones are.",
)

# -- the operator

OPERATOR_INFO = _gauge(Source.OPERATOR, "operator_info", ("version",), "1; the label says which operator this is.")
OPERATOR_RUNS = _gauge(
    Source.OPERATOR, "operator_runs", ("status",), "Number of runs that `kubectl get brun` shows with this status."
)
OPERATOR_STEP = _histogram(
    Source.OPERATOR,
    "operator_step_duration",
    ("step",),
    "How long a part of a look at a run took: observe, decide, say, act, or remove for a look at a deleted one.",
)
OPERATOR_STEP_ERRORS = _counter(
    Source.OPERATOR,
    "operator_step_errors",
    ("reason",),
    "Looks at a run that failed, by reason: the class of the API's answer, or Unexpected.",
)
OPERATOR_REQUESTS = _histogram(
    Source.OPERATOR,
    "operator_api_request_duration",
    ("verb",),
    "How long the API server took to answer the operator, retries not included; kopf's own watches are not here.",
)
OPERATOR_REQUEST_ERRORS = _counter(
    Source.OPERATOR,
    "operator_api_request_errors",
    ("verb", "code"),
    "Requests that the API server refused, by HTTP status, or did not answer (code is then empty). 404 and 409 are "
    "ordinary: what is asked for is not there yet, or is there already.",
)
OPERATOR_ENDED = _counter(
    Source.OPERATOR,
    "operator_runs_ended",
    ("reason",),
    "Runs that this process saw end, by the reason of Succeeded.",
)
OPERATOR_LAG = _histogram(
    Source.OPERATOR,
    "operator_loop_lag",
    (),
    "How much later than asked for the event loop woke up, asked every second.",
)

# -- the conductor: of the run under way

LIVE_PHASE = _gauge(
    Source.CONDUCTOR, "live_phase", (*_RUN, "phase"), "1 for the phase that the conductor is in, 0 for the others."
)
LIVE_CLIENTS = _gauge(
    Source.CONDUCTOR,
    "live_clients",
    (*_RUN, "state"),
    "Clients by state: planned, registered, missing, armed (of the trial under way), and measuring.",
)
LIVE_TRIALS = _gauge(
    Source.CONDUCTOR,
    "live_trials",
    (*_RUN, "state"),
    "Trials of the run: planned, and done, which need no further attempt.",
)
LIVE_ATTEMPTS = _counter(
    Source.CONDUCTOR,
    "live_attempts",
    (*_RUN, "outcome", "verdict"),
    "Attempts at trials that this conductor recorded.",
)
LIVE_TRIAL_INFO = _gauge(
    Source.CONDUCTOR,
    "live_trial_info",
    (*_POINT, "parameters", "pass", "attempt"),
    "1 while this trial is under way.",
)
LIVE_TRIAL_ELAPSED = _gauge(
    Source.CONDUCTOR,
    "live_trial_elapsed_ratio",
    _RUN,
    "Part of the trial under way, ramp included, that is over; 0 before it starts; absent between trials.",
)
LIVE_IOPS = _gauge(
    Source.CONDUCTOR,
    "live_operations_per_second",
    (*_OPERATION,),
    "What the tools of all clients say while they run, added up: to watch, not to quote. Absent between trials, and "
    "as long as no tool says anything: fio does not during the ramp, osdBench never does.",
)
LIVE_BYTES = _gauge(Source.CONDUCTOR, "live_bytes_per_second", (*_OPERATION,), "The same in bytes.")
LIVE_REPORTING = _gauge(
    Source.CONDUCTOR,
    "live_clients_reporting",
    _RUN,
    "Clients whose tools' rates are in that sum, 0 before the first has said anything; absent between trials.",
)
LIVE_LATENCY = _quantiles(
    Source.CONDUCTOR,
    "live_latency_seconds",
    _OPERATION,
    "Latency of this conductor's last trial that is not Invalid, clients merged: tools tell it only when they end.",
)
LIVE_PREFILL = _gauge(
    Source.CONDUCTOR, "live_prefill_bytes", (*_RUN, "state"), "The data set of all clients: total, and done."
)
LIVE_GATE = _gauge(
    Source.CONDUCTOR,
    "live_gate_open",
    _RUN,
    "1 if the Ceph cluster is fit for a trial, 0 if a trial has to wait; absent if no cluster is watched.",
)

METRICS: tuple[Metric, ...] = tuple(value for value in tuple(globals().values()) if isinstance(value, Metric))
"""All of them, in the order above."""
