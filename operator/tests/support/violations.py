"""Values that violate the bounds of a schema without required fields, one at a time."""

from collections.abc import Iterator
from typing import Any

from support.schemas import Schema


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
