"""Tables in the widest layout that fits the console; no column has width 0."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

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
