"""The parts of a page, columns that terminals, pages and CSV share, and how numbers are written in them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from plimsoll.api.names import Layer, Metric, format_duration
from plimsoll.measure.layers import Best, LayerRow
from plimsoll.measure.rates import rate_text

Json = dict[str, Any]  # a part of a figure in plotly's JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str  # the visible text
    sort: float | None = None  # the sort key; the text if None
    mark: str = ""  # a verdict or a conclusion, shown with a colour and a symbol; empty for other text
    title: str = ""  # the tooltip


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table."""

    kind: ClassVar[str] = "table"
    caption: str
    headings: Sequence[str]
    numbers: Collection[str] = ()  # headings of right-aligned columns
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False  # whether a click on a heading sorts the table

    def limited(self, most: int) -> "Iterator[Table | Text]":
        """Yield the table with its first rows, and a sentence about omitted ones."""
        yield replace(self, rows=self.rows[:most])
        if len(self.rows) > most:
            omitted = len(self.rows) - most
            yield Text(paragraphs=[f"{omitted} more are omitted; `plimsoll results -o json` has them."])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with an accessible description and a table."""

    kind: ClassVar[str] = "chart"
    key: str  # unique in the page, letters, digits and hyphens
    title: str
    description: str  # its content in words, for screen readers
    data: Sequence[Json]  # plotly's traces. Names such as `$series0` are colours of the theme.
    x: Json  # plotly's axes
    y: Json
    legend: bool = True
    more: Json = field(default_factory=dict)  # of plotly's layout, such as shapes
    height: int = 360  # pixels
    table: Table | None = None  # the numbers; None if they are elsewhere in the page

    @property
    def layout(self) -> Json:
        return {"xaxis": self.x, "yaxis": self.y, "showlegend": self.legend, **self.more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Paragraphs."""

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of points with each verdict."""

    kind: ClassVar[str] = "counts"
    counts: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReason:
    """One reason with its worst verdict, its points, and its message at one of them."""

    reason: str
    verdict: str
    points: Sequence[str]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """All reasons, worst first."""

    kind: ClassVar[str] = "reasons"
    reasons: Sequence[VerdictReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """A collapsed group of blocks."""

    kind: ClassVar[str] = "details"
    title: str
    blocks: "Sequence[Block]"


Block = Table | Chart | Text | Counts | Reasons | Details


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page; `key` is its anchor."""

    key: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """The whole report."""

    title: str
    subtitle: str
    sections: Sequence[Section]


NONE = "-"

R = TypeVar("R")


@dataclass(frozen=True)  # without slots: with them Python 3.11 cannot create a Column[Row]
class Column(Generic[R]):
    """One column: a value of each row in base units, and how people see it. None is an unknown value."""

    heading: str  # empty: neither on terminals nor in pages
    value: Callable[[R], Any]
    _: KW_ONLY
    key: str = ""  # the name in CSV; empty: not there
    show: Callable[[Any], str] = str  # of a known value
    text: Callable[[R], str] | None = None  # in place of `show`, if more than the value is shown
    sort: Callable[[R], float | None] | None = None  # the sort key in a page; a number's own value by default
    mark: Callable[[R], str] = lambda _: ""  # a verdict or a conclusion, which has a colour
    title: Callable[[R], str] = lambda _: ""  # the tooltip in a page
    right: bool = False  # aligned to the right, as numbers are
    folded: bool = False  # whether the text may span several lines
    stacked: bool = False  # narrow terminals have one column for all of these, with a line for each
    priority: int | None = 0  # narrow terminals leave out the columns with the highest first; None: only in pages
    in_page: bool = True

    def cell(self, row: R) -> Cell:
        value = self.value(row)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return Cell(
            text=self.text(row) if self.text else NONE if value is None else self.show(value),
            sort=self.sort(row) if self.sort else value if is_number else None,
            mark=self.mark(row),
            title=self.title(row),
        )


@dataclass(frozen=True)
class Number(Column[R]):
    """A column of numbers, aligned to the right."""

    right: bool = True


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


def csv_rows(columns: Sequence[Column[R]], rows: Iterable[R]) -> Iterator[Mapping[str, object]]:
    """Yield the values of rows by the names of the columns in CSV."""
    for row in rows:
        yield {column.key: column.value(row) for column in columns if column.key}


MEBIBYTE = 2**20
_LIMITS = {Layer.NETWORK: "the clients' network", Layer.DEVICE: "the devices", Layer.OSD: "the OSDs"}


def duration_text(nanoseconds: float | None) -> str:
    return NONE if nanoseconds is None else format_duration(nanoseconds)


def mebibytes(bytes_per_second: float | None) -> str:
    return NONE if bytes_per_second is None else f"{bytes_per_second / MEBIBYTE:,.1f}"


def bytes_rate_text(bytes_per_second: float | None) -> str:
    return NONE if bytes_per_second is None else f"{mebibytes(bytes_per_second)} MiB/s"


def metric_text(metric: Metric, value: float | None) -> str:
    if metric is Metric.BYTES:
        return bytes_rate_text(value)
    if metric in (Metric.IOPS, Metric.LINE):
        return NONE if value is None else rate_text(value)
    return duration_text(value)


def layer_sentences(rows: Iterable[LayerRow]) -> Iterator[str]:
    """Yield what each layer reaches, in bytes, and what limits it."""
    for row in rows:
        best = row.bytes_per_second
        if best is not None and best.limited_by is not None:
            part = ratio_text(best.efficiency)
            yield f"{row.layer} {row.operation}s reach {part} of the limit set by {limiting_text(row.layer, best)}."


def limiting_text(layer: Layer, best: Best) -> str:
    """Return what limits a layer; a dash without a limit."""
    if best.limited_by is None:
        return NONE
    is_stated = best.limited_by is layer
    return "clients.networkBytesPerSecond" if is_stated else _LIMITS.get(best.limited_by, best.limited_by.value)


def ratio_text(ratio: float | None, decimals: int = 0) -> str:
    return NONE if ratio is None else f"{100 * ratio:.{decimals}f} %"
