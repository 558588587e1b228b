"""Merges the changes of a variant into what all variants of a suite share.

Fields that the variant unsets are removed first. Mappings are merged, workloads are merged by name, and other lists are
replaced. A field of a union replaces its siblings: the models declare unions in `one_of`, and a workload has one tool.
Inputs are never modified.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeGuard

from pydantic import JsonValue

from plimsoll.api.errors import field_path, models_in
from plimsoll.api.model import Model, without_field
from plimsoll.api.run import GENERIC_WORKLOAD_FIELDS, RunSpec, Workload
from plimsoll.api.suite import BY_NAME, SuiteSpec, Variant
from plimsoll.plan.fingerprint import leaves

Json = dict[str, JsonValue]


def variant_spec(run: Mapping[str, JsonValue], variant: Variant) -> Json:
    rest = dict(run)
    for path in variant.unset:
        without = without_field(rest, path)
        rest = rest if without is None else without
    return merged_spec(rest, variant.changes)


def merged_spec(
    base: Mapping[str, JsonValue], changes: Mapping[str, JsonValue], model: type[Model] | None = RunSpec
) -> Json:
    """Return a specification with the changes of a variant, in the order of `base`, new fields last.

    `model` describes both: by default they are specifications of runs; None if they are mappings without a model.
    """
    chosen = {key for key, value in changes.items() if _is_chosen(model, key, value)}
    # The other members of a union go. A tool without a mapping has its defaults.
    members = {key for key, value in base.items() if _is_chosen(model, key, {} if value is None else value)}
    replaced = members - chosen if chosen else set()
    merged: Json = {}
    for key in dict.fromkeys((*base, *changes)):
        before, change = base.get(key), changes.get(key)
        if key not in changes:
            if key not in replaced:
                merged[key] = deepcopy(before)
        elif isinstance(change, dict):
            fields = model.model_fields.values() if model is not None else ()
            kinds = (kind for field in fields if field.alias == key for kind in models_in(field.annotation))
            # None of a field without a model, as a mapping of labels.
            inner = next((kind for kind in kinds if issubclass(kind, Model)), None)
            merged[key] = merged_spec(before if isinstance(before, dict) else {}, change, inner)
        elif model is RunSpec and key == BY_NAME and is_named_list(change):
            # Entries with the same name are merged in place; new ones follow.
            entries = before if is_named_list(before) else []
            ours, theirs = ({entry["name"]: entry for entry in named} for named in (entries, change))
            names = dict.fromkeys((*ours, *theirs))
            merged[key] = [merged_spec(ours.get(name, {}), theirs.get(name, {}), Workload) for name in names]
        else:
            merged[key] = deepcopy(change)
    return merged


def is_named_list(value: object) -> TypeGuard[list[Json]]:
    """Whether a list can be merged by name: mappings with unique names."""
    if not isinstance(value, list):
        return False
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in value]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_chosen(model: type[Model] | None, key: str, value: JsonValue) -> bool:
    """Whether a field is a member of its model's union, and set."""
    if model is Workload:
        return key not in GENERIC_WORKLOAD_FIELDS and isinstance(value, dict)
    return model is not None and value is not None and key in {model.model_fields[name].alias for name in model.one_of}


_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_KEY = re.compile(r"[^.\[]+|.+")

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The documents behind a merged specification."""

    run: Mapping[str, JsonValue]  # what all variants share
    changes: Mapping[str, JsonValue]  # of the variant
    merged: Mapping[str, JsonValue]  # the result
    variant: int  # index of the variant in the suite

    def field(self, merged_field: str) -> str:
        """Return the path in the suite of a field of the merged run, such as `spec.variants[1].set.clients.count`.

        A field that is missing belongs to the document that has more of its parents.
        """
        _, *location = _location(merged_field, {"spec": dict(self.merged)})
        shared, shared_depth, _ = _find(self.run, tuple(location), self.merged)
        changed, depth, is_complete = _find(self.changes, tuple(location), self.merged)
        if is_complete or depth > shared_depth:
            return field_path(("spec", "variants", self.variant, "set", *changed))
        return field_path(("spec", "run", *shared))


def _find(
    document: Mapping[str, JsonValue], location: Location, merged: Mapping[str, JsonValue]
) -> tuple[Location, int, bool]:
    """Return a location of the merged specification with the document's own index of a workload.

    With the number of its parts that the document has, and whether it has all of it, or all of a list that it is in.
    """
    here, entries, workloads = location, merged.get(BY_NAME), document.get(BY_NAME)
    match location:
        case (field, int(index), *rest) if field == BY_NAME and is_named_list(entries) and is_named_list(workloads):
            if index < len(entries):
                name, names = entries[index]["name"], [workload["name"] for workload in workloads]
                here = (BY_NAME, names.index(name) if name in names else len(names), *rest)
    value: JsonValue = dict(document)
    for depth, part in enumerate(here):
        is_replaced = isinstance(value, list) and here[:depth] != (BY_NAME,)
        if is_replaced or not _has(value, part):
            return here, depth, is_replaced
        value = value[part]  # type: ignore[index] # it has the part
    return here, len(here), bool(here)


def _has(value: JsonValue, part: int | str) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _location(field: str, document: JsonValue) -> Location:
    """Return the parts of a path; the keys of the document may contain dots, as names of labels do."""
    parts: list[int | str] = []
    rest, value = field, document
    while rest:
        part: int | str
        if index := _INDEX.match(rest):
            part, rest = int(index[1]), rest[index.end() :]
        else:
            rest = rest.removeprefix(".")
            keys = value if isinstance(value, dict) else {}
            matching = [key for key in keys if rest == key or rest.startswith((f"{key}.", f"{key}["))]
            unknown = _KEY.match(rest)
            key = max(matching, key=len, default=unknown[0] if unknown else rest)
            part, rest = key, rest[len(key) :]
        parts.append(part)
        value = value[part] if _has(value, part) else None  # type: ignore[index] # it has the part
    return tuple(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that differs between two specifications."""

    path: str  # dotted path, with the names of workloads: `workloads.random-read.fio.blockSize`
    before: JsonValue  # the value in the first one; None if absent
    after: JsonValue  # the value in the second one; None if absent


def variant_changes(spec: SuiteSpec) -> dict[str, tuple[FieldChange, ...]]:
    """Return what each variant changes in `spec.run`, by the variant's name."""
    return {variant.name: spec_changes(spec.run, variant_spec(spec.run, variant)) for variant in spec.variants}


def changes_between(spec: SuiteSpec, baseline: str, candidate: str) -> tuple[FieldChange, ...]:
    """Return the fields that two variants set differently."""
    merged = {variant.name: variant_spec(spec.run, variant) for variant in spec.variants}
    return spec_changes(merged[baseline], merged[candidate])


def spec_changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> tuple[FieldChange, ...]:
    """Return the fields that differ between two specifications as written, in their order. A list is one value."""
    ours, theirs = _fields(before), _fields(after)
    paths = dict.fromkeys((*ours, *theirs))
    return tuple(
        FieldChange(path=path, before=ours.get(path), after=theirs.get(path))
        for path in paths
        if ours.get(path) != theirs.get(path)
        # An empty mapping of one specification may have content in the other.
        and not any(other.startswith(f"{path}.") for other in paths)
    )


def _fields(spec: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the values of a specification by their paths; an empty mapping is a value."""
    workloads = spec.get(BY_NAME)
    if is_named_list(workloads):
        by_name: Json = {
            str(workload["name"]): {key: value for key, value in workload.items() if key != "name"}
            for workload in workloads
        }
        spec = {**spec, BY_NAME: by_name}
    return {path: value for path, value in leaves(spec) if value is not None}
