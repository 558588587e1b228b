"""What a page consists of: sections of blocks, in the order in which they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Json = dict[str, Any]
"""A part of a figure: what plotly reads, as JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: what is read.
        sort: by what its column is sorted; the text if None.
        mark: a verdict or a conclusion, which gets a colour and a shape; empty for other text.
        title: more words, shown when pointed at.

    """

    text: str
    sort: float | None = None
    mark: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; numbers stand on the right."""

    heading: str
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `sortable` by a click on a heading."""

    kind: ClassVar[str] = "table"

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure and its alternative in words and numbers.

    Attributes:
        key: unique in the page, letters, digits and hyphens.
        description: what it shows, for those who do not see it.
        data: plotly's traces. A colour such as `$series0` is that of the reader's theme.
        layout: plotly's layout.
        height: pixels.
        table: the numbers; None if the description says where they are.

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
    """How many of each verdict there are: (verdict, number, of what)."""

    kind: ClassVar[str] = "counts"

    counts: Sequence[tuple[str, int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason, once: its worst verdict, the points that have it, and its words at one of them."""

    reason: str
    verdict: str
    points: Sequence[str]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """All reasons, the worst first."""

    kind: ClassVar[str] = "reasons"

    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is folded away until it is wanted."""

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
class Page:
    """The whole report."""

    title: str
    subtitle: str
    sections: Sequence[Section]
