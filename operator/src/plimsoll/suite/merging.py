"""Merges the changes of a variant into what all variants of a suite share.

Fields that the variant unsets are removed first. Mappings are merged, workloads are merged by name, and other lists are
replaced. A field of a union replaces its siblings: the models declare unions in `one_of`, and a workload has one tool.
Inputs are never modified.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import TypeGuard, cast

from pydantic import JsonValue

from plimsoll.api.dotted import without_field
from plimsoll.api.errors import models_in
from plimsoll.api.model import Model
from plimsoll.api.run import GENERIC_WORKLOAD_FIELDS, RunSpec, Workload
from plimsoll.api.suite import BY_NAME, Variant

Json = dict[str, JsonValue]


def variant_spec(run: Mapping[str, JsonValue], variant: Variant) -> Json:
    """Return the specification of a variant's run."""
    left = dict(run)
    for path in variant.unset:
        found = without_field(left, path)
        left = left if found is None else found
    return merged_spec(left, variant.changes)


def merged_spec(run: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]) -> Json:
    """Return the specification of a run with the changes of a variant, in the order of `run`, new fields last."""
    return _merged(run, changes, RunSpec)


def is_named_list(value: object) -> TypeGuard[list[Json]]:
    """Whether a list can be merged by name: mappings with unique names."""
    if not isinstance(value, list):
        return False
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in value]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _merged(base: Mapping[str, JsonValue], changes: Mapping[str, JsonValue], model: type[Model] | None) -> Json:
    replaced = _replaced_siblings(base, changes, model)
    kept = {key: deepcopy(value) for key, value in base.items() if key not in replaced and key not in changes}
    changed = {
        key: _merged_value(base.get(key), value, _model_of(model, key), by_name=model is RunSpec and key == BY_NAME)
        for key, value in changes.items()
    }
    both = kept | changed
    return {key: both[key] for key in dict.fromkeys((*base, *changes)) if key in both}


def _merged_value(base: JsonValue, change: JsonValue, model: type[Model] | None, *, by_name: bool) -> JsonValue:
    if isinstance(change, dict):
        return _merged(base if isinstance(base, dict) else {}, change, model)
    if by_name and is_named_list(change):
        return cast("JsonValue", _merged_by_name(base if is_named_list(base) else [], change, model))
    return deepcopy(change)


def _merged_by_name(base: list[Json], changes: list[Json], model: type[Model] | None) -> list[Json]:
    """Merge entries with the same name in place; new ones follow."""
    ours, theirs = ({entry["name"]: entry for entry in entries} for entries in (base, changes))
    return [_merged(ours.get(name, {}), theirs.get(name, {}), model) for name in dict.fromkeys((*ours, *theirs))]


def _replaced_siblings(
    base: Mapping[str, JsonValue], changes: Mapping[str, JsonValue], model: type[Model] | None
) -> set[str]:
    """Return the fields of a union that a change replaces by another one."""
    chosen = {key for key, value in changes.items() if _is_chosen(model, key, value)}
    # A tool without a mapping has its defaults.
    members = {key for key, value in base.items() if _is_chosen(model, key, {} if value is None else value)}
    return members - chosen if chosen else set()


def _is_chosen(model: type[Model] | None, key: str, value: JsonValue) -> bool:
    """Whether a field is a member of its model's union, and set."""
    if model is Workload:
        return key not in GENERIC_WORKLOAD_FIELDS and isinstance(value, dict)
    return model is not None and value is not None and key in {model.model_fields[name].alias for name in model.one_of}


def _model_of(model: type[Model] | None, key: str) -> type[Model] | None:
    """Return the model of a field; None if it has none, as a mapping of labels."""
    fields = model.model_fields.values() if model is not None else ()
    found = (one for field in fields if field.alias == key for one in models_in(field.annotation))
    return next((one for one in found if issubclass(one, Model)), None)
