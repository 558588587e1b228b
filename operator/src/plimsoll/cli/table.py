"""The result table, as people read it: as much of it as there is room for, and never a column of width 0."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.rows import UNFINISHED, Row, rows

NO_TERMINAL_COLUMNS = 160
"""A file or a pipe has no width; this holds every column."""

_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red", UNFINISHED: "cyan"}
_NONE = "-"
_GAP = 2
_FOLDED_COLUMNS = 20
"""What a column whose text may be folded needs at least."""


def stdout_console() -> Console:
    """Return a console for results: as wide as the terminal, and wide enough where there is none."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=NO_TERMINAL_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column. `folded` text may go over several lines; numbers may not."""

    heading: str
    cell: Callable[[Row], Text]
    right: bool = False
    folded: bool = False

    def columns(self, found: Sequence[Row]) -> int:
        """Return how many terminal columns it needs at least."""
        if self.folded:
            return _FOLDED_COLUMNS
        return max(cell_len(self.heading), *(self.cell(row).cell_len for row in found), 1)


def _text(cell: Callable[[Row], str]) -> Callable[[Row], Text]:
    return lambda row: Text(cell(row))


def _verdict(row: Row) -> Text:
    return Text(row.verdict, style=_COLOUR[row.verdict])


def _stacked(row: Row) -> Text:
    """Return what names a point, and what speaks against it, in one cell."""
    text = Text(f"{row.workload}\n").append(row.label, style="dim")
    return text.append(f"\n{row.reasons}", style=_COLOUR[row.verdict]) if row.reasons else text


_STACKED = _Column(heading="Point", cell=_stacked, folded=True)
_WORKLOAD = _Column(heading="Workload", cell=_text(lambda row: row.workload), folded=True)
_PARAMETERS = _Column(heading="Parameters", cell=_text(lambda row: row.label), folded=True)
_CLIENTS = _Column(heading="Clients", cell=_text(lambda row: str(row.clients)), right=True)
_OPERATION = _Column(heading="Op", cell=_text(lambda row: row.operation or _NONE))
_IOPS = _Column(heading="IOPS ± 95 %", cell=_text(lambda row: _with_error(row.iops, row.iops_half_width)), right=True)
_RATE = _Column(heading="MiB/s", cell=_text(lambda row: _mebibytes(row.bytes_per_second)), right=True)
_P50 = _Column(heading="p50", cell=_text(lambda row: _latency(row.latency_p50_nanoseconds)), right=True)
_P99 = _Column(heading="p99", cell=_text(lambda row: _latency(row.latency_p99_nanoseconds)), right=True)
_TRIALS = _Column(heading="Trials", cell=_text(lambda row: f"{row.trials}/{row.repetitions}"), right=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict)
_BECAUSE = _Column(heading="Because", cell=_text(lambda row: row.reasons), folded=True)

_NUMBERS = (_OPERATION, _IOPS, _RATE, _P50, _P99, _TRIALS, _VERDICT)
_LAYOUTS = (
    (_WORKLOAD, _PARAMETERS, _CLIENTS, *_NUMBERS, _BECAUSE),
    (_STACKED, _CLIENTS, *_NUMBERS),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _RATE, _P50, _P99, _VERDICT),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _RATE, _P99, _VERDICT),
    (_STACKED, _CLIENTS, _OPERATION, _IOPS, _P99, _VERDICT),
    (_STACKED, _OPERATION, _IOPS, _P99, _VERDICT),
    (_STACKED, _IOPS, _VERDICT),
)
"""From wide to narrow: what is left out first matters least."""


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """One line per operation of every point, in the widest layout that fits where it is shown."""

    rows: Sequence[Row]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        layout = next((one for one in _LAYOUTS if self._columns(one) <= options.max_width), _LAYOUTS[-1])
        yield self._table(layout)
        left_out = [column.heading for column in (_CLIENTS, *_NUMBERS) if column not in layout]
        if left_out:
            yield Text(f"No room for {', '.join(left_out)}: use a wider terminal, or -o csv.", style="dim")

    def _columns(self, layout: Sequence[_Column]) -> int:
        return sum(column.columns(self.rows) for column in layout) + _GAP * (len(layout) - 1)

    def _table(self, layout: Sequence[_Column]) -> Table:
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


def results_table(results: Iterable[BenchmarkResult]) -> ResultsTable:
    """Return what shows results on a console."""
    return ResultsTable(tuple(rows(results)))


def _with_error(value: float | None, half_width: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" + ("" if half_width is None else f" ± {half_width:,.0f}")


def _mebibytes(bytes_per_second: float | None) -> str:
    return _NONE if bytes_per_second is None else f"{bytes_per_second / 2**20:,.1f}"


def _latency(nanoseconds: float | None) -> str:
    return _NONE if nanoseconds is None else format_duration(nanoseconds)
