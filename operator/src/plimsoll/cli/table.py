"""The result table, as people read it."""

from collections.abc import Iterable

from rich.table import Table

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.rows import Row, rows

_COLOUR = {Verdict.VALID: "green", Verdict.SUSPECT: "yellow", Verdict.INVALID: "red"}
_NONE = "-"
_MICROSECOND, _MILLISECOND, _SECOND = 10**3, 10**6, 10**9


def results_table(results: Iterable[BenchmarkResult]) -> Table:
    """Return one line per operation of every point."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Workload", "Parameters"):
        table.add_column(heading, overflow="fold")
    for heading in ("Clients", "Operation", "IOPS", "± 95 %", "MiB/s", "p50", "p99", "Trials"):
        table.add_column(heading, justify="right" if heading != "Operation" else "left", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    table.add_column("Because", overflow="fold")
    for row in rows(results):
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    colour = _COLOUR[Verdict(row.verdict)]
    rate = None if row.bytes_per_second is None else row.bytes_per_second / 2**20
    return [
        row.workload,
        row.label,
        str(row.clients),
        row.operation or _NONE,
        _number(row.iops),
        _number(row.iops_half_width),
        _NONE if rate is None else f"{rate:,.1f}",
        duration(row.latency_p50),
        duration(row.latency_p99),
        f"{row.trials}/{row.repetitions}",
        f"[{colour}]{row.verdict}[/]",
        row.reasons,
    ]


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.0f}"


def duration(nanoseconds: float | None) -> str:
    """Write a latency with three significant digits and the unit that suits it."""
    if nanoseconds is None:
        return _NONE
    for unit, size in (("s", _SECOND), ("ms", _MILLISECOND), ("µs", _MICROSECOND)):
        if nanoseconds >= size:
            return f"{_three_digits(nanoseconds / size)} {unit}"
    return f"{nanoseconds:.0f} ns"


def _three_digits(value: float) -> str:
    digits = 2 if value < 10 else 1 if value < 100 else 0  # noqa: PLR2004 - powers of ten
    return f"{value:.{digits}f}"
