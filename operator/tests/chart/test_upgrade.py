"""An upgrade of the definitions, with objects of a version whose fields were others, on a real API server."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from chart.rendering import CHART, LOCAL_IMAGES, NAMESPACE, helm
from plimsoll.lifecycle.run import Settings, run_of
from support.apiserver import CRDS, ApiServer, Document, create, patch, read_yaml, running_apiserver

pytestmark = [pytest.mark.chart, pytest.mark.crd]

COLLECTIONS = "/apis/plimsoll.dev/v1alpha1/namespaces/default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SEARCH: Document = {
    "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
    "workloads": [
        {
            "name": "line",
            "fio": {"pattern": "randread", "ioDepth": [16]},
            "line": {"vary": "Rate", "start": 100, "objectives": [{"percentile": "99", "latencyMicroseconds": 5000}]},
        }
    ],
}
PLAIN: Document = {**SEARCH, "workloads": [{"name": "read", "fio": {"pattern": "randread"}}]}
ENDED = {"type": "Succeeded", "status": "True", "reason": "Valid", "message": "", "observedGeneration": 1}


@pytest.fixture(scope="module")
def definitions() -> list[Document]:
    return [read_yaml(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]


@pytest.fixture
def earlier(definitions: list[Document], tmp_path: Path) -> Iterator[ApiServer]:
    """Return an API server with definitions that still have fields which the present ones lack."""
    with running_apiserver(tmp_path) as server:
        for definition in deepcopy(definitions):
            fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            fields = fields.get("run", {}).get("properties", fields)
            if "workloads" in fields:
                fields["clients"]["properties"]["priorityClassName"] = {"type": "string"}
                fields["clients"]["properties"]["nice"] = {"type": "integer", "default": 5}
                fields["clients"]["properties"]["tolerations"] = {"type": "array", "items": {"type": "string"}}
                objective = fields["workloads"]["items"]["properties"]["line"]["properties"]["objectives"]["items"]
                objective["properties"]["latencyMicroseconds"] = {"type": "integer"}
                objective["required"] = ["latencyMicroseconds"]
            server.define(definition)
        yield server


def put(server: ApiServer, kind: str, name: str, spec: Document, **status: object) -> None:
    plural = f"{COLLECTIONS}/{kind.lower()}s"
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    create(server, plural, document, keep=True).expect(201)
    if status:
        patch(server, f"{plural}/{name}/status", {"status": status}).expect(200)


def complaint(server: ApiServer, tmp_path: Path) -> str:
    """Return why Helm refuses the chart in the cluster; empty if it does not."""
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(server.kubeconfig()))
    chart = ("plimsoll", str(CHART), "--namespace", NAMESPACE, "--values", str(LOCAL_IMAGES))
    options = ("--dry-run=server", "--take-ownership", f"--kubeconfig={config}")
    done = helm("upgrade", "--install", *chart, *options)
    return done.stderr if done.returncode else ""


def test_an_upgrade_that_would_drop_fields_in_use_is_refused_with_their_names(
    earlier: ApiServer, tmp_path: Path
) -> None:
    low: Document = {"clients": {"priorityClassName": "low"}}
    ended = {"conditions": [ENDED | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    put(earlier, "BenchmarkRun", "plain", PLAIN | {"clients": {"tolerations": [], "nice": 5}})
    put(earlier, "BenchmarkRun", "ended", PLAIN | low, **ended)
    put(earlier, "BenchmarkSuite", "asleep", {"run": SEARCH, "variants": [{"name": "any"}], "suspend": True})
    assert complaint(earlier, tmp_path) == ""

    put(earlier, "BenchmarkRun", "waiting", PLAIN | low)
    put(earlier, "BenchmarkRun", "nicer", PLAIN | {"clients": {"nice": 6}})
    put(earlier, "BenchmarkRun", "searched", SEARCH, **ended)
    put(earlier, "BenchmarkSuite", "nightly", {"run": SEARCH | low, "variants": [{"name": "any"}]})
    found = complaint(earlier, tmp_path)
    field = "workloads[0].line.objectives[0].latencyMicroseconds"
    assert f"\n  BenchmarkRun default/searched: spec.{field}\n" in found
    assert "\n  BenchmarkRun default/nicer: spec.clients.nice\n" in found
    assert "\n  BenchmarkRun default/waiting: spec.clients.priorityClassName\n" in found
    assert f"\n  BenchmarkSuite default/nightly: spec.run.clients.priorityClassName, spec.run.{field}\n" in found
    assert "4 in all" in found


def test_a_run_that_a_definition_no_longer_accepts_is_invalid_and_its_status_can_be_written(
    earlier: ApiServer, definitions: list[Document]
) -> None:
    put(earlier, "BenchmarkRun", "search", SEARCH)
    for definition in definitions:
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        version = earlier.request("GET", path).expect(200)["metadata"]["resourceVersion"]
        document = {**definition, "metadata": definition["metadata"] | {"resourceVersion": version}}
        earlier.request("PUT", path, document).expect(200)
    path = f"{COLLECTIONS}/benchmarkruns/search"
    stored = earlier.request("GET", path).expect(200)
    run = run_of(stored, Settings(runner_image="runner"))
    assert run.document is None
    assert "spec.workloads[0].line.objectives[0].latency: " in run.spec_problem
    condition = ENDED | {"status": "False", "reason": "InvalidSpec", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    written = patch(earlier, f"{path}/status", {"status": {"conditions": [condition]}}).expect(200)
    assert written["status"]["conditions"] == [condition]
    patch(earlier, path, {"metadata": {"finalizers": ["plimsoll.dev/teardown"]}}).expect(200)
