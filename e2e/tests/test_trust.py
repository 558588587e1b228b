"""Untrustworthy numbers: each case gets its verdict and its reason, and never appears in a headline."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from runs import LOAD_REASONS, invalid_for_load, run, workload
from support import Cluster

pytestmark = pytest.mark.quiet


@pytest.fixture
def faults() -> Iterator[ExitStack]:
    """Return a stack that ends the injected faults with the test."""
    with ExitStack() as stack:
        yield stack


def stop_tool(
    cluster: Cluster, faults: ExitStack, namespace: str, client: int, *, after: float, seconds: float
) -> None:
    """Stop the tool of a client of the run `bad` in every trial, once the client runs."""
    cluster.until(
        lambda: cluster.items("pods", namespace, run="bad", client=str(client)), seconds=90, what="the client has a pod"
    )
    pod = cluster.client_pod("bad", namespace, client)["metadata"]["name"]
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "-n", namespace, "--timeout=240s")
    faults.enter_context(cluster.inside(namespace, pod, "stop_tool.py", str(after), str(seconds)))


def attempts(cluster: Cluster, namespace: str) -> Iterator[int]:
    """Yield the number of each attempt of the run `bad` that measures, once it does; one may be aborted before."""
    number = -1

    def later() -> tuple[int | None] | None:
        ended = cluster.condition("bad", namespace, "Succeeded")
        if ended is not None and ended["status"] != "Unknown":
            return (None,)
        trial = cluster.measuring("bad", namespace)
        return None if trial is None or trial["key"]["attempt"] <= number else (trial["key"]["attempt"],)

    while (found := cluster.until(later, seconds=180, what="a trial runs, or none is left")[0]) is not None:
        number = found
        yield number


def assert_invalid(cluster: Cluster, namespace: str, reason: str) -> str:
    """Wait for the run `bad`, check that it is Invalid for that reason everywhere, and return its trials' messages."""
    ended = cluster.until_over("bad", namespace, seconds=400)
    assert (ended["status"], ended["reason"]) == ("False", "InvalidResults"), cluster.diagnosis("bad", namespace)
    status = cluster.run("bad", namespace)["status"]
    assert status["points"]["invalid"] == 1
    assert status.get("headline", []) == []
    (result,) = cluster.results("bad", namespace)
    assert result["status"]["verdict"] == "Invalid"
    assert "summary" not in result["status"]
    # On a busy machine, an attempt may be aborted before it measures anything.
    measured = [trial for trial in result["status"]["trials"] if trial["outcome"] == "Measured"]
    findings = [
        finding
        for trial in measured
        for finding in trial["findings"]
        if finding["reason"] == reason and finding["verdict"] == "Invalid"
    ]
    others = [trial for trial in measured if reason not in invalid_reasons(trial)]
    assert findings, f"{reason} is missing: {cluster.diagnosis('bad', namespace)}"
    assert all(invalid_for_load([trial]) for trial in others), (
        f"{reason} is missing in an attempt: {cluster.diagnosis('bad', namespace)}"
    )
    # A busy machine may add others, such as LowOverlap, to each attempt.
    shared = set.union(*(invalid_reasons(trial) for trial in measured)) & (LOAD_REASONS | {reason})
    table = cluster.kubectl("get", "bres", "-n", namespace)
    assert "Invalid" in table
    assert any(one in table for one in shared), f"the table names none of {shared}: {table}"
    assert any(one in ended["message"] for one in shared), f"the run's condition names none of {shared}"
    return "\n".join(finding["message"] for finding in findings)


def invalid_reasons(trial: dict[str, Any]) -> set[str]:
    return {finding["reason"] for finding in trial["findings"] if finding["verdict"] == "Invalid"}


@pytest.mark.fault(
    "Storage",
    "The storage of a client stands still for 6 s",
    "while measuring",
    ends="the trial is Invalid (`ClientStalled`) and repeated",
    within="the end of the trial",
)
def test_a_stalled_client_is_detected(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("bad", namespace, repetitions=1, workloads=[workload(runtimeSeconds=20)]))
    for _ in attempts(cluster, namespace):
        pod = cluster.client_pod("bad", namespace, 1)["metadata"]["name"]
        cluster.stall(namespace, pod, "plimsoll-bad-client-1", 6)
    messages = assert_invalid(cluster, namespace, "ClientStalled")
    assert "client 1" in messages
    assert "client 0" not in messages


def test_short_repeated_freezes_of_storage_are_detected(cluster: Cluster, namespace: str, faults: ExitStack) -> None:
    reads = workload(fio={"pattern": "randread", "ioDepth": [4], "rateIops": 400}, runtimeSeconds=10)
    cluster.apply(run("bad", namespace, repetitions=1, clients={"count": 1}, workloads=[reads]))
    cluster.until_condition("bad", namespace, "ClientsReady", status="True")
    pod = cluster.client_pod("bad", namespace, 0)["metadata"]["name"]
    freezing = faults.enter_context(ThreadPoolExecutor()).submit(
        cluster.stall, namespace, pod, "plimsoll-bad-client-0", 0.85, 0.9
    )
    messages = assert_invalid(cluster, namespace, "Stalled")
    assert "no client completed anything" in messages
    freezing.result(timeout=60)


@pytest.mark.fault(
    "Conductor and clients",
    "A tool is stopped for 9 s",
    "when a trial starts",
    ends="the trial is Invalid (`LateClient`) and repeated",
    within="the end of the trial",
)
def test_a_late_client_is_detected(cluster: Cluster, namespace: str, faults: ExitStack) -> None:
    cluster.apply(run("bad", namespace, repetitions=1, workloads=[workload(runtimeSeconds=10)]))
    # The ramp explains two seconds, and in some versions of fio a step of it one more.
    stop_tool(cluster, faults, namespace, 1, after=0, seconds=9)
    messages = assert_invalid(cluster, namespace, "LateClient")
    assert "client 1" in messages


def test_a_client_throttled_by_its_cpu_limit_is_detected(cluster: Cluster, namespace: str) -> None:
    # So little that a busy machine gives the clients more, too, before their quota stops them.
    clients = {"count": 2, "resources": {"limits": {"cpu": "150m", "memory": "512Mi"}}}
    fast = workload(fio={"pattern": "randread", "ioDepth": [16]}, runtimeSeconds=8)
    cluster.apply(run("bad", namespace, repetitions=1, clients=clients, workloads=[fast]))
    messages = assert_invalid(cluster, namespace, "ClientThrottled")
    assert "clients.resources" in messages
