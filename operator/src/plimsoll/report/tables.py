"""Tables as lists of columns: terminals, pages and CSV show the same ones."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from plimsoll.report.view import NONE, Cell, Table

R = TypeVar("R")


def value_text(value: object) -> str:
    """Return a value as it is; a dash if it is unknown."""
    return NONE if value is None else str(value)


def _nothing(row: object) -> str:  # noqa: ARG001 - what most columns have
    return ""


@dataclass(frozen=True, kw_only=True)  # without slots: with them Python 3.11 cannot create a Column[Row]
class Column(Generic[R]):
    """One column: a value of each row in base units, and how people see it. None is an unknown value."""

    heading: str = ""  # empty: neither on terminals nor in pages
    key: str = ""  # the name in CSV; empty: not there
    value: Callable[[R], Any]
    show: Callable[[Any], str] = value_text
    text: Callable[[R], str] | None = None  # in place of `show`, if more than the value is shown
    sort: Callable[[R], float | None] | None = None  # the sort key in a page; a number's own value by default
    mark: Callable[[R], str] = _nothing  # a verdict or a conclusion, which has a colour
    title: Callable[[R], str] = _nothing  # the tooltip in a page
    right: bool = False  # aligned to the right, as numbers are
    folded: bool = False  # whether the text may span several lines
    stacked: bool = False  # narrow terminals have one column for all of these, with a line for each
    priority: int | None = 0  # narrow terminals leave out the columns with the highest first; None: only in pages
    in_page: bool = True

    def cell(self, row: R) -> Cell:
        """Return what people see of a row."""
        value = self.value(row)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return Cell(
            text=self.text(row) if self.text else self.show(value),
            sort=self.sort(row) if self.sort else value if is_number else None,
            mark=self.mark(row),
            title=self.title(row),
        )


def page_table(
    caption: str,
    columns: Iterable[Column[R]],
    rows: Iterable[R],
    *,
    leave_out: Collection[str] = (),
    sortable: bool = True,
) -> Table:
    """Return a table of a page, without the columns with some headings."""
    shown = [column for column in columns if column.heading and column.in_page and column.heading not in leave_out]
    return Table(
        caption=caption,
        headings=[column.heading for column in shown],
        numbers=[column.heading for column in shown if column.right],
        rows=[[column.cell(row) for column in shown] for row in rows],
        sortable=sortable,
    )


def csv_names(columns: Iterable[Column[R]]) -> Sequence[str]:
    """Return the names of the columns in CSV."""
    return [column.key for column in columns if column.key]


def csv_rows(columns: Sequence[Column[R]], rows: Iterable[R]) -> Iterator[Mapping[str, object]]:
    """Yield the values of rows by the names of the columns in CSV."""
    for row in rows:
        yield {column.key: column.value(row) for column in columns if column.key}
