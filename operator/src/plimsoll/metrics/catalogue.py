"""The catalogue of all metrics; docs/reference/metrics.md is generated from it.

Metrics use base units and no percentages. `namespace`, `run` and `suite` name the BenchmarkRun or BenchmarkSuite:
scrape the operator with `honorLabels`, or Prometheus renames them to `exported_namespace` and so on. A conductor runs
in the namespace of its run. Results have no pod, node or UID as a label.
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
    """One metric family."""

    name: str  # with the unit, and `_total` for a counter
    kind: MetricType
    source: Source
    labels: tuple[str, ...]  # names of all its labels, in order
    help: str  # one sentence: the meaning of a value, and when there is none
    buckets: tuple[float, ...] = ()  # upper edges of a histogram


def _family(
    kind: MetricType, source: Source, subject: tuple[str, ...], name: str, text: str, labels: tuple[str, ...] = ()
) -> MetricFamily:
    buckets = _SECONDS if kind is MetricType.HISTOGRAM else ()
    return MetricFamily(f"plimsoll_{name}", kind, source, (*subject, *labels), text, buckets)


QUANTILES = {"50": "0.5", "95": "0.95", "99": "0.99", "99.9": "0.999"}  # percentile -> label `quantile`
_RUN = ("namespace", "run")
_POINT = (*_RUN, "workload", "point")
_OPERATION = (*_POINT, "operation")
_STORM = ("storm",)
_SUITE = ("namespace", "suite")

_gauge = partial(_family, MetricType.GAUGE)
_quantiles = partial(_family, MetricType.SUMMARY)
_result_gauge = partial(_gauge, Source.RESULTS, _POINT)
_run_gauge = partial(_gauge, Source.RUNS, _RUN)
_suite_gauge = partial(_gauge, Source.SUITES, _SUITE)
_operator_gauge = partial(_gauge, Source.OPERATOR, ())
_operator_counter = partial(_family, MetricType.COUNTER, Source.OPERATOR, ())
_operator_histogram = partial(_family, MetricType.HISTOGRAM, Source.OPERATOR, ())
_live_gauge = partial(_gauge, Source.CONDUCTOR, _RUN)

# -- results: of every BenchmarkResult with numbers, the newest ones if there are too many

RESULT_INFO = _result_gauge(
    "result_info",
    "1 for every result with a verdict; its labels describe the measurement.",
    ("tool", "parameters", "clients"),
)
RESULT_IOPS = _result_gauge(
    "result_operations_per_second",
    "Rate over the common window of all clients, or over the time of their work without one; mean over the trials that "
    "count.",
    ("operation",),
)
RESULT_IOPS_BOUND = _result_gauge(
    "result_operations_per_second_bound",
    "Ends, low and high, of the 95 % confidence interval of that rate; absent with a single trial.",
    ("operation", "bound"),
)
RESULT_BYTES = _result_gauge("result_bytes_per_second", "The same rate in bytes.", ("operation",))
RESULT_LATENCY = _quantiles(
    Source.RESULTS,
    _OPERATION,
    "result_latency_seconds",
    "Latency, from the merged histograms of all clients and trials; absent if the tool records none.",
    ("quantile",),
)
RESULT_LATENCY_MEAN = _result_gauge(
    "result_latency_mean_seconds",
    "Exact mean latency of all operations; absent if the tool does not time them.",
    ("operation",),
)
RESULT_VERDICT = _result_gauge(
    "result_verdict",
    "1 for the verdict of the result, 0 for the others. Numbers of an Invalid result are not exposed.",
    ("verdict",),
)
RESULT_TRIALS = _result_gauge("result_trials", "Number of trials behind the numbers.")
RESULT_STALL = _result_gauge(
    "result_stall_seconds",
    "Seconds without any completed operation, in the trial with the most; absent if no trial has a series.",
)
RESULT_RECOVERY = _result_gauge(
    "result_recovery_seconds",
    "Seconds from the end of a disturbance until all placement groups were clean, in the trial with the most; absent "
    "if they were not in one. Of a storm line, in the probes that met the objectives: higher loads delay the recovery.",
)
RESULT_DISTURBED_IOPS = _result_gauge(
    "result_disturbed_iops", "Operations per second while OSDs were away, mean over the trials.", ("operation",)
)
RESULT_OVERLAP = _result_gauge(
    "result_overlap_ratio", "Common window divided by the mean runtime of the clients, in the trial with the least."
)
RESULT_SPREAD = _result_gauge(
    "result_start_spread_seconds", "Last start minus first start of the clients, in the trial with the most."
)
RESULT_LINK_MEDIAN = _result_gauge(
    "result_link_median_bytes_per_second",
    "Median rate of the pairs of clients; only of tools that measure between clients.",
)
RESULT_LINK_LEAST = _result_gauge(
    "result_link_least_bytes_per_second", "Rate of the slowest pair of clients; absent as for the median."
)
RESULT_LINE_INFO = _result_gauge(
    "result_line_info",
    "1 for every search for the line with numbers; its labels have the ending and the objectives: `p99 <= 5 ms`.",
    (*_STORM, "ending", "objectives"),
)
RESULT_LINE_RATE = _result_gauge(
    "result_line_operations_per_second",
    "The line of a search that varied the rate: the load at which half of the trials meet the objectives. It is an "
    "estimate and not a rate of any trial; absent if it is outside of the loads that may be offered. `storm` is "
    "`1 OSD out` of a storm line and empty of a calm line: never add them up.",
    _STORM,
)
RESULT_LINE_RATE_BOUND = _result_gauge(
    "result_line_operations_per_second_bound",
    "Ends, low and high, of the 95 % interval of the line; an end outside of the loads that may be offered is absent.",
    (*_STORM, "bound"),
)
RESULT_LINE_DEPTH = _result_gauge(
    "result_line_operations_in_flight",
    "The line of a search that varied the depth; absent as for the rate.",
    _STORM,
)
RESULT_LINE_DEPTH_BOUND = _result_gauge(
    "result_line_operations_in_flight_bound",
    "Ends, low and high, of the 95 % interval of that line; absent as for the rate.",
    (*_STORM, "bound"),
)
RESULT_LINE_PROBES = _result_gauge(
    "result_line_probes",
    "Number of probes of a search for the line; plimsoll_result_trials is the number of those that count.",
    _STORM,
)
RESULT_TIME = _result_gauge(
    "result_completion_timestamp_seconds",
    "When the last trial that counts ended: the time of the numbers, independent of the scrape.",
)
RESULTS_OMITTED = _gauge(
    Source.RESULTS,
    (),
    "results_omitted",
    "Results that are not exposed because there are too many, or because a newer one has the same labels.",
)
RESULTS_UNREADABLE = _gauge(
    Source.RESULTS,
    (),
    "results_unreadable",
    "Results that this operator cannot read, such as results of a later version; its log has the reason.",
)

# -- runs: of every BenchmarkRun

RUN_INFO = _run_gauge(
    "run_info", "1 for every run; its labels have the values that `kubectl get brun` shows.", ("status", "verdict")
)
RUN_CONDITION = _run_gauge(
    "run_condition",
    "A condition of a run: 1 if it is True, 0 if it is False, -1 if it is Unknown.",
    ("condition", "reason"),
)
RUN_POINTS = _run_gauge(
    "run_points", "Points of a run: planned, completed, and invalid (a part of the completed ones).", ("state",)
)
RUN_START = _run_gauge("run_start_timestamp_seconds", "When the run was admitted; absent before.")
RUN_COMPLETION = _run_gauge("run_completion_timestamp_seconds", "When the run ended; absent before.")
RUN_ESTIMATE = _run_gauge(
    "run_estimated_completion_timestamp_seconds",
    "Estimated end of the run's last trial; absent before measuring and after the end.",
)
RUNS_OMITTED = _gauge(
    Source.RUNS,
    (),
    "runs_omitted",
    "Runs that are not exposed because there are too many; unfinished and newer runs come first.",
)

# -- suites: of every BenchmarkSuite

SUITE_INFO = _suite_gauge(
    "suite_info",
    "1 for every suite; its labels have the values that `kubectl get bsuite` shows.",
    ("status", "verdict"),
)
SUITE_CONDITION = _suite_gauge(
    "suite_condition",
    "A condition of a suite, such as Regressed: 1 if it is True, 0 if it is False, -1 if it is Unknown.",
    ("condition", "reason"),
)
SUITE_ROUND_VERDICT = _suite_gauge(
    "suite_round_verdict",
    "1 for the verdict of the last round, 0 for the others; absent before the end of the first round.",
    ("verdict",),
)
SUITE_ROUND_COMPLETION = _suite_gauge(
    "suite_round_completion_timestamp_seconds",
    "When the last evaluated round ended (not Failed or Superseded); absent before.",
)
SUITE_ROUND_START = _suite_gauge(
    "suite_round_start_timestamp_seconds", "When the active round started, and why; absent without one.", ("cause",)
)
SUITE_ROUND_RUNS = _suite_gauge(
    "suite_round_runs", "Runs of the active round: planned, and done; absent without one.", ("state",)
)
SUITE_ROUNDS = _suite_gauge("suite_rounds", "Former rounds in the status of a suite, by verdict.", ("verdict",))
SUITE_ROUNDS_ACCEPTED = _suite_gauge(
    "suite_rounds_accepted",
    "Former rounds that the next one is compared with; a verdict other than Inconclusive needs 3.",
)
SUITE_ROUNDS_FAILED = _suite_gauge("suite_rounds_failed", "Failed rounds since the last evaluated round.")
SUITE_NEXT_SCHEDULE = _suite_gauge(
    "suite_next_schedule_timestamp_seconds",
    "When the next scheduled round starts; in the past while that round waits; absent without a schedule.",
)
SUITE_LAST_SCHEDULE = _suite_gauge(
    "suite_last_schedule_timestamp_seconds", "Last scheduled time for which a round started; absent before."
)
SUITE_COMPARISON_VERDICT = _suite_gauge(
    "suite_comparison_verdict",
    "1 for the verdict of a comparison in the last evaluated round, 0 for the others.",
    ("comparison", "variant", "verdict"),
)
SUITE_COMPARISON_CHANGE = _suite_gauge(
    "suite_comparison_change_ratio",
    "Mean change that the comparison found, as a part of the baseline; less than 0 is worse. Absent if unknown.",
    ("comparison", "variant"),
)
SUITE_COMPARISON_BOUND = _suite_gauge(
    "suite_comparison_change_bound_ratio",
    "Ends, low and high, of the 95 % confidence interval of that change.",
    ("comparison", "variant", "bound"),
)
SUITE_HYPOTHESIS_VERDICT = _suite_gauge(
    "suite_hypothesis_verdict",
    "1 for the verdict of a hypothesis in the last evaluated round, 0 for the others. `variant` is empty if "
    "the hypothesis names its variants itself.",
    ("hypothesis", "variant", "verdict"),
)
SUITE_HYPOTHESIS_ESTIMATE = _suite_gauge(
    "suite_hypothesis_estimate",
    "The ratio as a part of 1, or the exponent, that the hypothesis is about; absent if unknown.",
    ("hypothesis", "variant"),
)
SUITE_HYPOTHESIS_BOUND = _suite_gauge(
    "suite_hypothesis_estimate_bound",
    "Ends, low and high, of the 95 % confidence interval of that estimate.",
    ("hypothesis", "variant", "bound"),
)
SUITES_OMITTED = _gauge(Source.SUITES, (), "suites_omitted", "Suites that are not exposed because there are too many.")

# -- the operator

OPERATOR_INFO = _operator_gauge("operator_info", "Always 1; the label is the version of this operator.", ("version",))
OPERATOR_LEADER = _operator_gauge(
    "operator_leader", "1 for the leading operator, 0 for a waiting one, which exposes no other metric."
)
OPERATOR_RUNS = _operator_gauge(
    "operator_runs", "Number of runs that `kubectl get brun` shows with this status.", ("status",)
)
OPERATOR_SUITES = _operator_gauge(
    "operator_suites", "Number of suites that `kubectl get bsuite` shows with this status.", ("status",)
)
OPERATOR_STEP = _operator_histogram(
    "operator_step_duration_seconds",
    "Duration of a step in reconciling a run: observe, decide, say (write the status), act, or remove (a deleted run).",
    ("step",),
)
OPERATOR_STEP_ERRORS = _operator_counter(
    "operator_step_errors_total",
    "Failed reconciliations of runs, by reason: the class of the API's answer, or Unexpected.",
    ("reason",),
)
OPERATOR_REQUESTS = _operator_histogram(
    "operator_api_request_duration_seconds",
    "Duration of the operator's requests to the API server, without retries and without kopf's own watches.",
    ("verb",),
)
OPERATOR_REQUEST_ERRORS = _operator_counter(
    "operator_api_request_errors_total",
    "Requests that the API server refused, by HTTP status, or did not answer (code is then empty). 404 and 409 are "
    "normal: the object does not exist yet, or exists already.",
    ("verb", "code"),
)
OPERATOR_ENDED = _operator_counter(
    "operator_runs_ended_total",
    "Runs that ended while this process ran, by the reason of the condition Succeeded.",
    ("reason",),
)
OPERATOR_LAG = _operator_histogram(
    "operator_loop_lag_seconds", "Delay of the event loop's wake-ups, measured every second."
)

# -- the conductor: the current run

LIVE_PHASE = _live_gauge("live_phase", "1 for the conductor's phase, 0 for the others.", ("phase",))
LIVE_CLIENTS = _live_gauge(
    "live_clients",
    "Clients by state: planned, registered, missing, armed (for the current trial), and measuring.",
    ("state",),
)
LIVE_TRIALS = _live_gauge(
    "live_trials", "Trials of the run: planned, and done (without need for a further attempt).", ("state",)
)
LIVE_ATTEMPTS = _family(
    MetricType.COUNTER,
    Source.CONDUCTOR,
    _RUN,
    "live_attempts_total",
    "Attempts at trials that this conductor recorded.",
    ("outcome", "verdict"),
)
LIVE_TRIAL_INFO = _live_gauge(
    "live_trial_info", "1 for the current trial.", ("workload", "point", "parameters", "pass", "attempt")
)
LIVE_TRIAL_ELAPSED = _live_gauge(
    "live_trial_elapsed_ratio",
    "Elapsed part of the current trial, ramp included; 0 before it starts; absent between trials.",
)
LIVE_IOPS = _live_gauge(
    "live_operations_per_second",
    "Sum of the rates that the tools of all clients report while they run: to watch, not to quote. Absent between "
    "trials, and while no tool reports rates: only fio and radosBench do, and fio not during the ramp.",
    ("workload", "point", "operation"),
)
LIVE_BYTES = _live_gauge("live_bytes_per_second", "The same rate in bytes.", ("workload", "point", "operation"))
LIVE_REPORTING = _live_gauge(
    "live_clients_reporting", "Clients whose rates are in that sum, 0 before the first report; absent between trials."
)
LIVE_LATENCY = _quantiles(
    Source.CONDUCTOR,
    _OPERATION,
    "live_latency_seconds",
    "Latency of this conductor's last trial that is not Invalid, merged over clients: tools report it at their end.",
    ("quantile",),
)
LIVE_PREFILL = _live_gauge("live_prefill_bytes", "The data set of all clients: total, and done.", ("state",))
LIVE_GATE = _live_gauge(
    "live_gate_open",
    "1 if the Ceph cluster is ready for a trial, 0 if the trial has to wait; absent if no cluster is watched.",
)

METRICS: tuple[MetricFamily, ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, MetricFamily)
)
"""All of them, in the order above."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric, with labels in its order; ValueError if it has another number of labels."""

    metric: MetricFamily
    labels: tuple[str, ...]
    value: float

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has {len(self.metric.labels)} labels, not {len(self.labels)}")


def known_samples(labels: tuple[str, ...], *values: tuple[MetricFamily, float | None]) -> Iterator[Sample]:
    for metric, value in values:
        if value is not None:
            yield Sample(metric, labels, value)


def labelled_samples(metric: MetricFamily, labels: tuple[str, ...], **values: float | None) -> Iterator[Sample]:
    """Yield the known values by the metric's last label, such as the ends of an interval or numbers by state."""
    for label, value in values.items():
        yield from known_samples((*labels, label), (metric, value))
