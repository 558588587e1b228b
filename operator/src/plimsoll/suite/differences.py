"""Which fields of a run a variant changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.suite import BY_NAME, SuiteSpec
from plimsoll.plan.fingerprint import leaves
from plimsoll.suite.merging import is_named_list, variant_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that differs between two specifications.

    Attributes:
        path: dotted path, with the names of workloads: `workloads.random-read.fio.blockSize`.
        before: the value in the first one; None if absent.
        after: the value in the second one; None if absent.

    """

    path: str
    before: JsonValue
    after: JsonValue


def variant_changes(spec: SuiteSpec) -> dict[str, tuple[FieldChange, ...]]:
    """Return what each variant changes in `spec.run`, by the variant's name."""
    return {one.name: spec_changes(spec.run, variant_spec(spec.run, one)) for one in spec.variants}


def changes_between(spec: SuiteSpec, baseline: str, candidate: str) -> tuple[FieldChange, ...]:
    """Return the fields that two variants set differently."""
    merged = {one.name: variant_spec(spec.run, one) for one in spec.variants}
    return spec_changes(merged[baseline], merged[candidate])


def spec_changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> tuple[FieldChange, ...]:
    """Return the fields that differ between two specifications as written, in their order. A list is one value."""
    ours, theirs = _fields(before), _fields(after)
    paths = dict.fromkeys((*ours, *theirs))
    return tuple(
        FieldChange(path=path, before=ours.get(path), after=theirs.get(path))
        for path in paths
        if ours.get(path) != theirs.get(path) and not _has_parts(path, paths)
    )


def _has_parts(path: str, paths: Iterable[str]) -> bool:
    """Whether an empty mapping of one specification is not empty in the other one."""
    return any(other.startswith(f"{path}.") for other in paths)


def _fields(spec: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the values of a specification by their paths; an empty mapping is a value."""
    workloads = spec.get(BY_NAME)
    if is_named_list(workloads):
        spec = {**spec, BY_NAME: {str(one["name"]): _without_name(one) for one in workloads}}
    return {path: value for path, value in leaves(spec) if value is not None}


def _without_name(workload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for key, value in workload.items() if key != "name"}
