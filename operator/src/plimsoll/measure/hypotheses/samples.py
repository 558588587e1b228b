"""The values of the selected points, trial by trial, or why they decide nothing. The line has one value per run.

Only trials that count are used: neither Invalid ones, nor attempts that a later one replaced. A value that is missing
or has no logarithm is a problem of the whole hypothesis: without it the others would be a selection.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.hypothesis import Quantity, Selector
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, OperationResult, Trial
from plimsoll.measure.compare.lines import Position, line_problem, position_of
from plimsoll.measure.hypotheses.selection import SelectedPoint, VariantRun
from plimsoll.measure.hypotheses.texts import listed
from plimsoll.measure.latency import MINIMUM_BEYOND
from plimsoll.measure.quantities import counts_operations
from plimsoll.measure.summary import counted


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
    values = _values(trials, operation, selector.quantity) if operation else []
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
    if not position.has_interval:
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


def _values(trials: Sequence[Trial], operation: Operation, quantity: Quantity) -> list[float | None]:
    """Return the value of each trial; None where it is unknown."""
    return [next((_value(result, quantity) for result in _results([trial], operation)), None) for trial in trials]


def _value(result: OperationResult, quantity: Quantity) -> float | None:
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
