"""The points of a report: what was swept over, which of them may be drawn, and what they are called."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult, OperationSummary
from plimsoll.report.runs import Run

CLIENTS = "clients"
DEPTHS = ("ioDepth", "concurrency")
SIZES = ("blockSize", "objectSize")
UNFINISHED = "Unfinished"
"""Stands for the verdict of a point that still lacks trials: there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operation of one point with numbers that may be drawn."""

    run: Run
    result: BenchmarkResult
    operation: OperationSummary

    @property
    def verdict(self) -> str:
        """Return the point's verdict, or `Unfinished`."""
        return verdict_text(self.result)

    @property
    def is_valid(self) -> bool:
        """Whether the numbers need no mark."""
        return self.result.status.verdict is Verdict.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All points of one workload, over all runs, for one operation.

    Attributes:
        axes: what has at least two values, clients first, then the tool's parameters in their order.
        runs: how many runs there are; their labels tell series apart if more than one.

    """

    workload: str
    operation: Operation
    axes: Sequence[str]
    runs: int
    measured: Sequence[Measured]

    @property
    def title(self) -> str:
        """Return workload and operation."""
        return f"{self.workload}, {self.operation}"

    @property
    def key(self) -> str:
        """Return the same as a part of an anchor."""
        return f"{self.workload}-{self.operation}"

    def axis_among(self, names: Iterable[str]) -> str | None:
        """Return the swept axis of these names; None if there is none."""
        return next((name for name in names if name in self.axes), None)

    def without(self, *axes: str | None) -> list[str]:
        """Return the axes but for some."""
        return [axis for axis in self.axes if axis not in axes]

    def label(self, one: Measured, axes: Sequence[str] | None = None) -> str:
        """Return what tells a point apart by these axes, all if None, and by its run if there are several."""
        chosen = self.axes if axes is None else axes
        parts = [axis_text(axis, axis_value(one.result, axis)) for axis in reversed(chosen)]
        return ", ".join([*parts, *([one.run.label] if self.runs > 1 else [])]) or one.result.spec.label


def verdict_text(result: BenchmarkResult) -> str:
    """Return the verdict of a point, or `Unfinished`."""
    return result.status.verdict.value if result.status.verdict else UNFINISHED


def axis_value(result: BenchmarkResult, axis: str) -> JsonValue:
    """Return the value of a point on an axis; None if it has none."""
    return result.spec.clients if axis == CLIENTS else result.spec.parameters.get(axis)


def axis_number(result: BenchmarkResult, axis: str) -> float | None:
    """Return the same as a number: bytes of a size; None if it is none."""
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
    """Return a value on an axis as people say it."""
    if axis == CLIENTS:
        return f"{value} client{'' if value == 1 else 's'}"
    if axis in DEPTHS:
        return f"depth {value}"
    return str(value) if axis in SIZES else f"{axis} {value}"


def sweeps_of(runs: Sequence[Run]) -> list[Sweep]:
    """Return the workloads of all runs, operation by operation, without Invalid points and those without numbers."""
    named: dict[str, list[tuple[Run, BenchmarkResult]]] = {}
    for run in runs:
        for result in run.results:
            named.setdefault(result.spec.workload, []).append((run, result))
    return [sweep for workload, points in named.items() for sweep in _sweeps(workload, points)]


def _sweeps(workload: str, points: Sequence[tuple[Run, BenchmarkResult]]) -> Iterator[Sweep]:
    axes = _axes([result for _, result in points])
    runs = len({run.label for run, _ in points})
    for operation in Operation:
        found = [
            Measured(run=run, result=result, operation=summary)
            for run, result in points
            for summary in drawable(result)
            if summary.operation is operation
        ]
        if found:
            yield Sweep(workload=workload, operation=operation, axes=axes, runs=runs, measured=found)


def drawable(result: BenchmarkResult) -> Sequence[OperationSummary]:
    """Return the operations of a point whose numbers may be drawn: none of one that is Invalid or has no numbers."""
    status = result.status
    return status.summary.operations if status.summary and status.verdict is not Verdict.INVALID else ()


def _axes(results: Sequence[BenchmarkResult]) -> list[str]:
    names = dict.fromkeys([CLIENTS, *(name for result in results for name in result.spec.parameters)])
    return [name for name in names if len({str(axis_value(result, name)) for result in results}) > 1]
