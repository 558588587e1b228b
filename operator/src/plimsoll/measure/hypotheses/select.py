"""Which points a selector means, in the results of a run or in its plan; if none or several, what to change."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from pydantic import JsonValue

from plimsoll.api.errors import did_you_mean
from plimsoll.api.hypothesis import CLIENTS, Hypothesis, Quantity, Selector
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import OperationResult
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.checks.check import first_few
from plimsoll.measure.compare.lines import Position, line_problem, position_of
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.rates import counts_operations
from plimsoll.measure.summary import counted

_NAMED = 8


def listed(texts: Sequence[str], last: Literal["and", "or"] = "and") -> str:
    """Return `a`, `a and b`, or `a, b and c`; the first few of many."""
    if len(texts) > _NAMED:
        return first_few(texts, _NAMED)
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def parameter_text(value: JsonValue) -> str:
    """Return a value of a parameter as a workload writes it; `none` for the default of an absent one."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


MINIMUM_AXIS_VALUES = 3
"""Of an axis; any two points lie on a line."""


class SelectablePoint(Protocol):
    """A point of a plan, or of results."""

    @property
    def name(self) -> str: ...  # noqa: D102 - a point's
    @property
    def workload(self) -> str: ...  # noqa: D102
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...  # noqa: D102
    @property
    def clients(self) -> int: ...  # noqa: D102


P = TypeVar("P", bound=SelectablePoint)


@dataclass(frozen=True, kw_only=True)  # without slots: Python 3.11 cannot create a generic class with them
class VariantRun(Generic[P]):
    """One run of a variant; `variant` is empty outside a suite, `name` in a plan."""

    variant: str
    name: str
    points: Sequence[P]


@dataclass(frozen=True, kw_only=True)
class SelectedPoint(Generic[P]):
    """A point that a selector matches; `axis_value` is None for a ratio."""

    variant: str
    run: str
    point: P
    axis_value: int | None


class SelectionError(ValueError):
    """A selector does not match exactly one point; the message names the field and the remedy."""


def scopes(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> Iterator[tuple[str | None, list[VariantRun[P]]]]:
    """Yield the runs that each decision is about, with their variant if there is a decision for each variant."""
    variants = variants_of(runs)
    if hypothesis.left.variant is not None or len(variants) < 2:  # noqa: PLR2004 - several
        yield None, [*runs]
        return
    for variant in variants:
        yield variant, [run for run in runs if run.variant == variant]


def variants_of(runs: Sequence[VariantRun[P]]) -> list[str]:
    """Return the variants in the order of their first runs."""
    return list(dict.fromkeys(run.variant for run in runs))


def impossible(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> tuple[str, ...]:
    """Return why no measurement of these points can decide a hypothesis; empty if one can, in some variant.

    For a plan, `runs` has one run of each variant.
    """
    found = [_selection_problems(hypothesis, of_scope) for _, of_scope in scopes(hypothesis, runs)]
    return () if not all(found) else tuple(dict.fromkeys(problem for problems in found for problem in problems))


def _selection_problems(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> list[str]:
    problems = []
    for field, selector in hypothesis.selectors:
        try:
            select(hypothesis, field, selector, runs)
        except SelectionError as error:
            problems.append(str(error))
    return problems


def select(
    hypothesis: Hypothesis, field: str, selector: Selector, runs: Sequence[VariantRun[P]]
) -> list[SelectedPoint[P]]:
    """Return the points of a selector: one of each run, or for scaling one of each run and value of the axis.

    `runs` are those of one scope, `field` is the selector's name in the hypothesis.

    Raises:
        SelectionError: it matches no point, or several.

    """
    own = sorted(_runs_of_variant(field, selector, runs), key=lambda run: run.name)
    selected = [one for run in own for one in _select_in_run(hypothesis, field, selector, run)]
    if hypothesis.over:
        _check_axis(hypothesis.over, selected, own)
    return selected


def _runs_of_variant(field: str, selector: Selector, runs: Sequence[VariantRun[P]]) -> list[VariantRun[P]]:
    if not runs:
        raise SelectionError(f"{field}: there are no runs")
    if selector.variant is None:
        return [*runs]
    own = [run for run in runs if run.variant == selector.variant]
    if not own:
        known = variants_of(runs)
        remedy = did_you_mean(selector.variant, known, 1) or f"there are {listed(known)}"
        raise SelectionError(f"{field}.variant: there is no variant {selector.variant}; {remedy}")
    return own


def _select_in_run(
    hypothesis: Hypothesis, field: str, selector: Selector, run: VariantRun[P]
) -> Iterator[SelectedPoint[P]]:
    candidates = _of_workload(field, selector, run)
    matching = [point for point in candidates if not _unmet(selector, point)]
    if not matching:
        raise SelectionError(_closest(field, selector, run, candidates))
    by_value = _by_axis_value(hypothesis, matching)
    if not by_value:
        raise SelectionError(_outside_range(hypothesis, matching))
    for value, points in by_value.items():
        if len(points) > 1:
            raise SelectionError(_several(field, points))
        yield SelectedPoint(variant=run.variant, run=run.name, point=points[0], axis_value=value)


def _of_workload(field: str, selector: Selector, run: VariantRun[P]) -> list[P]:
    found = [point for point in run.points if point.workload == selector.workload]
    if found:
        return sorted(found, key=lambda point: point.name)
    known = list(dict.fromkeys(point.workload for point in run.points))
    if not known:
        raise SelectionError(f"{field}: run {run.name} has no results; measure it again")
    remedy = did_you_mean(selector.workload, known, 1) or f"it has {listed(known)}"
    raise SelectionError(f"{field}.workload: {_run_text(run)} has no workload {selector.workload}; {remedy}")


def _unmet(selector: Selector, point: P) -> list[str]:
    """Return the keys of `where` that a point does not satisfy."""
    return [key for key, wanted in selector.where.items() if not _has(point, key, wanted)]


def _has(point: P, key: str, wanted: JsonValue) -> bool:
    return _comparable(_value(point, key)) == _comparable(wanted)


def axis_text(point: SelectablePoint, key: str) -> str:
    """Return a point's number of clients, or a parameter, as a workload writes it."""
    return parameter_text(_value(point, key))


def _value(point: SelectablePoint, key: str) -> JsonValue:
    return point.clients if key == CLIENTS else point.parameters.get(key)


def _comparable(value: JsonValue) -> tuple[str, Hashable]:
    """Return a form in which equal values are equal: `4Mi` is 4194304, but true is not 1."""
    number = _number(value)
    return ("text", parameter_text(value)) if number is None else ("number", number)


def _number(value: JsonValue) -> int | None:
    try:
        return parse_quantity(value)
    except ValueError:
        return None


def _closest(field: str, selector: Selector, run: VariantRun[P], candidates: Sequence[P]) -> str:
    """Return why no point of the workload matches: the key that never does, or what the closest point has instead."""
    where = f"workload {selector.workload} of {_run_text(run)}"
    for key, wanted in selector.where.items():
        if key != CLIENTS and all(key not in point.parameters for point in candidates):
            remedy = did_you_mean(key, _keys(candidates), 1) or f"it has {listed(_keys(candidates))}"
            return f"{field}.where.{key}: {where} has no parameter {key}; {remedy}"
        if not any(_has(point, key, wanted) for point in candidates):
            known = listed(_values(candidates, key))
            return f"{field}.where.{key}: {where} has no point with {parameter_text(wanted)}; it has {known}"
    closest = min(candidates, key=lambda point: len(_unmet(selector, point)))
    instead = ", ".join(f"{key} {axis_text(closest, key)}" for key in _unmet(selector, closest))
    together = listed([f"{key} {parameter_text(wanted)}" for key, wanted in selector.where.items()])
    return f"{field}.where: no point of {where} has {together} together; the closest, {closest.name}, has {instead}"


def _by_axis_value(hypothesis: Hypothesis, points: Sequence[P]) -> dict[int | None, list[P]]:
    """Group points by their value on the axis, in ascending order; those outside the range are excluded."""
    over, limits = hypothesis.over, hypothesis.range
    if over is None:
        return {None: [*points]}
    numbered = [(_axis_value(over, point), point) for point in points]
    found: dict[int | None, list[P]] = {}
    for value, point in sorted(numbered, key=lambda one: one[0]):
        if limits is None or limits.includes(value):
            found.setdefault(value, []).append(point)
    if 0 in found:
        raise SelectionError(f"over: {over} is 0 at {found[0][0].name}, which has no logarithm; exclude it with range")
    return found


def _axis_value(over: str, point: P) -> int:
    if over != CLIENTS and over not in point.parameters:
        known = [CLIENTS, *_keys([point])]
        remedy = did_you_mean(over, known, 1) or f"it has {listed(known)}"
        raise SelectionError(f"over: workload {point.workload} has no parameter {over}; {remedy}")
    number = _number(_value(point, over))
    if number is None:
        value = axis_text(point, over)
        raise SelectionError(
            f"over: {over} is {value} at {point.name}; choose an axis whose values are numbers or sizes"
        )
    return number


def _outside_range(hypothesis: Hypothesis, points: Sequence[P]) -> str:
    return (
        f"range: it includes no value of {hypothesis.over}; there are {listed(_values(points, hypothesis.over or ''))}"
    )


def _several(field: str, points: Sequence[P]) -> str:
    keys = [key for key in (*_keys(points), CLIENTS) if len({_comparable(_value(one, key)) for one in points}) > 1]
    remedy = listed([f"{key} ({listed(_values(points, key), 'or')})" for key in keys]) or "another condition"
    return f"{field}: {listed([point.name for point in points])} match; add {remedy} to {field}.where"


def _check_axis(over: str, selected: Sequence[SelectedPoint[P]], runs: Sequence[VariantRun[P]]) -> None:
    """Refuse too few values, and values that a run lacks.

    Raises:
        SelectionError: in these cases.

    """
    values = sorted({one.axis_value for one in selected if one.axis_value is not None})
    if len(values) < MINIMUM_AXIS_VALUES:
        known = listed(list(dict.fromkeys(axis_text(one.point, over) for one in selected)))
        remedy = f"at least {MINIMUM_AXIS_VALUES} are needed: measure more, or widen range"
        raise SelectionError(f"over: {over} has only the values {known}; {remedy}")
    for run in runs:
        own = {one.axis_value for one in selected if one.run == run.name and one.variant == run.variant}
        lacking = [str(value) for value in values if value not in own]
        if lacking:
            point = f"no point with {over} {listed(lacking)}"
            raise SelectionError(f"over: {_run_text(run)} has {point}; measure it again")


def _keys(points: Sequence[P]) -> list[str]:
    return list(dict.fromkeys(key for point in points for key in point.parameters))


def _values(points: Sequence[P], key: str) -> list[str]:
    return list(dict.fromkeys(axis_text(point, key) for point in points))


def _run_text(run: VariantRun[P]) -> str:
    """Name a run; in a plan the variants are not runs yet."""
    if not run.name:
        return f"variant {run.variant}" if run.variant else "the run"
    return f"run {run.name} (variant {run.variant})" if run.variant else f"run {run.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """A point with its result."""

    result: BenchmarkResult

    @property
    def name(self) -> str:
        """The point's name within its run."""
        return self.result.spec.point

    @property
    def workload(self) -> str:
        """The workload's name."""
        return self.result.spec.workload

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """The tool's parameters, defaults included."""
        return self.result.spec.parameters

    @property
    def clients(self) -> int:
        """The number of clients that took part."""
        return self.result.spec.clients


MeasuredRun = VariantRun[MeasuredPoint]


def measured_run(variant: str, name: str, results: Sequence[BenchmarkResult]) -> MeasuredRun:
    """Return a run of a variant with its results; without any the run failed."""
    return VariantRun(variant=variant, name=name, points=[MeasuredPoint(result=result) for result in results])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The values of one selected point.

    Attributes:
        field: the selector's name in the hypothesis.
        values: of each trial that counts; all positive if there are no problems.
        problems: why the point decides nothing.
        line: where the line is, with its errors; None if the quantity is another one.
        bound: why only a bound of the line is known; it has no value then. Empty for an estimate with an interval.

    """

    field: str
    selected: SelectedPoint[MeasuredPoint]
    values: tuple[float, ...]
    problems: tuple[str, ...]
    line: Position | None = None
    bound: str = ""

    @property
    def result(self) -> BenchmarkResult:
        """The result of the point."""
        return self.selected.point.result


def sample_of(field: str, selector: Selector, selected: SelectedPoint[MeasuredPoint]) -> Sample:
    """Return the values of a point, or its problems."""
    result = selected.point.result
    where = f"{selected.point.name} of run {selected.run}"
    problems = [*_unusable(result, where)]
    if not problems and (result.spec.line is not None or selector.quantity is Quantity.LINE):
        return _line_sample(field, selector, selected, where)
    trials = [] if problems else counted(result.status.trials)
    operation, problem = _operation(field, selector, trials, where) if trials else (None, "")
    values = _samples_values(trials, operation, selector.quantity) if operation else []
    problems += [problem] if problem else _value_problems(field, selector, values, _results(trials, operation), where)
    known = tuple(value for value in values if value is not None)
    return Sample(field=field, selected=selected, values=() if problems else known, problems=tuple(problems))


def _line_sample(field: str, selector: Selector, selected: SelectedPoint[MeasuredPoint], where: str) -> Sample:
    result = selected.point.result
    line, search = result.status.line, result.spec.line
    position = position_of(line, search) if line is not None and search is not None else None
    problem = _line_problem(field, selector, result, where)
    if problem or position is None:
        return Sample(field=field, selected=selected, values=(), problems=(problem,))
    if not position.is_estimate:
        bound = (
            f"the line of {where} is not between the lowest and the highest load that were offered; raise limit, or "
            "lower start"
        )
        return Sample(field=field, selected=selected, values=(), problems=(), line=position, bound=bound)
    return Sample(field=field, selected=selected, values=(math.exp(position.value),), problems=(), line=position)


def _line_problem(field: str, selector: Selector, result: BenchmarkResult, where: str) -> str:
    if selector.quantity is not Quantity.LINE:
        return (
            f"{field}.quantity: {where} searches for the line, so its trials have different loads; "
            f"choose {Quantity.LINE}"
        )
    if result.spec.line is None:
        return (
            f"{field}.quantity: {where} does not search for the line; choose another quantity, or set line in its "
            "workload"
        )
    return line_problem(f"point {where}", result)


def _unusable(result: BenchmarkResult, where: str) -> Iterator[str]:
    status = result.status
    if not status.final:
        yield f"{where} is not finished"
    elif status.verdict in (Verdict.INVALID, None) or not counted(status.trials):
        reasons = dict.fromkeys(one.reason for one in status.findings if one.verdict is Verdict.INVALID)
        because = f" ({', '.join(reasons)})" if reasons else ""
        yield f"{where} is {Verdict.INVALID}{because}, so it decides nothing; fix the cause and measure again"


def _operation(field: str, selector: Selector, trials: Sequence[Trial], where: str) -> tuple[Operation | None, str]:
    """Return the selected operation, or why there is none."""
    done = {result.operation for trial in trials for result in trial.operations}
    known = [one for one in Operation if one in done]
    if selector.operation is None and len(known) == 1:
        return known[0], ""
    if selector.operation in done:
        return selector.operation, ""
    if selector.operation is None and known:
        return None, f"{field}: {where} has the operations {listed(known)}; add {field}.operation"
    which = selector.operation or "operation"
    return None, f"{field}.operation: {where} has no {which}; it has {listed(known) or 'none'}"


def _results(trials: Sequence[Trial], operation: Operation | None) -> list[OperationResult]:
    return [result for trial in trials for result in trial.operations if result.operation is operation]


def _samples_values(trials: Sequence[Trial], operation: Operation, quantity: Quantity) -> list[float | None]:
    """Return the value of each trial; None where it is unknown."""
    return [
        next((_samples_value(result, quantity) for result in _results([trial], operation)), None) for trial in trials
    ]


def _samples_value(result: OperationResult, quantity: Quantity) -> float | None:
    if quantity.percentile:
        return result.latency.percentiles.get(quantity.percentile)
    if quantity is Quantity.MEAN:
        return result.latency.mean_nanoseconds
    if quantity is Quantity.BYTES:
        return result.rates.bytes_per_second
    return result.rates.iops if _counts_operations(result) else None


def _value_problems(
    field: str,
    selector: Selector,
    values: Sequence[float | None],
    results: Sequence[OperationResult],
    where: str,
) -> list[str]:
    if not values:
        return []
    quantity = selector.quantity
    if instead := _not_reported(results, quantity):
        return [f"{field}.quantity: the tool of {where} does not report {quantity}; {instead}"]
    return [*_gaps(values, quantity, where)]


def _not_reported(results: Sequence[OperationResult], quantity: Quantity) -> str:
    """Return what to choose instead of a quantity that the tool does not have, as far as any trial shows."""
    kinds = {result.latency.kind for result in results}
    has_mean = any(kind.has_mean for kind in kinds)
    if quantity.percentile and LatencyKind.FULL not in kinds:
        return f"choose {Quantity.MEAN}" if has_mean else "choose a rate"
    if quantity is Quantity.MEAN and not has_mean:
        return "choose a rate"
    if quantity is Quantity.IOPS and not any(map(_counts_operations, results)):
        return f"choose {Quantity.BYTES}"
    if quantity is Quantity.BYTES and all(not one.bytes and one.ios for one in results):
        return f"choose {Quantity.IOPS}, or a latency"
    return ""


def _gaps(values: Sequence[float | None], quantity: Quantity, where: str) -> Iterator[str]:
    """Yield which values are missing or have no logarithm."""
    absent = sum(value is None for value in values)
    known = [value for value in values if value is not None]
    odd = sum(not math.isfinite(value) for value in known)
    low = sum(value <= 0 for value in known)
    if absent:
        why = f"fewer than {MINIMUM_BEYOND} operations beyond it" if quantity.percentile else "too few operations"
        yield f"{quantity} is missing in {absent} of {len(values)} trials of {where}: {why}; measure for longer"
    if odd:
        yield f"{quantity} is not a finite number in {odd} of {len(values)} trials of {where}; check these trials"
    if low:
        what = f"{'0 or less' if min(known) < 0 else '0'} in {low} of {len(values)} trials"
        yield f"{quantity} is {what} of {where}, so it has no logarithm; check these trials"


def _counts_operations(result: OperationResult) -> bool:
    return counts_operations(result.rates.iops, result.rates.bytes_per_second)
