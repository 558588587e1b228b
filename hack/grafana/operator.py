"""The dashboard of the operator itself."""

from grafana_foundation_sdk.builders import prometheus, table
from grafana_foundation_sdk.models import common as shapes

from grafana.common import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    Page,
    by_threshold,
    dressed,
    instant_query,
    levels,
    lines,
    merged,
    number,
    range_query,
    steps,
    table_query,
    with_queries,
)

_DESCRIPTION = "The operator: its runs, how long its work takes, what fails, and what it uses. It carries no load."

_SELF = "and on (job, instance) plimsoll_operator_info"
"""Of what every program exposes, only the operator's."""


def page() -> Page:
    """Return the dashboard."""
    operator = Page("plimsoll-operator", "Operator", _DESCRIPTION, since="now-6h")
    operator.row("Runs")
    _state(operator)
    _runs(operator)
    operator.row("Reconciliations of runs")
    _looks(operator)
    operator.row("Kubernetes API")
    _api(operator)
    operator.row("Process")
    _process(operator)
    return operator


def _state(operator: Page) -> None:
    about = "Exactly one must lead: without a leader no run begins or ends, and two leaders do everything twice."
    up = dressed(number(), "Leaders", about, "none").decimals(0).color_scheme(by_threshold())
    up = up.thresholds(steps(VERMILION, (1, GREEN), (2, VERMILION)))
    operator.add(up.with_target(instant_query("count(plimsoll_operator_info) or vector(0)", "operators")), 4, 4)

    about = "The pod of the operator that leads. The others wait, and expose nothing else."
    leader = dressed(number(names=True), "Leader", about, "none", nothing="none")
    each = instant_query("max by (pod) (plimsoll_operator_leader) == 1", "{{pod}}")
    operator.add(leader.with_target(each), 4, 4)

    version = dressed(number(names=True), "Version", "Of the operator that leads.", "none", nothing="none")
    each = instant_query("max by (version) (plimsoll_operator_info)", "{{version}}")
    operator.add(version.with_target(each), 4, 4)

    about = "Conductors that Prometheus sees: one for each run that measures. Without a PodMonitor there are none."
    conductors = dressed(number(), "Conductors", about, "none").decimals(0)
    count = instant_query("count(plimsoll_live_phase == 1) or vector(0)", "conductors")
    operator.add(conductors.with_target(count), 4, 4)

    about = (
        "Runs, suites and results that are not exposed, because there are too many, and results that cannot be read."
    )
    left_out = dressed(number(), "Left out", about, "none", nothing="no operator").decimals(0)
    left_out = left_out.color_scheme(by_threshold()).thresholds(steps(BLUE, (1, ORANGE)))
    queries = [
        instant_query("max(plimsoll_runs_omitted)", "runs", "A"),
        instant_query("max(plimsoll_suites_omitted)", "suites", "B"),
        instant_query("max(plimsoll_results_omitted)", "results", "C"),
        instant_query("max(plimsoll_results_unreadable)", "unreadable", "D"),
    ]
    operator.add(with_queries(left_out, queries), 8, 4)


def _runs(operator: Page) -> None:
    about = "As in kubectl get brun: a stage while a run is active, the reason for its end afterwards."
    status = dressed(levels(), "Runs by status", about, "none", nothing="no runs")
    each = instant_query("max by (status) (plimsoll_operator_runs)", "{{status}}")
    operator.add(status.with_target(each), 8, 8)

    about = "Runs that the operator saw end, by the reason of Succeeded, for each interval of the graph."
    ended = dressed(lines(), "Runs ended", about, "none", nothing="none").decimals(0)
    ended = ended.draw_style(shapes.GraphDrawStyle.BARS).fill_opacity(60)
    rate = "sum by (reason) (increase(plimsoll_operator_runs_ended_total[$__rate_interval]))"
    operator.add(ended.with_target(range_query(rate, "{{reason}}")), 8, 8)

    about = "Alerts of Plimsoll that fire or are about to. docs/how-to/monitoring.md has the remedy for each."
    alerts = dressed(table.Panel(), "Alerts", about, "none", nothing="none, or the rules are not installed")
    query = table_query(
        'max by (alertname, severity, alertstate, namespace, run, suite) (ALERTS{alertname=~"Plimsoll.+"})'
    )
    names = {
        "alertname": "Alert",
        "severity": "Severity",
        "alertstate": "State",
        "namespace": "Namespace",
        "run": "Run",
        "suite": "Suite",
    }
    operator.add(alerts.with_target(query).transformations(merged(names)), 8, 8)


def _looks(operator: Page) -> None:
    about = "Each has steps: observe, decide, say, act; remove is the whole reconciliation of a deleted run."
    base = "plimsoll_operator_step_duration_seconds"
    duration = dressed(lines(), "Duration by step", about, "s", nothing="no reconciliations")
    operator.add(with_queries(duration, _quantiles(base, "step")), 10, 8)

    looks = dressed(lines(), "Rate by step", f"How often. {about}", "ops", nothing="no reconciliations")
    rate = range_query(f"sum by (step) (rate({base}_count[$__rate_interval]))", "{{step}}")
    operator.add(looks.with_target(rate), 7, 8)

    about = "Failed reconciliations, by the class of the API's answer; Unexpected is a bug. Each is retried."
    errors = dressed(lines(), "Failed reconciliations", about, "ops", nothing="none failed")
    rate = range_query("sum by (reason) (rate(plimsoll_operator_step_errors_total[$__rate_interval]))", "{{reason}}")
    operator.add(errors.with_target(rate), 7, 8)


def _api(operator: Page) -> None:
    base = "plimsoll_operator_api_request_duration_seconds"
    about = "How long the API server took to answer the operator, without kopf's own watches."
    duration = dressed(lines(), "Duration by verb", about, "s", nothing="no requests")
    operator.add(with_queries(duration, _quantiles(base, "verb")), 10, 8)

    rate = range_query(f"sum by (verb) (rate({base}_count[$__rate_interval]))", "{{verb}}")
    requests = dressed(lines(), "Requests by verb", "Requests of the operator, retries included.", "reqps")
    operator.add(requests.with_target(rate), 7, 8)

    about = "Requests refused, by HTTP status, or not answered (no status). 404 and 409 are normal."
    errors = "sum by (verb, code) (rate(plimsoll_operator_api_request_errors_total[$__rate_interval]))"
    refused = dressed(lines(), "Requests refused", about, "reqps", nothing="none refused")
    operator.add(refused.with_target(range_query(errors, "{{verb}} {{code}}")), 7, 8)


def _process(operator: Page) -> None:
    about = "Delay of the event loop's wake-ups. A second or more delays all work of the operator."
    lag = dressed(lines(), "Loop lag", about, "s", nothing="no operator")
    operator.add(with_queries(lag, _quantiles("plimsoll_operator_loop_lag_seconds", "")), 8, 8)

    about = "Resident memory of the operator; its limit in the chart is 512 MiB."
    memory = dressed(lines(), "Memory", about, "bytes", nothing="no operator")
    operator.add(memory.with_target(range_query(f"process_resident_memory_bytes {_SELF}", "resident")), 8, 8)

    about = "CPUs that the operator uses."
    cpu = dressed(lines(), "Processor", about, "none", nothing="no operator").decimals(2)
    rate = f"rate(process_cpu_seconds_total[$__rate_interval]) {_SELF}"
    operator.add(cpu.with_target(range_query(rate, "used")), 8, 8)


def _quantiles(base: str, label: str) -> list[prometheus.Dataquery]:
    """Return the median and the 99th percentile of a histogram, for each value of a label."""
    kept, shown = (f"le, {label}", f"{{{{{label}}}}} ") if label else ("le", "")
    buckets = f"sum by ({kept}) (rate({base}_bucket[$__rate_interval]))"
    return [
        range_query(f"histogram_quantile({quantile}, {buckets})", f"{shown}{name}", ref)
        for ref, name, quantile in (("A", "p50", "0.5"), ("B", "p99", "0.99"))
    ]
