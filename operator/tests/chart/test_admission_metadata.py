"""The chart's limits on the metadata of runs and suites in a real API server, which definitions cannot set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart.rendering import NAMESPACE, render
from support.apiserver import CRDS, Answer, ApiServer, read_yaml, read_yamls, running_apiserver, wait_until
from support.specs import document

pytestmark = [pytest.mark.chart, pytest.mark.crd]

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{}"
MANIFESTS = Path(__file__).parents[3] / "manifests"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RUNS = "/apis/plimsoll.dev/v1alpha1/namespaces/bench/benchmarkruns"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an API server with Plimsoll's definitions and the active policy."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        for path in sorted(Path(CRDS).glob("*.yaml")):
            server.define(read_yaml(path.read_text()))
        for name in (NAMESPACE, "bench"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            server.request("POST", "/api/v1/namespaces", namespace).expect(201)
        rendering = render()
        for kind, ending in (("ValidatingAdmissionPolicy", "ies"), ("ValidatingAdmissionPolicyBinding", "ybindings")):
            (one,) = [one for one in rendering.of_kind(kind) if one["metadata"]["name"] == "plimsoll-metadata"]
            server.request("POST", f"{POLICIES.format(ending)}?fieldValidation=Strict", one).expect(201)
        wait_until(lambda: not created(server, labels=many(65)).accepted, "the policy is in force")
        yield server


def many(count: int) -> dict[str, str]:
    return {f"example.com/{number}": "" for number in range(count)}


def owners(count: int) -> list[dict[str, str]]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{number}", "uid": str(number)} for number in range(count)
    ]


def created(server: ApiServer, **metadata: Any) -> Answer:
    """Return the answer to a dry run of a run's creation with that metadata."""
    run = document()
    run["metadata"] = {"name": "run", "namespace": "bench", **metadata}
    return server.request("POST", f"{RUNS}?dryRun=All", run)


def test_runs_with_the_usual_metadata_are_accepted(server: ApiServer) -> None:
    assert created(server).accepted
    finalizers = [*many(16)]
    assert created(
        server, labels=many(64), annotations=many(64), ownerReferences=owners(16), finalizers=finalizers
    ).accepted
    assert created(server, annotations={"a": "x" * (32 * 1024 - 1)}).accepted


def test_every_suite_and_run_of_the_manifests_can_be_applied(server: ApiServer) -> None:
    """`kubectl apply` keeps a copy of the specification in an annotation."""
    found = [obj for path in sorted(MANIFESTS.rglob("*.yaml")) for obj in read_yamls(path.read_text())]
    specs = [obj["spec"] for obj in found if obj.get("kind") in {"BenchmarkRun", "BenchmarkSuite"} and "spec" in obj]
    largest = max(len(json.dumps(spec, indent=1)) for spec in specs)
    assert 5_000 < largest < 16_000
    assert created(server, annotations={LAST_APPLIED: "x" * 2 * largest}).accepted


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"labels": many(30_000)}, "metadata.labels: 30000 labels, at most 64 are allowed; remove some"),
        ({"annotations": many(10_000)}, "metadata.annotations: 10000 annotations, at most 64 are allowed; remove some"),
        ({"finalizers": [*many(17)]}, "metadata.finalizers: 17 finalizers, at most 16 are allowed; remove some"),
        ({"ownerReferences": owners(17)}, "metadata.ownerReferences: 17 owners, at most 16 are allowed; remove some"),
        (
            {"annotations": {f"a{number}": "x" * 4000 for number in range(62)}},
            "metadata.annotations: 248176 bytes, at most 32768 are allowed; remove some, or use kubectl apply --server",
        ),
        ({"annotations": {"a": "\U0001f41f" * 8192}}, "metadata.annotations: 32769 bytes, at most 32768 are allowed"),
        (
            {"labels": {f"{'p' * 253}/{number:03}": "x" * 63 for number in range(64)}},
            "metadata.labels: 20480 bytes, at most 8192 are allowed; remove some",
        ),
        (
            {"ownerReferences": [{**owners(1)[0], "uid": "u" * 100_000}]},
            "metadata.ownerReferences: 100013 bytes, at most 8192 are allowed; remove some",
        ),
    ],
)
def test_runs_that_would_fill_the_operators_memory_are_refused(
    server: ApiServer, metadata: dict[str, Any], message: str
) -> None:
    answer = created(server, **metadata)
    assert not answer.accepted
    assert message in answer.message
