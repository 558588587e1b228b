"""Schemas of parts of an object, which are merged into a whole one before anything is checked as a whole."""

from collections.abc import Collection
from typing import Any

Schema = dict[str, Any]

_OF_WHOLE_OBJECTS = ("required", "x-kubernetes-validations")


def part_of(schema: Schema, without: Collection[str] = ()) -> Schema:
    """Return the schema of a part of an object: without rules and required fields, but for the keys of lists.

    `schema` has no defaults, and `without` names fields that the part cannot have.
    """
    properties = {name: field for name, field in schema["properties"].items() if name not in without}
    return _part({**schema, "properties": properties})


def _part(schema: Schema, keys: Collection[str] = ()) -> Schema:
    part = {name: value for name, value in schema.items() if name not in _OF_WHOLE_OBJECTS}
    if "items" in part:
        part["items"] = _part(part["items"], part.get("x-kubernetes-list-map-keys", ()))
    if "additionalProperties" in part:
        part["additionalProperties"] = _part(part["additionalProperties"])
    if "properties" in part:
        fields = part.pop("properties").items()
        part |= {"required": list(keys)} if keys else {}
        part["properties"] = {name: _part(field) for name, field in fields}
    return part
