"""The result table, as people read it: as much of it as there is room for."""

from collections.abc import Iterable

from rich.text import Text

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.fitted import NONE, Column, FittedTable, text_of
from plimsoll.cli.rows import UNFINISHED, Row, rows
from plimsoll.measure.rates import rate_text

_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red", UNFINISHED: "cyan"}


def _iops(row: Row) -> str:
    if row.iops is None:
        return NONE
    return rate_text(row.iops, row.iops_half_width)


def _verdict(row: Row) -> Text:
    return Text(row.verdict, style=_COLOUR[row.verdict])


def _stacked(row: Row) -> Text:
    """Return what names a point, and what speaks against it, in one cell."""
    text = Text(f"{row.workload}\n").append(row.label, style="dim")
    return text.append(f"\n{row.reasons}", style=_COLOUR[row.verdict]) if row.reasons else text


_STACKED = Column[Row](heading="Point", cell=_stacked, folded=True)
_WORKLOAD = Column[Row](heading="Workload", cell=text_of(lambda row: row.workload), folded=True)
_PARAMETERS = Column[Row](heading="Parameters", cell=text_of(lambda row: row.label), folded=True)
_CLIENTS = Column[Row](heading="Clients", cell=text_of(lambda row: str(row.clients)), right=True)
_OPERATION = Column[Row](heading="Op", cell=text_of(lambda row: row.operation or NONE))
_IOPS = Column[Row](heading="IOPS ± 95 %", cell=text_of(_iops), right=True)
_RATE = Column[Row](heading="MiB/s", cell=text_of(lambda row: _mebibytes(row.bytes_per_second)), right=True)
_P50 = Column[Row](heading="p50", cell=text_of(lambda row: _latency(row.latency_p50_nanoseconds)), right=True)
_P99 = Column[Row](heading="p99", cell=text_of(lambda row: _latency(row.latency_p99_nanoseconds)), right=True)
_TRIALS = Column[Row](heading="Trials", cell=text_of(lambda row: f"{row.trials}/{row.repetitions}"), right=True)
_VERDICT = Column[Row](heading="Verdict", cell=_verdict)
_BECAUSE = Column[Row](heading="Because", cell=text_of(lambda row: row.reasons), folded=True)

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


def results_table(results: Iterable[BenchmarkResult]) -> FittedTable[Row]:
    """Return what shows results on a console: one line per operation of every point."""
    missed = (_CLIENTS, *_NUMBERS)
    return FittedTable(rows=tuple(rows(results)), layouts=_LAYOUTS, missed=missed, remedy="-o csv")


def _mebibytes(bytes_per_second: float | None) -> str:
    return NONE if bytes_per_second is None else f"{bytes_per_second / 2**20:,.1f}"


def _latency(nanoseconds: float | None) -> str:
    return NONE if nanoseconds is None else format_duration(nanoseconds)
