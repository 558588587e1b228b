"""Where a field of a merged run was written: in `spec.run` of the suite, or in `set` of the variant."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.errors import field_path
from plimsoll.api.suite import BY_NAME
from plimsoll.suite.merging import is_named_list

_SPEC = "spec"
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_KEY = re.compile(r"[^.\[]+|.+")

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The documents behind a merged specification.

    Attributes:
        run: what all variants share.
        changes: of the variant.
        merged: the result.
        variant: index of the variant in the suite.

    """

    run: Mapping[str, JsonValue]
    changes: Mapping[str, JsonValue]
    merged: Mapping[str, JsonValue]
    variant: int

    def field(self, merged_field: str) -> str:
        """Return the path in the suite of a field of the merged run, such as `spec.variants[1].set.clients.count`.

        A field that is missing belongs to the document that has more of its parents.
        """
        _, *location = _location(merged_field, {_SPEC: dict(self.merged)})
        shared, own = (_find(document, tuple(location), self.merged) for document in (self.run, self.changes))
        if own.is_complete or own.depth > shared.depth:
            return field_path((_SPEC, "variants", self.variant, "set", *own.location))
        return field_path((_SPEC, "run", *shared.location))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A location in one of the documents.

    Attributes:
        depth: number of its parts that the document has.
        is_complete: whether the document has all of it, or all of a list that it is in.

    """

    location: Location
    depth: int
    is_complete: bool


def _find(document: Mapping[str, JsonValue], location: Location, merged: Mapping[str, JsonValue]) -> _Found:
    """Return where a location of the merged specification is in a document."""
    here = _own_location(document, location, merged)
    value: JsonValue = dict(document)
    for depth, part in enumerate(here):
        is_replaced = isinstance(value, list) and here[:depth] != (BY_NAME,)
        if is_replaced or not _has(value, part):
            return _Found(location=here, depth=depth, is_complete=is_replaced)
        value = value[part]  # type: ignore[index] # it has the part
    return _Found(location=here, depth=len(here), is_complete=bool(here))


def _own_location(document: Mapping[str, JsonValue], location: Location, merged: Mapping[str, JsonValue]) -> Location:
    """Return a location with the document's own index of a workload, which is merged by name."""
    entries, ours = merged.get(BY_NAME), document.get(BY_NAME)
    if location[:1] != (BY_NAME,) or not is_named_list(entries) or not is_named_list(ours):
        return location
    names = [entry["name"] for entry in ours]
    match location:
        case (_, int(index), *rest) if index < len(entries):
            name = entries[index]["name"]
            return (BY_NAME, names.index(name) if name in names else len(names), *rest)
    return location


def _has(value: JsonValue, part: int | str) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _location(field: str, document: JsonValue) -> Location:
    """Return the parts of a path; the keys of the document may contain dots, as names of labels do."""
    parts: list[int | str] = []
    rest, value = field, document
    while rest:
        part, rest = _first_part(rest, value)
        parts.append(part)
        value = value[part] if _has(value, part) else None  # type: ignore[index] # it has the part
    return tuple(parts)


def _first_part(path: str, value: JsonValue) -> tuple[int | str, str]:
    """Return the first part of a path within a value, and the rest of the path."""
    if index := _INDEX.match(path):
        return int(index[1]), path[index.end() :]
    path = path.removeprefix(".")
    keys = value if isinstance(value, dict) else {}
    known = [key for key in keys if path == key or path.startswith((f"{key}.", f"{key}["))]
    unknown = _KEY.match(path)
    key = max(known, key=len, default=unknown[0] if unknown else path)
    return key, path[len(key) :]
