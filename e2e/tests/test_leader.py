"""Operators in a real cluster: when the leader is stopped, killed, frozen or cut off, another one takes over."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recorder import Recorder
from runs import assert_measured_once, run
from suites import Suite, suite
from support import Cluster

pytestmark = pytest.mark.kills

PHASES = ("Preparing", "Measuring", "CleaningUp")

WITHIN_SECONDS = {"TERM": 5, "KILL": 30, "STOP": 30, "cut off": 30}
"""A stopped leader releases its Lease, which otherwise expires after 15 s; and a busy machine takes its time."""

SETTLED_SECONDS = 6  # longer than the operator's pause after an error

HOLD = "plimsoll.test/hold"
KINDS = (
    *("benchmarkruns", "benchmarkresults", "configmaps", "jobs", "networkpolicies", "persistentvolumeclaims"),
    *("rolebindings", "roles", "secrets", "serviceaccounts", "services"),
)


@pytest.mark.fault(
    "Operator",
    "The leading operator is stopped, killed, frozen, or cut off from the API server",
    "while a run prepares, measures or cleans up",
    ends=(
        "another operator takes over, the measurement continues, and nothing is created twice; a former leader that "
        "resumes exits without a change"
    ),
    within="16 s; a few seconds if it is stopped",
)
@pytest.mark.parametrize(
    "way", ["KILL", *(pytest.param(way, marks=pytest.mark.thorough) for way in ("TERM", "STOP", "cut off"))]
)
def test_another_operator_follows_in_each_phase_and_nothing_is_made_twice(
    cluster: Cluster, namespace: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(cluster.api, namespace, KINDS)
    # The storage settles until another operator leads, so that each one leads in another phase.
    manifest = run("handed-over", namespace, prepare={"settleSeconds": WITHIN_SECONDS[way] * 2 // 3})
    with cluster.keeping_operator(), successors(cluster, len(PHASES)) as former, recorder.recording():
        cluster.apply(manifest)
        for phase in PHASES:
            with reached(cluster, "handed-over", namespace, phase):
                leader, seconds = cluster.take_over(way)
            former.append(leader)
            with capsys.disabled():
                print(f"\n{way} in {phase}: followed within {seconds:.1f} s")  # noqa: T201 - to be read
            assert seconds < WITHIN_SECONDS[way]
        cluster.until_succeeded("handed-over", namespace)
        before, follower = settled(cluster, namespace), cluster.lease()["holderIdentity"]
        for leader in former:
            wake(cluster, way, leader)
        assert versions(cluster, namespace) == before, "a former leader changes nothing"
        assert cluster.lease()["holderIdentity"] == follower, "the former leaders wait"
    created = created_once(recorder)
    assert {"Job", "PersistentVolumeClaim", "BenchmarkResult"} <= {kind for kind, _ in created}
    assert cluster.interruptions("handed-over", namespace) == []
    for result in cluster.results("handed-over", namespace):
        assert_measured_once(result["status"]["trials"], 2)
    assert cluster.leftovers(namespace) == []


@pytest.mark.thorough
def test_a_round_that_is_requested_while_no_operator_leads_begins_once(cluster: Cluster, namespace: str) -> None:
    """The former leader has the request in its watch when it wakes up, while its successor begins the round."""
    recorder, measured = Recorder(cluster.api, namespace, KINDS), Suite(cluster, "requested", namespace)
    with cluster.keeping_operator(), successors(cluster, 1) as former, recorder.recording():
        cluster.apply(suite("requested", namespace))
        first = measured.until_rounds(1)
        leader, _ = cluster.take_over("STOP", lambda: measured.annotate("request-round", "no operator leads"))
        former.append(leader)
        follower = cluster.lease()["holderIdentity"]
        wake(cluster, "STOP", leader)
        second = measured.until_rounds(2)
        assert cluster.lease()["holderIdentity"] == follower, "the former leader waits"
    assert second["cause"] == "Requested"
    assert measured.rounds == [second, first], "the first round is unchanged"
    runs = {name for kind, name in created_once(recorder) if kind == "BenchmarkRun"}
    assert len(runs) == 2, f"a run for each round: {runs}"
    events = cluster.api.objects("events", namespace)
    assert len([event for event in events if event["reason"] == "RoundStarted"]) == 2


def created_once(recorder: Recorder) -> set[tuple[str, str]]:
    """Return the kinds and names of the recorded objects; none may have been created again."""
    created = recorder.created()
    assert [what for what, uids in created.items() if len(uids) > 1] == []
    return set(created)


@contextmanager
def successors(cluster: Cluster, count: int) -> Iterator[list[dict[str, Any]]]:
    """Have so many operators wait; afterwards replace the former leaders, which the context lists, and return to two.

    The kubelet would start a container that ended repeatedly later and later.
    """
    former: list[dict[str, Any]] = []
    cluster.scale_operator(count + 1)
    try:
        yield former
    finally:
        cluster.scale_operator(2, without=[pod["metadata"]["name"] for pod in former])


@contextmanager
def reached(cluster: Cluster, name: str, namespace: str, phase: str) -> Iterator[None]:
    """Wait until a run is in a phase; it cannot end its cleanup before the context does."""
    match phase:
        case "Preparing":
            cluster.until(
                lambda: cluster.state(name, namespace).get("phase") in {"Preparing", "Settling"},
                seconds=120,
                what="the conductor prepares",
            )
            yield
        case "Measuring":
            cluster.until_measuring(name, namespace)
            yield
        case _:
            claim = cluster.items("persistentvolumeclaims", namespace, run=name)[0]["metadata"]
            finalize(cluster, claim, [*claim["finalizers"], HOLD])
            try:
                cluster.until_condition(name, namespace, "Succeeded", status="True")
                yield
                assert (cluster.condition(name, namespace, "CleanedUp") or {}).get("status") != "True"
            finally:
                finalize(cluster, claim, [])


def finalize(cluster: Cluster, claim: dict[str, Any], finalizers: list[str]) -> None:
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    cluster.kubectl("patch", "pvc", claim["name"], "-n", claim["namespace"], "--type=merge", "-p", patch)


def wake(cluster: Cluster, way: str, leader: dict[str, Any]) -> None:
    """Wake up a former leader, or connect it again, and wait until its process has ended and another one waits."""
    if way == "STOP":
        cluster.signal_pod(leader, "CONT")
    elif way == "cut off":
        cluster.connect(leader)

    def waits() -> bool:
        status = cluster.operators()[leader["metadata"]["name"]]["status"]["containerStatuses"][0]
        restarted: bool = status["restartCount"] > leader["status"]["containerStatuses"][0]["restartCount"]
        return restarted and status["ready"]

    cluster.until(waits, seconds=90, what="the former leader has started again")


def settled(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the resource versions once the operator that leads has changed nothing for a while."""
    last, since = versions(cluster, namespace), time.monotonic()

    def unchanged() -> bool:
        nonlocal last, since
        found = versions(cluster, namespace)
        if found != last:
            last, since = found, time.monotonic()
        return time.monotonic() - since > SETTLED_SECONDS

    cluster.until(unchanged, seconds=120, what="nothing changes any more")
    return last


def versions(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the resource versions of the objects in a namespace."""
    found = cluster.api.objects(",".join(KINDS), namespace)
    return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in found}
