"""Schemas of parts of an object, which are merged into a whole one before anything is checked as a whole."""

import re
from collections.abc import Collection
from typing import Any

Schema = dict[str, Any]

_OF_WHOLE_OBJECTS = ("required", "x-kubernetes-validations")


def part_of(schema: Schema, without: Collection[str] = (), *, nullable: bool) -> Schema:
    """Return the schema of a part of an object: without rules and required fields, but for the keys of lists.

    `schema` has no defaults, and `without` names fields that the part cannot have. With `nullable`, null is accepted in
    place of every field that merging can remove: a field in a list that is replaced as a whole is none.
    """
    properties = {name: field for name, field in schema["properties"].items() if name not in without}
    return _part({**schema, "properties": properties}, nullable=nullable)


def _part(schema: Schema, keys: Collection[str] = (), *, nullable: bool) -> Schema:
    part = {name: value for name, value in schema.items() if name not in _OF_WHOLE_OBJECTS}
    if "items" in part:
        own_keys = part.get("x-kubernetes-list-map-keys", ())
        part["items"] = _part(part["items"], own_keys, nullable=nullable and bool(own_keys))
    if "additionalProperties" in part:
        part["additionalProperties"] = _field(part["additionalProperties"], nullable=nullable)
    if "properties" in part:
        fields = part.pop("properties").items()
        part |= {"required": list(keys)} if keys else {}
        part["properties"] = {name: _field(field, nullable=nullable and name not in keys) for name, field in fields}
    return part


def _field(schema: Schema, *, nullable: bool) -> Schema:
    part = _part(schema, nullable=nullable)
    if not nullable:
        return part
    choices = part.pop("enum", None)
    if choices:
        # The API server refuses null in place of an enum even if that is nullable.
        pattern = f"^({'|'.join(map(re.escape, choices))})$"
        part |= {"maxLength": max(map(len, choices)), "pattern": pattern}
    inside = {name: part.pop(name) for name in ("properties", "additionalProperties", "items") if name in part}
    return part | {"nullable": True} | inside
