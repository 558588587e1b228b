"""Suites, from rounds without a change to a regression that is found, seen everywhere, and gone again."""

import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flux import SuiteInGit
from prometheus import Prometheus
from suites import SUITE, Suite, reads, suite
from support import OPERATOR_NAMESPACE, ROOT, Cluster

pytestmark = [pytest.mark.suites, pytest.mark.timeout(1800)]

REPEAT = 3
"""The least runs of a variant that show how much runs differ."""

ROUNDS = 3
"""Accepted rounds that a comparison needs."""

MOST_ROUNDS = 6
"""A busy machine may make a run Invalid, and a round is then not accepted."""

MOST_UNDECIDED = 3
"""Rounds to get one that is not Inconclusive."""

COMPARISON = {
    "name": "storage",
    "baseline": {"rounds": "Accepted"},
    "allow": {"ratePercent": 30, "latencyPercent": 1000},
}
VARIANTS = [{"name": "shallow"}, {"name": "deep", "set": {"workloads": [reads(8)]}}]
HYPOTHESIS = {
    "name": "same-rate",
    "left": {"variant": "deep", "workload": "read", "quantity": "iops"},
    "of": {"variant": "shallow", "workload": "read", "quantity": "iops"},
    "atLeastPercent": 80,
}


def until_accepted(measured: Suite) -> None:
    """Measure rounds until enough of them are accepted."""
    measured.until_rounds(1)
    while sum(one["accepted"] for one in measured.rounds) < ROUNDS:
        assert len(measured.rounds) < MOST_ROUNDS, measured.diagnosis()
        ended = measured.request(f"baseline {len(measured.rounds)}")
        assert ended["verdict"] in {"NoRegression", "Inconclusive"}, measured.diagnosis()
        assert ended["cause"] == "Requested"


def until_decided(measured: Suite, text: str) -> dict[str, Any]:
    """Request rounds until one is not Inconclusive, as it may be on a busy machine."""
    for number in range(MOST_UNDECIDED):
        ended = measured.request(f"{text} {number}")
        if ended["verdict"] != "Inconclusive":
            break
    return ended


def kstatus_of(found: dict[str, Any], cluster: Cluster) -> str:
    """Return what Flux makes of an object."""
    program = subprocess.run([ROOT / "hack" / "tool.sh", "kstatus"], capture_output=True, text=True, check=True)
    text = cluster.kubectl("get", SUITE, found["metadata"]["name"], "-n", found["metadata"]["namespace"], "-o", "json")
    done = subprocess.run([Path(program.stdout.strip())], input=text, capture_output=True, text=True, check=True)
    return done.stdout.partition("\t")[0]


@pytest.mark.regression
def test_flux_and_others_see_a_throttle_of_the_storage_until_it_is_gone(cluster: Cluster, namespace: str) -> None:
    prometheus = Prometheus(cluster)
    matchers = f'namespace="{namespace}",suite="layouts"'
    measured = SuiteInGit(cluster, suite("layouts", namespace, repeat=REPEAT, comparisons=[COMPARISON], gate=True))
    cluster.until(lambda: cluster.exists(SUITE, "layouts", namespace), seconds=60, what="Flux applies the suite")
    cluster.until(lambda: measured.condition("Reconciling"), seconds=60, what="the first round makes it Reconciling")
    assert measured.ready["status"] == "Unknown"
    until_accepted(measured)
    first = measured.rounds[-1]
    assert (first["cause"], first["verdict"]) == ("Change", "Inconclusive")
    assert kstatus_of(measured.object, cluster) == "Current"

    with measured.throttled():
        ended = until_decided(measured, "throttled")
    assert (ended["verdict"], ended["accepted"]) == ("Regressed", False), measured.diagnosis()
    worst = measured.status["comparisons"][0]
    assert (worst["name"], worst["verdict"]) == ("storage", "Regression")
    assert worst["high"] < 0, worst
    assert measured.condition("Regressed")["status"] == "True"
    stalled = measured.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "Regressed")
    assert kstatus_of(measured.object, cluster) == "Failed"
    assert measured.ready["reason"] == "HealthCheckFailed"
    assert f"BenchmarkSuite/{namespace}/layouts status: 'Failed'" in measured.ready["message"]
    waited = measured.command("watch", "--quiet", "--timeout", "30s")
    assert waited.returncode == 3, waited
    assert "Regress" in waited.stdout + waited.stderr

    def types_of_events() -> list[str]:
        return [one["type"] for one in cluster.api.objects("events", namespace) if one["reason"] == "RoundRegressed"]

    # kopf posts one event after the other, and repeats one that a namespace which is being deleted refuses.
    cluster.until(types_of_events, seconds=120, what="the event")
    assert types_of_events() == ["Warning"]
    metric = f'plimsoll_suite_condition{{{matchers},condition="Regressed"}}'
    cluster.until(lambda: prometheus.value(metric) == 1, seconds=60, what="the metric")
    (rule,) = [rule for rule in prometheus.rules() if rule["name"] == "PlimsollSuiteRegressed"]
    alert = f"({rule['query']}) and on (namespace, suite) {metric}"
    cluster.until(lambda: prometheus.query(alert), seconds=60, what="the alert's expression has a value")

    ended = until_decided(measured, "throttle removed")
    assert ended["verdict"] == "NoRegression", measured.diagnosis()
    assert ended["accepted"]
    assert measured.condition("Regressed")["status"] == "False"
    assert kstatus_of(measured.object, cluster) == "Current"
    assert measured.command("watch", "--quiet", "--timeout", "30s").returncode == 0
    cluster.until(lambda: not prometheus.query(alert), seconds=60, what="the alert's expression has no value")
    shown = measured.command("results")
    assert "NoRegression" in shown.stdout, shown

    measured.remove()
    cluster.until(
        lambda: not cluster.api.objects("benchmarksuites,benchmarkruns,benchmarkresults", namespace),
        seconds=180,
        what="runs and results are gone",
    )


def test_a_schedule_fires_once_and_catches_up_once(cluster: Cluster, namespace: str) -> None:
    cluster.apply(suite("nightly", namespace))
    scheduled = Suite(cluster, "nightly", namespace)
    assert scheduled.until_rounds(1)["cause"] == "Change"

    due = _next_minute()
    scheduled.change(schedule={"cron": _cron(due)})
    fired = scheduled.until_rounds(2)
    assert fired["cause"] == "Scheduled"
    assert _time(scheduled.status["lastScheduleTime"]) == due
    assert due <= datetime.fromisoformat(fired["startTime"]) < due + timedelta(seconds=30), fired

    missed = _next_minute()
    scheduled.change(schedule={"cron": _cron(missed)})
    cluster.until(
        lambda: _time(scheduled.status.get("nextScheduleTime")) == missed, seconds=30, what="the next time is known"
    )
    with cluster.keeping_operator():
        # Not longer than needed: other tests run meanwhile.
        time.sleep(max(0.0, missed.timestamp() - time.time() - 20))
        _scale(cluster, 0)
        try:
            time.sleep(max(0.0, missed.timestamp() - time.time()) + 3)
            assert len(scheduled.rounds) == 2
        finally:
            _scale(cluster, 2)
    caught_up = scheduled.until_rounds(3)
    assert caught_up["cause"] == "Scheduled"
    assert _time(scheduled.status["lastScheduleTime"]) == missed
    scheduled.change(keep=9)
    status = scheduled.until_seen()
    assert len(status["rounds"]) == 3
    assert "round" not in status
    assert _time(status["nextScheduleTime"]) == missed + timedelta(hours=1)


def test_a_round_of_two_variants_decides_a_hypothesis(cluster: Cluster, namespace: str) -> None:
    cluster.apply(suite("depths", namespace, repeat=REPEAT, variants=VARIANTS, hypotheses=[HYPOTHESIS]))
    measured = Suite(cluster, "depths", namespace)
    assert measured.until_rounds(1)["cause"] == "Change"
    while measured.status["hypotheses"][0]["verdict"] == "Undecided" and len(measured.rounds) < ROUNDS:
        measured.request("a busy machine may have made a run Invalid")
    assert measured.status["hypotheses"][0]["verdict"] == "Held", measured.diagnosis()
    children = measured.children()
    assert len(children) == len(VARIANTS) * REPEAT * len(measured.rounds)
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in children} == {"BenchmarkSuite"}


def _next_minute() -> datetime:
    """Return the first full minute that is not before 15 seconds from now."""
    soon = datetime.now(UTC) + timedelta(seconds=75)
    return soon.replace(second=0, microsecond=0)


def _cron(time: datetime) -> str:
    return f"{time.minute} * * * *"


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _scale(cluster: Cluster, replicas: int) -> None:
    cluster.kubectl("scale", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, f"--replicas={replicas}")
    selector = "app.kubernetes.io/component=operator"
    cluster.until(
        lambda: len(cluster.api.objects("pods", OPERATOR_NAMESPACE, selector)) == replicas,
        seconds=60,
        what=f"{replicas} operators",
    )
