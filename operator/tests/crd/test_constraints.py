"""No constraint without a test: the API server rejects violations of every bound."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from plimsoll.api.names import RESULT_KIND, RUN_KIND, SUITE_KIND
from support.apiserver import ApiServer, Document
from support.corpus import REFUSED
from support.kinds import RESULTS, RUNS, SUITES, create, delete, patch
from support.manifests import FULL, changed
from support.refusals import seen, unseen
from support.results import FULL_RESULT, FULL_STATUS
from support.schemas import Schema, schema_of
from support.suites import FULL_SUITE, FULL_SUITE_STATUS

pytestmark = pytest.mark.crd


def test_every_constraint_on_a_specification_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document]
) -> None:
    found = seen(create(api, RUNS, manifest.document) for manifest in REFUSED)
    left = unseen(schema_of(definitions[RUN_KIND])["properties"]["spec"], "spec", found)
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []


def breaking(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of everything that breaks a bound of a written part, beginning at `value` at `path`."""
    yield path, _wrong(schema, value)
    if "maxItems" in schema:
        yield path, [_least(schema["items"], value[0])] * (schema["maxItems"] + 1)
        yield from breaking(value[0], schema["items"], f"{path}.0")
    if "maxProperties" in schema:
        first = next(iter(value.values()))
        yield path, {f"k{number}": first for number in range(schema["maxProperties"] + 1)}
        if isinstance(schema.get("additionalProperties"), dict):
            key = next(iter(value))
            yield from breaking(value[key], schema["additionalProperties"], f"{path}.{key}")
    for bound, worse in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield path, schema[bound] + worse
    if "maxLength" in schema:
        yield path, "a" * (schema["maxLength"] + 1)
    if "minLength" in schema:
        yield path, ""
    if "pattern" in schema or "enum" in schema:
        yield path, "- -"
    for name, field in schema.get("properties", {}).items():
        yield from breaking(value[name], field, f"{path}.{name}")


def _least(schema: Schema, value: Any) -> Any:
    """Return an entry without what it may lack: many whole ones are more than a request may have."""
    return {key: value[key] for key in schema["required"]} if "required" in schema else value


def _wrong(schema: Schema, value: Any) -> Any:
    """Return a value of another type; for an object one without its fields."""
    if schema.get("type") == "object" and schema.get("required"):
        return {}
    # A list in place of a text with a format goes through: kube-apiserver 1.34 looks at its form only.
    return 1 if not isinstance(value, int | float) or isinstance(value, bool) else "1"


@pytest.mark.parametrize("kind", [RUN_KIND, RESULT_KIND, SUITE_KIND])
def test_every_constraint_on_a_status_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document], kind: str
) -> None:
    schema = schema_of(definitions[kind])["properties"]["status"]
    collection, whole, status = {
        RUN_KIND: (RUNS, FULL, FULL_STATUS),
        RESULT_KIND: (RESULTS, FULL_RESULT, FULL_RESULT["status"]),
        SUITE_KIND: (SUITES, FULL_SUITE, FULL_SUITE_STATUS),
    }[kind]
    create(api, collection, dict(whole), keep=True).expect(201)
    path = f"{collection}/{whole['metadata']['name']}"
    try:
        patch(api, f"{path}/status", {"status": status}).expect(200)
        answers = []
        for place, value in breaking(status, schema, "status"):
            if place == "status":
                continue
            answer = patch(api, f"{path}/status", _changed_status(status, place, value))
            assert answer.code == 422, (place, value, answer.code, answer.message[:300])
            answers.append(answer)
        assert unseen(schema, "status", seen(answers)) == []
    finally:
        delete(api, path)


def test_every_constraint_on_what_a_result_is_of_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document]
) -> None:
    schema = schema_of(definitions[RESULT_KIND])["properties"]["spec"]
    objectives = FULL_RESULT["spec"]["line"]["objectives"]
    of_a_search: tuple[tuple[str, Any], ...] = (("spec.line.objectives", []), ("spec.line.objectives", objectives * 2))
    answers = [
        create(api, RESULTS, changed(FULL_RESULT, {place: value}))
        for place, value in (*breaking(FULL_RESULT["spec"], schema, "spec"), *of_a_search)
    ]
    assert {answer.code for answer in answers} == {422}
    left = unseen(schema, "spec", seen(answers))
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []


def _changed_status(status: Document, place: str, value: Any) -> Document:
    """Return a merge patch; a merge keeps fields, so what is to be replaced as a whole is nulled field by field."""
    patched = changed({"status": deepcopy(status)}, {place: value})
    return {"status": _with_nulls(status, patched["status"])}


def _with_nulls(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return dict.fromkeys(old.keys() - new.keys()) | {
        key: _with_nulls(old.get(key), value) for key, value in new.items()
    }
