"""Tables in the widest layout that fits the console; no column has width 0."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll.api.line import Line, LineSearch, Objective, ProbeOutcome
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.line.summary import (
    UNKNOWN,
    ending_sentence,
    ending_text,
    headline_text,
    interval_text,
    line_probes_text,
    load_with_unit,
    objective_text,
    objectives_text,
    outcome_text,
    rounded_load,
    uncounted_text,
    unit_text,
)
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
    cell: Callable[[R], Text]
    right: bool = False
    folded: bool = False

    def columns(self, found: Sequence[R]) -> int:
        """Return the minimum number of terminal columns."""
        if self.folded:
            return _FOLDED_COLUMNS
        return max(cell_len(self.heading), *(self.cell(row).cell_len for row in found), 1)


def text_of(cell: Callable[[R], str]) -> Callable[[R], Text]:
    """Return a cell of plain text without markup."""
    return lambda row: Text(cell(row))


@dataclass(frozen=True, kw_only=True)
class FittedTable(Generic[R]):
    """Rows in one of several layouts.

    Attributes:
        layouts: from wide to narrow: the least important columns are left out first.
        missed: columns that a line below the table names if they are left out.
        remedy: the command or option that shows all columns.

    """

    rows: Sequence[R]
    layouts: Sequence[Sequence[FittedColumn[R]]]
    missed: Sequence[FittedColumn[R]]
    remedy: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        layout = next((one for one in self.layouts if self._columns(one) <= options.max_width), self.layouts[-1])
        yield self._table(layout)
        omitted = [column.heading for column in self.missed if column not in layout]
        if omitted:
            yield Text(f"No room for {', '.join(omitted)}: use a wider terminal, or {self.remedy}.", style="dim")

    def _columns(self, layout: Sequence[FittedColumn[R]]) -> int:
        return sum(column.columns(self.rows) for column in layout) + _GAP * (len(layout) - 1)

    def _table(self, layout: Sequence[FittedColumn[R]]) -> Table:
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
            table.add_row(*(column.cell(row) for column in layout))
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one point. Rates per second, latencies in nanoseconds; None if unknown.

    Attributes:
        verdict: as in the result, or `Unfinished`.
        iops_half_width: half the 95 % confidence interval of the mean.
        trials: passes that count, of the planned ones.
        attempts: all recorded attempts, including aborted and invalid ones.
        stall_seconds: time without any completed operation, in the worst trial that counts.
        line: the line of a search in words; the other fields of a line are loads of all clients.
        steady: whether the rate of this operation was in steady state in every trial that counts; None if not judged.

    """

    run: str
    workload: str
    point: str
    label: str
    clients: int
    operation: str
    verdict: str
    trials: int
    repetitions: int
    attempts: int
    iops: float | None = None
    iops_half_width: float | None = None
    iops_variation: float | None = None
    bytes_per_second: float | None = None
    latency_mean_nanoseconds: float | None = None
    latency_p50_nanoseconds: float | None = None
    latency_p99_nanoseconds: float | None = None
    latency_max_nanoseconds: int | None = None
    stall_seconds: float | None = None
    steady: bool | None = None
    reasons: str = ""
    line: str = ""
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
    base = {
        "run": spec.run,
        "workload": spec.workload,
        "point": spec.point,
        "label": spec.label,
        "clients": spec.clients,
        "repetitions": spec.repetitions,
        "attempts": len(status.trials),
        "trials": _trials(result),
        "verdict": verdict_text(result),
        "reasons": " ".join(dict.fromkeys(finding.reason for finding in status.findings)),
        **_line(result),
    }
    if operation is None:
        return Row(operation="", **base)  # type: ignore[arg-type]
    iops = iops_of(operation)
    return Row(
        **base,  # type: ignore[arg-type]
        operation=operation.operation.value,
        iops=iops.mean if iops else None,
        iops_half_width=iops.half_width if iops else None,
        iops_variation=iops.coefficient_of_variation if iops else None,
        bytes_per_second=operation.bytes_per_second.mean,
        latency_mean_nanoseconds=operation.mean_latency.mean if operation.mean_latency else None,
        latency_p50_nanoseconds=_percentile(operation, "50"),
        latency_p99_nanoseconds=_percentile(operation, "99"),
        latency_max_nanoseconds=operation.latency.max_nanoseconds,
        stall_seconds=longest_stall(result),
        steady=is_steady(result, operation.operation),
    )


def _trials(result: BenchmarkResult) -> int:
    status = result.status
    if status.line is not None:
        return status.line.counted
    return status.summary.trials if status.summary else 0


def _line(result: BenchmarkResult) -> dict[str, object]:
    search, line = result.spec.line, result.status.line
    if search is None or line is None:
        return {}
    return {
        "line": headline_text(line, search),
        "line_vary": search.vary.value,
        "line_ending": line.ending.value if line.ending else "",
        "line_estimate": line.estimate,
        "line_low": line.low,
        "line_high": line.high,
        "line_probes": line.probes,
        "line_counted": line.counted,
    }


def _percentile(operation: OperationSummary, name: str) -> float | None:
    statistic = operation.percentiles.get(name)
    return statistic.mean if statistic else None


VERDICT_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red", UNFINISHED: "cyan"}

_OUTCOME_COLOUR = {ProbeOutcome.MET: "green", ProbeOutcome.UNKNOWN: "dim", ProbeOutcome.NOT_OFFERED: "dim"}
_BROKEN = "yellow"

PROBE_COLUMNS = (
    *("run", "point", "probe", "attempt", "offered", "achieved", "depth_full_percent", "operation"),
    *("percentile", "latency_nanoseconds", "limit_nanoseconds", "trial_outcome", "outcome", "verdict"),
)
"""Columns of CSV, a row per probe, operation and objective: loads of all clients, and nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A search and what it has found so far."""

    result: BenchmarkResult
    search: LineSearch
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """An attempt at a probe of a search."""

    search: LineSearch
    trial: Trial


def lines_table(results: Iterable[BenchmarkResult]) -> FittedTable[_Found]:
    """Return a table with one line per search."""
    return FittedTable(rows=[*_found(results)], layouts=_LINE_LAYOUTS, missed=_LINE_NUMBERS, remedy="-o csv")


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for one in _found(results):
        headline = headline_text(one.line, one.search)
        sentence = ending_sentence(one.line, one.search, uncounted_text(one.result.status.trials))
        yield f"{one.result.spec.point} {headline}. {sentence}"


def probes_table(result: BenchmarkResult) -> FittedTable[_Probe] | None:
    """Return a table of all attempts of a search, in order; None if the point is measured at one load."""
    search = result.spec.line
    if search is None:
        return None
    offered = _LineColumn(heading=f"Offered {unit_text(search)}", cell=_probed(_offered), right=True)
    verdict = _LineColumn(heading="Verdict", cell=_line_verdict)
    known = (_NUMBER, offered, _ACHIEVED, _DEPTH_FULL, *_latency_columns(search), _OUTCOME, verdict)
    essential = (_NUMBER, offered, _ACHIEVED, _OUTCOME, verdict)
    rows = [_Probe(search=search, trial=trial) for trial in in_order(result)]
    return FittedTable(rows=rows, layouts=(known, essential), missed=known, remedy="--probes -o csv")


def probe_rows(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, object]]:
    """Yield the values of `PROBE_COLUMNS`; an attempt without numbers has one row."""
    for result in results:
        for trial in in_order(result) if result.spec.line else ():
            base = _probe_row(result, trial)
            rows = [
                base | _objective_row(trial, number, objective)
                for number in range(len(trial.operations))
                for objective in (result.spec.line.objectives if result.spec.line else ())
            ]
            yield from rows or [base]


def in_order(result: BenchmarkResult) -> Sequence[Trial]:
    """Return all attempts by probe and attempt."""
    return sorted(result.status.trials, key=lambda trial: (trial.pass_number, trial.attempt))


def _found(results: Iterable[BenchmarkResult]) -> Iterator[_Found]:
    for result in results:
        if result.spec.line is not None:
            yield _Found(result=result, search=result.spec.line, line=line_of(result))


def _probe_row(result: BenchmarkResult, trial: Trial) -> dict[str, object]:
    probe = trial.probe
    unmeasured: dict[str, object] = dict.fromkeys(PROBE_COLUMNS)
    return unmeasured | {
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


def _objective_row(trial: Trial, number: int, objective: Objective) -> dict[str, object]:
    operation = trial.operations[number]
    return {
        "operation": operation.operation.value,
        "percentile": objective.percentile,
        "latency_nanoseconds": operation.latency.percentiles.get(objective.percentile),
        "limit_nanoseconds": objective.latency_nanoseconds,
    }


def _latency_columns(search: LineSearch) -> Iterator[FittedColumn[_Probe]]:
    for objective in search.objectives:
        yield _LineColumn(heading=objective_text(objective), cell=_latencies(objective), right=True)


def _latencies(objective: Objective) -> Callable[[_Probe], Text]:
    """Return the percentile of each operation, in red where it exceeds the objective."""

    def cell(row: _Probe) -> Text:
        texts = []
        for operation in row.trial.operations:
            latency = operation.latency.percentiles.get(objective.percentile)
            is_late = latency is not None and latency > objective.latency_nanoseconds
            texts.append(Text(duration_text(latency), style="red" if is_late else ""))
        return Text(" / ").join(texts) if texts else Text(UNKNOWN)

    return cell


def _probed(text: Callable[[_Probe], str | None]) -> Callable[[_Probe], Text]:
    return lambda row: Text(text(row) or UNKNOWN)


def _offered(row: _Probe) -> str | None:
    return rounded_load(row.trial.probe.offered) if row.trial.probe else None


def _achieved(row: _Probe) -> str | None:
    probe = row.trial.probe
    return rounded_load(probe.achieved) if probe and probe.achieved is not None else None


def _depth_full(row: _Probe) -> str | None:
    probe = row.trial.probe
    return f"{probe.depth_full_percent:.2f} %" if probe and probe.depth_full_percent is not None else None


def _number(row: _Probe) -> str:
    return f"{row.trial.pass_number}.{row.trial.attempt}" if row.trial.attempt else str(row.trial.pass_number)


def _outcome(row: _Probe) -> Text:
    if row.trial.outcome is Outcome.ABORTED:
        reason = f" ({row.trial.abort.reason})" if row.trial.abort else ""
        return Text(f"aborted{reason}", style="dim")
    if row.trial.probe is None:
        return Text(UNKNOWN)
    outcome = row.trial.probe.outcome
    return Text(outcome_text(outcome), style=_OUTCOME_COLOUR.get(outcome, _BROKEN))


def _line_verdict(row: _Probe) -> Text:
    return Text(row.trial.verdict.value, style=VERDICT_COLOUR[row.trial.verdict])


_LineColumn = FittedColumn[_Probe]
_NUMBER = _LineColumn(heading="Probe", cell=text_of(_number), right=True)
_ACHIEVED = _LineColumn(heading="Achieved", cell=_probed(_achieved), right=True)
_DEPTH_FULL = _LineColumn(heading="Depth full", cell=_probed(_depth_full), right=True)
_OUTCOME = _LineColumn(heading="Outcome", cell=_outcome)


def _search_verdict(row: _Found) -> Text:
    verdict = verdict_text(row.result)
    return Text(verdict, style=VERDICT_COLOUR[verdict])


def _reasons(row: _Found) -> str:
    return " ".join(dict.fromkeys(finding.reason for finding in row.result.status.findings))


def _stacked_lines(row: _Found) -> Text:
    """Return workload, parameters, objectives and reasons in one cell."""
    spec, reasons = row.result.spec, _reasons(row)
    text = Text(f"{spec.workload}\n").append(f"{spec.label}\n{objectives_text(row.search.objectives)}", style="dim")
    return text.append(f"\n{reasons}", style=VERDICT_COLOUR[verdict_text(row.result)]) if reasons else text


_Search = FittedColumn[_Found]
_LINE_CLIENTS = _Search(heading="Clients", cell=text_of(lambda row: str(row.result.spec.clients)), right=True)
_LINE = _Search(heading="Line", cell=text_of(lambda row: load_with_unit(row.line, row.search)), right=True)
_INTERVAL = _Search(heading="95 % interval", cell=text_of(lambda row: interval_text(row.line, row.search)), right=True)
_PROBES = _Search(heading="Probes", cell=text_of(lambda row: line_probes_text(row.line)), right=True)
_ENDING = _Search(heading="Ending", cell=text_of(lambda row: ending_text(row.line)))
_LINE_VERDICT = _Search(heading="Verdict", cell=_search_verdict)
_STACKED_LINES = _Search(heading="Point", cell=_stacked_lines, folded=True)
_LINE_NUMBERS = (_LINE_CLIENTS, _LINE, _INTERVAL, _PROBES, _ENDING, _LINE_VERDICT)
_LINE_LAYOUTS = (
    (
        _Search(heading="Workload", cell=text_of(lambda row: row.result.spec.workload), folded=True),
        _Search(heading="Parameters", cell=text_of(lambda row: row.result.spec.label), folded=True),
        _Search(heading="Objectives", cell=text_of(lambda row: objectives_text(row.search.objectives)), folded=True),
        *_LINE_NUMBERS,
        _Search(heading="Reasons", cell=text_of(_reasons), folded=True),
    ),
    (_STACKED_LINES, *_LINE_NUMBERS),
    (_STACKED_LINES, _LINE, _INTERVAL, _PROBES, _ENDING, _LINE_VERDICT),
    (_STACKED_LINES, _LINE, _ENDING, _LINE_VERDICT),
    (_STACKED_LINES, _LINE, _LINE_VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""


def _iops(row: Row) -> str:
    return NONE if row.iops is None else rate_text(row.iops, row.iops_half_width)


def _verdict(row: Row) -> Text:
    return Text(row.verdict, style=VERDICT_COLOUR[row.verdict])


def _stacked(row: Row) -> Text:
    """Return workload, parameters and reasons in one cell."""
    text = Text(f"{row.workload}\n").append(row.label, style="dim")
    return text.append(f"\n{row.reasons}", style=VERDICT_COLOUR[row.verdict]) if row.reasons else text


_Column = FittedColumn[Row]
_STACKED = _Column(heading="Point", cell=_stacked, folded=True)
_WORKLOAD = _Column(heading="Workload", cell=text_of(lambda row: row.workload), folded=True)
_PARAMETERS = _Column(heading="Parameters", cell=text_of(lambda row: row.label), folded=True)
_CLIENTS = _Column(heading="Clients", cell=text_of(lambda row: str(row.clients)), right=True)
_OPERATION = _Column(heading="Op", cell=text_of(lambda row: row.operation or NONE))
_IOPS = _Column(heading="IOPS ± 95 %", cell=text_of(_iops), right=True)
_RATE = _Column(heading="MiB/s", cell=text_of(lambda row: mebibytes(row.bytes_per_second)), right=True)
_P50 = _Column(heading="p50", cell=text_of(lambda row: duration_text(row.latency_p50_nanoseconds)), right=True)
_P99 = _Column(heading="p99", cell=text_of(lambda row: duration_text(row.latency_p99_nanoseconds)), right=True)
_TRIALS = _Column(heading="Trials", cell=text_of(lambda row: f"{row.trials}/{row.repetitions}"), right=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict)
_REASONS = _Column(heading="Reasons", cell=text_of(lambda row: row.reasons), folded=True)

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


_NAMED = 10


class LinksTable:
    """A grid of the clients that load by those that serve them; the slowest pairs if there is no room for a grid."""

    def __init__(self, title: str, links: Links) -> None:
        self._title = title
        self._links = links

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(f"\n{self._title}, {self._links.unit}", style="bold")
        fits = not self._is_sparse and self._columns() <= options.max_width
        yield from self._grid() if fits else self._slowest()
        if self._links.outliers:
            yield Text("* far below comparable pairs (LinkOutlier)", style="dim")

    def _columns(self) -> int:
        """Return the width of the grid."""
        names = max(len(self._links.name(client)) for client in self._links.clients)
        return names + sum(_GAP + self._width(place) for place in range(len(self._links.peers)))

    @property
    def _is_sparse(self) -> bool:
        """Whether most of the grid would be empty."""
        return 2 * len(self._links.pairs) < len(self._links.clients) * len(self._links.peers)

    def _width(self, place: int) -> int:
        texts = (self._links.text(row[place]) for row in self._links.grid)
        return max(len(str(self._links.peers[place])), *map(len, texts))

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
        ordered = sorted(links.pairs, key=links.value)[:_NAMED]
        for pair in ordered:
            yield Text(f"{links.sentence(pair)}{'*' if pair.is_outlier else ''}")
        if left_out := len(links.pairs) - len(ordered):
            yield Text(f"{count_text(left_out, 'faster pair')} not shown: use -o json.", style="dim")


def links_tables(results: Iterable[BenchmarkResult]) -> Iterator[LinksTable]:
    """Yield the matrix of every point that has one."""
    for result in results:
        links = links_of(result)
        if links is not None:
            yield LinksTable(f"{result.spec.point} ({result.spec.label})", links)
