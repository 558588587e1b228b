"""A run in the API server: defaults, immutable fields, columns."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from crd.manifests import CEPH, FULL, REMOVED, SMALL, changed
from plimsoll.api.run import decode_run
from plimsoll.api.status import BenchmarkRunStatus
from support.apiserver import RUNS, ApiServer, Document, apply, create, delete, patch, rows, wait_until
from support.full_documents import FULL_STATUS, RUN_STATUS

pytestmark = pytest.mark.crd


@pytest.fixture
def run(api: ApiServer) -> Iterator[str]:
    """Create a run and return its path."""
    path = f"{RUNS}/{FULL['metadata']['name']}"
    create(api, RUNS, dict(FULL), keep=True).expect(201)
    yield path
    delete(api, path)


# What is there after creating


def test_status_of_a_new_run_says_that_nobody_saw_it(api: ApiServer, run: str) -> None:
    assert api.request("GET", run).expect(200)["status"] == {"observedGeneration": -1}


def test_status_cannot_be_set_on_creation(api: ApiServer) -> None:
    claimed = {**SMALL, "status": {"observedGeneration": 7}}
    assert create(api, RUNS, claimed).expect(201)["status"] == {"observedGeneration": -1}


def test_defaults_are_stored(api: ApiServer) -> None:
    assert create(api, RUNS, dict(SMALL)).expect(201)["spec"] == {
        "storage": {
            "storageClass": {"name": "fast"},
            # The default of `mode` depends on other fields.
            "volume": {"size": "1Gi", "sharing": "PerClient", "access": "PVC", "rbdCache": False},
        },
        "clients": {
            "count": 2,
            "spread": "Required",
            "resources": {},
            "nodeSelector": {},
        },
        "conductor": {"resources": {}, "nodeSelector": {}},
        "podTemplate": {"labels": {}, "annotations": {}, "tolerations": [], "imagePullSecrets": [], "env": []},
        "workloads": [
            {
                "name": "w",
                "runtimeSeconds": 60,
                "rampSeconds": 10,
                "fio": {
                    "pattern": "randread",
                    "randomDistribution": "random",
                    "ioDepth": [1],
                    "jobs": 1,
                    "fsyncEvery": 0,
                    "directIo": True,
                },
            }
        ],
        "repetitions": 5,
        "prepare": {
            "prefill": True,
            "discard": True,
            "dropCaches": False,
            "settleSeconds": 10,
            "fillPercent": 80,
        },
        "gates": {"cephHealth": "Required", "acceptedHealthChecks": [], "pauseScrub": True, "stopOn": []},
        "limits": {"fillPercent": 70},
        "timeouts": {"provisionSeconds": 600, "readySeconds": 300, "totalSeconds": 14400},
        "cleanup": "Always",
        "results": "Delete",
        "suspend": False,
    }


def test_what_is_stored_means_what_was_written(api: ApiServer) -> None:
    stored = create(api, RUNS, dict(SMALL)).expect(201)
    written, read = decode_run(dict(SMALL)).spec, decode_run(stored).spec
    assert read.model_copy(update={"workloads": ()}) == written.model_copy(update={"workloads": ()})


def test_pool_has_its_default_too(api: ApiServer) -> None:
    document = changed(FULL, {"spec.storage.rook.pool.failureDomain": REMOVED})
    stored = create(api, RUNS, document).expect(201)
    assert stored["spec"]["storage"]["rook"]["pool"]["failureDomain"] == "host"


def test_tools_of_ceph_have_their_defaults_too(api: ApiServer) -> None:
    document = changed(
        FULL,
        {
            "spec.storage": {"ceph": CEPH},
            "spec.workloads": [
                {"name": "rados", "radosBench": {}},
                {"name": "osds", "osdBench": {"keyringSecret": {"name": "admin"}}},
            ],
        },
    )
    stored = create(api, RUNS, document).expect(201)["spec"]
    rados, osds = stored["workloads"]
    assert rados["radosBench"] == {"operation": "write", "objectSize": ["4Mi"], "concurrency": [16]}
    assert osds["osdBench"] == {
        "blockSize": ["4Mi"],
        "user": "admin",
        "keyringSecret": {"name": "admin", "key": "keyring"},
    }
    assert stored["storage"]["ceph"]["keyringSecret"] == {"name": "keyring", "key": "keyring"}
    document = changed(
        FULL, {"spec.storage.volume.access": "LibRBD", "spec.workloads": [{"name": "w", "rbdBench": {}}]}
    )
    (rbd,) = create(api, RUNS, document).expect(201)["spec"]["workloads"]
    assert rbd["rbdBench"] == {"operation": "write", "order": "rand", "blockSize": ["4Ki"], "concurrency": [16]}


def test_overwriting_has_its_defaults_too(api: ApiServer) -> None:
    document = changed(SMALL, {"spec.prepare": {"precondition": {}}})
    stored = create(api, RUNS, document).expect(201)
    assert stored["spec"]["prepare"]["precondition"] == {"blockSize": "64Ki", "seconds": 600}
    assert decode_run(stored).spec.prepare == decode_run(document).spec.prepare


def test_name_may_be_made_up_by_the_server(api: ApiServer) -> None:
    stored = create(api, RUNS, {**SMALL, "metadata": {"generateName": "run-"}}).expect(201)
    assert decode_run(stored).metadata.name.startswith("run-")


def test_server_side_apply_takes_the_same_run_twice(api: ApiServer) -> None:
    document = changed(FULL, {"metadata.name": "applied", "spec.workloads.1.fio.blockSize": [4096, "8Ki"]})
    path = f"{RUNS}/applied"
    stored = apply(api, path, document).expect(201)
    assert stored["spec"]["workloads"][1]["fio"]["blockSize"] == [4096, "8Ki"]
    assert apply(api, path, document).expect(200)["metadata"]["generation"] == 1
    status = {"apiVersion": document["apiVersion"], "kind": document["kind"], "status": FULL_STATUS}
    assert apply(api, f"{path}/status", status, manager="other").expect(200)["status"] == FULL_STATUS
    delete(api, path)


def test_a_workload_without_a_name_is_applied_again_as_the_same_one(api: ApiServer) -> None:
    document = changed(SMALL, {"metadata.name": "unnamed", "spec.workloads": [{"fio": {}}]})
    path = f"{RUNS}/unnamed"
    stored = apply(api, path, document).expect(201)
    assert [workload["name"] for workload in stored["spec"]["workloads"]] == ["main"]
    assert apply(api, path, document).expect(200)["metadata"]["generation"] == 1
    delete(api, path)


# What can be changed


@pytest.mark.parametrize(
    "change",
    [
        {"suspend": True},
        {"suspend": None},
        {"cleanup": "Never"},
        {"cleanup": None},
        {"results": "Retain"},
        {"ttlSecondsAfterFinished": 1},
        {"ttlSecondsAfterFinished": None},
    ],
    ids=str,
)
def test_mutable(api: ApiServer, run: str, change: Document) -> None:
    defaults = {"suspend": False, "cleanup": "Always"}
    spec = patch(api, run, {"spec": change}).expect(200)["spec"]
    (name,) = change
    assert spec.get(name) == (change[name] if change[name] is not None else defaults.get(name))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("storage", {"volume": {"size": "21Gi"}}),
        ("storage", {"rook": {"pool": {"placementGroups": None}}}),
        ("storage", {"rook": {"pool": {"deviceClass": "hdd"}}}),
        ("storage", {"rook": {"pool": {"compressionMode": "force"}}}),
        ("storage", {"rook": {"pool": None, "existingPool": {"name": "p"}}}),
        ("storage", {"volume": {"access": "LibRBD"}}),
        ("storage", {"rook": None, "storageClass": {"name": "fast"}}),
        ("clients", {"count": 9}),
        ("clients", {"spread": "Preferred"}),
        ("clients", {"resources": {"requests": {"cpu": "501m"}}}),
        ("clients", {"nodeSelector": {"storage": None}}),
        ("clients", {"nodeSelector": {"disk": "fast"}}),
        ("conductor", {"nodeSelector": {"disk": "fast"}}),
        ("conductor", {"resources": {"limits": {"memory": "3Gi"}}}),
        ("podTemplate", {"labels": {"team": "network"}}),
        ("podTemplate", {"annotations": {"a": "b"}}),
        ("podTemplate", {"tolerations": []}),
        ("podTemplate", {"affinity": None}),
        ("podTemplate", {"priorityClassName": None}),
        ("podTemplate", {"runtimeClassName": None}),
        ("podTemplate", {"imagePullSecrets": None}),
        ("podTemplate", {"env": []}),
        ("podTemplate", None),
        ("clients", {"networkBytesPerSecond": "1251M"}),
        ("clients", {"networkBytesPerSecond": None}),
        ("clients", None),
        ("servers", {"placement": "ClientNodes", "count": 2}),
        ("repetitions", 4),
        ("prepare", {"discard": False}),
        ("prepare", {"settleSeconds": 11}),
        ("prepare", {"precondition": {"seconds": 601}}),
        ("prepare", {"precondition": None}),
        ("gates", {"pauseScrub": False}),
        ("gates", {"cephHealth": "Ignored"}),
        ("gates", {"acceptedHealthChecks": []}),
        ("limits", {"fillPercent": 80}),
        ("timeouts", {"totalSeconds": 14401}),
    ],
    ids=str,
)
def test_immutable(api: ApiServer, run: str, field: str, value: Any) -> None:
    answer = patch(api, run, {"spec": {field: value}})
    assert answer.code == 422
    assert (
        "cannot be changed, because numbers must belong to one specification; create a new run"
        in answer.causes[f"spec.{field}"]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"0.name": "other"},
        {"0.clients": [1, 2, 4]},
        {"0.clients": REMOVED},
        {"1.clients": [1]},
        {"0.runtimeSeconds": 61},
        {"0.rampSeconds": 11},
        {"0.fio.pattern": "write"},
        {"0.fio.blockSize": ["4Ki"]},
        {"0.fio.blockSize.0": "8Ki"},
        {"0.fio.ioDepth": [1, 16]},
        {"0.fio.engine": "io_uring"},
        {"0.fio.jobs": 2},
        {"1.fio.readPercent": REMOVED},
        {"1.fio.readPercent": 71},
        {"1.fio.fsyncEvery": 33},
        {"1.fio.rateIops": REMOVED},
        {"0.fio.rateIops": 1000},
        {"0.fio.until": "DataSetDone", "0.rampSeconds": 0},
        {"1.fio.directIo": True},
    ],
    ids=str,
)
def test_workloads_are_immutable(api: ApiServer, run: str, changes: Document) -> None:
    workloads = changed({"workloads": FULL["spec"]["workloads"]}, {f"workloads.{key}": v for key, v in changes.items()})
    answer = patch(api, run, {"spec": workloads})
    assert (answer.code, list(answer.causes)) == (422, ["spec.workloads"])
    assert "Forbidden: cannot be changed, because numbers must belong to one specification" in answer.message


def test_workloads_cannot_be_added_or_removed(api: ApiServer, run: str) -> None:
    workloads = deepcopy(FULL["spec"]["workloads"])
    for other in (workloads[:1], [*workloads, {"name": "third", "fio": {}}]):
        assert list(patch(api, run, {"spec": {"workloads": other}}).causes) == ["spec.workloads"]


def test_optional_storage_cannot_be_added_or_removed(api: ApiServer, run: str) -> None:
    assert "spec.storage" in patch(api, run, {"spec": {"storage": None}}).causes


def test_defaults_may_be_written_out_later(api: ApiServer, run: str) -> None:
    patch(api, run, {"spec": {"workloads": deepcopy(FULL["spec"]["workloads"]), "gates": {}}}).expect(200)


def test_change_that_changes_nothing_makes_no_generation(api: ApiServer, run: str) -> None:
    body = patch(api, run, {"spec": {"repetitions": 5}, "metadata": {"labels": {"a": "b"}}}).expect(200)
    assert body["metadata"]["generation"] == 1


# Unknown fields


def test_unknown_fields_are_refused_not_pruned(api: ApiServer, run: str) -> None:
    answer = patch(api, run, {"spec": {"suspended": True}})
    assert answer.code == 422
    assert 'unknown field "spec.suspended"' in answer.message


def test_unknown_fields_in_the_status_are_refused(api: ApiServer, run: str) -> None:
    answer = patch(api, f"{run}/status", {"status": {"phase": "Running"}})
    assert answer.code == 422
    assert 'unknown field "status.phase"' in answer.message


# Status


def test_status_of_the_models_is_stored_unchanged(api: ApiServer, run: str) -> None:
    body = patch(api, f"{run}/status", {"status": FULL_STATUS}).expect(200)
    assert body["status"] == FULL_STATUS
    assert BenchmarkRunStatus.model_validate(body["status"]) == RUN_STATUS
    assert body["metadata"]["generation"] == 1


def test_conditions_are_one_of_a_type(api: ApiServer, run: str) -> None:
    one = FULL_STATUS["conditions"][0]
    answer = patch(api, f"{run}/status", {"status": {"conditions": [one, one]}})
    assert "Duplicate value" in answer.causes["status.conditions[1]"]


def test_status_does_not_change_the_specification(api: ApiServer, run: str) -> None:
    body = patch(api, f"{run}/status", {"spec": {"suspend": True}}).expect(200)
    assert body["spec"]["suspend"] is False


def test_who_edits_a_run_does_not_change_how_long_it_has_kept_its_place(api: ApiServer, run: str) -> None:
    kept = patch(api, f"{run}/status", {"status": FULL_STATUS}).expect(200)["status"]["hold"]
    patch(api, run, {"status": {"hold": None}}).expect(200)
    body = patch(api, run, {"status": {"hold": {"seconds": 0, "measuredTrials": 0}}}).expect(200)
    assert body["status"]["hold"] == kept == FULL_STATUS["hold"]


@pytest.mark.parametrize("wrong", [{"seconds": -1}, {"since": "yesterday"}, {"measuredTrials": "7"}])
def test_what_is_no_hold_is_refused(api: ApiServer, run: str, wrong: dict[str, Any]) -> None:
    assert patch(api, f"{run}/status", {"status": {"hold": {"seconds": 1, "measuredTrials": 1} | wrong}}).code == 422


def test_columns(api: ApiServer, run: str) -> None:
    patch(api, f"{run}/status", {"status": FULL_STATUS}).expect(200)
    columns, ((*cells,),) = rows(api, run)
    usual = {column["name"]: cell for column, cell in zip(columns, cells, strict=True) if not column["priority"]}
    assert usual.pop("Age")
    assert usual == {
        "Name": "rbd-size3",
        "Workloads": "w",
        "Progress": "7/24",
        "Status": "Measuring",
        "IOPS": "12.3k",
        "P99": "1.2 ms",
        "Line": "12,400 ± 600 at p99 <= 5 ms +2",
        "Verdict": "Valid",
    }
    more = {column["name"]: cell for column, cell in zip(columns, cells, strict=True) if column["priority"]}
    assert set(more) == {"Clients", "Repetitions", "Started", "Estimated-End", "Message"}
    assert (more["Clients"], more["Message"]) == (8, "m")


def test_short_names_and_category(api: ApiServer) -> None:
    resources = api.request("GET", "/apis/plimsoll.dev/v1alpha1").expect(200)["resources"]
    found = {one["kind"]: (one["shortNames"], one["categories"]) for one in resources if "shortNames" in one}
    short_names = {"BenchmarkRun": "brun", "BenchmarkResult": "bres", "BenchmarkSuite": "bsuite"}
    assert found == {kind: ([name], ["plimsoll"]) for kind, name in short_names.items()}


def test_descriptions_are_published_for_kubectl_explain(api: ApiServer) -> None:
    path = "/openapi/v3/apis/plimsoll.dev/v1alpha1"
    wait_until(lambda: api.request("GET", path).accepted, "the schema is published")
    schemas = api.request("GET", path).expect(200)["components"]["schemas"]
    spec = schemas["dev.plimsoll.v1alpha1.BenchmarkRun"]["properties"]["spec"]
    fio = spec["properties"]["workloads"]["items"]["properties"]["fio"]["properties"]
    assert fio["ioDepth"]["description"].startswith("Axis: operations that each job keeps in flight.")
