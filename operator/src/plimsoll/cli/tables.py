"""Tables for terminals, in the widest layout that fits the console."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from plimsoll.api.json_reader import printable_text
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.text import count_text
from plimsoll.report import figure, points
from plimsoll.report.figure import SENSES
from plimsoll.report.layers_links import link_columns, links_of
from plimsoll.report.view import NONE, Column

NO_TERMINAL_COLUMNS = 160  # the width for files and pipes: every column fits
_GAP = 2
_FOLDED_COLUMNS = 20  # minimum width of a column whose text may be folded
_SLOWEST = 10  # links of a point
R = TypeVar("R")


class Terminal(Console):
    """A console whose only escapes are its own styles: markup and unprintable characters in texts have no effect."""

    def __init__(self, *, stderr: bool = False) -> None:
        """Be as wide as the terminal; for results that go elsewhere, wide enough for every column."""
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)
        if not stderr and not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = NO_TERMINAL_COLUMNS

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the parts of what is printed, with printable texts."""
        if isinstance(renderable, Text):
            # Before its lines are broken, because unprintable characters have no width.
            renderable = renderable.copy()
            renderable.plain = printable_text(renderable.plain)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_text(segment.text))


def print_line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return a table of headings with their texts; empty texts are left out."""
    table = Table.grid("", "", padding=(0, _GAP, 0, 0))
    for heading, text in facts:
        if text:
            table.add_row(Text(heading, style="bold"), Text(text))
    return table


MEASURING = "measuring"  # in place of the verdict of the point that is being measured
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "wait": "cyan"}
STYLES = {MEASURING: "cyan"} | {mark: _COLOURS[sense] for mark, sense in SENSES.items()}
"""The colours of verdicts and conclusions."""


@dataclass(frozen=True, kw_only=True)  # without slots: with them Python 3.11 cannot create a generic one
class FittedTable(Generic[R]):
    """A table in the widest of several layouts that fits the console."""

    columns: Sequence[Column[R]]
    rows: Sequence[R]
    remedy: str  # the command or option that shows all columns
    stack: str
    blank_repeats: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        priorities = {column: column.priority or 0 for column in self.columns if not column.stacked}
        limits = sorted(set(priorities.values()), reverse=True)
        layouts = (self._table(limit) for limit in (None, *limits))
        fitting = (table for table in layouts if _width(table) <= options.max_width)
        table = next(fitting, None) or self._table(limits[-1], None)
        yield table
        shown = {column.header for column in table.columns}
        if omitted := [column.heading for column in priorities if column.heading not in shown]:
            yield Text(f"No room for {', '.join(omitted)}: use a wider terminal, or {self.remedy}.", style="dim")

    def _table(self, limit: int | None, least: int | None = _FOLDED_COLUMNS) -> Table:
        """Return the columns up to a priority, with the stacked ones below each other; all columns without a limit."""
        stacks = [[column.cell(row).text for column in self.columns if column.stacked] for row in self.rows]
        repeated = [self.blank_repeats and pair[0] == pair[1] for pair in zip(stacks, [None, *stacks], strict=False)]
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        cells: list[list[Text]] = []
        shown = self.columns
        if limit is not None:
            shown = [column for column in self.columns if not column.stacked and (column.priority or 0) <= limit]
            if any(column.stacked for column in self.columns):
                table.add_column(self.stack, overflow="fold", min_width=least)
                cells.append([_stacked([] if again else texts) for texts, again in zip(stacks, repeated, strict=True)])
        for column in shown:
            texts = [Text(cell.text, style=STYLES.get(cell.mark, "")) for cell in map(column.cell, self.rows)]
            if column.stacked:
                texts = [Text() if again else text for text, again in zip(texts, repeated, strict=True)]
            is_folded = column.folded or column.stacked
            table.add_column(
                column.heading,
                justify="right" if column.right else "left",
                no_wrap=not is_folded,
                overflow="fold",
                min_width=least if is_folded else max(map(cell_len, (column.heading, *map(str, texts)))),
            )
            cells.append(texts)
        for row in zip(*cells, strict=True):
            table.add_row(*row)
        return table


def _width(table: Table) -> int:
    return sum((column.min_width or 0) + _GAP for column in table.columns) - _GAP


def _stacked(texts: Iterable[str]) -> Text:
    first, *others = [text for text in texts if text not in {"", NONE}] or [""]
    return Text(first).append("".join(f"\n{text}" for text in others), style="dim")


def fitted(
    columns: Iterable[Column[R]],
    rows: Sequence[R],
    *,
    remedy: str = "",
    stack: str = "Point",
    blank_repeats: bool = False,
) -> FittedTable[R]:
    """Return a table for terminals, which leaves out the columns with the highest priority where it is narrow.

    Tables that do not have all columns show the stacked ones below each other in one with the heading `stack`. With
    `blank_repeats`, a row shows them only if the row above has something else.
    """
    shown = [
        column
        for column in columns
        if column.heading and column.priority is not None
        # A column without values, such as variants of hypotheses about all of them, is left out.
        if not (column.stacked and rows and all(column.cell(row).text == NONE for row in rows))
    ]
    return FittedTable(columns=shown, rows=rows, remedy=remedy, stack=stack, blank_repeats=blank_repeats)


def results_tables(results: Sequence[BenchmarkResult]) -> Iterator[RenderableType]:
    """Yield a table of the points that are measured at one load, of the searches for the line, and of phases."""
    searches = [result for result in results if result.spec.line is not None]
    if len(searches) < len(results) or not results:
        yield results_table(result for result in results if result.spec.line is None)
    if searches:
        yield fitted(points.LINE_COLUMNS, [*points.line_rows(points.named(searches))], remedy="-o csv")
    if phases := [*points.phase_rows(results)]:
        yield fitted(points.PHASE_COLUMNS, phases, remedy="-o json")


def results_table(results: Iterable[BenchmarkResult]) -> FittedTable[figure.PointRow]:
    return fitted(points.RESULT_COLUMNS, [*figure.result_rows(points.named(results))], remedy="-o csv")


def links_tables(results: Iterable[BenchmarkResult]) -> Iterator[RenderableType]:
    for result in results:
        if links := links_of(result):
            yield Text(
                f"\n{result.spec.point} ({result.spec.label}), slowest of {count_text(len(links.pairs), 'link')}",
                "bold",
            )
            yield fitted(link_columns(links), links.pairs[:_SLOWEST], remedy="-o json")
            if links.outliers:
                yield Text("* far below comparable pairs (LinkOutlier)", style="dim")
