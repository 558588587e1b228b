"""How often a real operator process looks at a run on a real API server, where a test plays the rest of the cluster."""

import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.api.names import RunPhase
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import STATE_FILE, CurrentTrial, Live, RunState, TrialKey
from plimsoll.lifecycle import naming
from plimsoll.plan.document import PLAN_FILE, load_plan
from support.apiserver import ApiServer, operator_config, operator_process, wait_until
from support.pretend_cluster import Document, phase
from support.pretend_conductor import PretendConductors
from support.served_world import ServedCluster, controller_manager
from support.specs import document, workload

pytestmark = [pytest.mark.crd, pytest.mark.timeout(600)]

PULSES = 10
PULSE_SECONDS = 0.15
"""More than the time in which kopf joins changes, so that each of them could lead to a look."""

OTHERS = 4
"""Looks that nothing that is counted here led to: at regular intervals, and what came before."""

_STEPS = "plimsoll_operator_step_duration_seconds"
_TIME = "2026-01-01T12:00:00Z"


class Conductor:
    """A conductor, whose pod runs, and which reports what a real one does without measuring anything."""

    def __init__(self, cluster: ServedCluster, pod: Document) -> None:
        self._cluster = cluster
        self._job = pod["metadata"]["ownerReferences"][0]["uid"]
        self._state = RunState(epoch=pod["metadata"]["uid"])
        self.plan = load_plan(self._map(naming.plan_config_map("run"))["data"][PLAN_FILE])

    def gather(self) -> Iterator[None]:
        """Report that one client after the other registers; yield after each write."""
        everybody = tuple(range(self.plan.members))
        for number in range(len(everybody) + 1):
            missing = everybody[number:]
            message = f"waiting for {len(missing)} clients" if missing else ""
            self._say(registered=everybody[:number], missing=missing, message=message)
            yield
        self._say(gathered=self._job)

    def measure(self, pulses: int) -> Iterator[bool]:
        """Report every trial, so often with its rates; yield after each write whether a status shows it."""
        self._say(phase=RunPhase.MEASURING, trials_total=len(self.plan.pairs), message="")
        for done, (number, point) in enumerate(self.plan.pairs):
            key = TrialKey(point=point.name, pass_number=number, attempt=0)
            self._say(in_flight=key, in_flight_since=_TIME, message="", trials_done=done)
            yield True
            self._say(current=CurrentTrial(key=key, label=point.label, clients=(0,), starts_at=1.0, ends_at=2.0))
            yield True
            for _ in range(pulses):
                self._say(live=Live(clients=1, rates=()))
                yield False
            self._say(current=None, live=None, message=f"recording {key}")
            yield True
            self._record(point.name, is_last=number == self.plan.repetitions - 1)
        self._say(phase=RunPhase.COMPLETE, in_flight=None, trials_done=len(self.plan.pairs), message="")

    def _record(self, point: str, *, is_last: bool) -> None:
        (found,) = [one for one in self._objects("BenchmarkResult") if one["spec"]["point"] == point]
        status = ResultStatus(final=is_last).model_dump(mode="json", exclude_none=True)
        self._cluster.set_status(found, **status)

    def _say(self, **changes: Any) -> None:
        elapsed = self._state.elapsed_seconds + 1
        self._state = self._state.model_copy(update={"elapsed_seconds": elapsed, **changes})
        data = {STATE_FILE: self._state.model_dump_json()}
        self._cluster.edit(self._map(naming.state_config_map("run")), lambda new: new["data"].update(data))

    def _map(self, name: str) -> Document:
        (found,) = [one for one in self._objects("ConfigMap") if one["metadata"]["name"] == name]
        return found

    def _objects(self, kind: str) -> list[Document]:
        return list(self._cluster.kube.objects(kind))


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
    cluster = ServedCluster(apiserver, namespace)
    conductors = PretendConductors(cluster)

    def succeeded() -> bool:
        conditions = apiserver.request("GET", path).expect(200)["status"]["conditions"]
        return any((one["type"], one["status"]) == ("Succeeded", "True") for one in conditions)

    account = operator_config(apiserver, tmp_path, namespace)
    with (
        controller_manager(apiserver, tmp_path),
        operator_process(account, tmp_path / "log", "--namespace", namespace) as port,
    ):
        wait_until(_working(cluster, lambda: bool(conductors.pods())), "the conductor runs", seconds=120)
        conductor = Conductor(cluster, conductors.pods()[0])
        for _ in conductor.gather():
            work(cluster)
        before, writes = looks_at(port), 0
        for is_shown in conductor.measure(PULSES):
            if is_shown:
                writes += 1
                wait_until(partial(_looks_again, port, looks_at(port)), "a look at what the conductor wrote")
            else:
                time.sleep(PULSE_SECONDS)
        assert looks_at(port) - before <= writes + OTHERS
        for pod in cluster.kube.objects("Pod", lambda pod: phase(pod) == "Running"):
            cluster.end(pod, 0)
        wait_until(_working(cluster, succeeded), "the run has succeeded", seconds=120)
    log = (tmp_path / "log").read_text()
    assert "Forbidden" not in log
    assert "Traceback" not in log


def _looks_again(port: int, known: float) -> bool:
    return looks_at(port) > known


def work(cluster: ServedCluster) -> None:
    """Let scheduler, kubelets and provisioner do what is to be done now."""
    cluster.begin_round()
    cluster.step()


def _working(cluster: ServedCluster, condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that has the cluster work each time before it is checked."""

    def checked() -> bool:
        work(cluster)
        return condition()

    return checked
