"""The environment of a result is typed, and its JSON is stable."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.environment import (
    CephDescription,
    Environment,
    Extremes,
    OsdsDescription,
    PlatformEnvironment,
    PoolLayout,
    Quantiles,
    StorageClassDescription,
)
from plimsoll.api.result import ResultStatus

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = sorted([*(GOLDEN / "report").glob("*.json"), GOLDEN / "metrics" / "results-demo-ceph.json"])


def results_in(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the results of a file: one, several, or a list of kubectl's."""
    match document:
        case list():
            yield from (result for element in document for result in results_in(element))
        case {"items": list() as items}:
            yield from results_in(items)
        case {"kind": "BenchmarkResult"}:
            yield document


def canonical(document: object) -> str:
    """Return JSON in which 1 and 1.0 differ, as in the digest of a fingerprint."""
    return json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_was_recorded_is_read_and_written_as_it_is(path: Path) -> None:
    documents = [result["status"]["environment"] for result in results_in(json.loads(path.read_text()))]
    assert documents
    for document in documents:
        environment = Environment.model_validate(document)
        assert canonical(environment.document()) == canonical(document)
        assert environment.model_extra == {}, "all of it is typed"
        assert environment.nodes


def test_a_recorded_ceph_cluster_is_typed_at_every_depth() -> None:
    (path,) = [path for path in RECORDED if path.stem == "results-demo-ceph"]
    result = next(results_in(json.loads(path.read_text())))
    ceph = Environment.model_validate(result["status"]["environment"]).ceph
    assert ceph is not None
    assert ceph.osds is not None
    assert ceph.settings is not None
    assert ceph.pools is not None
    parts = (ceph, ceph.osds, ceph.settings, *ceph.pools)
    # The only fact that no version describes any more.
    assert [part.model_extra for part in parts if part is not ceph] == [{}] * (len(parts) - 1)
    assert ceph.model_extra == {"clientsOnStorageNodes": "unknown"}
    assert ceph.osds.members == 3
    assert ceph.osds.size_bytes == Quantiles(min=2**33, median=2**33, max=2**33)


def test_unknown_facts_are_omitted() -> None:
    assert Environment().document() == {}
    assert Environment(nodes=("a",), ceph=CephDescription(osds=OsdsDescription(up=2, members=3))).document() == {
        "ceph": {"osds": {"in": 3, "up": 2}},
        "nodes": ["a"],
    }
    assert ResultStatus().model_dump(mode="json", exclude_none=True)["environment"] == {}


@pytest.mark.parametrize(
    "document",
    [
        {"fromTheFuture": {"a": [1, 2.5]}},
        {"processors": "many", "dataSetBytes": "much", "nodes": "none"},
        {"processors": True, "memoryBytes": [1, "2"]},
        {"dataSetBytes": {"min": 1}},
        {"ceph": "19.2.3", "pool": "p", "tools": ["fio"]},
        {"ceph": {"fsid": "f", "osds": [{"class": "ssd"}], "pools": [{"name": "a", "size": "3"}]}},
        {"storageClass": ["a"], "kubernetes": 1},
        {"ceph": {"osds": {"in": 3, "sizeBytes": {"min": 1, "median": 1.5, "max": 2.0}}}},
    ],
)
@pytest.mark.parametrize("of_text", [False, True], ids=["object", "text"])
def test_what_cannot_be_read_is_kept_and_costs_nothing_else(document: dict[str, Any], *, of_text: bool) -> None:
    status = {"environment": {"kernel": "6.1", **document}, "final": True}
    read = ResultStatus.model_validate_json(json.dumps(status)) if of_text else ResultStatus.model_validate(status)
    assert (read.final, read.environment.kernel) == (True, "6.1")
    assert canonical(read.environment.document()) == canonical(status["environment"])
    assert ResultStatus.model_validate_json(read.model_dump_json()) == read


def test_what_cannot_be_read_is_not_known() -> None:
    found = Environment.model_validate({"ceph": {"fsid": "f", "osds": []}, "processors": "many", "kernel": ["1", "2"]})
    assert found.ceph is not None
    assert (found.ceph.fsid, found.ceph.osds, found.processors, found.kernel) == ("f", None, None, ("1", "2"))


def test_the_platform_has_the_last_word() -> None:
    platform = PlatformEnvironment(kubernetes="v1.34.4", storage_class=StorageClassDescription(name="slow"))
    measured = Environment.model_validate({"storageClass": "fast", "nodes": ["a"], "other": 1})
    assert measured.merged(platform).document() == {
        "kubernetes": "v1.34.4",
        "nodes": ["a"],
        "other": 1,
        "storageClass": {"name": "slow"},
    }
    described = Environment(pool=PoolLayout(size=3), data_set_bytes=Extremes(min=1, max=2))
    assert measured.merged(described).pool == PoolLayout(size=3)


def test_versions_of_tools_are_those_of_all_clients() -> None:
    assert Environment().tool_versions() == {}
    assert Environment(tools={"fio": "fio-3.39"}).tool_versions() == {"fio": ["fio-3.39"]}
    several = Environment(tools=({"fio": "fio-3.40", "rbdBench": "18"}, {"fio": "fio-3.39"}))
    assert several.tool_versions() == {"fio": ["fio-3.39", "fio-3.40"], "rbdBench": ["18"]}
