"""Schemas of CustomResourceDefinitions: violated, and seen in an API server's refusals."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from support.apiserver import Answer

Schema = Mapping[str, Any]

BOUNDS = (
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "enum",
)


def schema_of(definition: Schema) -> Schema:
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every field with its path: `spec.workloads[].name`, `spec.clients.nodeSelector{}`."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def refusable(schema: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every constraint that a value can break: its field, and the words with which the API server refuses it."""
    for field, node in walk(schema, path):
        for name in node.get("required", ()):
            yield f"{field}.{name}".lstrip("."), "Required value"
        for bound in BOUNDS:
            if bound in node:
                is_open = bound == "minimum" and node.get("exclusiveMinimum", False)
                yield field, (_ABOVE if is_open else _REFUSALS[bound]).format(node[bound])
        if node.get("x-kubernetes-list-type") in ("set", "map"):
            yield f"{field}[]", "Duplicate value"
        for rule in node.get("x-kubernetes-validations", ()):
            yield f"{field}{rule.get('fieldPath', '')}", rule["message"]


_ABOVE = "should be greater than {}"
_REFUSALS = {
    "minimum": "should be greater than or equal to {}",
    "maximum": "should be less than or equal to {}",
    "multipleOf": "should be a multiple of {}",
    "minLength": "should be at least {} chars long",
    "maxLength": "Too long: may not be more than {} bytes",
    "pattern": "should match '{}'",
    "minItems": "should have at least {} items",
    "maxItems": "must have at most {} items",
    "maxProperties": "must have at most {} items",
    "enum": "Unsupported value",
}
"""Bound -> the API server's words, with the limit."""


def violations(schema: Schema) -> Iterator[Any]:
    """Yield values that are refused: at least one for every bound, key and list in the schema."""
    yield from _scalars(schema)
    yield from _collections(schema)
    for name, field in schema.get("properties", {}).items():
        yield from ({name: value} for value in violations(field))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from ({"k": value} for value in violations(schema["additionalProperties"]))
    if "items" in schema:
        names = dict.fromkeys(schema.get("x-kubernetes-list-map-keys", ()), "n")
        yield from ([names | value if names and value else value] for value in violations(schema["items"]))


def _scalars(schema: Schema) -> Iterator[Any]:
    for bound, worse in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield schema[bound] + worse
    if "multipleOf" in schema:
        yield schema["minimum"] + 1
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "minLength" in schema:
        yield ""
    if {"pattern", "enum"} & schema.keys():
        yield "- -"


def _collections(schema: Schema) -> Iterator[Any]:
    if "required" in schema:
        yield {}
    if "maxProperties" in schema:
        value = example(schema["additionalProperties"])
        yield {f"k{number}": value for number in range(schema["maxProperties"] + 1)}
    if "minItems" in schema:
        yield []
    if "maxItems" in schema:
        yield [example(schema["items"])] * (schema["maxItems"] + 1)
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        yield [example(schema["items"])] * 2


def example(schema: Schema) -> Any:
    """Return a small value that the schema accepts."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return dict.fromkeys(schema.get("required", ()), "n")
        case "array":
            return [example(schema["items"])]
        case "boolean":
            return True
        case "string":
            return "a"
    return schema.get("minimum", 1)


def seen(answers: Iterable[Answer]) -> set[tuple[str, str]]:
    """Return field, without list indices and keys, and message of every rejection."""
    found = set()
    for answer in answers:
        for cause in answer.body.get("details", {}).get("causes", []):
            found.add((re.sub(r"\[\w+\]", "[]", cause["field"]), cause["message"]))
    return found


def unseen(schema: Schema, path: str, found: set[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (field, words)
        for field, words in refusable(schema, path)
        if not any(words in message and _same(field, where) for where, message in found)
    ]


def _same(field: str, where: str) -> bool:
    """Compare `spec.clients.nodeSelector{}` with `spec.clients.nodeSelector.disk`; a list may stand for its items."""
    pattern = re.escape(field).replace(r"\{\}", r"\.[^.\[]+")
    return re.fullmatch(pattern, where) is not None
