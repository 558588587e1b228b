"""The manifests of `plimsoll init` measure what they say: the same workloads on the same storage, small and short."""

from typing import Any

import pytest
import yaml

from plimsoll.cli.init import manifest

from ceph import ADMINISTRATOR, NAMESPACE, PLACEMENT_GROUPS, Ceph
from runs import RATE, STORAGE_CLASS
from suites import Suite
from support import Cluster

STORAGE_CLASSES = {"claim-latency": STORAGE_CLASS, "new-disk": "block", "network": None}
"""The jobs that do not need a Rook cluster."""

STORMS = [pytest.mark.disturbance, pytest.mark.timeout(3600)]

PLACES: dict[str, list[pytest.MarkDecorator]] = {
    "replica-or-erasure-coding": [pytest.mark.secondary],
    "cephfs": [],
    "most-iops": [pytest.mark.tertiary],
    "upgrade-regression": [pytest.mark.secondary],
    "whole-stack": [pytest.mark.tertiary],
    "storm-line": STORMS,
    "before-upgrade": STORMS,
}
"""The other jobs -> the marks of the Ceph that measures them. The secondary one has no CSI drivers."""

SMALL: dict[str, dict[str, Any]] = {
    "fio": {"blockSize": ["64Ki"], "ioDepth": [4], "rateIops": RATE},
    "radosBench": {"objectSize": ["64Ki"], "concurrency": [2]},
    "osdBench": {"totalSize": "4Mi", "user": ADMINISTRATOR},
    "iperf3": {"streams": [1], "direction": ["Send"]},
    "ping": {},
}
"""One point of each workload, and so little load that a busy machine does not look like freezing storage."""

OWN_POOL = "replicapool"
"""The existing pool that a manifest names."""

SHORT = {"runtimeSeconds": 4, "rampSeconds": 1}
DISTURBED = {"Out": SHORT | {"runtimeSeconds": 60}, "Down": SHORT | {"runtimeSeconds": 120}}
"""Trials that include a recovery, by the action; an OSD may not be marked down more often."""

SEARCH = {"start": 50, "limit": 100, "objectives": [{"percentile": "90", "latency": "200ms"}]}


def small(job: str, namespace: str, **names: str | None) -> dict[str, Any]:
    """Return the manifest of a job, of two clients at most, with short trials on small volumes."""
    document: dict[str, Any] = yaml.safe_load(manifest(job, **names))
    document["metadata"]["namespace"] = namespace
    is_suite = "run" in document["spec"]
    spec = document["spec"]["run"] if is_suite else document["spec"]
    for workload in spec["workloads"]:
        (tool,) = SMALL.keys() & workload.keys()
        if disturb := workload.get("disturb"):
            workload.update(DISTURBED[disturb["osds"]["action"]])
            disturb |= {"afterSeconds": 10, "forSeconds": 10}
        else:
            workload.update(SHORT)
        if "line" in workload:
            workload["line"] |= SEARCH
        else:
            workload[tool] |= SMALL[tool]
    spec["clients"]["count"] = min(2, spec["clients"]["count"])
    if "volume" in spec.get("storage", {}):
        spec["storage"]["volume"]["size"] = "64Mi"
    spec["repetitions"] = 1
    spec["prepare"] = {"settleSeconds": 0}
    spec["timeouts"] = {"provisionSeconds": 300, "readySeconds": 240, "totalSeconds": 7200}
    if is_suite:
        document["spec"]["repeat"] = 1
    limit_pools(document)
    return document


def limit_pools(part: Any) -> None:
    """Give every pool as few placement groups as others in these tests have."""
    if isinstance(part, dict):
        if part.keys() & {"replicated", "erasureCoded"}:
            part["placementGroups"] = PLACEMENT_GROUPS
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        limit_pools(inner)


@pytest.mark.parametrize("job", sorted(STORAGE_CLASSES))
def test_a_sample_without_rook_is_measured(cluster: Cluster, namespace: str, job: str) -> None:
    if job == "new-disk":
        cluster.recycle()
        cluster.allow_root(namespace)
    cluster.apply(small(job, namespace, storage_class=STORAGE_CLASSES[job]))
    cluster.until_measured(job, namespace)
    assert cluster.leftovers(namespace) == []


@pytest.mark.ceph
@pytest.mark.parametrize("job", [pytest.param(job, marks=marks) for job, marks in PLACES.items()])
def test_a_sample_on_rook_is_measured_and_leaves_nothing(
    cluster: Cluster, clean: Ceph, namespace: str, job: str, request: pytest.FixtureRequest
) -> None:
    seconds = 3000 if PLACES[job] is STORMS else 600
    clean.until_rook_is_healthy()
    if job == "whole-stack":
        clean.give_administration(namespace)
    if job == "before-upgrade":
        request.addfinalizer(lambda: clean.remove_rook_pool(OWN_POOL))
        clean.make_rook_pool(OWN_POOL)
        clean.until_rook_pool_is_ready(OWN_POOL)
    document = small(job, namespace, rook=f"{NAMESPACE}/rook-ceph")
    cluster.apply(document)
    runs = [job]
    if document["kind"] == "BenchmarkSuite":
        suite = Suite(cluster, job, namespace)
        assert suite.until_rounds(1, seconds=seconds)["cause"] == "Change"
        runs = [run["metadata"]["name"] for run in suite.children()]
        assert len(runs) == len(document["spec"]["variants"])
    for run in runs:
        cluster.until_measured(run, namespace, seconds=seconds)
    assert cluster.leftovers(namespace) == []
