"""The rates of each layer of a Ceph cluster beside the limit below it, and the matrix of links between clients."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Matrix, Pair
from plimsoll.measure.checks.check import number_text, percent_text
from plimsoll.measure.limits import TOO_HIGH, Best, LayerRow
from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import MOST_FIGURES, colour, limited, linear_axis, verdict_text
from plimsoll.report.inputs import ReportedRun
from plimsoll.report.view import (
    MEBIBYTE,
    NONE,
    Block,
    Cell,
    Chart,
    Section,
    Table,
    Text,
    count_text,
    layer_sentences,
    limiting_text,
    ratio_text,
)

_WORDS = (
    "OSD is the sum of all OSDs, each measured alone. The limit of a layer is the rate of the layer below, for writes "
    "divided by the copies that the pool keeps, and at most what the clients' network carries, as measured or as "
    "specified, if that is known; unless one tool measured both directions, the best rate counts for both. "
    "Rates are the best ones that are not Invalid; a * marks Suspect ones. Points whose rates may be too high "
    f"({' or '.join(TOO_HIGH)}) are left out. More than 100 % means that the layer below was not fully loaded, or that "
    "a cache answered."
)

MOST_CELLS = 4096
"""Of a grid: pairs that take turns may fill only a small part of one."""

_MOST_ROWS = 512
_NAMED_OUTLIERS = 8
_BITS = 8
_UNITS = ((10**9, "Gbit/s"), (10**6, "Mbit/s"))
_ROW_PIXELS = 36
_MARGIN_PIXELS = 160


def layers_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the layers of the runs with at least two layers; None without such a run."""
    found = [run for run in runs if len({row.layer for row in run.layers}) > 1]
    if not found:
        return None
    blocks = [block for number, run in enumerate(found) for block in _blocks(number, run, several=len(runs) > 1)]
    return Section(key="layers", title="Layers", blocks=[Text(paragraphs=[_WORDS]), *blocks])


def _blocks(number: int, run: ReportedRun, *, several: bool) -> Iterator[Block]:
    name = f", {run.label}" if several else ""
    copies = run.write_amplification
    yield Text(
        paragraphs=[
            "The pool's layout is unknown, so the OSDs set no limit."
            if copies is None
            else f"The pool writes {copies:g} bytes per byte of a client.",
            *layer_sentences(run.layers),
        ]
    )
    volumes = [(row, row.bytes_per_second) for row in run.layers]
    operations = [(row, row.iops) for row in run.layers]
    yield _chart(run, f"layers-bytes-{number}", f"Throughput by layer{name}", "MiB per second", volumes, MEBIBYTE)
    yield _chart(run, f"layers-iops-{number}", f"IOPS by layer{name}", "operations per second", operations, 1)
    quantity = ("Limit", "Set by", "Of limit", "At", "Verdict")
    yield Table(
        caption="Best rates of each layer",
        headings=("Layer", "Op", "MiB/s", *quantity, "IOPS", *quantity),
        numbers=("MiB/s", "IOPS", "Limit", "Of limit"),
        rows=[
            [
                Cell(text=row.layer),
                Cell(text=row.operation),
                *_cells(run, row, row.bytes_per_second, MEBIBYTE),
                *_cells(run, row, row.iops, 1),
            ]
            for row in run.layers
        ],
    )


def _chart(
    run: ReportedRun, key: str, title: str, axis: str, rows: Sequence[tuple[LayerRow, Best | None]], scale: float
) -> Chart:
    known = [(f"{row.layer} {row.operation}", best) for row, best in rows if best]
    limited = [(name, best.limit / scale) for name, best in known if best.limit is not None]
    marks = ["" if _verdict(run, best) == Verdict.VALID else " *" for _, best in known]
    return Chart(
        key=key,
        title=title,
        description=f"{title}: {'; '.join(_words(name, best, scale, axis) for name, best in known)}.",
        data=[
            {
                "type": "bar",
                "name": "measured",
                "x": [name for name, _ in known],
                "y": [best.value / scale for _, best in known],
                "text": [
                    f"{rate_text(best.value / scale)}{mark}" for (_, best), mark in zip(known, marks, strict=True)
                ],
                "textposition": "auto",
                "marker": {"color": colour(0)},
                "hovertext": [f"{name}\n{_words(best.point, best, scale, axis)}" for name, best in known],
                "hovertemplate": "%{hovertext}<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "limit",
                "x": [name for name, _ in limited],
                "y": [limit for _, limit in limited],
                "marker": {"color": colour(1), "symbol": "line-ew-open", "size": 42, "line": {"width": 3}},
                "hovertemplate": "limit %{y:,.1f}<extra></extra>",
            },
        ],
        layout={"xaxis": {"type": "category"}, "yaxis": linear_axis(axis), "showlegend": True},
    )


def _words(name: str, best: Best, scale: float, axis: str) -> str:
    part = "" if best.efficiency is None else f", {ratio_text(best.efficiency)} of its limit"
    return f"{name} {rate_text(best.value / scale)} {axis}{part}"


def _verdict(run: ReportedRun, best: Best) -> str:
    return next((verdict_text(one) for one in run.results if one.spec.point == best.point), "")


def _cells(run: ReportedRun, row: LayerRow, best: Best | None, scale: float) -> list[Cell]:
    """Return rate, limit, what sets it, ratio, point and verdict."""
    if best is None:
        return [Cell(text=NONE)] * 6
    verdict = _verdict(run, best)
    return [
        Cell(text=rate_text(best.value / scale), sort=best.value),
        Cell(text=NONE if best.limit is None else rate_text(best.limit / scale), sort=best.limit),
        Cell(text=limiting_text(row.layer, best)),
        Cell(text=ratio_text(best.efficiency), sort=best.efficiency),
        Cell(text=best.point),
        Cell(text=verdict, mark=verdict),
    ]


@dataclass(frozen=True, kw_only=True)  # without slots, for the cached properties
class Links:
    """A matrix in one unit, as a grid of the clients that load by those that serve them."""

    matrix: Matrix
    pairs: Sequence[Pair]
    unit: str
    divisor: float

    @cached_property
    def clients(self) -> list[int]:
        """The clients that load, in order."""
        return sorted(set(self.matrix.clients))

    @cached_property
    def peers(self) -> list[int]:
        """The clients that serve them, in order."""
        return sorted(set(self.matrix.peers))

    @property
    def fits_grid(self) -> bool:
        """Whether a grid of all clients by all that serve them is not too large for a figure."""
        return len(self.clients) * len(self.peers) <= MOST_CELLS

    @cached_property
    def usual(self) -> float:
        """The median of the cells between nodes; of all cells if there are none."""
        nodes = self._nodes
        linked = [pair for pair in self.pairs if not nodes[pair.client] or nodes[pair.client] != nodes[pair.peer]]
        return median(self.value(pair) for pair in linked or self.pairs)

    @property
    def outliers(self) -> list[Pair]:
        """The outliers, slowest first."""
        return sorted((pair for pair in self.pairs if pair.is_outlier), key=self.value)

    def value(self, pair: Pair) -> float:
        """Return the mean of a cell in the unit."""
        return (pair.bytes_per_second * _BITS if self.matrix.counts_bytes else pair.iops or 0.0) / self.divisor

    def least(self, pair: Pair) -> float | None:
        """Return the lowest rate of a cell in the unit; None if unknown."""
        if not self.matrix.counts_bytes:
            return pair.least_iops
        volume = pair.least_bytes_per_second
        return None if volume is None else volume * _BITS / self.divisor

    def text(self, pair: Pair | None) -> str:
        """Return the mean of a cell without its unit, with a * for an outlier; `-` without one."""
        return NONE if pair is None else f"{number_text(self.value(pair))}{'*' if pair.is_outlier else ''}"

    def name(self, number: int) -> str:
        """Return a client with its node."""
        node = self._nodes[number]
        return f"client {number} ({node})" if node else f"client {number}"

    @cached_property
    def _nodes(self) -> Mapping[int, str]:
        return self.matrix.nodes

    @cached_property
    def grid(self) -> list[list[Pair | None]]:
        """A row for each client that loads, with a cell for each one that serves."""
        cells = {(pair.client, pair.peer): pair for pair in self.pairs}
        return [[cells.get((client, peer)) for peer in self.peers] for client in self.clients]

    def sentence(self, pair: Pair) -> str:
        """Return a cell in words."""
        rate = f"{number_text(self.value(pair))} {self.unit}"
        part = percent_text(100 * self.value(pair) / self.usual) if self.usual else NONE
        median_text = f"{number_text(self.usual)} {self.unit}"
        return f"{self.name(pair.client)} to {self.name(pair.peer)}: {rate}, {part} of the median {median_text}"


def links_of(result: BenchmarkResult) -> Links | None:
    """Return the matrix of a point; None without one."""
    summary = result.status.summary
    if summary is None or summary.matrix is None:
        return None
    matrix = summary.matrix
    divisor, unit = 1.0, "operations/s"
    if matrix.counts_bytes:
        most = max(matrix.bytes_per_second, default=0) * _BITS
        divisor, unit = next((one for one in _UNITS if most >= one[0]), _UNITS[-1])
    return Links(matrix=matrix, pairs=tuple(matrix.pairs()), unit=unit, divisor=divisor)


def links_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the matrix of every point that has one; None without any. Invalid points are left out."""
    shown = [
        (_title(run, result), links)
        for run in runs
        for result in run.results
        if result.status.verdict is not Verdict.INVALID and (links := links_of(result))
    ]
    if not shown:
        return None
    words = "Rates from each client to those that served it, means over the trials. A * marks outliers (LinkOutlier)."
    charts = [_map(title, links, number) for number, (title, links) in enumerate(shown) if links.fits_grid]
    tables = [_links_table(title, links) for title, links in shown if not links.fits_grid]
    sentences = [_outliers_text(title, links) for title, links in shown]
    introduction, *figures = limited(words, charts, MOST_FIGURES, "`plimsoll results` shows all")
    blocks: list[Block] = [introduction, Text(paragraphs=sentences), *figures, *tables[:MOST_FIGURES]]
    return Section(key="links", title="Links", blocks=blocks)


def _title(run: ReportedRun, result: BenchmarkResult) -> str:
    return f"{run.label}: {result.spec.workload} {result.spec.label}, {count_text(result.spec.clients, 'client')}"


def _outliers_text(title: str, links: Links) -> str:
    """Return the outliers of a point in words."""
    if not links.outliers:
        return f"{title}: no outliers among {count_text(len(links.pairs), 'pair')}."
    sentences = [links.sentence(pair) for pair in links.outliers[:_NAMED_OUTLIERS]]
    more = len(links.outliers) - len(sentences)
    sentences += [f"{more} more"] if more else []
    return f"{title}, {count_text(len(links.outliers), 'outlier')}: {'; '.join(sentences)}."


def _map(title: str, links: Links, number: int) -> Chart:
    grid = links.grid
    return Chart(
        key=f"links-{number}",
        title=f"Rates between clients in {links.unit}: {title}",
        description=(
            f"Heat map of the rates of {count_text(len(links.clients), 'client')} to {len(links.peers)} that serve "
            f"them, median {number_text(links.usual)} {links.unit}, {count_text(len(links.outliers), 'outlier')}. "
            "The table of numbers has each cell."
        ),
        data=[
            {
                "type": "heatmap",
                "x": [links.name(peer) for peer in links.peers],
                "y": [links.name(client) for client in links.clients],
                "z": [[None if pair is None else links.value(pair) for pair in row] for row in grid],
                "text": [["" if pair is None else links.text(pair) for pair in row] for row in grid],
                "customdata": [["no pair" if pair is None else links.sentence(pair) for pair in row] for row in grid],
                "texttemplate": "%{text}",
                "textfont": {"size": 12},
                "hovertemplate": "%{customdata}<extra></extra>",
                "colorscale": "Cividis",
                "zmin": 0,
                "colorbar": {"title": {"text": links.unit}, "thickness": 12},
                "xgap": 2,
                "ygap": 2,
            }
        ],
        layout={
            "xaxis": {"title": {"text": "served by"}, "type": "category", "automargin": True},
            "yaxis": {"title": {"text": "load from"}, "type": "category", "automargin": True, "autorange": "reversed"},
        },
        height=_MARGIN_PIXELS + _ROW_PIXELS * len(links.clients),
        table=_links_table(title, links),
    )


def _links_table(title: str, links: Links) -> Table:
    """Return the cells, slowest first."""
    rate, least = f"{links.unit}", f"lowest {links.unit}"
    ordered = sorted(links.pairs, key=links.value)[:_MOST_ROWS]
    left_out = len(links.pairs) - len(ordered)
    more = f"; the {left_out} fastest are left out" if left_out else ""
    return Table(
        caption=f"Rates between clients, slowest first{more}: {title}",
        headings=("From", "To", rate, least, "Retransmits", "Outlier"),
        numbers=(rate, least, "Retransmits"),
        rows=[_row(pair, links) for pair in ordered],
        sortable=True,
    )


def _row(pair: Pair, links: Links) -> list[Cell]:
    again, least = pair.retransmits, links.least(pair)
    return [
        Cell(text=links.name(pair.client), sort=pair.client),
        Cell(text=links.name(pair.peer), sort=pair.peer),
        Cell(text=number_text(links.value(pair)), sort=links.value(pair)),
        Cell(text=NONE if least is None else number_text(least), sort=least),
        Cell(text=NONE if again is None else str(again), sort=again),
        Cell(text="outlier" if pair.is_outlier else ""),
    ]
