"""What reports show, runs with their sweeps and searches, and what figures share: colours, markers, traces, axes."""

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from plimsoll.api.hypothesis import CLIENTS
from plimsoll.api.json_reader import printable_text
from plimsoll.api.line import Line, LineSearch, Objective, Probe
from plimsoll.api.names import Operation, Verdict, format_duration
from plimsoll.api.operation import OperationSummary, SteadinessState
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.suite_status import EndedRound
from plimsoll.measure.attempts import counted
from plimsoll.measure.layers import LayerRow
from plimsoll.measure.line.search import arrived_load, counting_trials
from plimsoll.measure.text import count_text
from plimsoll.report.view import Block, Chart, Json, Section, Text
from plimsoll.studies.model import StudyComparison
from plimsoll.suite.evaluation import Evaluation
from plimsoll.suite.measured import MeasuredRound
from plimsoll.tools.registry import DEPTH_AXES, SIZE_AXES, TOOLS

MOST_SERIES = 8  # in one figure; the number of distinguishable colours of the palette
MOST_FIGURES = 12  # of one kind, so that a page of 512 points remains usable
IN_RESULTS = "the table of results has every point"

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MICROSECOND = 1000  # nanoseconds; the unit of latency axes
_STEPS = (1, 2, 5)
_TICKS = tuple(step * 10**power for power in range(2, 11) for step in _STEPS)  # nanoseconds

T = TypeVar("T")


def colour(number: int) -> str:
    """Return the name of a series' colour in the theme."""
    return f"$series{number % MOST_SERIES}"


def dash(number: int) -> str:
    """Return the dash of a series, so that it does not differ in colour only."""
    return _DASHES[number % MOST_SERIES]


def symbol(number: int, verdict: str = Verdict.VALID) -> str:
    """Return the marker of a series: filled if Valid, hollow if Invalid, hollow with a dot otherwise."""
    form = _SYMBOLS[number % MOST_SERIES]
    if verdict == Verdict.VALID:
        return form
    return f"{form}-open" if verdict == Verdict.INVALID else f"{form}-open-dot"


def scatter(
    name: str,
    x: Iterable[object],
    y: Iterable[object],
    *,
    mode: str = "markers",
    texts: Iterable[str] | None = None,
    **parts: object,
) -> Json:
    """Return a trace of markers, of lines, or of both; the texts are its tooltips."""
    tooltips: Json = {} if texts is None else {"text": [*texts], "hovertemplate": "%{text}<extra></extra>"}
    return {"type": "scatter", "mode": mode, "name": name, "x": [*x], "y": [*y], **tooltips, **parts}


def error_bars(
    intervals: Iterable[tuple[float | None, float | None, float | None]],
    scale: float = 1,
    *,
    thickness: int = 1,
    width: int = 4,
) -> Json:
    """Return intervals as plotly's error bars: low end, value and high end of each, None if unknown."""
    below: list[float | None] = []
    above: list[float | None] = []
    for low, value, high in intervals:
        # No quantity in figures can be negative.
        below.append(None if value is None or low is None else (value - max(0.0, low)) / scale)
        above.append(None if value is None or high is None else (high - value) / scale)
    bars: Json = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    return bars | {"thickness": thickness, "width": width}


def numbers_axis(title: str, values: Sequence[float], texts: Sequence[str]) -> Json:
    """Return a logarithmic axis with a tick at each of these values."""
    return {"title": {"text": title}, "type": "log", "tickvals": [*values], "ticktext": [*texts]}


def linear_axis(title: str) -> Json:
    """Return an axis from 0 on, so that heights are proportional to rates."""
    return {"title": {"text": title}, "rangemode": "tozero"}


def category_axis(names: Sequence[str]) -> Json:
    return {"type": "category", "categoryorder": "array", "categoryarray": [*names], "automargin": True}


def latency_axis(title: str, *, only_decades: bool = False) -> Json:
    """Return a logarithmic axis of microseconds with short tick labels in suitable units."""
    ticks = _TICKS[:: len(_STEPS)] if only_decades else _TICKS
    labels = [format_duration(tick).split(" ") for tick in ticks]
    texts = [f"{float(number):g} {unit}" for number, unit in labels]
    return numbers_axis(title, [tick / MICROSECOND for tick in ticks], texts)


def vertical_line(x: float | str, name: str, dash: str) -> Json:
    """Return a line over the whole height of a figure."""
    line = {"color": name, "dash": dash, "width": 1.5}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def microseconds(nanoseconds: float | None) -> float | None:
    """Return a latency for a logarithmic axis; None if absent or 0."""
    return nanoseconds / MICROSECOND if nanoseconds else None


def in_parts(values: Sequence[T], size: int) -> Iterator[tuple[int, str, Sequence[T]]]:
    """Yield parts of at most this size, all about equally large, after their number and its words in a title."""
    parts = -(-len(values) // size)
    for number in range(parts):
        words = f" ({number + 1} of {parts})" if parts > 1 else ""
        yield number, words, values[number * len(values) // parts : (number + 1) * len(values) // parts]


def limited(words: str, charts: Sequence[Chart], remedy: str = IN_RESULTS, limit: int = MOST_FIGURES) -> list[Block]:
    """Return an introduction and the first charts; it mentions omitted ones."""
    paragraphs = [words]
    if len(charts) > limit:
        paragraphs.append(f"{count_text(len(charts) - limit, 'more figure')} omitted; {remedy}.")
    return [Text(paragraphs=paragraphs), *charts[:limit]]


def figures_section(
    key: str, title: str, words: str, charts: Sequence[Chart], *, remedy: str = IN_RESULTS, limit: int = MOST_FIGURES
) -> Section | None:
    """Return a section of the first charts; None without any."""
    if not charts:
        return None
    return Section(key=key, title=title, blocks=limited(words, charts, remedy, limit))


def plain(value: object, key: str = "") -> object:
    """Return a part of a figure with all texts escaped and printable.

    plotly interprets a few tags in every text. Templates are constants of this package and keep their tags; in all
    other texts a newline becomes a line break.
    """
    match value:
        case str() if not key.endswith("template"):
            return html.escape(printable_text(value), quote=False).replace("\n", "<br>")
        case Mapping():
            return {name: plain(part, str(name)) for name, part in value.items()}
        case list() | tuple():
            return [plain(part, key) for part in value]
        case float():
            # Neither an axis nor JSON can represent other values.
            return float(f"{value:.7g}") if math.isfinite(value) else None
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """The results of one run."""

    label: str  # its name in the report, unique there
    results: Sequence[BenchmarkResult]
    layers: Sequence[LayerRow] = ()  # the layers of a run on a Ceph cluster; empty otherwise
    write_amplification: float | None = None  # bytes that the pool writes per byte of a client; None if unknown

    @property
    def uid(self) -> str:
        return self.results[0].spec.run_uid

    @property
    def place(self) -> str:
        """Return namespace and name."""
        first = self.results[0]
        return f"{first.metadata.namespace}/{first.spec.run}"


def results_of(runs: Iterable[ReportedRun]) -> Iterator[tuple[ReportedRun, BenchmarkResult]]:
    """Yield the results of all runs, each after its run."""
    return ((run, result) for run in runs for result in run.results)


def runs_of(results: Sequence[BenchmarkResult]) -> list[ReportedRun]:
    """Return the runs of these results in order, each with a unique label: name, namespace and UID if needed."""
    grouped: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        grouped.setdefault(result.spec.run_uid, []).append(result)
    runs = [ReportedRun(label=run_results[0].spec.run, results=run_results) for run_results in grouped.values()]
    runs = _with_unique_labels(runs, [run.place for run in runs])
    return _with_unique_labels(runs, [f"{run.place} {run.uid[:8]}" for run in runs])


def _with_unique_labels(runs: Sequence[ReportedRun], longer: Sequence[str]) -> list[ReportedRun]:
    times = Counter(run.label for run in runs)
    return [replace(run, label=label) if times[run.label] > 1 else run for run, label in zip(runs, longer, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return self.result.status.verdict is Verdict.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedSweep:
    """All points of one workload, over all runs, for one operation."""

    workload: str
    operation: Operation
    axes: Sequence[str]  # parameters with at least two values, clients first, then the tool's parameters in their order
    has_several_runs: bool  # whether the names of series include the run
    measured: Sequence[PlottedPoint]

    @property
    def title(self) -> str:
        return f"{self.workload}, {self.operation}"

    @property
    def key(self) -> str:
        """Return workload and operation as a part of an anchor."""
        return f"{self.workload}-{self.operation}"

    def axis_among(self, names: Iterable[str]) -> str | None:
        """Return the first axis with one of these names; None without one."""
        return next((name for name in names if name in self.axes), None)

    def label(self, point: PlottedPoint, axes: Sequence[str] | None = None) -> str:
        """Return the values of a point on these axes, all by default, and its run if there are several."""
        return _label(point.result, self.axes if axes is None else axes, point.run if self.has_several_runs else None)

    def series(self, point: PlottedPoint, axis: str) -> str:
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


def verdict_text(result: BenchmarkResult) -> str:
    """Return the verdict of a point, or `Unfinished`."""
    return result.status.verdict.value if result.status.verdict else UNFINISHED


def counting(result: BenchmarkResult) -> Sequence[Trial]:
    """Return the trials of a point that count: a probe whose outcome is unknown, or was not offered, does not."""
    return counting_trials(result.status.trials) if is_search(result) else counted(result.status.trials)


def longest_stall(result: BenchmarkResult) -> float | None:
    """Return the seconds without any completed operation in the worst trial that counts; None if unknown."""
    return max((trial.stalls.seconds for trial in counting(result) if trial.stalls), default=None)


def steadiness_of(result: BenchmarkResult) -> SteadinessState | None:
    """Return the worst of the trials that count, Unknown before Steady; None if none was judged."""
    order = (SteadinessState.STEADY, SteadinessState.UNKNOWN, SteadinessState.NOT_STEADY)
    states = [trial.steadiness.state for trial in counting(result) if trial.steadiness]
    return max(states, key=order.index, default=None)


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
    by_workload: dict[str, list[tuple[ReportedRun, BenchmarkResult]]] = {}
    for run, result in results_of(runs):
        by_workload.setdefault(result.spec.workload, []).append((run, result))
    sweeps: list[PlottedSweep] = []
    for workload, points in by_workload.items():
        axes = axes_of([result for _, result in points])
        several = len({run.label for run, _ in points}) > 1
        for operation in Operation:
            measured = [
                PlottedPoint(run=run, result=result, operation=summary)
                for run, result in points
                for summary in drawable(result)
                if summary.operation is operation
            ]
            if measured:
                sweeps.append(
                    PlottedSweep(
                        workload=workload, operation=operation, axes=axes, has_several_runs=several, measured=measured
                    )
                )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedLoad:
    """One attempt at one load of a search."""

    trial: Trial
    probe: Probe

    @property
    def load(self) -> float:
        """The load that the storage met: in an open loop what arrived, unless the depth was full."""
        return arrived_load(self.trial, self.probe)

    def latency(self, objective: Objective) -> int | None:
        """Return the percentile of an objective in nanoseconds, of the slowest operation; None if unknown."""
        return max(filter(None, judged_latencies(self.trial, objective).values()), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedSearch:
    """One search of a run."""

    run: ReportedRun
    result: BenchmarkResult
    name: str  # what differs between it and the other searches of its workload
    probes: Sequence[ProbedLoad]  # all attempts, in the order of recording

    @property
    def line(self) -> Line:
        """The line, as far as it is known; no probes before the first one."""
        return line_of(self.result)

    @property
    def pair(self) -> tuple[str, str]:
        """What a storm line and its calm line have in common: the run, and the point of the calm line."""
        return self.run.label, self.result.spec.calm or self.result.spec.point


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedWorkload:
    """All searches of one workload with the same objectives, over all runs."""

    workload: str
    search: LineSearch
    searches: Sequence[PlottedSearch]


def is_search(result: BenchmarkResult) -> bool:
    """Whether the trials of a point have different loads, and so no common statistics."""
    return result.spec.line is not None


def line_of(result: BenchmarkResult) -> Line:
    """Return what the search of a point found so far."""
    return result.status.line or Line(probes=0, counted=0)


def searches_of(runs: Sequence[ReportedRun]) -> list[SearchedWorkload]:
    """Return the searches of all runs, grouped by workload and objectives."""
    grouped: dict[tuple[str, str], list[tuple[ReportedRun, BenchmarkResult, LineSearch]]] = {}
    for run, result in results_of(runs):
        if (search := result.spec.line) is not None:
            same = search.model_dump_json(include={"vary", "objectives"})
            grouped.setdefault((result.spec.workload, same), []).append((run, result, search))
    workloads: list[SearchedWorkload] = []
    for (workload, _), cases in grouped.items():
        axes = axes_of([result for _, result, _ in cases])
        several = len({run.label for run, _, _ in cases}) > 1
        searches = [
            PlottedSearch(
                run=run,
                result=result,
                name=_label(result, axes, run if several else None),
                probes=[
                    ProbedLoad(trial=trial, probe=trial.probe)
                    for trial in result.status.trials
                    if trial.probe is not None
                ],
            )
            for run, result, _ in cases
        ]
        workloads.append(SearchedWorkload(workload=workload, search=cases[0][2], searches=searches))
    return workloads


def _label(result: BenchmarkResult, axes: Sequence[str], run: ReportedRun | None) -> str:
    """Return the values of a point on these axes, and its run; its own label without any."""
    parts = [axis_text(axis, axis_value(result, axis)) for axis in reversed(axes)]
    if run:
        parts.append(run.label)
    storm = line_of(result).storm
    return ", ".join([*parts, *([storm.text] if storm else [])]) if parts else result.spec.label
