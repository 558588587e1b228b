"""The definition of suites: parts of a run have all its fields, and nothing of what only a whole run has."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crd.schemas import Schema, schema_of, violations, walk
from plimsoll.api.errors import SpecError
from plimsoll.api.kinds import RUN, SUITE
from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import variant_plans
from support.specs import suite_document

HACK = Path(__file__).parents[3] / "hack"
RESERVED = {"results", "cleanup", "suspend", "ttlSecondsAfterFinished"}
ENOUGH = 200_000
"""Characters of a definition; `kubectl apply` on the client's side keeps at most 262144 in an annotation."""


@pytest.fixture(autouse=True, scope="module")
def _modules_of_hack() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HACK))
        yield


def spec_of(kind: Any) -> Schema:
    found: Schema = schema_of(importlib.import_module("crds").definition(kind))["properties"]["spec"]["properties"]
    return found


@pytest.fixture(scope="module")
def run() -> Schema:
    return {"properties": {name: field for name, field in spec_of(RUN).items() if name not in RESERVED}}


@pytest.fixture(scope="module")
def shared() -> Schema:
    found: Schema = spec_of(SUITE)["run"]
    return found


@pytest.fixture(scope="module")
def changes() -> Schema:
    found: Schema = spec_of(SUITE)["variants"]["items"]["properties"]["set"]
    return found


def paths(schema: Schema) -> list[str]:
    return [path for path, _ in walk(schema)]


def test_parts_have_the_fields_of_a_run(run: Schema, shared: Schema, changes: Schema) -> None:
    assert len(paths(run)) > 100
    assert paths(shared) == paths(run)
    assert paths(changes) == paths(run)


def test_parts_have_the_bounds_of_a_run(run: Schema, shared: Schema) -> None:
    dropped = {"required", "default", "x-kubernetes-validations", "properties", "items", "additionalProperties"}
    for (path, whole), (_, part) in zip(walk(run), walk(shared), strict=True):
        if path:
            bounds = {key: value for key, value in whole.items() if key not in dropped}
            assert {key: part[key] for key in bounds} == bounds, path
            assert part.keys() - dropped == bounds.keys(), path


@pytest.mark.parametrize("part", ["shared", "changes"])
def test_parts_have_nothing_of_whole_objects(part: str, request: pytest.FixtureRequest) -> None:
    for path, field in walk(request.getfixturevalue(part)):
        assert "x-kubernetes-validations" not in field, path
        assert not path or "default" not in field, path
        assert field.get("required", []) == (["name"] if path in {"workloads[]", "podTemplate.env[]"} else []), path


def test_lists_keep_their_keys(shared: Schema, changes: Schema) -> None:
    for part in (shared, changes):
        assert part["properties"]["workloads"]["x-kubernetes-list-map-keys"] == ["name"]


def test_null_stands_for_no_field(shared: Schema, changes: Schema) -> None:
    assert [path for part in (shared, changes) for path, field in walk(part) if "nullable" in field] == []


def test_definition_fits_an_annotation() -> None:
    assert len(str(importlib.import_module("crds").definition(SUITE))) < ENOUGH


@given(st.data())
def test_a_part_stays_as_written_in_the_model(data: st.DataObject) -> None:
    part = data.draw(st.dictionaries(st.sampled_from(["repetitions", "prepare", "gates"]), st.integers()))
    suite = decode_suite(suite_document(variants=[{"name": "a", "set": part}]))
    assert suite.spec.variants[0].changes == part


def test_every_bound_has_a_violation(shared: Schema) -> None:
    fields = [path for path, field in walk(shared) if {"minimum", "maxLength", "pattern", "enum"} & field.keys()]
    assert len(list(violations(shared))) > len(fields) > 100


def test_models_refuse_what_the_bounds_refuse(changes: Schema) -> None:
    accepted = [value for value in violations(changes) if plannable(value)]
    by_kubernetes = {
        "clients": {"resources", "nodeSelector"},
        "conductor": {"resources", "nodeSelector"},
        "podTemplate": {"labels", "annotations", "tolerations", "priorityClassName", "runtimeClassName"},
    }
    found = {field: {name for value in accepted for name in value.get(field, ())} for field in by_kubernetes}
    assert found == by_kubernetes
    others = [value for value in accepted if not by_kubernetes.keys() & value.keys()]
    assert others == [{"workloads": []}], "it changes nothing"


def plannable(part: Any) -> bool:
    """Whether the models accept a variant with these changes."""
    try:
        variant_plans(decode_suite(suite_document(variants=[{"name": "a", "set": part}])), seed=1)
    except SpecError:
        return False
    return True
