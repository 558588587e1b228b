"""What a real operator process tells Prometheus of the objects of a real API server."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from plimsoll import __version__
from plimsoll.cli.launch import free_port
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import Kind, TransientError
from plimsoll.metrics.exposition import STEP_ERRORS
from support.apiserver import ApiServer, operator_process, wait_until
from support.goldens import RESULTS, check_against_catalogue
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(180)]

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
GROUP = "/apis/plimsoll.dev/v1alpha1/namespaces"


class Objects:
    """Plimsoll's objects in one namespace."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self.namespace = namespace
        metadata = {"name": namespace}
        api.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def path(self, plural: str, name: str = "") -> str:
        return f"{GROUP}/{self.namespace}/{plural}/{name}".rstrip("/")

    def make_result(self, result: Mapping[str, Any]) -> str:
        """Make one that a run left, and return its name."""
        name: str = result["metadata"]["name"]
        body = {**result, "metadata": {"name": name, "labels": result["metadata"]["labels"]}}
        self._api.request("POST", self.path("benchmarkresults"), body).expect(201)
        status = {"status": result["status"]}
        path = f"{self.path('benchmarkresults', name)}/status"
        self._api.request("PATCH", path, status, content="application/merge-patch+json").expect(200)
        return name

    def make_run(self, name: str) -> None:
        body = document(suspend=True) | {"metadata": {"name": name}}
        self._api.request("POST", self.path("benchmarkruns"), body).expect(201)

    def get(self, plural: str, name: str) -> dict[str, Any]:
        return self._api.request("GET", self.path(plural, name)).expect(200)

    def delete(self, plural: str, name: str) -> None:
        self._api.request("DELETE", self.path(plural, name)).expect(200)


class Operator:
    """A process of the operator."""

    def __init__(self, port: int) -> None:
        self._port = port

    def scrape(self) -> list[Family]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
            return list(text_string_to_metric_families(answer.read().decode()))

    def values(self, family: str, **labels: str) -> list[float]:
        """Return the values of a family with these labels; none if the operator does not answer yet."""
        try:
            found = [sample for one in self.scrape() if one.name == family for sample in one.samples]
        except OSError:
            return []
        return [sample.value for sample in found if labels.items() <= sample.labels.items()]

    def wait_for(self, count: int, family: str, **labels: str) -> None:
        wait_until(lambda: len(self.values(family, **labels)) == count, f"{count} series of {family} with {labels}")


@contextmanager
def operator(kubeconfig: str, log: Path) -> Iterator[Operator]:
    """Run one."""
    with operator_process(kubeconfig, log) as port:
        yield Operator(port)


def test_metrics_are_of_what_is_there_also_after_a_restart(
    apiserver: ApiServer, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    objects = Objects(apiserver, namespace)
    kept, removed = (objects.make_result(result) for result in RESULTS[:2])
    objects.make_run("rests")
    mine = {"namespace": namespace}
    with operator(kubeconfig, tmp_path / "first.log") as first:
        first.wait_for(2, "plimsoll_result_info", **mine)
        first.wait_for(1, "plimsoll_run_info", **mine, run="rests", status="Suspended")
        before = first.values("plimsoll_result_operations_per_second", **mine, point=RESULTS[0]["spec"]["point"])
        objects.delete("benchmarkresults", removed)
        first.wait_for(1, "plimsoll_result_info", **mine)
        check_against_catalogue(first.scrape())
        assert first.values("plimsoll_operator_info", version=__version__) == [1]
        assert len(first.values("plimsoll_operator_step_errors")) == len(STEP_ERRORS)
    with operator(kubeconfig, tmp_path / "second.log") as second:
        second.wait_for(1, "plimsoll_result_info", **mine)
        assert second.values("plimsoll_result_operations_per_second", **mine) == before
        objects.delete("benchmarkruns", "rests")
        second.wait_for(0, "plimsoll_run_info", **mine)
    metadata = objects.get("benchmarkresults", kept)["metadata"]
    assert "annotations" not in metadata
    assert "finalizers" not in metadata
    assert len({entry["manager"] for entry in metadata["managedFields"]}) == 1, "only the test wrote it"


def test_a_port_that_is_taken_ends_the_operator_with_the_reason(
    apiserver: ApiServer, kubeconfig: str, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{apiserver.port}/metrics"
    liveness = f"http://127.0.0.1:{free_port()}/healthz"
    ended = subprocess.run(
        [sys.executable, "-m", "plimsoll", "operator", "--liveness", liveness, "--metrics", address],
        env={"KUBECONFIG": kubeconfig, "PLIMSOLL_RUNNER_IMAGE": "runner:1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    assert f"--metrics {address}: cannot listen" in ended.stdout + ended.stderr


async def test_whoever_observes_is_told_of_every_request(line: Any, line_config: str, namespace: str) -> None:
    told: list[tuple[str, str | None]] = []

    def observe(verb: str, seconds: float, refusal: str | None) -> None:
        assert 0 <= seconds < 180
        told.append((verb, refusal))

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    async with AioKube(kubeconfig=line_config, observer=observe) as kube:
        await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        told.clear()
        await kube.create(obj)
        await kube.create(obj)
        await kube.list(CONFIG_MAP, namespace=namespace)
        await kube.patch(CONFIG_MAP, "a", namespace, {"data": {"a": "b"}})
        await kube.delete(CONFIG_MAP, "a", namespace)
        await kube.get(CONFIG_MAP, "a", namespace)
        assert told == [
            ("create", None),
            ("create", "409"),
            ("list", None),
            ("patch", None),
            ("delete", None),
            ("get", "404"),
        ]
        await line.cut()
        with pytest.raises(TransientError):
            await kube.get(CONFIG_MAP, "a", namespace)
        assert told[-1] == ("get", "")
