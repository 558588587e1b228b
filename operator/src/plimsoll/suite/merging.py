"""Merges the changes of a variant into what all variants of a suite share.

Fields that the variant unsets are removed first. Mappings are merged, workloads are merged by name, and other lists are
replaced. A field of a union replaces its siblings: the models declare unions in `one_of`, and a workload has one tool.
Inputs are never modified.
"""

import math
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeGuard

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


_PART = re.compile(r"\[([0-9]+)\]|([^.\[]+)")

Location = tuple[int | str, ...]


def source_of(field: str, suite: SuiteSpec, index: int, merged: Mapping[str, JsonValue]) -> str:
    """Return the path in the suite of a field of a variant's run, such as `spec.variants[1].set.clients.count`.

    `index` is the variant's, `merged` its run. A field that is missing belongs to the document that has more of its
    parents.
    """
    _, *location = (int(number) if number else key for number, key in _PART.findall(field))
    shared, shared_depth = _find(suite.run, tuple(location), merged)
    changed, depth = _find(suite.variants[index].changes, tuple(location), merged)
    if depth > shared_depth or math.isinf(depth):
        return field_path(("spec", "variants", index, "set", *changed))
    return field_path(("spec", "run", *shared))


def _find(
    document: Mapping[str, JsonValue], location: Location, merged: Mapping[str, JsonValue]
) -> tuple[Location, float]:
    """Return a location of the merged run with the document's own index of a workload, and how many parts it has of it.

    Infinity if the document has all of it, or all of a list that it is in.
    """
    entries, workloads = merged.get(BY_NAME), document.get(BY_NAME)
    match location:
        case (field, int(index), *rest) if field == BY_NAME and is_named_list(entries) and is_named_list(workloads):
            names = [workload["name"] for workload in workloads]
            name = entries[index]["name"]
            location = (BY_NAME, names.index(name) if name in names else len(names), *rest)
    value: Any = document
    for depth, part in enumerate(location):
        if isinstance(value, list) and location[:depth] != (BY_NAME,):
            return location, math.inf
        try:
            value = value[part]
        except (LookupError, TypeError):
            return location, depth
    return location, math.inf if location else 0


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
