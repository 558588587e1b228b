"""Which points a selector means, in the results of a run or in its plan; if none or several, what to change."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import JsonValue

from plimsoll.api.errors import did_you_mean
from plimsoll.api.hypothesis import CLIENTS, STORM, Hypothesis, Selector
from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.check import invalid_reasons
from plimsoll.measure.compare.lines import Position, line_problem, position_of_result
from plimsoll.measure.compare.values import COMPARED
from plimsoll.measure.rates import grouped
from plimsoll.measure.summary import (
    OF_DISTURBANCES,
    complete,
    is_reported,
    operations_of,
    problem_of,
    results_of,
    values_of,
)
from plimsoll.measure.text import listed

MINIMUM_AXIS_VALUES = 3  # of an axis; any two points lie on a line
_CLOSEST = 3  # combinations of values that a message names


def parameter_text(value: JsonValue) -> str:
    """Return a value of a parameter as a workload writes it; `none` for the default of an absent one."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


class SelectablePoint(Protocol):
    """A point of a plan, or of results."""

    @property
    def name(self) -> str: ...  # a point's
    @property
    def workload(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...
    @property
    def clients(self) -> int: ...
    @property
    def calm(self) -> str | None: ...  # of a search for the storm line, the point with the calm line


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

    field: str  # the selector's name in the hypothesis
    selector: Selector
    variant: str
    run: str
    point: P
    axis_value: int | None


class SelectionError(ValueError):
    """A selector does not match exactly one point; the message names the field and the remedy."""


def scopes(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> Iterator[tuple[str | None, list[VariantRun[P]]]]:
    """Yield the runs that each decision is about, with their variant if there is a decision for each variant."""
    of_variants = grouped(runs, lambda run: run.variant)
    if hypothesis.left.variant is not None or len(of_variants) < 2:  # noqa: PLR2004 - several
        yield None, [*runs]
    else:
        yield from of_variants.items()


def impossible(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> tuple[str, ...]:
    """Return why no measurement of these points can decide a hypothesis; empty if one can, in some variant."""
    problems = [select_all(hypothesis, of_scope)[1] for _, of_scope in scopes(hypothesis, runs)]
    return tuple(dict.fromkeys(problem for of_scope in problems for problem in of_scope)) if all(problems) else ()


def select_all(hypothesis: Hypothesis, runs: Sequence[VariantRun[P]]) -> tuple[list[SelectedPoint[P]], tuple[str, ...]]:
    """Return the points of all selectors, and why a selector has none."""
    selected, problems = list[SelectedPoint[P]](), []
    for field, selector in hypothesis.selectors:
        try:
            selected += select(hypothesis, field, selector, runs)
        except SelectionError as error:
            problems.append(str(error))
    return selected, tuple(problems)


def select(
    hypothesis: Hypothesis, field: str, selector: Selector, runs: Sequence[VariantRun[P]]
) -> list[SelectedPoint[P]]:
    """Return the points of a selector: one of each run, or for scaling one of each run and value of the axis.

    `runs` belong to one scope. SelectionError if the selector, named `field`, matches no point of a run, or several.
    """
    if not runs:
        raise SelectionError(f"{field}: there are no runs")
    of_variant = [run for run in runs if selector.variant in (None, run.variant)]
    if not of_variant:
        remedy = _instead(selector.variant or "", [*dict.fromkeys(run.variant for run in runs)], "there are")
        raise SelectionError(f"{field}.variant: there is no variant {selector.variant}; {remedy}")
    of_variant.sort(key=lambda run: run.name)
    selected = [point for run in of_variant for point in _select_in_run(hypothesis, field, selector, run)]
    if hypothesis.over:
        _check_axis(hypothesis.over, selected, of_variant)
    return selected


def _instead(text: str, names: Sequence[str], otherwise: str = "it has") -> str:
    return did_you_mean(text, names, 1) or f"{otherwise} {listed(names)}"


def _select_in_run(
    hypothesis: Hypothesis, field: str, selector: Selector, run: VariantRun[P]
) -> Iterator[SelectedPoint[P]]:
    if not run.points:
        raise SelectionError(f"{field}: run {run.name} has no results; measure it again")
    by_workload = grouped(sorted(run.points, key=lambda point: point.name), lambda point: point.workload)
    if not (candidates := by_workload.get(selector.workload)):
        remedy = _instead(selector.workload, [*by_workload])
        raise SelectionError(f"{field}.workload: {_run_text(run)} has no workload {selector.workload}; {remedy}")
    if not (matching := [point for point in candidates if not _unmet(point, selector)]):
        raise SelectionError(_unmatched(field, selector, run, candidates))
    by_value = _by_axis_value(hypothesis, matching)
    if not by_value:
        over = hypothesis.over or ""
        raise SelectionError(f"range: it includes no value of {over}; there are {listed(_values(matching, over))}")
    for value, points in by_value.items():
        if len(points) > 1:
            keys = [key for key in (*_keys(points), CLIENTS) if len(_values(points, key)) > 1]
            remedy = listed([f"{key} ({listed(_values(points, key), 'or')})" for key in keys]) or "another condition"
            names = listed([point.name for point in points])
            raise SelectionError(f"{field}: {names} match; add {remedy} to {field}.where")
        yield SelectedPoint(
            field=field, selector=selector, variant=run.variant, run=run.name, point=points[0], axis_value=value
        )


def _unmet(point: SelectablePoint, selector: Selector) -> list[str]:
    """Return the keys of `where` that a point does not satisfy."""
    wanted = selector.where.items()
    return [key for key, value in wanted if _comparable(_value(point, key)) != _comparable(value)]


def axis_text(point: SelectablePoint, key: str) -> str:
    """Return a point's number of clients, or a parameter, as a workload writes it."""
    return parameter_text(_value(point, key))


def _value(point: SelectablePoint, key: str) -> JsonValue:
    if key == STORM:
        return point.calm is not None
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


def _unmatched(field: str, selector: Selector, run: VariantRun[P], candidates: Sequence[P]) -> str:
    """Return why no point of the workload matches: a key that never does, or all together, and the closest values."""
    where = f"workload {selector.workload} of {_run_text(run)}"
    for key, wanted in selector.where.items():
        if key not in (CLIENTS, *_keys(candidates)):
            return f"{field}.where.{key}: {where} has no parameter {key}; {_instead(key, _keys(candidates))}"
        if all(key in _unmet(point, selector) for point in candidates):
            values = listed(_values(candidates, key))
            return f"{field}.where.{key}: {where} has no point with {parameter_text(wanted)}; it has {values}"
    together = listed([f"{key} {parameter_text(wanted)}" for key, wanted in selector.where.items()])
    closest = sorted(candidates, key=lambda point: len(_unmet(point, selector)))
    has = [" with ".join(f"{key} {axis_text(point, key)}" for key in selector.where) for point in closest]
    instead = listed([*dict.fromkeys(has)], named=_CLOSEST)
    return f"{field}.where: no point of {where} has {together} together; it has {instead}"


def _by_axis_value(hypothesis: Hypothesis, points: Sequence[P]) -> dict[int | None, list[P]]:
    """Group points by their value on the axis, in ascending order; those outside the range are excluded."""
    over, limits = hypothesis.over, hypothesis.range
    if over is None:
        return {None: [*points]}
    numbered = []
    for point in points:
        if over != CLIENTS and over not in point.parameters:
            remedy = _instead(over, [CLIENTS, *point.parameters])
            raise SelectionError(f"over: workload {point.workload} has no parameter {over}; {remedy}")
        if (number := _number(_value(point, over))) is None:
            what = f"{over} is {axis_text(point, over)} at {point.name}"
            raise SelectionError(f"over: {what}; choose an axis whose values are numbers or sizes")
        numbered.append((number, point))
    within = sorted((pair for pair in numbered if limits is None or limits.includes(pair[0])), key=lambda pair: pair[0])
    if within and within[0][0] == 0:
        raise SelectionError(f"over: {over} is 0 at {within[0][1].name}, which has no logarithm; exclude it with range")
    return {value: [point for _, point in pairs] for value, pairs in grouped(within, lambda pair: pair[0]).items()}


def _check_axis(over: str, selected: Sequence[SelectedPoint[P]], runs: Sequence[VariantRun[P]]) -> None:
    values = sorted({point.axis_value for point in selected if point.axis_value is not None})
    if len(values) < MINIMUM_AXIS_VALUES:
        present = listed(_values([selection.point for selection in selected], over))
        remedy = f"at least {MINIMUM_AXIS_VALUES} are needed: measure more, or widen range"
        raise SelectionError(f"over: {over} has only the values {present}; {remedy}")
    for run in runs:
        measured = {point.axis_value for point in selected if point.run == run.name and point.variant == run.variant}
        lacking = [str(value) for value in values if value not in measured]
        if lacking:
            point = f"no point with {over} {listed(lacking)}"
            raise SelectionError(f"over: {_run_text(run)} has {point}; measure it again")


def _keys(points: Sequence[P]) -> list[str]:
    keys = dict.fromkeys(key for point in points for key in point.parameters)
    return [*keys, *([STORM] if any(point.calm for point in points) else [])]


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

    name: str  # within its run
    workload: str
    parameters: Mapping[str, JsonValue]  # of the tool, defaults included
    clients: int  # those that took part
    calm: str | None = None  # of a search for the storm line, the point with the calm line
    result: BenchmarkResult


MeasuredRun = VariantRun[MeasuredPoint]


def measured_run(variant: str, name: str, results: Sequence[BenchmarkResult]) -> MeasuredRun:
    """Return a run of a variant with its results; without any the run failed."""
    points = []
    for result in results:
        fields = result.spec.model_dump(include={"workload", "parameters", "clients"})
        points.append(MeasuredPoint(name=result.spec.point, calm=result.spec.calm, result=result, **fields))
    return VariantRun(variant=variant, name=name, points=points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The values of one selected point."""

    selected: SelectedPoint[MeasuredPoint]
    values: tuple[float, ...] = ()  # of each trial that counts; all positive without a problem
    problem: str = ""  # why the point decides nothing
    line: Position | None = None  # where the line is, with its errors; None if the quantity is another one
    bound: str = ""  # why only a bound of the line is known, so that it has no value; empty for an estimate

    @property
    def result(self) -> BenchmarkResult:
        return self.selected.point.result


def sample_of(selected: SelectedPoint[MeasuredPoint]) -> Sample:
    result, status = selected.point.result, selected.point.result.status
    where = f"{selected.point.name} of run {selected.run}"
    if not status.final:
        return Sample(selected=selected, problem=f"{where} is not finished")
    if status.verdict in (Verdict.INVALID, None) or not counted(status.trials):
        reasons = invalid_reasons(status.findings)
        because = f" ({', '.join(reasons)})" if reasons else ""
        remedy = "so it decides nothing; fix the cause and measure again"
        return Sample(selected=selected, problem=f"{where} is {Verdict.INVALID}{because}, {remedy}")
    try:
        if result.spec.line is not None or selected.selector.quantity is Metric.LINE:
            return _line_sample(selected, where)
        return Sample(selected=selected, values=_trial_values(selected, where))
    except SelectionError as error:
        return Sample(selected=selected, problem=str(error))


def _line_sample(selected: SelectedPoint[MeasuredPoint], where: str) -> Sample:
    result, field = selected.point.result, f"{selected.field}.quantity"
    if selected.selector.quantity is not Metric.LINE:
        problem = "searches for the line, so its trials have different loads"
        raise SelectionError(f"{field}: {where} {problem}; choose {Metric.LINE}")
    if result.spec.line is None:
        remedy = "choose another quantity, or set line in its workload"
        raise SelectionError(f"{field}: {where} does not search for the line; {remedy}")
    position, problem = position_of_result(result), line_problem(f"point {where}", result)
    if problem or position is None:
        raise SelectionError(problem)
    if position.is_estimate:
        return Sample(selected=selected, values=(math.exp(position.value),), line=position)
    bound = f"the line of {where} is not between the lowest and the highest load that were offered"
    return Sample(selected=selected, line=position, bound=f"{bound}; raise limit, or lower start")


def _trial_values(selected: SelectedPoint[MeasuredPoint], where: str) -> tuple[float, ...]:
    quantity, trials = selected.selector.quantity, counted(selected.point.result.status.trials)
    operation = _operation(selected, trials, where)
    results = [result for result in results_of(trials, operation) if result is not None]
    if quantity not in OF_DISTURBANCES and not is_reported(results, quantity):
        reported = listed([metric for metric in COMPARED if is_reported(results, metric)], "or")
        remedy = f"does not report {quantity}; choose {reported}"
        raise SelectionError(f"{selected.field}.quantity: the tool of {where} {remedy}")
    values = values_of(trials, operation, quantity)
    if problem := problem_of(values, quantity, f"of {where}"):
        raise SelectionError(problem)
    return tuple(complete(values) or ())


def _operation(selected: SelectedPoint[MeasuredPoint], trials: Sequence[Trial], where: str) -> Operation:
    field, operation, operations = selected.field, selected.selector.operation, operations_of(trials)
    fitting = [each for each in operations if operation in (None, each)]
    if len(fitting) > 1:
        raise SelectionError(f"{field}: {where} has the operations {listed(operations)}; add {field}.operation")
    if not fitting:
        has = f"{where} has no {operation or 'operation'}; it has {listed(operations) or 'none'}"
        raise SelectionError(f"{field}.operation: {has}")
    return fitting[0]
