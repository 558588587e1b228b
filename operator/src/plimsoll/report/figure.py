"""What reports show: runs with their sweeps and searches."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue, ValidationError

from plimsoll.api.hypothesis import CLIENTS
from plimsoll.api.line import Line, LineSearch, Objective
from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.operation import OperationSummary, Statistic
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.suite_status import EndedRound
from plimsoll.measure.attempts import counted
from plimsoll.measure.layers import LayerRow
from plimsoll.measure.line.search import counting_trials
from plimsoll.measure.rates import grouped
from plimsoll.measure.summary import iops_of
from plimsoll.measure.text import count_text
from plimsoll.studies.model import StudyComparison
from plimsoll.suite.evaluation import Evaluation
from plimsoll.suite.measured import MeasuredRound
from plimsoll.tools.registry import DEPTH_AXES, SIZE_AXES, TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """The results of one run."""

    label: str  # its name in the report, unique there
    results: Sequence[BenchmarkResult]
    layers: Sequence[LayerRow] = ()  # the layers of a run on a Ceph cluster; empty otherwise
    layer_notes: Sequence[str] = ()  # sentences about their limits

    @property
    def uid(self) -> str:
        return self.results[0].spec.run_uid

    @property
    def place(self) -> str:
        first = self.results[0]
        return f"{first.metadata.namespace}/{first.spec.run}"


def results_of(runs: Iterable[ReportedRun]) -> Iterator[tuple[ReportedRun, BenchmarkResult]]:
    """Yield the results of all runs, each after its run."""
    return ((run, result) for run in runs for result in run.results)


def runs_of(results: Sequence[BenchmarkResult]) -> list[ReportedRun]:
    """Return the runs of these results in order, each with a unique label: name, namespace and UID if needed."""
    by_run = grouped(results, lambda result: result.spec.run_uid)
    runs = [ReportedRun(label=run_results[0].spec.run, results=run_results) for run_results in by_run.values()]
    runs = _with_unique_labels(runs, [run.place for run in runs])
    return _with_unique_labels(runs, [f"{run.place} {run.uid[:8]}" for run in runs])


def _with_unique_labels(runs: Sequence[ReportedRun], longer: Sequence[str]) -> list[ReportedRun]:
    times = Counter(run.label for run in runs)
    return [replace(run, label=label) if times[run.label] > 1 else run for run, label in zip(runs, longer, strict=True)]


@dataclass(frozen=True, kw_only=True)
class ReportedSuite:
    """A suite."""

    label: str  # its name in the report
    rounds: Sequence[tuple[EndedRound, MeasuredRound]]  # in the order of time; at least one
    # Variant with a complete run -> its runs in the last round, as one run in which each run counts as a trial.
    variants: Sequence[ReportedRun]
    evaluation: Evaluation  # of the last round
    # The last round compared with the study that the suite repeats; None if it repeats none.
    study: StudyComparison | None = None
    failed: str = ""  # what a reader must know of a later round that could not be evaluated; empty without one


UNFINISHED = "Unfinished"  # shown in place of the verdict of a point with missing trials
SENSES = {
    **dict.fromkeys(("Valid", "NoRegression", "Held"), "good"),
    **dict.fromkeys(("Suspect", "Inconclusive", "Undecided"), "warn"),
    **dict.fromkeys(("Invalid", "Regression", "Regressed", "Failed", "Refuted"), "bad"),
    UNFINISHED: "wait",
}
"""What verdicts and conclusions mean, for their colours and symbols."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A point of a run, or one operation of it."""

    run: str
    result: BenchmarkResult
    operation: OperationSummary | None = None  # None without numbers, and if the point is Invalid
    storm: BenchmarkResult | None = None  # of a calm line, the result with its storm line if it is shown, too

    @property
    def search(self) -> LineSearch:
        """The search; ValueError if the point is measured at one load."""
        if self.result.spec.line is None:
            raise ValueError(f"point {self.result.spec.point} is no search for the line")
        return self.result.spec.line

    @property
    def line(self) -> Line:
        return line_of(self.result)

    @property
    def measured(self) -> OperationSummary:
        """The operation; ValueError if there are no numbers."""
        if self.operation is None:
            raise ValueError(f"point {self.result.spec.point} has no numbers")
        return self.operation

    @property
    def mark(self) -> str:
        """Return the verdict in brackets, unless the point is Valid."""
        verdict = verdict_text(self.result)
        return "" if verdict == Verdict.VALID else f" [{verdict}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedSweep:
    """All points of one workload, over all runs, for one operation."""

    workload: str
    operation: Operation
    axes: Sequence[str]  # parameters with at least two values, clients first, then the tool's parameters in their order
    has_several_runs: bool  # whether the names of series include the run
    measured: Sequence[PointRow]

    @property
    def title(self) -> str:
        return f"{self.workload}, {self.operation}"

    @property
    def key(self) -> str:
        return f"{self.workload}-{self.operation}"

    def axis_among(self, names: Iterable[str]) -> str | None:
        """Return the first axis with one of these names; None without one."""
        return next((name for name in names if name in self.axes), None)

    def label(self, point: PointRow, axes: Sequence[str] | None = None) -> str:
        """Return the values of a point on these axes, all by default, and its run if there are several."""
        return label_of(point.result, self.axes if axes is None else axes, point.run if self.has_several_runs else "")

    def series(self, point: PointRow, axis: str) -> str:
        """Return the common values of all points that differ from this one only on an axis; empty if that is all."""
        others = [other for other in self.axes if other != axis]
        return self.label(point, others) if others or self.has_several_runs else ""


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


def statistic_of(operation: OperationSummary, metric: Metric) -> Statistic | None:
    """Return a rate or a latency as a mean over the trials that count; None if it is unknown."""
    if metric is Metric.BYTES:
        return operation.bytes_per_second
    if metric is Metric.IOPS:
        return iops_of(operation)
    return operation.mean_latency if metric is Metric.MEAN else operation.percentiles.get(metric.percentile or "")


def verdict_text(result: BenchmarkResult) -> str:
    return result.status.verdict.value if result.status.verdict else UNFINISHED


def counting(result: BenchmarkResult) -> Sequence[Trial]:
    """Return the trials of a point that count: a probe whose outcome is unknown, or was not offered, does not."""
    return counting_trials(result.status.trials) if is_search(result) else counted(result.status.trials)


def longest_stall(result: BenchmarkResult) -> float | None:
    """Return the seconds without any completed operation in the worst trial that counts; None if unknown."""
    return max((trial.stalls.seconds for trial in counting(result) if trial.stalls), default=None)


def axis_value(result: BenchmarkResult, axis: str) -> JsonValue:
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
    if axis == CLIENTS:
        return count_text(value, "client") if isinstance(value, int) else str(value)
    if axis in DEPTH_AXES:
        return f"depth {value}"
    return str(value) if axis in SIZE_AXES else f"{axis} {value}"


def result_rows(results: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[PointRow]:
    """Yield a row for each operation; one for a point without numbers, such as a search."""
    for run, result in results:
        for operation in (() if is_search(result) else drawable(result)) or (None,):
            yield PointRow(run=run, result=result, operation=operation)


def sweeps_of(runs: Sequence[ReportedRun]) -> list[PlottedSweep]:
    """Return the workloads of all runs by operation, without points that are Invalid or have no numbers."""
    sweeps: list[PlottedSweep] = []
    rows = result_rows((run.label, result) for run, result in results_of(runs))
    for workload, points in grouped(rows, lambda row: row.result.spec.workload).items():
        axes, several = axes_of([row.result for row in points]), len({row.run for row in points}) > 1
        measured = grouped((row for row in points if row.operation), lambda row: row.measured.operation)
        sweeps += [
            PlottedSweep(
                workload=workload,
                operation=operation,
                axes=axes,
                has_several_runs=several,
                measured=measured[operation],
            )
            for operation in Operation
            if operation in measured
        ]
    return sweeps


def drawable(result: BenchmarkResult) -> Sequence[OperationSummary]:
    """Return the operations of a point to show in figures; none if it is Invalid or has no numbers."""
    status = result.status
    return status.summary.operations if status.summary and status.verdict is not Verdict.INVALID else ()


def axes_of(results: Sequence[BenchmarkResult]) -> list[str]:
    """Return what differs between points: clients first, then the tool's parameters in their order."""
    names = dict.fromkeys([CLIENTS, *(name for result in results for name in result.spec.parameters)])
    return [name for name in names if len({str(axis_value(result, name)) for result in results}) > 1]


def judged_latencies(trial: Trial, objective: Objective) -> dict[Operation, int | None]:
    """Return the percentile of each operation but syncs, in nanoseconds; an objective holds for reads and writes.

    In a probe of a storm line it is the percentile from the start of the disturbance until all groups are clean.
    """
    if storm := trial.disturbance and trial.disturbance.phase("Storm"):
        percentiles = {part.operation: part.percentiles for part in storm.operations}
    else:
        percentiles = {part.operation: part.latency.percentiles for part in trial.operations}
    return {
        name: values.get(objective.percentile) for name, values in percentiles.items() if name is not Operation.SYNC
    }


def judged_latency(trial: Trial, objective: Objective) -> int | None:
    """Return the percentile of an objective in nanoseconds, of the slowest operation; None if unknown."""
    return max(filter(None, judged_latencies(trial, objective).values()), default=None)


def is_search(result: BenchmarkResult) -> bool:
    """Whether the trials of a point have different loads, and so no common statistics."""
    return result.spec.line is not None


def line_of(result: BenchmarkResult) -> Line:
    return result.status.line or Line(probes=0, counted=0)


def label_of(result: BenchmarkResult, axes: Sequence[str], run: str) -> str:
    """Return the values of a point on these axes, and its run unless empty; its own label without any."""
    parts = [*(axis_text(axis, axis_value(result, axis)) for axis in reversed(axes)), *([run] if run else [])]
    storm = line_of(result).storm
    return ", ".join([*parts, *([storm.text] if storm else [])]) if parts else result.spec.label
