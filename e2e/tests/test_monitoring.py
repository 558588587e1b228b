"""The series of a real Prometheus that scrapes what the chart installs, configured by the real Prometheus Operator.

Its series are compared with their objects; every query of the dashboards and alerts is made.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

import grafana
from ceph import Ceph
from grafana import Query
from prometheus import Prometheus, Sample
from runs import run, workload
from support import OPERATOR_NAMESPACE, Cluster

NAME, FAILED = "watched", "failed"
CLIENTS, RATE, DEPTHS, PASSES = 2, 300, (1, 4), 2
RUNS = 3

OPERATORS = 2
OPERATOR_POOL = f"serviceMonitor/{OPERATOR_NAMESPACE}/plimsoll/0"
CONDUCTOR_POOL = f"podMonitor/{OPERATOR_NAMESPACE}/plimsoll-conductors/0"
SCRAPED = {"job", "instance", "pod", "container", "endpoint", "service"}
"""Labels that a scrape adds: they identify the scraped process."""

QUANTILES = {"50": "0.5", "95": "0.95", "99": "0.99", "99.9": "0.999"}
CONDITIONS = {"True": 1, "False": 0, "Unknown": -1}

RADOS = {
    "name": "rados",
    "radosBench": {"operation": "write", "objectSize": ["64Ki"], "concurrency": [2]},
    "runtimeSeconds": 12,
    "rampSeconds": 2,
}
GATE = "plimsoll_live_gate_open"
"""Has series only while a Ceph cluster is watched."""

SUITES, LINES = "plimsoll_suite_", "plimsoll_result_line_"  # this namespace has neither suites nor searches for a line

STALLS = "plimsoll_result_stall_seconds"
"""Has none if a client's log has gaps in every trial, as on a busy machine; the trials are then Suspect."""

Series = dict[frozenset[tuple[str, str]], float]


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that was observed from start to end, and one that failed at once, in one namespace.

    Attributes:
        during: a time at which a trial was under way and another had been measured, Unix seconds.
        after: a time after the end of both.

    """

    namespace: str
    during: float
    after: float

    @property
    def run(self) -> str:
        """Return the matchers of the observed run."""
        return f'namespace="{self.namespace}",run="{NAME}"'


@pytest.fixture(scope="module")
def prometheus(cluster: Cluster) -> Prometheus:
    return Prometheus(cluster)


@pytest.fixture(scope="module")
def watched(cluster: Cluster, prometheus: Prometheus, left: list[str]) -> Iterator[Watched]:
    with cluster.keeping_operator():
        namespace = f"e2e-{uuid.uuid4().hex[:8]}"
        cluster.kubectl("create", "namespace", namespace)
        during = until_every_pass_counts(cluster, prometheus, namespace)
        cluster.apply(run(FAILED, namespace, storage={"storageClass": {"name": "absent"}, "volume": {"size": "64Mi"}}))
        assert cluster.until_over(FAILED, namespace, seconds=30)["reason"] == "StorageClassNotFound"
        cluster.until(
            lambda: alerts_of(prometheus, "PlimsollRunFailed", namespace),
            seconds=60,
            what="the failed run raises the alert",
        )
        yield Watched(namespace, during, time.time())
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        left.append(namespace)


def until_every_pass_counts(cluster: Cluster, prometheus: Prometheus, namespace: str) -> float:
    """Return a time in a trial of a run in which every pass counts; on a busy machine, that may be a later one."""
    fio = {"pattern": "randread", "ioDepth": list(DEPTHS), "rateIops": RATE}
    workloads = [workload(fio=fio, runtimeSeconds=10)]
    for _ in range(RUNS):
        cluster.apply(run(NAME, namespace, workloads=workloads, clients={"count": CLIENTS}, repetitions=PASSES))
        during = until_live(cluster, prometheus, namespace)
        cluster.until_succeeded(NAME, namespace)
        results = cluster.results(NAME, namespace)
        if [len(counted(result["status"]["trials"])) for result in results] == [PASSES] * len(DEPTHS):
            return during
        diagnosis = cluster.diagnosis(NAME, namespace)
        cluster.kubectl("delete", "benchmarkrun", NAME, "-n", namespace, "--timeout=240s")
    message = f"in none of {RUNS} runs did every pass count: {diagnosis}"
    raise AssertionError(message)


def until_live(cluster: Cluster, prometheus: Prometheus, namespace: str) -> float:
    """Return a time in the second half of a trial, not the first one, that has its rate.

    After a pause of a busy machine, fio catches up for a moment.
    """
    matchers = f'namespace="{namespace}",run="{NAME}"'
    rate = f"plimsoll_live_operations_per_second{{{matchers}}}"
    condition = (
        f"plimsoll_live_clients_reporting{{{matchers}}} == {CLIENTS}"
        f" and on (run) plimsoll_live_trial_elapsed_ratio{{{matchers}}} > 0.5"
        f' and on (run) plimsoll_live_latency_seconds{{{matchers},quantile="0.99"}}'
        f" and on (run) {rate} > {0.8 * CLIENTS * RATE} and on (run) {rate} < {1.2 * CLIENTS * RATE}"
    )
    try:
        return cluster.until(lambda: seen(prometheus, condition), seconds=150, what="a trial is seen under way")
    except AssertionError as error:
        found = prometheus.query(f'{{__name__=~"plimsoll_live_.+",{matchers}}}')
        raise AssertionError(f"{error}\n{found}\n{cluster.diagnosis(NAME, namespace)}") from None


def seen(prometheus: Prometheus, condition: str) -> float | None:
    """Return the current time if a condition has data."""
    now = time.time()
    return now if prometheus.query(condition, now) else None


def alerts_of(prometheus: Prometheus, name: str, namespace: str) -> list[dict[str, Any]]:
    return [alert for alert in prometheus.alerts(name) if alert["labels"].get("namespace") == namespace]


def series_of(sample: Sample) -> frozenset[tuple[str, str]]:
    """Return the labels of a series without those that the scrape added."""
    return frozenset(item for item in sample.labels.items() if item[0] not in SCRAPED)


def row(name: str, *known: Mapping[str, str], **labels: str) -> frozenset[tuple[str, str]]:
    """Return a key of `Series`."""
    items = {"__name__": f"plimsoll_{name}", **labels}
    for each in known:
        items.update(each)
    return frozenset(items.items())


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def counted(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials behind the summary: the last attempt of each pass, if it measured anything."""
    last = {trial["passNumber"]: trial for trial in sorted(trials, key=lambda trial: int(trial["attempt"]))}
    return [trial for trial in last.values() if trial["outcome"] == "Measured" and trial["verdict"] != "Invalid"]


def series_of_result(result: dict[str, Any]) -> Series:
    """Return the expected series of a result with numbers."""
    spec, status = result["spec"], result["status"]
    trials = counted(status["trials"])
    point = {"namespace": result["metadata"]["namespace"], **{key: spec[key] for key in ("run", "workload", "point")}}
    described = {"tool": spec["tool"], "parameters": spec["label"], "clients": str(spec["clients"])}
    found: Series = {
        row("result_info", point, described): 1,
        row("result_trials", point): status["summary"]["trials"],
        row("result_overlap_ratio", point): min(trial["window"]["overlap"] for trial in trials),
        row("result_start_spread_seconds", point): max(trial["window"]["spreadSeconds"] for trial in trials),
        row("result_completion_timestamp_seconds", point): max(seconds(trial["finishedAt"]) for trial in trials),
    }
    if stalls := [trial["stalls"]["seconds"] for trial in trials if "stalls" in trial]:
        found[row("result_stall_seconds", point)] = max(stalls)
    for verdict in ("Valid", "Suspect", "Invalid"):
        found[row("result_verdict", point, verdict=verdict)] = float(verdict == status["verdict"])
    for operation in status["summary"]["operations"]:
        found |= series_of_operation({**point, "operation": operation["operation"]}, operation)
    return found


def series_of_operation(labels: dict[str, str], operation: dict[str, Any]) -> Series:
    rate, latency = operation["iops"], operation["latency"]
    found: Series = {
        row("result_operations_per_second", labels): rate["mean"],
        row("result_bytes_per_second", labels): operation["bytesPerSecond"]["mean"],
        row("result_latency_mean_seconds", labels): latency["meanNanoseconds"] / 1e9,
    }
    for bound in ("low", "high"):
        found[row("result_operations_per_second_bound", labels, bound=bound)] = rate[bound]
    for percentile, quantile in QUANTILES.items():
        found[row("result_latency_seconds", labels, quantile=quantile)] = latency["percentiles"][percentile] / 1e9
    return found


def series_of_run(found: dict[str, Any]) -> Series:
    """Return the expected series of a terminal run."""
    status, metadata = found["status"], found["metadata"]
    labels = {"namespace": metadata["namespace"], "run": metadata["name"]}
    points = zip(("planned", "completed", "invalid"), ("total", "completed", "invalid"), strict=True)
    return {
        row("run_info", labels, status=status["display"]["status"], verdict=status["display"]["verdict"]): 1,
        row("run_start_timestamp_seconds", labels): seconds(status["startTime"]),
        row("run_completion_timestamp_seconds", labels): seconds(status["completionTime"]),
        **{row("run_points", labels, state=state): status["points"][field] for state, field in points},
        **{
            row("run_condition", labels, condition=each["type"], reason=each["reason"]): CONDITIONS[each["status"]]
            for each in status["conditions"]
        },
    }


def until_right(cluster: Cluster, prometheus: Prometheus, watched: Watched) -> None:
    """Return when the series are exactly the expected series of the results and of the run."""
    results = cluster.results(NAME, watched.namespace)
    assert len(results) == len(DEPTHS)
    expected = series_of_run(cluster.run(NAME, watched.namespace))
    for result in results:
        expected |= series_of_result(result)

    def wrong() -> list[str]:
        samples = prometheus.query(f'{{__name__=~"plimsoll_(result|run)_.+",{watched.run}}}')
        found = {series_of(sample): sample.value for sample in samples}
        if len(found) < len(samples):
            return ["two processes expose the same series"]
        return [
            f"{sorted(key)} is {found.get(key)}, not {expected.get(key)}"
            for key in found.keys() | expected.keys()
            if found.get(key) != pytest.approx(expected.get(key), rel=1e-9)
        ]

    try:
        cluster.until(lambda: not wrong(), seconds=60, what="the series are those of the objects")
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *wrong()])) from None


@pytest.mark.monitoring
def test_the_operator_is_scraped_through_its_service_monitor(cluster: Cluster, prometheus: Prometheus) -> None:
    def up() -> list[dict[str, Any]]:
        targets = [target for target in prometheus.targets() if target["scrapePool"] == OPERATOR_POOL]
        return [target for target in targets if target["health"] == "up"]

    cluster.until(lambda: len(up()) == OPERATORS, seconds=150, what="the operators are scraped")
    for target in up():
        assert target["lastError"] == ""
        assert target["scrapeUrl"].endswith(":8081/metrics")
    assert prometheus.value("count(plimsoll_operator_leader)") == OPERATORS
    assert prometheus.value("sum(plimsoll_operator_leader)") == 1


@pytest.mark.monitoring
def test_all_rules_are_loaded_and_can_be_evaluated(cluster: Cluster, prometheus: Prometheus) -> None:
    names = {str(rule.get("alert") or rule.get("record")) for rule in grafana.rules()}

    def ours() -> list[dict[str, Any]]:
        return [rule for rule in prometheus.rules() if rule["name"] in names]

    cluster.until(
        lambda: {rule["name"] for rule in ours() if rule["health"] != "unknown"} == names,
        seconds=120,
        what="all rules are evaluated",
    )
    assert [(rule["name"], rule.get("lastError")) for rule in ours() if rule["health"] != "ok"] == []


@pytest.mark.monitoring
def test_a_conductor_is_scraped_through_the_pod_monitor(prometheus: Prometheus, watched: Watched) -> None:
    (up,) = prometheus.query(f'up{{namespace="{watched.namespace}"}}', watched.during)
    assert up.value == 1
    assert up.labels["pod"].startswith(f"{NAME}-conductor-")
    assert f"podMonitor/{up.labels['job']}/0" == CONDUCTOR_POOL


@pytest.mark.monitoring
def test_the_rate_is_visible_during_a_trial(cluster: Cluster, prometheus: Prometheus, watched: Watched) -> None:
    (rate,) = prometheus.query(f"plimsoll_live_operations_per_second{{{watched.run}}}", watched.during)
    assert rate.value == pytest.approx(CLIENTS * RATE, rel=0.2)
    assert (rate.labels["workload"], rate.labels["operation"]) == ("read", "read")
    (size,) = prometheus.query(f"plimsoll_live_bytes_per_second{{{watched.run}}}", watched.during)
    assert size.value == pytest.approx(CLIENTS * RATE * 4096, rel=0.2)
    (trial,) = prometheus.query(f"plimsoll_live_trial_info{{{watched.run}}}", watched.during)
    (result,) = (
        each["spec"]
        for each in cluster.results(NAME, watched.namespace)
        if each["spec"]["point"] == rate.labels["point"]
    )
    assert (trial.labels["point"], trial.labels["parameters"]) == (result["point"], result["label"])
    assert trial.labels["pass"] in {str(number) for number in range(PASSES)}
    clients = f'plimsoll_live_clients{{{watched.run},state="%s"}}'
    states = {state: prometheus.value(clients % state, watched.during) for state in ("planned", "measuring", "missing")}
    assert states == {"planned": CLIENTS, "measuring": CLIENTS, "missing": 0}


@pytest.mark.monitoring
def test_live_series_end_with_the_run(cluster: Cluster, prometheus: Prometheus, watched: Watched) -> None:
    live = f'{{__name__=~"plimsoll_live_.+",{watched.run}}}'
    assert prometheus.query(live, watched.during)
    cluster.until(lambda: not prometheus.query(live), seconds=60, what="the live series end")


@pytest.mark.monitoring
def test_series_agree_with_the_objects(cluster: Cluster, prometheus: Prometheus, watched: Watched) -> None:
    until_right(cluster, prometheus, watched)


@pytest.mark.monitoring
def test_a_failed_run_raises_an_alert(prometheus: Prometheus, watched: Watched) -> None:
    (alert,) = alerts_of(prometheus, "PlimsollRunFailed", watched.namespace)
    assert alert["labels"]["run"] == FAILED
    assert alert["state"] in {"pending", "firing"}
    assert "StorageClassNotFound" in str(alert)
    assert f"{watched.namespace}/{FAILED}" in alert["annotations"]["summary"] + alert["annotations"]["description"]


@pytest.mark.monitoring
def test_every_dashboard_is_tested() -> None:
    assert grafana.dashboards() == {"live", "results", "operator", "suites"}


@pytest.mark.parametrize("dashboard", ["live", "results", "operator"])
@pytest.mark.monitoring
def test_every_query_of_a_dashboard_has_data(
    cluster: Cluster, prometheus: Prometheus, watched: Watched, dashboard: str
) -> None:
    chosen = {"namespace": watched.namespace, "run": NAME, "baseline": NAME}
    at = watched.during if dashboard == "live" else watched.after
    unseen = without_data(prometheus, grafana.queries(dashboard, prometheus, chosen), at)
    absent = {GATE, LINES, *(() if stalls_are_known(cluster, watched) else (STALLS,))}
    assert [query for query in unseen if not any(name in query.expression for name in absent)] == []


@pytest.mark.monitoring
def test_every_rule_has_data(prometheus: Prometheus, watched: Watched) -> None:
    looks = [query for rule in grafana.rules() for query in grafana.selectors(rule)]
    unseen = without_data(prometheus, without_data(prometheus, looks, watched.during), watched.after)
    assert [one for one in unseen if not any(name in one.expression for name in (GATE, SUITES))] == []


def stalls_are_known(cluster: Cluster, watched: Watched) -> bool:
    return any("stalls" in trial for trial in cluster.trials(NAME, watched.namespace))


def without_data(prometheus: Prometheus, queries: list[Query], at: float) -> list[Query]:
    """Return the queries without data."""
    return [query for query in queries if not prometheus.query(query.expression, at)]


@pytest.mark.monitoring
def test_series_agree_again_after_the_operator_was_killed(
    cluster: Cluster, prometheus: Prometheus, watched: Watched
) -> None:
    before = process_start(prometheus)
    cluster.kill_operator()
    cluster.until(lambda: process_start(prometheus) > before, seconds=90, what="the next operator is scraped")
    until_right(cluster, prometheus, watched)


def process_start(prometheus: Prometheus) -> float:
    """Return the start time of the newest scraped operator."""
    starts = prometheus.query("process_start_time_seconds and on (job, instance) plimsoll_operator_info")
    return max((start.value for start in starts), default=0)


@pytest.mark.monitoring
def test_series_end_with_their_run(cluster: Cluster, prometheus: Prometheus, watched: Watched) -> None:
    cluster.kubectl("delete", "benchmarkrun", NAME, "-n", watched.namespace, "--timeout=240s")
    cluster.until(
        lambda: not prometheus.query(f'{{__name__=~"plimsoll_.+",{watched.run}}}'), seconds=60, what="the series go"
    )


@pytest.mark.ceph
@pytest.mark.tertiary
@pytest.mark.monitoring
def test_a_ceph_cluster_is_reported_unfit_and_then_measured(
    cluster: Cluster, prometheus: Prometheus, existing: Ceph, namespace: str
) -> None:
    name = "gated"
    matchers = f'namespace="{namespace}",run="{name}"'
    existing.give_keyring(namespace)
    existing.stop_osd(1)
    try:
        cluster.apply(existing.run(name, namespace, workloads=[RADOS]))
        cluster.until(
            lambda: prometheus.value(f"{GATE}{{{matchers}}}") == 0, seconds=120, what="the gate is seen closed"
        )
        cluster.until(
            lambda: alerts_of(prometheus, "PlimsollGateClosed", namespace), seconds=30, what="the alert is pending"
        )
    finally:
        existing.start_osd(1)
    condition = f'plimsoll_live_operations_per_second{{{matchers},workload="rados",operation="write"}} > 0'
    at = cluster.until(
        lambda: seen(prometheus, f"{condition} and on (run) {GATE}{{{matchers}}} == 1"),
        seconds=150,
        what="a rate is seen",
    )
    queries = grafana.queries("live", prometheus, {"namespace": namespace, "run": name})
    gates = [query for query in queries if GATE in query.expression]
    assert gates
    assert without_data(prometheus, gates, at) == []
    cluster.until_succeeded(name, namespace)
