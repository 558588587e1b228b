"""The searches for the line in a report: which belong together, their labels, and what each probe measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.line import NOTHING_TRIED, Line, LineSearch, Objective, ProbeOutcome
from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.line.model import arrived_load
from plimsoll.report.points import axes_of, axis_text, axis_value
from plimsoll.report.runs import ReportedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedLoad:
    """One attempt at one load of a search.

    Attributes:
        offered: operations per second or operations in flight of all clients together.
        achieved: likewise; None without numbers.
        load: the load that the storage met: in an open loop what arrived, unless the depth was full.
        depth_full_percent: percentage of submissions that filled the depth; None if unknown.

    """

    trial: Trial
    offered: float
    load: float
    achieved: float | None
    depth_full_percent: float | None
    outcome: ProbeOutcome

    def latency(self, objective: Objective) -> int | None:
        """Return the percentile of an objective in nanoseconds, of the slowest operation; None if unknown."""
        known = (
            operation.latency.percentiles.get(objective.percentile)
            for operation in self.trial.operations
            if operation.operation is not Operation.SYNC
        )
        return max((value for value in known if value is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedSearch:
    """One search of a run.

    Attributes:
        name: what differs between it and the other searches of its workload.
        line: what it found so far; no probes before the first one.
        probes: all attempts, in the order of recording.

    """

    run: ReportedRun
    result: BenchmarkResult
    name: str
    line: Line
    probes: Sequence[ProbedLoad]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedWorkload:
    """All searches of one workload with the same objectives, over all runs."""

    workload: str
    search: LineSearch
    searches: Sequence[PlottedSearch]


def is_search(result: BenchmarkResult) -> bool:
    """Whether the trials of a point have different loads, so that there are no statistics over them."""
    return result.spec.line is not None


def line_of(result: BenchmarkResult) -> Line:
    """Return what the search of a point found so far."""
    return result.status.line or NOTHING_TRIED


def searches_of(runs: Sequence[ReportedRun]) -> list[SearchedWorkload]:
    """Return the searches of all runs, those of one workload with the same objectives together."""
    found: dict[tuple[str, str], list[tuple[ReportedRun, BenchmarkResult, LineSearch]]] = {}
    for run in runs:
        for result in run.results:
            search = result.spec.line
            if search is not None:
                same = search.model_dump_json(include={"vary", "objectives"})
                found.setdefault((result.spec.workload, same), []).append((run, result, search))
    return [_together(workload, cases) for (workload, _), cases in found.items()]


def _together(workload: str, cases: Sequence[tuple[ReportedRun, BenchmarkResult, LineSearch]]) -> SearchedWorkload:
    axes = axes_of([result for _, result, _ in cases])
    several = len({run.label for run, _, _ in cases}) > 1
    searches = [
        PlottedSearch(
            run=run,
            result=result,
            name=_name(result, axes, run.label if several else ""),
            line=line_of(result),
            probes=_probes(result.status.trials),
        )
        for run, result, _ in cases
    ]
    return SearchedWorkload(workload=workload, search=cases[0][2], searches=searches)


def _name(result: BenchmarkResult, axes: Sequence[str], run: str) -> str:
    parts = [axis_text(axis, axis_value(result, axis)) for axis in reversed(axes)]
    return ", ".join([*parts, *([run] if run else [])]) or result.spec.label


def _probes(trials: Sequence[Trial]) -> list[ProbedLoad]:
    return [
        ProbedLoad(
            trial=trial,
            offered=trial.probe.offered,
            load=arrived_load(trial, trial.probe),
            achieved=trial.probe.achieved,
            depth_full_percent=trial.probe.depth_full_percent,
            outcome=trial.probe.outcome,
        )
        for trial in trials
        if trial.probe is not None
    ]
