"""The rules by which a variant changes what all variants share."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from plimsoll.api.run import GENERIC_WORKLOAD_FIELDS
from plimsoll.api.storage import Pool, RookStorage, Storage
from plimsoll.api.suite import Variant
from plimsoll.suite.children import merged_spec, variant_spec
from support.specs import ANY_SPEC, ANY_STORAGE, ANY_WORKLOADS

CLUSTER = {"namespace": "rook-ceph", "name": "rook-ceph"}
REPLICATED = {"replicated": {"size": 3}}
CODED = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}


@given(ANY_SPEC)
def test_no_changes_are_identity(run: dict[str, Any]) -> None:
    assert merged_spec(run, {}) == run
    assert list(merged_spec(run, {})) == list(run)


@given(ANY_SPEC, ANY_SPEC)
def test_merging_is_idempotent(run: dict[str, Any], changes: dict[str, Any]) -> None:
    once = merged_spec(run, changes)
    assert merged_spec(once, changes) == once


@given(ANY_SPEC, ANY_SPEC)
def test_inputs_stay_as_they_are(run: dict[str, Any], changes: dict[str, Any]) -> None:
    run_before, changes_before = deepcopy(run), deepcopy(changes)
    merged = merged_spec(run, changes)
    scramble(merged)
    assert (run, changes) == (run_before, changes_before)


def scramble(value: Any) -> None:
    """Empty every mapping and list of a document: none of them may be one of the inputs'."""
    for part in list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else ():
        scramble(part)
    if isinstance(value, dict | list):
        value.clear()


@given(ANY_SPEC, ANY_SPEC)
def test_changes_are_in_the_result(run: dict[str, Any], changes: dict[str, Any]) -> None:
    merged = merged_spec(run, changes)
    for name in ("repetitions", "bogus"):
        if name in changes and not isinstance(changes[name], dict):
            assert merged.get(name) == changes[name]
        elif name not in changes:
            assert merged.get(name) == run.get(name)


@given(ANY_WORKLOADS, ANY_WORKLOADS)
def test_workloads_keep_their_order_and_new_ones_follow(ours: list[Any], theirs: list[Any]) -> None:
    merged: Any = merged_spec({"workloads": ours}, {"workloads": theirs})["workloads"]
    names = [one["name"] for one in ours]
    added = [one["name"] for one in theirs if one["name"] not in names]
    assert [one["name"] for one in merged] == names + added
    by_name = {one["name"]: one for one in merged}
    for one in ours:
        if one["name"] not in {other["name"] for other in theirs}:
            assert by_name[one["name"]] == one


@given(ANY_STORAGE, ANY_STORAGE)
def test_siblings_in_a_union_vanish(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    merged: Any = merged_spec({"storage": ours}, {"storage": theirs})["storage"]
    members = ("rook", "ceph", "storageClass")
    chosen = {name for name in members if theirs.get(name) is not None}
    if chosen:
        assert {name for name in members if name in merged} == chosen
    else:
        assert {name for name in members if name in merged} == {
            name for name in members if name in ours or name in theirs
        }


@given(ANY_WORKLOADS, ANY_WORKLOADS)
def test_a_workload_has_the_tool_of_the_change(ours: list[Any], theirs: list[Any]) -> None:
    merged: Any = merged_spec({"workloads": ours}, {"workloads": theirs})["workloads"]
    by_name = {one["name"]: one for one in merged}
    for one in theirs:
        chosen = {tool for tool in ("fio", "dd") if isinstance(one.get(tool), dict)}
        if chosen:
            tools = {tool for tool, value in by_name[one["name"]].items() if isinstance(value, dict)}
            assert tools == chosen


# Examples


@pytest.mark.parametrize(
    ("run", "changes", "merged"),
    [
        ({"repetitions": 5}, {"repetitions": 3}, {"repetitions": 3}),
        (
            {"clients": {"count": 2}},
            {"clients": {"spread": "Preferred"}},
            {"clients": {"count": 2, "spread": "Preferred"}},
        ),
        ({}, {"prepare": {"discard": False}}, {"prepare": {"discard": False}}),
        (
            {"clients": {"nodeSelector": {"a.b/c": "x", "disk": "ssd"}}},
            {"clients": {"nodeSelector": {"disk": "hdd", "rack": "r1"}}},
            {"clients": {"nodeSelector": {"a.b/c": "x", "disk": "hdd", "rack": "r1"}}},
        ),
        (
            {"podTemplate": {"tolerations": [{"key": "a"}, {"key": "b"}]}},
            {"podTemplate": {"tolerations": [{"key": "c"}]}},
            {"podTemplate": {"tolerations": [{"key": "c"}]}},
        ),
        (
            {"storage": {"rook": {"cluster": CLUSTER, "pool": REPLICATED | {"failureDomain": "osd"}}}},
            {"storage": {"rook": {"pool": CODED}}},
            {"storage": {"rook": {"cluster": CLUSTER, "pool": CODED | {"failureDomain": "osd"}}}},
        ),
        (
            {"storage": {"rook": {"cluster": CLUSTER, "pool": REPLICATED}}},
            {"storage": {"rook": {"pool": {"replicated": {"size": 2}}}}},
            {"storage": {"rook": {"cluster": CLUSTER, "pool": {"replicated": {"size": 2}}}}},
        ),
        (
            {"storage": {"rook": {"cluster": CLUSTER, "pool": REPLICATED}, "volume": {"size": "1Gi"}}},
            {"storage": {"rook": {"existingFileSystem": {"name": "files"}}}},
            {
                "storage": {
                    "rook": {"cluster": CLUSTER, "existingFileSystem": {"name": "files"}},
                    "volume": {"size": "1Gi"},
                }
            },
        ),
        (
            {"storage": {"rook": {"cluster": CLUSTER, "pool": REPLICATED}, "volume": {"size": "1Gi"}}},
            {"storage": {"storageClass": {"name": "fast"}}},
            {"storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}},
        ),
        (
            {"storage": {"rook": {"fileSystem": {"metadataPool": REPLICATED, "dataPools": [REPLICATED]}}}},
            {"storage": {"rook": {"fileSystem": {"metadataPool": CODED, "dataPools": [REPLICATED, CODED]}}}},
            {"storage": {"rook": {"fileSystem": {"metadataPool": CODED, "dataPools": [REPLICATED, CODED]}}}},
        ),
        (
            {"workloads": [{"name": "w", "fio": {"ioDepth": [1, 16], "pattern": "read"}, "clients": [1, 2]}]},
            {"workloads": [{"name": "w", "fio": {"ioDepth": [4]}}]},
            {"workloads": [{"name": "w", "fio": {"ioDepth": [4], "pattern": "read"}, "clients": [1, 2]}]},
        ),
        (
            {"workloads": [{"name": "w", "fio": None, "clients": [1]}]},
            {"workloads": [{"name": "w", "dd": {}}]},
            {"workloads": [{"name": "w", "clients": [1], "dd": {}}]},
        ),
        (
            {"workloads": [{"name": "w", "fio": {}}]},
            {"workloads": [{"name": "w", "runtimeSecond": 5}]},
            {"workloads": [{"name": "w", "fio": {}, "runtimeSecond": 5}]},
        ),
        ({"workloads": [{"name": "w"}, {"name": "w"}]}, {"workloads": [{"name": "v"}]}, {"workloads": [{"name": "v"}]}),
        ({"workloads": [{"name": "w"}]}, {"workloads": [{"nam": "v"}]}, {"workloads": [{"nam": "v"}]}),
    ],
)
def test_example(run: dict[str, Any], changes: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merged_spec(run, changes) == merged


@pytest.mark.parametrize(
    ("unset", "changes", "merged"),
    [
        (["clients.spread"], {}, {"clients": {"count": 4, "nodeSelector": {"a.b/c": "x", "a": "y"}}}),
        (
            ["clients.nodeSelector.a.b/c", "clients.spread", "clients.count"],
            {},
            {"clients": {"nodeSelector": {"a": "y"}}},
        ),
        (["clients"], {"clients": {"count": 2}}, {"clients": {"count": 2}}),
        (["clients", "workloads.w.fio.rate"], {}, {"workloads": [{"name": "w", "fio": {}}, {"name": "v.w"}]}),
        (["clients", "workloads.w"], {}, {"workloads": [{"name": "v.w"}]}),
        (["clients", "workloads.v.w"], {}, {"workloads": [{"name": "w", "fio": {"rate": "1Mi"}}]}),
    ],
)
def test_fields_are_unset_before_others_are_set(
    unset: list[str], changes: dict[str, Any], merged: dict[str, Any]
) -> None:
    run: dict[str, Any] = {
        "clients": {"count": 4, "spread": "Preferred", "nodeSelector": {"a.b/c": "x", "a": "y"}},
        "workloads": [{"name": "w", "fio": {"rate": "1Mi"}}, {"name": "v.w"}],
    }
    before = deepcopy(run)
    variant = Variant.model_validate({"name": "v", "unset": unset, "set": changes})
    assert variant_spec(run, variant) == {"workloads": run["workloads"]} | merged
    assert run == before


@pytest.mark.parametrize("model", [Storage, RookStorage, Pool])
def test_unions_of_the_models_are_those_of_their_rules(model: type[Storage | RookStorage | Pool]) -> None:
    """The rule of the API server names the same members."""
    aliases = [model.model_fields[name].alias for name in model.one_of]
    assert any(all(f"has(self.{alias})" in rule.rule for alias in aliases) for rule in model.rules)
    optional = {
        name for name, field in model.model_fields.items() if field.annotation and "None" in str(field.annotation)
    }
    assert set(model.one_of) <= optional


def test_generic_fields_of_a_workload_are_no_tools() -> None:
    run: Any = {"workloads": [{"name": "w", "fio": {}} | {field: {} for field in GENERIC_WORKLOAD_FIELDS[1:]}]}
    changed: Any = {"workloads": [{"name": "w", "dd": {}}]}
    merged: Any = merged_spec(run, changed)["workloads"]
    assert set(merged[0]) == {*GENERIC_WORKLOAD_FIELDS, "dd"}
