"""How often a real operator process looks at a run on a real API server, where a test plays the rest of the cluster."""

import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.accounts import operator_config
from support.apiserver import ApiServer, wait_until
from support.operator_process import operator_process
from support.played_cluster import PlayedCluster, PlayedConductor
from support.run_documents import document, workload

pytestmark = [pytest.mark.crd, pytest.mark.timeout(300)]

PULSES = 10
PULSE_SECONDS = 0.15
"""More than the time in which kopf joins changes, so that each of them could lead to a look."""

OTHERS = 4
"""Looks that nothing that is counted here led to: at regular intervals, and what came before."""

_STEPS = "plimsoll_operator_step_duration_seconds"


def create_run(apiserver: ApiServer, namespace: str) -> str:
    """Create a run of two clients and two trials, and what is there before it; return its path."""
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    apiserver.request("POST", "/api/v1/namespaces", place).expect(201)
    storage_class = {"metadata": {"name": namespace}, "provisioner": "csi.example.com"}
    apiserver.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage_class).expect(201)
    storage = {"storageClass": {"name": namespace}, "volume": {"size": "1Gi"}}
    body = document(storage=storage, workloads=[workload(fio={"ioDepth": [1, 16]})], repetitions=1)
    path = f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/benchmarkruns"
    apiserver.request("POST", path, body).expect(201)
    return f"{path}/run"


def looks_at(port: int) -> float:
    """Return how often the operator has looked."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = (one for family in families for one in family.samples)
    return next(one.value for one in samples if (one.name, one.labels) == (f"{_STEPS}_count", {"step": "observe"}))


def test_a_run_is_looked_at_when_it_can_notice_something(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    path = create_run(apiserver, namespace)
    cluster = PlayedCluster(apiserver, namespace)

    def succeeded() -> bool:
        conditions = apiserver.request("GET", path).expect(200)["status"]["conditions"]
        return any((one["type"], one["status"]) == ("Succeeded", "True") for one in conditions)

    account = operator_config(apiserver, tmp_path, namespace)
    with operator_process(account, tmp_path / "log", "--namespace", namespace) as port:
        wait_until(_working(cluster, lambda: cluster.conductor() is not None), "the conductor runs", seconds=120)
        conductor = PlayedConductor(cluster, "run", cluster.conductor() or {})
        for _ in conductor.gather():
            cluster.step()
        before, writes = looks_at(port), 0
        for is_shown in conductor.measure(PULSES):
            if is_shown:
                writes += 1
                wait_until(partial(_looks_again, port, looks_at(port)), "a look at what the conductor wrote")
            else:
                time.sleep(PULSE_SECONDS)
        assert looks_at(port) - before <= writes + OTHERS
        cluster.finish()
        wait_until(_working(cluster, succeeded), "the run has succeeded", seconds=120)
    log = (tmp_path / "log").read_text()
    assert "Forbidden" not in log
    assert "Traceback" not in log


def _looks_again(port: int, known: float) -> bool:
    return looks_at(port) > known


def _working(cluster: PlayedCluster, condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that has the cluster work each time before it is checked."""

    def checked() -> bool:
        cluster.step()
        return condition()

    return checked
