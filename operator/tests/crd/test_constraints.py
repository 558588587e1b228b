"""No constraint without a test: the API server rejects violations of every bound."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from crd.corpus import REFUSED
from crd.manifests import FULL, Manifest, changed
from crd.schemas import Schema, schema_of, seen, unseen
from plimsoll.api.names import RESULT_KIND, RUN_KIND, SUITE_KIND
from support.apiserver import RESULTS, RUNS, SUITES, Answer, ApiServer, Document, create, delete, patch
from support.full_documents import FULL_RESULT, FULL_STATUS, FULL_SUITE, FULL_SUITE_STATUS

Way = tuple[str | int, ...]
"""Keys and indices that lead from a document to a part of it."""

_LONG = 100


@dataclass(frozen=True, slots=True)
class Breach:
    """A value that breaks a bound, and the part of a document in whose place it does."""

    way: Way
    value: Any

    @property
    def field(self) -> str:
        """Return the part as the API server names it: `status.trials[0].window`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.way).removeprefix(".")

    def is_refused_by(self, answer: Answer) -> bool:
        """Whether an answer names the part, or what the value lacks."""
        inside = (f"{self.field}.", f"{self.field}[")
        return any(field == self.field or field.startswith(inside) for field in answer.causes)


def breaking(value: Any, schema: Schema, way: Way) -> Iterator[Breach]:
    """Yield everything that breaks a bound of a part with a value for every field, beginning with the part itself."""
    yield Breach(way, _wrong(schema, value))
    if "maxItems" in schema:
        yield Breach(way, [_least(schema["items"], value[0])] * (schema["maxItems"] + 1))
        yield from breaking(value[0], schema["items"], (*way, 0))
    if "maxProperties" in schema:
        first = next(iter(value.values()))
        yield Breach(way, {f"k{number}": first for number in range(schema["maxProperties"] + 1)})
        if isinstance(schema.get("additionalProperties"), dict):
            key = next(iter(value))
            yield from breaking(value[key], schema["additionalProperties"], (*way, key))
    yield from (Breach(way, wrong) for wrong in _scalars(schema))
    for name, field in schema.get("properties", {}).items():
        yield from breaking(value[name], field, (*way, name))


def _scalars(schema: Schema) -> Iterator[Any]:
    for bound, worse in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield schema[bound] + worse
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "minLength" in schema:
        yield ""
    if "pattern" in schema or "enum" in schema:
        yield "- -"


def _least(schema: Schema, value: Any) -> Any:
    """Return an entry without what it may lack: many whole ones are more than a request may have."""
    return {key: value[key] for key in schema["required"]} if "required" in schema else value


def _wrong(schema: Schema, value: Any) -> Any:
    """Return a value of another type; for an object one without its fields."""
    if schema.get("type") == "object" and schema.get("required"):
        return {}
    # A list in place of a text with a format goes through: kube-apiserver 1.34 looks at its form only.
    return 1 if not isinstance(value, int | float) or isinstance(value, bool) else "1"


def together(breaches: Iterable[Breach]) -> Sequence[Sequence[Breach]]:
    """Return all breaches in as few groups as possible in which none is inside another."""
    groups: list[_Group] = []
    for breach in breaches:
        group = next((one for one in groups if one.has_room_for(breach)), None)
        if group is None:
            groups.append(group := _Group())
        group.add(breach)
    return [group.breaches for group in groups]


class _Group:
    def __init__(self) -> None:
        self.breaches: list[Breach] = []
        self._ways: set[Way] = set()
        self._around: set[Way] = set()

    def has_room_for(self, breach: Breach) -> bool:
        return breach.way not in self._around and not self._ways.intersection(_begins(breach.way))

    def add(self, breach: Breach) -> None:
        self.breaches.append(breach)
        self._ways.add(breach.way)
        self._around.update(_begins(breach.way))


def _begins(way: Way) -> Iterator[Way]:
    """Yield a way and all ways to what is around its part."""
    yield from (way[:length] for length in range(len(way) + 1))


def broken(document: dict[str, Any], breaches: Iterable[Breach]) -> dict[str, Any]:
    """Return a copy of a document with these values in it."""
    copy = deepcopy(document)
    for breach in breaches:
        *around, last = breach.way
        place: Any = copy
        for step in around:
            place = place[step]
        place[last] = breach.value
    return copy


def slim(value: Any) -> Any:
    """Return a document with the first entry of each list, and the beginning of each long text."""
    if isinstance(value, dict):
        return {key: slim(part) for key, part in value.items()}
    if isinstance(value, list):
        return [slim(part) for part in value[:1]]
    return value[:_LONG].rstrip(",") if isinstance(value, str) else value


def merge_patch(old: Any, new: Any) -> Any:
    """Return the merge patch that changes one value into another; null removes a field."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    # As JSON: to Python, true is 1.
    changed = (key for key, value in new.items() if json.dumps(old.get(key)) != json.dumps(value))
    return dict.fromkeys(old.keys() - new.keys()) | {key: merge_patch(old.get(key), new[key]) for key in changed}


pytestmark = pytest.mark.crd

RESULT = {name: part for name, part in FULL_RESULT.items() if name != "status"}


def test_every_constraint_on_a_specification_is_seen_to_refuse(
    refusal: Callable[[str, Manifest], Answer], definitions: dict[str, Document]
) -> None:
    found = seen(refusal(RUNS, manifest) for manifest in REFUSED)
    left = unseen(schema_of(definitions[RUN_KIND])["properties"]["spec"], "spec", found)
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []


def check(answer: Answer, breaches: Sequence[Breach]) -> Answer:
    """Return the answer to a document with these breaches, each of which it names."""
    assert answer.code == 422, (breaches, answer.code, answer.message[:300])
    assert [breach for breach in breaches if not breach.is_refused_by(answer)] == [], answer.causes
    return answer


@pytest.mark.parametrize("kind", [RUN_KIND, RESULT_KIND, SUITE_KIND])
def test_every_constraint_on_a_status_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document], kind: str
) -> None:
    schema = schema_of(definitions[kind])["properties"]["status"]
    collection, whole, status = {
        RUN_KIND: (RUNS, FULL, FULL_STATUS),
        RESULT_KIND: (RESULTS, RESULT, FULL_RESULT["status"]),
        SUITE_KIND: (SUITES, FULL_SUITE, FULL_SUITE_STATUS),
    }[kind]
    create(api, collection, dict(whole), keep=True).expect(201)
    path = f"{collection}/{whole['metadata']['name']}"
    try:
        small = {"status": slim(status)}
        patch(api, f"{path}/status", small).expect(200)
        breaches = [breach for breach in breaking(small["status"], schema, ("status",)) if len(breach.way) > 1]
        answers = [
            check(patch(api, f"{path}/status", merge_patch(small, broken(small, group))), group)
            for group in together(breaches)
        ]
        assert unseen(schema, "status", seen(answers)) == []
    finally:
        delete(api, path)


def test_every_constraint_on_what_a_result_is_of_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document]
) -> None:
    schema = schema_of(definitions[RESULT_KIND])["properties"]["spec"]
    groups = together(breaking(RESULT["spec"], schema, ("spec",)))
    answers = [check(create(api, RESULTS, broken(RESULT, group)), group) for group in groups]
    search = RESULT["spec"]["line"]
    of_a_search: tuple[tuple[str, Any], ...] = (
        ("objectives", []),
        ("objectives", search["objectives"] * 2),
        ("objectives", [{"latency": "11s"}]),
        ("start", search["limit"] + 1),
    )
    for name, wrong in of_a_search:
        answers.append(create(api, RESULTS, changed(RESULT, {f"spec.line.{name}": wrong})))
        assert answers[-1].code == 422
    left = unseen(schema, "spec", seen(answers))
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []
