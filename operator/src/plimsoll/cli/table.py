"""The result table of the terminal."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.cli.line_table import VERDICT_COLOUR, lines_table
from plimsoll.cli.rows import Row, rows
from plimsoll.measure.rates import rate_text
from plimsoll.report.text import NONE, duration_text, mebibytes


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
