"""The matrix of a point on the terminal: the rates between pairs of clients."""

from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.report.links import Links, links_of
from plimsoll.report.text import count_text

_GAP = 2
_NAMED = 10


class LinksTable:
    """A grid of the clients that load by those that serve them; the slowest pairs if there is no room for a grid."""

    def __init__(self, title: str, links: Links) -> None:
        self._title = title
        self._links = links

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(f"\n{self._title}, {self._links.unit}", style="bold")
        fits = not self._is_sparse and self._columns() <= options.max_width
        yield from self._grid() if fits else self._slowest()
        if self._links.outliers:
            yield Text("* far below comparable pairs (LinkOutlier)", style="dim")

    def _columns(self) -> int:
        """Return the width of the grid."""
        names = max(len(self._links.name(client)) for client in self._links.clients)
        return names + sum(_GAP + self._width(place) for place in range(len(self._links.peers)))

    @property
    def _is_sparse(self) -> bool:
        """Whether most of the grid would be empty."""
        return 2 * len(self._links.pairs) < len(self._links.clients) * len(self._links.peers)

    def _width(self, place: int) -> int:
        texts = (self._links.text(row[place]) for row in self._links.grid)
        return max(len(str(self._links.peers[place])), *map(len, texts))

    def _grid(self) -> Iterator[Table | Text]:
        links = self._links
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        table.add_column("from / to", no_wrap=True)
        for peer in links.peers:
            table.add_column(str(peer), justify="right", no_wrap=True)
        for client, row in zip(links.clients, links.grid, strict=True):
            cells = (Text(links.text(pair), style="yellow" if pair and pair.is_outlier else "") for pair in row)
            table.add_row(Text(links.name(client)), *cells)
        yield table
        others = [links.name(peer) for peer in links.peers if peer not in links.clients]
        if others:
            yield Text(f"to: {', '.join(others)}", style="dim")

    def _slowest(self) -> Iterator[Text]:
        links = self._links
        ordered = sorted(links.pairs, key=links.value)[:_NAMED]
        for pair in ordered:
            yield Text(f"{links.sentence(pair)}{'*' if pair.is_outlier else ''}")
        if left_out := len(links.pairs) - len(ordered):
            yield Text(f"{count_text(left_out, 'faster pair')} not shown: use -o json.", style="dim")


def links_tables(results: Iterable[BenchmarkResult]) -> Iterator[LinksTable]:
    """Yield the matrix of every point that has one."""
    for result in results:
        links = links_of(result)
        if links is not None:
            yield LinksTable(f"{result.spec.point} ({result.spec.label})", links)
