"""Tables for terminals, in the widest layout that fits the console."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from plimsoll.api.json_reader import printable_text
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.text import count_text
from plimsoll.report import points
from plimsoll.report.figure import SENSES
from plimsoll.report.layers_links import Links, link_columns, links_of
from plimsoll.report.view import NONE, Column, Number

NO_TERMINAL_COLUMNS = 160  # the width for files and pipes: every column fits
_GAP = 2
_FOLDED_COLUMNS = 20  # minimum width of a column whose text may be folded
_SLOWEST = 10  # links that are shown where a grid has no room
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
    """Print a text without markup as one line, however long it is."""
    console.print(Text(text, style=style), soft_wrap=True)


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return a table of headings with their texts; empty texts are left out."""
    table = Table.grid("", "", padding=(0, _GAP, 0, 0))
    for heading, text in facts:
        if text:
            table.add_row(Text(heading, style="bold"), Text(text))
    return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Texts:
    """One column of a table for terminals with the texts of its rows. Only `folded` texts may span several lines."""

    heading: str
    texts: Sequence[Text]
    folded: bool
    column: Column[Any] | None = None  # None: the stacked columns below each other

    @property
    def width(self) -> int:
        """The minimum number of terminal columns."""
        if self.folded:
            return _FOLDED_COLUMNS
        return max(cell_len(self.heading), *(text.cell_len for text in self.texts), 1)


def _width(layout: Sequence[_Texts]) -> int:
    return sum(column.width for column in layout) + _GAP * (len(layout) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table in the widest of several layouts that fits the console."""

    layouts: Sequence[Sequence[_Texts]]
    remedy: str  # the command or option that shows all columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        layout = next((layout for layout in self.layouts if _width(layout) <= options.max_width), self.layouts[-1])
        fits = _width(layout) <= options.max_width
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for column in layout:
            table.add_column(
                column.heading,
                justify="right" if column.column and column.column.right else "left",
                no_wrap=not column.folded,
                overflow="fold",
                min_width=column.width if fits or not column.folded else None,
            )
        for row in zip(*(column.texts for column in layout), strict=True):
            table.add_row(*row)
        yield table
        single = [column for column in self.layouts[0] if column.column and not column.column.stacked]
        if omitted := [column.heading for column in single if column not in layout]:
            yield Text(f"No room for {', '.join(omitted)}: use a wider terminal, or {self.remedy}.", style="dim")


MEASURING = "measuring"  # in place of the verdict of the point that is being measured
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "wait": "cyan"}
STYLES = {MEASURING: "cyan"} | {mark: _COLOURS[sense] for mark, sense in SENSES.items()}
"""The colours of verdicts and conclusions."""


def fitted(
    columns: Iterable[Column[R]],
    rows: Sequence[R],
    *,
    remedy: str = "",
    stack: str = "Point",
    blank_repeats: bool = False,
) -> FittedTable:
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
    stacks = [[column.cell(row).text for column in shown if column.stacked] for row in rows]
    repeated = {number for number in range(1, len(rows)) if blank_repeats and stacks[number] == stacks[number - 1]}
    wide: list[_Texts] = []
    for column in shown:
        cells = map(column.cell, rows)
        texts = [Text(cell.text, style=STYLES.get(cell.mark, "")) for cell in cells]
        if column.stacked:
            texts = [Text() if number in repeated else text for number, text in enumerate(texts)]
        folded = column.folded or column.stacked
        wide.append(_Texts(heading=column.heading, texts=texts, folded=folded, column=column))

    def stacked_text(number: int, lines: Sequence[str]) -> Text:
        first, *others = ("",) if number in repeated else [text for text in lines if text not in {"", NONE}]
        return Text(first).append("".join(f"\n{text}" for text in others), style="dim")

    single = {column: column.column.priority or 0 for column in wide if column.column and not column.column.stacked}
    first: list[_Texts] = []
    if len(single) < len(wide):
        texts = [stacked_text(number, lines) for number, lines in enumerate(stacks)]
        first = [_Texts(heading=stack, texts=texts, folded=True)]
    narrow = [
        [*first, *(column for column, priority in single.items() if priority <= limit)]
        for limit in sorted(set(single.values()), reverse=True)
    ]
    return FittedTable(layouts=[wide, *narrow], remedy=remedy)


def results_tables(results: Sequence[BenchmarkResult]) -> Iterator[RenderableType]:
    """Yield a table of the points that are measured at one load, of the searches for the line, and of phases."""
    searches = [result for result in results if result.spec.line is not None]
    if len(searches) < len(results) or not results:
        yield results_table(result for result in results if result.spec.line is None)
    if searches:
        yield fitted(points.LINE_COLUMNS, [*points.line_rows(points.named(searches))], remedy="-o csv")
    if phases := [*points.phase_rows(results)]:
        yield fitted(points.PHASE_COLUMNS, phases, remedy="-o json")


def results_table(results: Iterable[BenchmarkResult]) -> FittedTable:
    """Return a table with one line per operation of every point."""
    return fitted(points.RESULT_COLUMNS, [*points.result_rows(points.named(results))], remedy="-o csv")


@dataclass(frozen=True, slots=True)
class LinksTable:
    """A grid of loading by serving clients; the slowest pairs if there is no room for a grid."""

    title: str
    links: Links

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        links = self.links
        yield Text(f"\n{self.title}, {links.unit}", style="bold")
        grid = self._grid()
        is_sparse = 2 * len(links.pairs) < len(links.clients) * len(links.peers)
        if is_sparse or _width(grid.layouts[0]) > options.max_width:
            slowest = sorted(links.pairs, key=links.value)[:_SLOWEST]
            yield fitted(link_columns(links), slowest, remedy="-o json")
            if left_out := len(links.pairs) - len(slowest):
                yield Text(f"{count_text(left_out, 'faster pair')} not shown: use -o json.", style="dim")
        else:
            yield grid
            if others := [links.name(peer) for peer in links.peers if peer not in links.clients]:
                yield Text(f"to: {', '.join(others)}", style="dim")
        if links.outliers:
            yield Text("* far below comparable pairs (LinkOutlier)", style="dim")

    def _grid(self) -> FittedTable:
        cells = {(pair.client, pair.peer): pair for pair in self.links.pairs}

        def column(peer: int) -> Number[int]:
            def is_outlier(client: int) -> bool:
                return (client, peer) in cells and cells[client, peer].is_outlier

            return Number(
                str(peer),
                lambda client: self.links.text(cells.get((client, peer))),
                mark=lambda client: Verdict.SUSPECT if is_outlier(client) else "",
            )

        return fitted([Column("from / to", self.links.name), *map(column, self.links.peers)], self.links.clients)


def links_tables(results: Iterable[BenchmarkResult]) -> Iterator[LinksTable]:
    for result in results:
        if (links := links_of(result)) is not None:
            yield LinksTable(f"{result.spec.point} ({result.spec.label})", links)
