"""The points of a report: their sweep axes, labels and verdicts, and which of them are shown in figures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.operation import OperationSummary
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.summary import counted
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import count_text
from plimsoll.tools.registry import DEPTH_AXES, SIZE_AXES, TOOLS

CLIENTS = "clients"
UNFINISHED = "Unfinished"
"""Shown in place of the verdict of a point with missing trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedPoint:
    """One operation of a point that is shown in figures."""

    run: ReportedRun
    result: BenchmarkResult
    operation: OperationSummary

    @property
    def verdict(self) -> str:
        """Return the point's verdict, or `Unfinished`."""
        return verdict_text(self.result)

    @property
    def is_valid(self) -> bool:
        """Whether the point is Valid and needs no mark."""
        return self.result.status.verdict is Verdict.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedSweep:
    """All points of one workload, over all runs, for one operation.

    Attributes:
        axes: parameters with at least two values, clients first, then the tool's parameters in their order.
        runs: number of runs; with several, the names of series include the run.

    """

    workload: str
    operation: Operation
    axes: Sequence[str]
    runs: int
    measured: Sequence[PlottedPoint]

    @property
    def title(self) -> str:
        """Return workload and operation."""
        return f"{self.workload}, {self.operation}"

    @property
    def key(self) -> str:
        """Return workload and operation as a part of an anchor."""
        return f"{self.workload}-{self.operation}"

    def axis_among(self, names: Iterable[str]) -> str | None:
        """Return the first axis with one of these names; None without one."""
        return next((name for name in names if name in self.axes), None)

    def without(self, *axes: str | None) -> list[str]:
        """Return the other axes."""
        return [axis for axis in self.axes if axis not in axes]

    def label(self, one: PlottedPoint, axes: Sequence[str] | None = None) -> str:
        """Return the values of a point on these axes, all by default, and its run if there are several."""
        chosen = self.axes if axes is None else axes
        parts = [axis_text(axis, axis_value(one.result, axis)) for axis in reversed(chosen)]
        return ", ".join([*parts, *([one.run.label] if self.runs > 1 else [])]) or one.result.spec.label


def does_data_set_once(result: BenchmarkResult) -> bool:
    """Whether each client works through its data set once; false for tools and parameters of other versions."""
    tool = TOOLS.get(result.spec.tool)
    if tool is None:
        return False
    try:
        parameters = tool.parameters.model_validate(result.spec.parameters)
    except ValidationError:
        return False
    return tool.target.is_data_set and tool.ends_when_done(parameters)


def verdict_text(result: BenchmarkResult) -> str:
    """Return the verdict of a point, or `Unfinished`."""
    return result.status.verdict.value if result.status.verdict else UNFINISHED


def longest_stall(result: BenchmarkResult) -> float | None:
    """Return the seconds without any completed operation in the worst trial that counts; None if unknown."""
    return max((trial.stalls.seconds for trial in counted(result.status.trials) if trial.stalls), default=None)


def is_steady(result: BenchmarkResult, operation: Operation) -> bool | None:
    """Whether the rate of an operation was in steady state in every trial that counts; None if not judged."""
    judged = [
        one.steady_state.rate.attained
        for trial in counted(result.status.trials)
        for one in trial.operations
        if one.operation is operation and one.steady_state
    ]
    return all(judged) if judged else None


def axis_value(result: BenchmarkResult, axis: str) -> JsonValue:
    """Return the value of a point on an axis; None without one."""
    return result.spec.clients if axis == CLIENTS else result.spec.parameters.get(axis)


def axis_number(result: BenchmarkResult, axis: str) -> float | None:
    """Return the value of a point on an axis as a number, sizes in bytes; None if it is not a number."""
    value = axis_value(result, axis)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        try:
            return parse_quantity(value)
        except ValueError:
            return None
    return value


def axis_text(axis: str, value: JsonValue) -> str:
    """Return a value on an axis in words."""
    if axis == CLIENTS:
        return count_text(value, "client") if isinstance(value, int) else str(value)
    if axis in DEPTH_AXES:
        return f"depth {value}"
    return str(value) if axis in SIZE_AXES else f"{axis} {value}"


def sweeps_of(runs: Sequence[ReportedRun]) -> list[PlottedSweep]:
    """Return the workloads of all runs by operation, without points that are Invalid or have no numbers."""
    named: dict[str, list[tuple[ReportedRun, BenchmarkResult]]] = {}
    for run in runs:
        for result in run.results:
            named.setdefault(result.spec.workload, []).append((run, result))
    return [sweep for workload, points in named.items() for sweep in _sweeps(workload, points)]


def _sweeps(workload: str, points: Sequence[tuple[ReportedRun, BenchmarkResult]]) -> Iterator[PlottedSweep]:
    axes = axes_of([result for _, result in points])
    runs = len({run.label for run, _ in points})
    for operation in Operation:
        found = [
            PlottedPoint(run=run, result=result, operation=summary)
            for run, result in points
            for summary in drawable(result)
            if summary.operation is operation
        ]
        if found:
            yield PlottedSweep(workload=workload, operation=operation, axes=axes, runs=runs, measured=found)


def drawable(result: BenchmarkResult) -> Sequence[OperationSummary]:
    """Return the operations of a point to show in figures; none if it is Invalid or has no numbers."""
    status = result.status
    return status.summary.operations if status.summary and status.verdict is not Verdict.INVALID else ()


def axes_of(results: Sequence[BenchmarkResult]) -> list[str]:
    """Return what differs between points: clients first, then the tool's parameters in their order."""
    names = dict.fromkeys([CLIENTS, *(name for result in results for name in result.spec.parameters)])
    return [name for name in names if len({str(axis_value(result, name)) for result in results}) > 1]
