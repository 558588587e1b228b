"""Tables of results, searches for the line and links, in the widest layout that fits the console."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll.api.line import Line, LineSearch, Objective, Probe, ProbeOutcome
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.line import summary as lines
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.report.figure import UNFINISHED, is_steady, line_of, longest_stall, verdict_text
from plimsoll.report.layers_links import Links, links_of
from plimsoll.report.view import NONE, count_text, duration_text, mebibytes

NO_TERMINAL_COLUMNS = 160
"""The width for files and pipes: every column fits."""

_GAP = 2
_FOLDED_COLUMNS = 20
"""Minimum width of a column whose text may be folded."""

R = TypeVar("R")


def stdout_console() -> Console:
    """Return a console for results: as wide as the terminal, or wide enough for every column without one."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=NO_TERMINAL_COLUMNS)


@dataclass(frozen=True, kw_only=True)  # without slots: with them Python 3.11 cannot create a FittedColumn[Row]
class FittedColumn(Generic[R]):
    """One column. Only `folded` text may span several lines."""

    heading: str
    cell: Callable[[R], str | Text]
    right: bool = False
    folded: bool = False

    def text(self, row: R) -> Text:
        """Return the cell of a row; plain text has no markup."""
        cell = self.cell(row)
        return Text(cell) if isinstance(cell, str) else cell

    def columns(self, found: Sequence[R]) -> int:
        """Return the minimum number of terminal columns."""
        if self.folded:
            return _FOLDED_COLUMNS
        return max(cell_len(self.heading), *(self.text(row).cell_len for row in found), 1)


@dataclass(frozen=True, kw_only=True)
class FittedTable(Generic[R]):
    """Rows in one of several layouts."""

    rows: Sequence[R]
    layouts: Sequence[Sequence[FittedColumn[R]]]  # from wide to narrow: the least important columns are left out first
    missed: Sequence[FittedColumn[R]]  # columns that a line below the table names if they are left out
    remedy: str  # the command or option that shows all columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def columns(layout: Sequence[FittedColumn[R]]) -> int:
            return sum(column.columns(self.rows) for column in layout) + _GAP * (len(layout) - 1)

        layout = next((each for each in self.layouts if columns(each) <= options.max_width), self.layouts[-1])
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for column in layout:
            table.add_column(
                column.heading,
                justify="right" if column.right else "left",
                no_wrap=not column.folded,
                overflow="fold",
                min_width=column.columns(self.rows),
            )
        for row in self.rows:
            table.add_row(*(column.text(row) for column in layout))
        yield table
        omitted = [column.heading for column in self.missed if column not in layout]
        if omitted:
            yield Text(f"No room for {', '.join(omitted)}: use a wider terminal, or {self.remedy}.", style="dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one point. Rates per second, latencies in nanoseconds; None if unknown."""

    run: str
    workload: str
    point: str
    label: str
    clients: int
    operation: str
    verdict: str  # as in the result, or `Unfinished`
    trials: int  # passes that count, of the planned ones
    repetitions: int
    attempts: int  # all recorded attempts, including aborted and invalid ones
    iops: float | None = None
    iops_half_width: float | None = None  # half the 95 % confidence interval of the mean
    iops_variation: float | None = None
    bytes_per_second: float | None = None
    latency_mean_nanoseconds: float | None = None
    latency_p50_nanoseconds: float | None = None
    latency_p99_nanoseconds: float | None = None
    latency_max_nanoseconds: int | None = None
    stall_seconds: float | None = None  # time without any completed operation, in the worst trial that counts
    # Whether the rate of this operation was in steady state in every trial that counts; None if not judged.
    steady: bool | None = None
    reasons: str = ""
    line: str = ""  # the line of a search in words; the other fields of a line are loads of all clients
    line_vary: str = ""
    line_ending: str = ""
    line_estimate: float | None = None
    line_low: float | None = None
    line_high: float | None = None
    line_probes: int | None = None
    line_counted: int | None = None


def rows(results: Iterable[BenchmarkResult]) -> Iterator[Row]:
    """Yield a row per operation; a point without numbers has one row without any."""
    for result in results:
        summary = result.status.summary
        for operation in (summary.operations if summary else ()) or (None,):
            yield _row(result, operation)


def _row(result: BenchmarkResult, operation: OperationSummary | None) -> Row:
    spec, status = result.spec, result.status
    search, line = spec.line, status.line
    trials = status.summary.trials if status.summary else 0
    row = Row(
        run=spec.run,
        workload=spec.workload,
        point=spec.point,
        label=spec.label,
        clients=spec.clients,
        operation="",
        repetitions=spec.repetitions,
        attempts=len(status.trials),
        trials=line.counted if line else trials,
        verdict=verdict_text(result),
        reasons=_reasons(result),
    )
    if search is not None and line is not None:
        row = replace(
            row,
            line=lines.headline_text(line, search),
            line_vary=search.vary.value,
            line_ending=line.ending.value if line.ending else "",
            line_estimate=line.estimate,
            line_low=line.low,
            line_high=line.high,
            line_probes=line.probes,
            line_counted=line.counted,
        )
    if operation is None:
        return row
    iops, p50, p99 = iops_of(operation), operation.percentiles.get("50"), operation.percentiles.get("99")
    return replace(
        row,
        operation=operation.operation.value,
        iops=iops.mean if iops else None,
        iops_half_width=iops.half_width if iops else None,
        iops_variation=iops.coefficient_of_variation if iops else None,
        bytes_per_second=operation.bytes_per_second.mean,
        latency_mean_nanoseconds=operation.mean_latency.mean if operation.mean_latency else None,
        latency_p50_nanoseconds=p50.mean if p50 else None,
        latency_p99_nanoseconds=p99.mean if p99 else None,
        latency_max_nanoseconds=operation.latency.max_nanoseconds,
        stall_seconds=longest_stall(result),
        steady=is_steady(result, operation.operation),
    )


def _reasons(result: BenchmarkResult) -> str:
    return " ".join(dict.fromkeys(finding.reason for finding in result.status.findings))


VERDICT_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red", UNFINISHED: "cyan"}

_OUTCOME_COLOUR = {ProbeOutcome.MET: "green", ProbeOutcome.UNKNOWN: "dim", ProbeOutcome.NOT_OFFERED: "dim"}

PROBE_COLUMNS = (
    *("run", "point", "probe", "attempt", "offered", "achieved", "depth_full_percent", "operation"),
    *("percentile", "latency_nanoseconds", "limit_nanoseconds", "trial_outcome", "outcome", "verdict"),
)
"""Columns of CSV, a row per probe, operation and objective: loads of all clients, and nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """A search for the line, and what it has found so far."""

    result: BenchmarkResult
    search: LineSearch
    line: Line


def lines_table(results: Iterable[BenchmarkResult]) -> FittedTable[_Search]:
    """Return a table with one line per search."""
    return FittedTable(rows=[*_searches(results)], layouts=_LINE_LAYOUTS, missed=_LINE_NUMBERS, remedy="-o csv")


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for each in _searches(results):
        headline = lines.headline_text(each.line, each.search)
        sentence = lines.ending_sentence(each.line, each.search, lines.uncounted_text(each.result.status.trials))
        yield f"{each.result.spec.point} {headline}. {sentence}"


def probes_table(result: BenchmarkResult) -> FittedTable[Trial] | None:
    """Return a table of all attempts of a search, in order; None if the point is measured at one load."""
    search = result.spec.line
    if search is None:
        return None
    offered = _ProbeColumn(
        heading=f"Offered {lines.unit_text(search)}",
        cell=_of_probe(lambda probe: lines.rounded_load(probe.offered)),
        right=True,
    )
    latencies = [
        _ProbeColumn(heading=lines.objective_text(objective), cell=partial(_latencies, objective), right=True)
        for objective in search.objectives
    ]
    columns = (_NUMBER, offered, _ACHIEVED, _DEPTH_FULL, *latencies, _OUTCOME, _PROBE_VERDICT)
    essential = (_NUMBER, offered, _ACHIEVED, _OUTCOME, _PROBE_VERDICT)
    return FittedTable(rows=in_order(result), layouts=(columns, essential), missed=columns, remedy="--probes -o csv")


def probe_rows(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, object]]:
    """Yield the values of `PROBE_COLUMNS`; an attempt without numbers has one row."""
    for result in results:
        objectives = result.spec.line.objectives if result.spec.line else ()
        for trial in in_order(result) if result.spec.line else ():
            probe = trial.probe
            row: dict[str, object] = dict.fromkeys(PROBE_COLUMNS)
            row |= {
                "run": result.spec.run,
                "point": result.spec.point,
                "probe": trial.pass_number,
                "attempt": trial.attempt,
                "offered": probe.offered if probe else None,
                "achieved": probe.achieved if probe else None,
                "depth_full_percent": probe.depth_full_percent if probe else None,
                "trial_outcome": trial.outcome.value,
                "outcome": probe.outcome.value if probe else None,
                "verdict": trial.verdict.value,
            }
            if not trial.operations or not objectives:
                yield row
            for operation in trial.operations:
                for objective in objectives:
                    yield row | {
                        "operation": operation.operation.value,
                        "percentile": objective.percentile,
                        "latency_nanoseconds": operation.latency.percentiles.get(objective.percentile),
                        "limit_nanoseconds": objective.latency_nanoseconds,
                    }


def in_order(result: BenchmarkResult) -> Sequence[Trial]:
    """Return all attempts by probe and attempt."""
    return sorted(result.status.trials, key=lambda trial: (trial.pass_number, trial.attempt))


def _searches(results: Iterable[BenchmarkResult]) -> Iterator[_Search]:
    for result in results:
        if result.spec.line is not None:
            yield _Search(result=result, search=result.spec.line, line=line_of(result))


def _latencies(objective: Objective, trial: Trial) -> Text:
    """Return the percentile of each operation, in red where it exceeds the objective."""
    texts = []
    for operation in trial.operations:
        latency = operation.latency.percentiles.get(objective.percentile)
        is_late = latency is not None and latency > objective.latency_nanoseconds
        texts.append(Text(duration_text(latency), style="red" if is_late else ""))
    return Text(" / ").join(texts) if texts else Text(lines.UNKNOWN)


def _of_probe(text: Callable[[Probe], str]) -> Callable[[Trial], Text]:
    return lambda trial: Text(text(trial.probe) if trial.probe else lines.UNKNOWN)


def _outcome(trial: Trial) -> Text:
    if trial.outcome is Outcome.ABORTED:
        return Text(f"aborted ({trial.abort.reason})" if trial.abort else "aborted", style="dim")
    if trial.probe is None:
        return Text(lines.UNKNOWN)
    outcome = trial.probe.outcome
    return Text(lines.outcome_text(outcome), style=_OUTCOME_COLOUR.get(outcome, "yellow"))


def _percent(value: float | None) -> str:
    return lines.UNKNOWN if value is None else f"{value:.2f} %"


def _load(value: float | None) -> str:
    return lines.UNKNOWN if value is None else lines.rounded_load(value)


def _number(trial: Trial) -> str:
    return f"{trial.pass_number}.{trial.attempt}" if trial.attempt else str(trial.pass_number)


_ProbeColumn = FittedColumn[Trial]
_NUMBER = _ProbeColumn(heading="Probe", cell=_number, right=True)
_ACHIEVED = _ProbeColumn(heading="Achieved", cell=_of_probe(lambda probe: _load(probe.achieved)), right=True)
_DEPTH_FULL = _ProbeColumn(
    heading="Depth full", cell=_of_probe(lambda probe: _percent(probe.depth_full_percent)), right=True
)
_OUTCOME = _ProbeColumn(heading="Outcome", cell=_outcome)
_PROBE_VERDICT = _ProbeColumn(heading="Verdict", cell=lambda trial: _verdict_cell(trial.verdict))


def _stacked_lines(row: _Search) -> Text:
    """Return workload, parameters, objectives and reasons in one cell."""
    spec, reasons = row.result.spec, _reasons(row.result)
    text = Text(f"{spec.workload}\n").append(
        f"{spec.label}\n{lines.objectives_text(row.search.objectives)}", style="dim"
    )
    return text.append(f"\n{reasons}", style=VERDICT_COLOUR[verdict_text(row.result)]) if reasons else text


_SearchColumn = FittedColumn[_Search]
_LINE_CLIENTS = _SearchColumn(heading="Clients", cell=lambda row: str(row.result.spec.clients), right=True)
_LINE = _SearchColumn(heading="Line", cell=lambda row: lines.load_with_unit(row.line, row.search), right=True)
_INTERVAL = _SearchColumn(
    heading="95 % interval", cell=lambda row: lines.interval_text(row.line, row.search), right=True
)
_PROBES = _SearchColumn(heading="Probes", cell=lambda row: lines.line_probes_text(row.line), right=True)
_ENDING = _SearchColumn(heading="Ending", cell=lambda row: lines.ending_text(row.line))
_LINE_VERDICT = _SearchColumn(heading="Verdict", cell=lambda row: _verdict_cell(verdict_text(row.result)))
_STACKED_LINES = _SearchColumn(heading="Point", cell=_stacked_lines, folded=True)
_LINE_NUMBERS = (_LINE_CLIENTS, _LINE, _INTERVAL, _PROBES, _ENDING, _LINE_VERDICT)
_LINE_LAYOUTS = (
    (
        _SearchColumn(heading="Workload", cell=lambda row: row.result.spec.workload, folded=True),
        _SearchColumn(heading="Parameters", cell=lambda row: row.result.spec.label, folded=True),
        _SearchColumn(heading="Objectives", cell=lambda row: lines.objectives_text(row.search.objectives), folded=True),
        *_LINE_NUMBERS,
        _SearchColumn(heading="Reasons", cell=lambda row: _reasons(row.result), folded=True),
    ),
    (_STACKED_LINES, *_LINE_NUMBERS),
    (_STACKED_LINES, _LINE, _INTERVAL, _PROBES, _ENDING, _LINE_VERDICT),
    (_STACKED_LINES, _LINE, _ENDING, _LINE_VERDICT),
    (_STACKED_LINES, _LINE, _LINE_VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""


def _verdict_cell(verdict: str) -> Text:
    return Text(verdict, style=VERDICT_COLOUR[verdict])


def _stacked(row: Row) -> Text:
    """Return workload, parameters and reasons in one cell."""
    text = Text(f"{row.workload}\n").append(row.label, style="dim")
    return text.append(f"\n{row.reasons}", style=VERDICT_COLOUR[row.verdict]) if row.reasons else text


_Column = FittedColumn[Row]
_STACKED = _Column(heading="Point", cell=_stacked, folded=True)
_WORKLOAD = _Column(heading="Workload", cell=lambda row: row.workload, folded=True)
_PARAMETERS = _Column(heading="Parameters", cell=lambda row: row.label, folded=True)
_CLIENTS = _Column(heading="Clients", cell=lambda row: str(row.clients), right=True)
_OPERATION = _Column(heading="Op", cell=lambda row: row.operation or NONE)
_IOPS = _Column(
    heading="IOPS ± 95 %",
    cell=lambda row: NONE if row.iops is None else rate_text(row.iops, row.iops_half_width),
    right=True,
)
_RATE = _Column(heading="MiB/s", cell=lambda row: mebibytes(row.bytes_per_second), right=True)
_P50 = _Column(heading="p50", cell=lambda row: duration_text(row.latency_p50_nanoseconds), right=True)
_P99 = _Column(heading="p99", cell=lambda row: duration_text(row.latency_p99_nanoseconds), right=True)
_TRIALS = _Column(heading="Trials", cell=lambda row: f"{row.trials}/{row.repetitions}", right=True)
_VERDICT = _Column(heading="Verdict", cell=lambda row: _verdict_cell(row.verdict))
_REASONS = _Column(heading="Reasons", cell=lambda row: row.reasons, folded=True)

_NUMBERS = (_OPERATION, _IOPS, _RATE, _P50, _P99, _TRIALS, _VERDICT)
_LAYOUTS = (
    (_WORKLOAD, _PARAMETERS, _CLIENTS, *_NUMBERS, _REASONS),
    (_STACKED, _CLIENTS, *_NUMBERS),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _RATE, _P50, _P99, _VERDICT),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _RATE, _P99, _VERDICT),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _P99, _VERDICT),
    (_STACKED, _OPERATION, _IOPS, _P99, _VERDICT),
    (_STACKED, _IOPS, _VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""


def results_tables(results: Sequence[BenchmarkResult]) -> Iterator[RenderableType]:
    """Yield the table of the points that are measured at one load, and that of the searches for the line."""
    searches = [result for result in results if result.spec.line is not None]
    if len(searches) < len(results) or not results:
        yield results_table(result for result in results if result.spec.line is None)
    if searches:
        yield lines_table(searches)


def results_table(results: Iterable[BenchmarkResult]) -> FittedTable[Row]:
    """Return a table with one line per operation of every point."""
    missed = (_CLIENTS, *_NUMBERS)
    return FittedTable(rows=tuple(rows(results)), layouts=_LAYOUTS, missed=missed, remedy="-o csv")


class LinksTable:
    """A grid of the clients that load by those that serve them; the slowest pairs if there is no room for a grid."""

    def __init__(self, title: str, links: Links) -> None:
        self._title, self._links = title, links

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        links = self._links
        yield Text(f"\n{self._title}, {links.unit}", style="bold")
        is_sparse = 2 * len(links.pairs) < len(links.clients) * len(links.peers)
        yield from self._slowest() if is_sparse or self._columns() > options.max_width else self._grid()
        if links.outliers:
            yield Text("* far below comparable pairs (LinkOutlier)", style="dim")

    def _columns(self) -> int:
        """Return the width of the grid."""
        links = self._links
        width = max(len(links.name(client)) for client in links.clients)
        for place, peer in enumerate(links.peers):
            width += _GAP + max(len(str(peer)), *(len(links.text(row[place])) for row in links.grid))
        return width

    def _grid(self) -> Iterator[Table | Text]:
        links = self._links
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        table.add_column("from / to", no_wrap=True)
        for peer in links.peers:
            table.add_column(str(peer), justify="right", no_wrap=True)
        for client, row in zip(links.clients, links.grid, strict=True):
            cells = (Text(links.text(pair), style="yellow" if pair and pair.is_outlier else "") for pair in row)
            table.add_row(Text(links.name(client)), *cells)
        yield table
        others = [links.name(peer) for peer in links.peers if peer not in links.clients]
        if others:
            yield Text(f"to: {', '.join(others)}", style="dim")

    def _slowest(self) -> Iterator[Text]:
        links = self._links
        slowest = sorted(links.pairs, key=links.value)[:10]
        for pair in slowest:
            yield Text(f"{links.sentence(pair)}{'*' if pair.is_outlier else ''}")
        if left_out := len(links.pairs) - len(slowest):
            yield Text(f"{count_text(left_out, 'faster pair')} not shown: use -o json.", style="dim")


def links_tables(results: Iterable[BenchmarkResult]) -> Iterator[LinksTable]:
    """Yield the matrix of every point that has one."""
    for result in results:
        if (links := links_of(result)) is not None:
            yield LinksTable(f"{result.spec.point} ({result.spec.label})", links)
