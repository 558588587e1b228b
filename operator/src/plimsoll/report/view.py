"""The parts of a page: sections of blocks, in reading order."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Json = dict[str, Any]
"""A part of a figure in plotly's JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: the visible text.
        sort: the sort key; the text if None.
        mark: a verdict or a conclusion, shown with a colour and a symbol; empty for other text.
        title: the tooltip.

    """

    text: str
    sort: float | None = None
    mark: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        numbers: headings of right-aligned columns.
        sortable: whether a click on a heading sorts the table.

    """

    kind: ClassVar[str] = "table"

    caption: str
    headings: Sequence[str]
    numbers: Collection[str] = ()
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with an accessible description and a table.

    Attributes:
        key: unique in the page, letters, digits and hyphens.
        description: its content in words, for screen readers.
        data: plotly's traces. Names such as `$series0` are colours of the theme.
        layout: plotly's layout.
        height: pixels.
        table: the numbers; None if they are elsewhere in the page.

    """

    kind: ClassVar[str] = "chart"

    key: str
    title: str
    description: str
    data: Sequence[Json]
    layout: Json
    height: int = 360
    table: Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Paragraphs."""

    kind: ClassVar[str] = "text"

    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of points with each verdict: (verdict, number, unit)."""

    kind: ClassVar[str] = "counts"

    counts: Sequence[tuple[str, int, str]]


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
