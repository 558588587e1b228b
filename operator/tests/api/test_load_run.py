"""Errors in a run name the field, the value and the remedy."""

import json
from typing import Any

import pytest
import yaml

from plimsoll.api.run import MAX_REPETITIONS, MAX_WORKLOADS, BenchmarkRun, decode_run, load_run
from support.specs import document, problems, workload

EXAMPLE = """
apiVersion: plimsoll.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: rbd-size3, namespace: bench, labels: {team: storage}}
spec:
  storage:
    rook:
      cluster: {namespace: rook-ceph, name: rook-ceph}
      pool:
        replicated: {size: 3}
        failureDomain: host
        deviceClass: ssd
        placementGroups: 64
    volume: {size: 20Gi, mode: Block, access: PVC}
  clients:
    count: 8
    spread: Required
    resources: {requests: {cpu: 2, memory: 1Gi}}
    nodeSelector: {storage: ceph}
  podTemplate:
    tolerations: [{key: bench, operator: Exists}]
    priorityClassName: low
    imagePullSecrets: [{name: registry}]
  workloads:
    - name: random-write
      fio: {pattern: randwrite, blockSize: [4Ki, 64Ki], ioDepth: [1, 16, 64], jobs: 1}
      clients: [1, 2, 4, 8]
      runtimeSeconds: 60
      rampSeconds: 10
  repetitions: 5
  prepare: {prefill: true, discard: true, dropCaches: false, settleSeconds: 10}
  gates: {cephHealth: Required, pauseScrub: true}
  timeouts: {provisionSeconds: 600, readySeconds: 300, totalSeconds: 14400}
  cleanup: Always
  results: Delete
  suspend: false
status: {observedGeneration: 1, anything: [goes]}
"""


def test_example_of_the_design_loads() -> None:
    run = load_run(EXAMPLE)
    assert run.metadata.namespace == "bench"
    assert run.spec.storage is not None
    assert run.spec.storage.volume is not None
    assert run.spec.storage.volume.size == 20 * 2**30
    (workload,) = run.spec.workloads
    assert (workload.tool, workload.clients) == ("fio", (1, 2, 4, 8))
    assert workload.parameters["blockSize"] == ["4Ki", "64Ki"]


def test_json_is_read_like_yaml() -> None:
    assert load_run(json.dumps(yaml.safe_load(EXAMPLE), indent=2)) == load_run(EXAMPLE)


def test_omitted_fields_have_the_documented_defaults() -> None:
    spec = decode_run(document()).spec
    (workload,) = spec.workloads
    assert (workload.clients, workload.runtime_seconds, workload.ramp_seconds) == (None, 60, 10)
    assert (spec.repetitions, spec.cleanup, spec.results, spec.suspend) == (5, "Always", "Delete", False)
    assert (spec.prepare.prefill, spec.prepare.discard, spec.prepare.drop_caches) == (True, True, False)
    assert (spec.gates.ceph_health, spec.timeouts.total_seconds) == ("Required", 14400)
    assert spec.ttl_seconds_after_finished is None


def test_run_needs_no_storage_of_its_own() -> None:
    assert load_run(json.dumps(document() | {"spec": {"workloads": [workload()]}})).spec.storage is None


def test_other_metadata_is_the_api_servers_business() -> None:
    changed = document() | {"metadata": {"name": "run", "resourceVersion": "7", "managedFields": [{}]}}
    assert decode_run(changed).metadata.name == "run"


def test_tool_without_parameters_takes_the_defaults() -> None:
    run = load_run(json.dumps(document(workloads=[{"name": "w", "fio": None}])))
    assert run.spec.workloads[0].parameters == {}


# Fields


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repetition": 3}, "spec.repetition: is not a known field; did you mean repetitions?"),
        (
            {"prepare": {"settle_seconds": 3}},
            "spec.prepare.settle_seconds: is not a known field; did you mean settleSeconds?",
        ),
        (
            {"prepare": {"bogus": 3}},
            "spec.prepare.bogus: is not a known field; remove it or correct its spelling (nearest: dropCaches, ",
        ),
        ({"settleSeconds": 3}, "spec.settleSeconds: is not a known field; it belongs in prepare"),
        ({"blockSize": "4Ki"}, "spec.blockSize: is not a known field; remove it or"),
        ({"gates": {"fillPercent": 3}}, "spec.gates.fillPercent: is not a known field; remove it or"),
        (
            {"storage": {"rook": {"cluster": "rook-ceph/ceph"}}},
            'spec.storage.rook.cluster: "rook-ceph/ceph" must be a mapping of fields, such as {namespace: rook-ceph, ',
        ),
        ({"clients": {"counts": 3}}, "spec.clients.counts: is not a known field; did you mean count?"),
        ({"repetitions": 0}, "spec.repetitions: 0 must be at least 1"),
        ({"repetitions": 21}, f"spec.repetitions: 21 must be at most {MAX_REPETITIONS}"),
        ({"repetitions": "5"}, 'spec.repetitions: "5" must be a whole number'),
        ({"repetitions": True}, "spec.repetitions: true must be a whole number"),
        ({"repetitions": 5.0}, "spec.repetitions: 5.0 must be a whole number"),
        ({"repetitions": [5]}, "spec.repetitions: must be a whole number, not a list"),
        ({"repetitions": {"n": 5}}, "spec.repetitions: must be a whole number, not a mapping"),
        ({"repetitions": None}, "spec.repetitions: is empty; give it a value, or remove it"),
        ({"suspend": "yes"}, 'spec.suspend: "yes" must be true or false'),
        ({"suspend": 1}, "spec.suspend: 1 must be true or false"),
        ({"cleanup": "always"}, 'spec.cleanup: "always" must be Always, OnSuccess or Never'),
        ({"cleanup": ["Always"]}, "spec.cleanup: must be Always, OnSuccess or Never, not a list"),
        ({"prepare": True}, "spec.prepare: true must be a mapping of fields"),
        ({"prepare": []}, "spec.prepare: must be a mapping of fields, not a list"),
        ({"prepare": None}, "spec.prepare: is empty; give it a value, or remove it"),
        ({"prepare": {"fillPercent": 101}}, "spec.prepare.fillPercent: 101 must be at most 100"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished: -1 must be at least 0"),
        ({"clients": {"count": 1001}}, "spec.clients.count: 1001 must be at most 1000"),
        (
            {"clients": {"nodeSelector": {"a": True}}},
            "spec.clients.nodeSelector.a: true must be text; put it in quotes",
        ),
        ({"clients": {"nodeSelector": ["a"]}}, "spec.clients.nodeSelector: must be a mapping of fields, not a list"),
        ({"podTemplate": {"tolerations": {}}}, "spec.podTemplate.tolerations: must be a list"),
        (
            {"gates": {"acceptedHealthChecks": ["mon disk low"]}},
            'spec.gates.acceptedHealthChecks[0]: "mon disk low" must be the name of a health check such as',
        ),
        (
            {"gates": {"acceptedHealthChecks": ["MON_DISK_LOW", "MON_DISK_LOW"]}},
            "spec.gates.acceptedHealthChecks[1]: MON_DISK_LOW is already in the list; each value must be unique",
        ),
        ({"workloads": []}, "spec.workloads: must have at least 1 entry"),
        ({"workloads": None}, "spec.workloads: is empty; give it a value, or remove it"),
        ({"workloads": workload()}, "spec.workloads: must be a list"),
        ({"workloads": [3]}, "spec.workloads[0]: 3 must be a mapping of fields"),
        (
            {"workloads": [workload(name=f"w{n}") for n in range(MAX_WORKLOADS + 1)]},
            "spec.workloads: must have at most 32 entries",
        ),
    ],
)
def test_field_of_the_wrong_kind(spec: dict[str, Any], expected: str) -> None:
    (found,) = problems(document(**spec))
    assert found.startswith(expected)


# Workloads


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "W"}, "[0].name: \"W\" must consist of lower-case letters, digits and '-', and begin and end with a"),
        ({"name": "-w"}, '[0].name: "-w" must consist of lower-case letters'),
        ({"name": "w\n"}, '[0].name: "w'),
        ({"name": ""}, '[0].name: "" must consist of lower-case letters'),
        ({"name": 7}, "[0].name: 7 must be text; put it in quotes"),
        ({"name": "w" * 33}, f'[0].name: "{"w" * 33}" must have at most 32 characters'),
        ({"runtimeSeconds": 0, "rampSeconds": 0}, "[0].runtimeSeconds: 0 must be at least 1"),
        ({"runtimeSeconds": [60]}, "[0].runtimeSeconds: must be a whole number, not a list"),
        (
            {"runtimeSeconds": 20, "rampSeconds": 20},
            "[0].rampSeconds: 20 must be less than runtimeSeconds;",
        ),
        (
            {"runtimeSeconds": 5},
            "[0].rampSeconds: 10 must be less than runtimeSeconds; decrease it (default 10), or",
        ),
        ({"clients": 2}, "[0].clients: 2 must be a list, such as [2]"),
        ({"clients": []}, "[0].clients: must have at least 1 entry"),
        ({"clients": ["2"]}, '[0].clients[0]: "2" must be a whole number'),
        ({"clients": [0]}, "[0].clients[0]: 0 must be at least 1"),
        ({"clients": [1, 2, 1]}, "[0].clients[2]: 1 is already in the list; each value must be unique"),
        ({"clients": [1, 3]}, "[0].clients[1]: 3 is more than spec.clients.count, which is 2; increase that, or"),
        ({"fio": 3}, "[0].fio: 3 is neither a tool with a mapping of parameters nor one of name, clients"),
        ({"fio": ["randread"]}, "[0].fio: is neither a tool with a mapping of parameters nor one of name, clients"),
        (
            {"radosBench": {}},
            "[0]: must have one tool besides name, clients, runtimeSeconds, rampSeconds, caches, line, disturb",
        ),
        (
            {"runtimeSecond": 3},
            (
                "[0]: must have one tool besides name, clients, runtimeSeconds, rampSeconds, caches, line, disturb, "
                "but has fio and runtimeSecond; did you mean runtimeSeconds?"
            ),
        ),
        ({"settleSeconds": 3}, "[0].settleSeconds: is not a known field; it belongs in prepare"),
        ({"repetitions": 3}, "[0].repetitions: is not a known field; it belongs in spec"),
        ({"blockSize": "4Ki"}, "[0].blockSize: is not a known field; if it is a parameter of fio, move it there"),
        ({"tool": "fio"}, "[0].tool: is not a known field; if it is a parameter of fio, move it there"),
    ],
)
def test_workload(fields: dict[str, Any], expected: str) -> None:
    (found,) = problems(document(workloads=[workload(**fields)]))
    assert found.startswith(f"spec.workloads{expected}")


def test_workload_without_a_tool() -> None:
    assert problems(document(workloads=[{"name": "w"}])) == [
        "spec.workloads[0]: has no tool; add one such as fio with a mapping of its parameters"
    ]


def test_typo_in_a_workload_without_a_tool() -> None:
    (found,) = problems(document(workloads=[{"name": "w", "runtimeSecond": 3}]))
    assert found.startswith("spec.workloads[0].runtimeSecond: 3 is neither a tool with a mapping")


def test_workload_names_differ() -> None:
    names = ("a", "b", "a", "a")
    assert problems(document(workloads=[workload(name=name) for name in names])) == [
        f'spec.workloads[{index}].name: "a" is already the name of workloads[0]; choose unique names'
        for index in (2, 3)
    ]


# Documents


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kind": "Benchmark"}, 'kind: "Benchmark" must be BenchmarkRun'),
        ({"apiVersion": "plimsoll.dev/v1"}, 'apiVersion: "plimsoll.dev/v1" must be plimsoll.dev/v1alpha1'),
        ({"specs": {}}, "specs: is not a known field; did you mean spec?"),
        ({"metadata": {}}, "metadata.name: is required; add it"),
        ({"metadata": None}, "metadata: is empty; give it a value, or remove it"),
        (
            {"metadata": {"generateName": "run-"}},
            "metadata.generateName: is not supported; write metadata.name instead",
        ),
        ({"metadata": {"name": "Run_1"}}, 'metadata.name: "Run_1" must consist of lower-case letters, digits and'),
        ({"metadata": {"name": "r" * 64}}, f'metadata.name: "{"r" * 64}" must have at most 63 characters'),
    ],
)
def test_document(change: dict[str, Any], expected: str) -> None:
    (found,) = problems(document() | change)
    assert found.startswith(expected)


def test_missing_parts_are_reported() -> None:
    assert problems({}) == [f"{field}: is required; add it" for field in ("apiVersion", "kind", "metadata", "spec")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "document: is empty; write one BenchmarkRun of plimsoll.dev/v1alpha1"),
        ("- a", "document: is not a mapping; write one BenchmarkRun of plimsoll.dev/v1alpha1"),
        ("just words", "document: is not a mapping; write one BenchmarkRun of plimsoll.dev/v1alpha1"),
        (EXAMPLE + "---" + EXAMPLE, "document: line 39, column 1: is a second document; write each document to"),
        (EXAMPLE + "kind: Pod\n", "document: line 38, column 1: key kind is duplicate; remove one"),
        ("a: b: c", "document: line 1, column 5: is not YAML: mapping values are not allowed here"),
    ],
    ids=["empty", "list", "words", "two documents", "key twice", "syntax"],
)
def test_text(text: str, expected: str) -> None:
    (found,) = problems(text)
    assert found.startswith(expected)


def test_all_problems_are_reported_at_once_in_their_order() -> None:
    wrong = document(
        clients={"count": 0, "spreads": "Required"},
        workloads=[workload(clients=2), workload(name="B", rampSeconds="10")],
        repetitions="many",
    )
    found = problems(wrong | {"kind": "Run"})
    assert [line.partition(": ")[0] for line in found] == [
        "kind",
        "spec.clients.count",
        "spec.clients.spreads",
        "spec.workloads[0].clients",
        "spec.workloads[1].name",
        "spec.workloads[1].rampSeconds",
        "spec.repetitions",
    ]


def test_problems_of_the_workloads_together_are_reported_at_once() -> None:
    wrong = document(workloads=[workload(clients=[3]), workload(clients=[1, 4])])
    assert [line.partition(": ")[0] for line in problems(wrong)] == [
        "spec.workloads[1].name",
        "spec.workloads[0].clients[0]",
        "spec.workloads[1].clients[1]",
    ]


def test_long_values_are_shortened() -> None:
    (found,) = problems(document(cleanup="x" * 5000))
    assert len(found) < 200


def test_models_are_closed_and_frozen() -> None:
    run = decode_run(document())
    with pytest.raises(ValueError, match="frozen"):
        run.spec.repetitions = 3  # type: ignore[misc]
    assert isinstance(run, BenchmarkRun)
