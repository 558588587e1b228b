"""The runs of a round: what each variant measures, and its turns in shuffled passes over all variants.

The changes of a variant are merged into what all variants share: fields that it unsets are removed first, mappings are
merged, workloads are merged by name, and other lists are replaced. A field of a union replaces its siblings: the models
declare unions in `one_of`, and a workload has one tool. Inputs are never modified.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeGuard, TypeVar

from pydantic import JsonValue

from plimsoll.api.errors import Problem, SpecError, field_path, models_in
from plimsoll.api.model import Model, without_field
from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionStatus, ConditionType, Metric
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import GENERIC_WORKLOAD_FIELDS, BenchmarkRun, RunSpec, Workload, decode_run
from plimsoll.api.suite import BY_NAME, BenchmarkSuite, SuiteSpec, Variant
from plimsoll.measure.hypotheses.select import VariantRun, impossible
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import check_fits_deadline, expand, make_plan
from plimsoll.plan.fingerprint import Difference, digest, leaves
from plimsoll.plan.sweep import child_seed, shuffled

Json = dict[str, JsonValue]
T = TypeVar("T")


def variant_spec(run: Mapping[str, JsonValue], variant: Variant) -> Json:
    rest = dict(run)
    for path in variant.unset:
        without = without_field(rest, path)
        rest = rest if without is None else without
    return merged_spec(rest, variant.changes)


def merged_spec(
    base: Mapping[str, JsonValue], changes: Mapping[str, JsonValue], model: type[Model] | None = RunSpec
) -> Json:
    """Return a specification with the changes of a variant; `model` describes both, None for mappings without one."""
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
    entries = value if isinstance(value, list) else [None]
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_chosen(model: type[Model] | None, key: str, value: JsonValue) -> bool:
    if model is Workload:
        return key not in GENERIC_WORKLOAD_FIELDS and isinstance(value, dict)
    return model is not None and value is not None and key in {model.model_fields[name].alias for name in model.one_of}


_PART = re.compile(r"\[([0-9]+)\]|([^.\[]+)")
Location = tuple[int | str, ...]


def source_of(field: str, suite: SuiteSpec, index: int, merged: Mapping[str, JsonValue]) -> str:
    """Return the path in the suite of a field of a variant's run, such as `spec.variants[1].set.clients.count`.

    `merged` is its run. A field that is missing belongs to the document that has more of its parents.
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


_HASH = 5  # length of the hash of a suite's UID in the names of its runs
_MAX_SUITE_PART = 25  # of the suite's name in them: with 20 characters of the variant they are labels, of at most 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One measurement of a variant in a round."""

    variant: str  # name of the variant
    repeat: int  # number of the pass over all variants, from 0
    seed: int  # of the order and the load of its run


def has_numbers(run: Mapping[str, Any]) -> bool:
    """Whether a run of a round, as the API server stores it, has ended, and not all of its points are Invalid."""
    status = run.get("status") or {}
    points = status.get("points") or {}
    is_partly_valid = points.get("invalid", 0) < points.get("total", 0)
    return any(
        condition["status"] == ConditionStatus.TRUE
        or (condition["reason"] == Reason.INVALID_RESULTS and is_partly_valid)
        for condition in status.get("conditions") or ()
        if condition["type"] == ConditionType.SUCCEEDED
    )


def turns_of(spec: SuiteSpec, seed: int) -> tuple[Turn, ...]:
    """Return the turns of a round in their order: each pass has all variants, shuffled."""
    return _turns(tuple(variant.name for variant in spec.variants), spec.repeat, seed)


@lru_cache(maxsize=256)
def _turns(names: tuple[str, ...], repeats: int, seed: int) -> tuple[Turn, ...]:
    # A look at a suite needs the turns of a round several times, and each takes several hashes.
    return tuple(
        Turn(variant=names[index], repeat=repeat, seed=child_seed(seed, variant=names[index], repeat=repeat))
        for repeat in range(repeats)
        for index in shuffled(seed, pass_number=repeat, points=len(names))
    )


def turns_by_name(suite: BenchmarkSuite, *, minute: int, seed: int, uid: str = "") -> dict[str, Turn]:
    """Return the turns of a round in their order, by the names of their runs. `minute` is when it starts."""
    return {child_name(suite, turn, minute, uid): turn for turn in turns_of(suite.spec, seed)}


def child_name(suite: BenchmarkSuite, turn: Turn, minute: int, uid: str = "") -> str:
    """Return the name of a run: a DNS label, at most 63 characters until the year 2160.

    In a cluster it contains a hash of the suite's UID, because variant `a-b` of suite `s` and variant `b` of suite
    `s-a` have the same names otherwise; then a longer suite name is truncated. A suite without a UID is on one machine.
    """
    name = suite.metadata.name
    prefix = _prefix(name, turn.variant, uid) if uid else f"{name}-{turn.variant}"
    return f"{prefix}-{minute}-{turn.repeat}"


def turn_in_name(suite: str, uid: str, name: str) -> tuple[str, int] | None:
    """Return the variant and the minute of the round in the name of a suite's run; None if it has no such name."""
    start, end = _prefix(suite, " ", uid).split(" ")
    match = re.fullmatch(rf"{re.escape(start)}(.+){end}-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)", name)
    return (match[1], int(match[2])) if match else None


@lru_cache(maxsize=256)
def _prefix(suite: str, variant: str, uid: str) -> str:
    return f"{suite[:_MAX_SUITE_PART]}-{variant}-{sha256(uid.encode()).hexdigest()[:_HASH]}"


def variant_runs(suite: BenchmarkSuite) -> dict[str, BenchmarkRun]:
    """Return the run of each variant by its name; SpecError has the problems of all, at the fields of the suite."""

    def run_of(variant: Variant) -> BenchmarkRun:
        metadata: JsonValue = {"name": f"{suite.metadata.name}-{variant.name}", "namespace": suite.metadata.namespace}
        spec = variant_spec(suite.spec.run, variant)
        return decode_run({"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": spec})

    return _of_all_variants(suite, run_of)


def variant_plans(suite: BenchmarkSuite, *, seed: int) -> dict[str, Plan]:
    """Return a plan of each variant, by the variant's name.

    SpecError as of `variant_runs`, and for what cannot be planned, in time, or answered by the planned points.
    """
    runs = variant_runs(suite)

    def plan_of(variant: Variant) -> Plan:
        plan = make_plan(runs[variant.name], seed=seed)
        check_fits_deadline(plan)
        return plan

    plans = _of_all_variants(suite, plan_of)
    if problems := list(_unanswerable(suite.spec, plans)):
        raise SpecError(problems)
    return plans


def _of_all_variants(suite: BenchmarkSuite, make: Callable[[Variant], T]) -> dict[str, T]:
    """Apply a function to each variant; SpecError has each problem once, with its variants unless all have it."""
    made: dict[str, T] = {}
    variants_of: dict[Problem, list[str]] = {}
    for index, variant in enumerate(suite.spec.variants):
        try:
            made[variant.name] = make(variant)
        except SpecError as error:
            merged = variant_spec(suite.spec.run, variant)
            for problem in error.problems:
                own = replace(problem, field=source_of(problem.field, suite.spec, index, merged))
                variants_of.setdefault(own, []).append(variant.name)
    unique = []
    for problem, all_names in variants_of.items():
        names = [*dict.fromkeys(all_names)]
        text = f"variant{'s' if len(names) > 1 else ''} {', '.join(names)}"
        is_shared = len(names) == len(suite.spec.variants)
        unique.append(problem if is_shared else replace(problem, remedy=f"{problem.remedy} ({text})"))
    if unique:
        raise SpecError(unique)
    return made


def _unanswerable(spec: SuiteSpec, plans: Mapping[str, Plan]) -> Iterator[Problem]:
    for index, comparison in enumerate(spec.comparisons):
        sides = [{point.name for point in plans[variant].points} for variant in comparison.variants or ()]
        if comparison.variants is not None and not set.intersection(*sides):
            names = " and ".join(comparison.variants)
            remedy = f"compares nothing, because variants {names} have no workload in common; compare others"
            yield Problem(field=f"spec.comparisons[{index}]", remedy=remedy)
    runs = [VariantRun(variant=name, name=plan.run.name, points=plan.points) for name, plan in plans.items()]
    for index, hypothesis in enumerate(spec.hypotheses):
        for problem in impossible(hypothesis, runs):
            field, _, remedy = problem.partition(": ")
            yield Problem(field=f"spec.hypotheses[{index}].{field}", remedy=remedy)
        for field, selector in hypothesis.selectors:
            selected = [plan for name, plan in plans.items() if selector.variant in (None, name)]
            points = [point for plan in selected for point in plan.points if point.workload == selector.workload]
            wants_line = selector.quantity is Metric.LINE
            if any((point.line is not None) != wants_line for point in points):
                wrong = f"searches for the line, so its trials have different loads; choose {Metric.LINE}"
                if wants_line:
                    wrong = "does not search for the line; set line in it"
                remedy = f"workload {selector.workload} {wrong}"
                yield Problem(field=f"spec.hypotheses[{index}].{field}.quantity", remedy=remedy)


_FURTHER = {
    "clients.count": ("clients", "dataSetBytes"),
    "prepare.fillPercent": ("dataSetBytes",),
    "prepare.dropCaches": ("osdCaches",),
}
"""Path of a specification -> keys of the identity that follow from it, besides the one of the same name."""


def unexplained(
    changes: Sequence[FieldChange], workload: str, differences: Iterable[Difference]
) -> tuple[Difference, ...]:
    """Return the differences in identity of a workload's results that do not follow from what two variants set."""
    keys = {key for change in changes for key in _keys(change.path, workload)}
    fields = {_within_workload(change.path, workload).partition(".")[0] for change in changes}
    # Parameters of two tools differ if the variants have different tools.
    if len(fields - {"", *GENERIC_WORKLOAD_FIELDS}) > 1:
        keys |= {"tool", "toolVersions", "parameters", "prepare.prefill", "prepare.perTrial"}
    parents = tuple(f"{key}." for key in keys)
    return tuple(
        difference
        for difference in differences
        if difference.part == "identity" and not f"{difference.key}.".startswith(parents)
    )


def _keys(path: str, workload: str) -> Iterator[str]:
    """Yield the keys of the identity that may differ because of a field of the specification, with all below them."""
    yield from _FURTHER.get(path, ())
    if path.startswith("storage."):
        yield from ("volume", "dataSetBytes", "storageClass", "pool", "fileSystem", "cephOptions")
    if path.startswith(("servers.", "prepare.")):
        yield ".".join(path.split(".")[:2])
    match _within_workload(path, workload).split("."):
        case [field] if field in GENERIC_WORKLOAD_FIELDS:
            yield field
        case ["line", *_]:
            yield "line"
        case [_, parameter, *_]:
            yield f"parameters.{parameter}"


def _within_workload(path: str, workload: str) -> str:
    """Return a path within the workload, such as `fio.blockSize`; empty for all others."""
    place = f"{BY_NAME}.{workload}."
    return path.removeprefix(place) if path.startswith(place) else ""


def suite_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of run, variants and repeat, in hexadecimal."""
    return digest(spec.model_dump(mode="json", include={"run", "variants", "repeat"}))


def questions_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of comparisons and hypotheses, in hexadecimal."""
    return digest(spec.model_dump(mode="json", include={"comparisons", "hypotheses"}))


def measured_digest(spec: Mapping[str, JsonValue]) -> str:
    """Return the SHA-256 of what a run with that specification measures, in hexadecimal; empty if it is invalid.

    It is the same before and after the API server has set defaults, and after a change that a run allows.
    """
    changeable = {"suspend", "cleanup", "results", "ttlSecondsAfterFinished"}  # see the rules of `RunSpec`
    fixed = {name: value for name, value in spec.items() if name not in changeable}
    return _measured(json.dumps(fixed, sort_keys=True))


@lru_cache(maxsize=256)  # all runs of a variant have the same specification
def _measured(text: str) -> str:
    metadata: JsonValue = {"name": "any"}
    try:
        run = decode_run({"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": json.loads(text)})
        points = expand(run)
    except SpecError:
        return ""
    shared = run.spec.model_dump(mode="json", exclude={"workloads"})
    return digest(shared | {"points": [point.model_dump(mode="json") for point in points]})
