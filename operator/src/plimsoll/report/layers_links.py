"""The rates of each layer of a Ceph cluster with their limits, and the matrix of links between clients."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median
from typing import TypeVar

from plimsoll.api.names import Metric, Verdict
from plimsoll.api.result import BenchmarkResult, Matrix, Pair
from plimsoll.measure.layers import TOO_HIGH, Best, LayerRow
from plimsoll.measure.rates import rate_text
from plimsoll.measure.text import count_text, number_text, percent_text
from plimsoll.report import plot
from plimsoll.report.figure import UNFINISHED, ReportedRun, results_of
from plimsoll.report.view import (
    MEBIBYTE,
    NONE,
    Block,
    Chart,
    Column,
    Number,
    Section,
    Table,
    Text,
    layer_sentences,
    limiting_text,
    mebibytes,
    metric_text,
    page_table,
    ratio_text,
)

T = TypeVar("T")

_WORDS = (
    "OSD is the sum of all OSDs, each measured alone. The limit of a layer is the rate of the layer below, for writes "
    "divided by the copies that the pool keeps, and at most what the clients' network carries, as measured or as "
    "specified, if that is known; unless one tool measured both directions, the best rate counts for both. "
    "Rates are the best ones that are not Invalid; a * marks Suspect ones. Points whose rates may be too high "
    f"({' or '.join(TOO_HIGH)}) are left out. More than 100 % means that the layer below was not fully loaded, or that "
    "a cache answered."
)

_MOST_ROWS = 512
_NAMED_OUTLIERS = 8
_BITS = 8
_UNITS = ((10**9, "Gbit/s"), (10**6, "Mbit/s"))


def layers_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the layers of the runs with at least two layers; None without such a run."""
    layered = [run for run in runs if len({row.layer for row in run.layers}) > 1]
    if not layered:
        return None
    blocks: list[Block] = [Text(paragraphs=[_WORDS])]
    for number, run in enumerate(layered):
        name = f", {run.label}" if len(runs) > 1 else ""
        copies = run.write_amplification
        layout = (
            "The pool's layout is unknown, so the OSDs set no limit."
            if copies is None
            else f"The pool writes {copies:g} bytes per byte of a client."
        )
        volumes = [(row, row.bytes_per_second) for row in run.layers]
        operations = [(row, row.iops) for row in run.layers]
        blocks += [
            Text(paragraphs=[layout, *layer_sentences(run.layers)]),
            _chart(f"layers-bytes-{number}", f"Throughput by layer{name}", "MiB per second", volumes, MEBIBYTE),
            _chart(f"layers-iops-{number}", f"IOPS by layer{name}", "operations per second", operations, 1),
            page_table("Best rates of each layer", LAYER_COLUMNS, run.layers, sortable=False),
        ]
    return Section(key="layers", title="Layers", blocks=blocks)


def _chart(key: str, title: str, axis: str, rows: Sequence[tuple[LayerRow, Best | None]], scale: float) -> Chart:
    rates = [(f"{row.layer} {row.operation}", best) for row, best in rows if best]
    limited = [(name, best.limit / scale) for name, best in rates if best.limit is not None]
    return Chart(
        key=key,
        title=title,
        description=f"{title}: {'; '.join(_rate_text(name, best, scale, axis) for name, best in rates)}.",
        data=[
            {
                "type": "bar",
                "name": "measured",
                "x": [name for name, _ in rates],
                "y": [best.value / scale for _, best in rates],
                "text": [f"{rate_text(best.value / scale)}{_star(best)}" for _, best in rates],
                "textposition": "auto",
                "marker": {"color": plot.colour(0)},
                "hovertext": [f"{name}\n{_rate_text(best.point, best, scale, axis)}" for name, best in rates],
                "hovertemplate": "%{hovertext}<extra></extra>",
            },
            plot.scatter(
                "limit",
                [name for name, _ in limited],
                [limit for _, limit in limited],
                marker={"color": plot.colour(1), "symbol": "line-ew-open", "size": 42, "line": {"width": 3}},
                hovertemplate="limit %{y:,.1f}<extra></extra>",
            ),
        ],
        x={"type": "category"},
        y=plot.linear_axis(axis),
    )


def _rate_text(name: str, best: Best, scale: float, axis: str) -> str:
    part = "" if best.efficiency is None else f", {ratio_text(best.efficiency)} of its limit"
    return f"{name} {rate_text(best.value / scale)} {axis}{part}"


def _star(best: Best) -> str:
    """Return the mark of a rate whose point is Suspect or not finished."""
    return "" if best.verdict is Verdict.VALID else " *"


def is_marked(row: LayerRow) -> bool:
    return any(best and _star(best) for best in (row.bytes_per_second, row.iops))


def _quantity_columns(
    name: str, key: str, best_of: Callable[[LayerRow], Best | None], show: Callable[[float | None], str], priority: int
) -> Iterator[Column[LayerRow]]:
    def part(read: Callable[[Best], T]) -> Callable[[LayerRow], T | None]:
        return lambda row: None if (best := best_of(row)) is None else read(best)

    def shown(read: Callable[[LayerRow, Best], str]) -> Callable[[LayerRow], str]:
        return lambda row: NONE if (best := best_of(row)) is None else read(row, best)

    column, number = Column[LayerRow], Number[LayerRow]
    value = shown(lambda _, best: f"{show(best.value)}{_star(best)}")
    limiting = shown(lambda row, best: limiting_text(row.layer, best))
    yield number(name, part(lambda best: best.value), key=key, text=value, priority=priority)
    yield number("Limit", part(lambda best: best.limit), key=f"{key}_limit", show=show, priority=priority)
    yield column("Set by", part(lambda best: best.limited_by), key=f"{key}_limited_by", text=limiting, priority=None)
    efficiency = part(lambda best: best.efficiency)
    yield number("Of limit", efficiency, key=f"{key}_efficiency", show=ratio_text, priority=priority)
    yield column("At", part(lambda best: best.point), key=f"{key}_point", priority=None)
    verdict = part(lambda best: best.verdict or UNFINISHED)
    yield column("Verdict", verdict, key=f"{key}_verdict", mark=lambda row: verdict(row) or "", priority=None)


LAYER_COLUMNS: Sequence[Column[LayerRow]] = (
    Column("Layer", lambda row: row.layer, key="layer"),
    Column("Op", lambda row: row.operation, key="operation"),
    *_quantity_columns("MiB/s", "bytes_per_second", lambda row: row.bytes_per_second, mebibytes, 0),
    *_quantity_columns("IOPS", "iops", lambda row: row.iops, partial(metric_text, Metric.IOPS), 1),
)
"""Of the layers of a cluster: bytes and operations per second, and ratios to the limit."""


@dataclass(frozen=True, kw_only=True)  # without slots, for the cached properties
class Links:
    """A matrix in one unit, as a grid of the clients that load by those that serve them."""

    matrix: Matrix
    pairs: Sequence[Pair]
    unit: str
    divisor: float

    @cached_property
    def clients(self) -> list[int]:
        return sorted(set(self.matrix.clients))

    @cached_property
    def peers(self) -> list[int]:
        """The clients that serve them, in order."""
        return sorted(set(self.matrix.peers))

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
        node = self._nodes[number]
        return f"client {number} ({node})" if node else f"client {number}"

    @cached_property
    def _nodes(self) -> Mapping[int, str]:
        return self.matrix.nodes

    def sentence(self, pair: Pair) -> str:
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
        divisor, unit = next((unit for unit in _UNITS if most >= unit[0]), _UNITS[-1])
    return Links(matrix=matrix, pairs=tuple(matrix.pairs()), unit=unit, divisor=divisor)


def links_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the matrix of every point that has one; None without any. Invalid points are left out."""
    tables: list[Table] = []
    sentences: list[str] = []
    for run, result in results_of(runs):
        links = links_of(result)
        if links is None or result.status.verdict is Verdict.INVALID:
            continue
        spec = result.spec
        title = f"{run.label}: {spec.workload} {spec.label}, {count_text(spec.clients, 'client')}"
        slowest = sorted(links.pairs, key=links.value)[:_MOST_ROWS]
        omitted = len(links.pairs) - len(slowest)
        caption = "Rates between clients, slowest first" + (f"; the {omitted} fastest are left out" if omitted else "")
        tables.append(page_table(f"{caption}: {title}", link_columns(links), slowest))
        words = f"{title}: no outliers among {count_text(len(links.pairs), 'pair')}."
        if outliers := links.outliers:
            named = [links.sentence(pair) for pair in outliers[:_NAMED_OUTLIERS]]
            if (more := len(outliers) - _NAMED_OUTLIERS) > 0:
                named.append(f"{more} more")
            words = f"{title}, {count_text(len(outliers), 'outlier')}: {'; '.join(named)}."
        sentences.append(words)
    if not sentences:
        return None
    paragraphs = [
        "Rates from each client to those that served it, means over the trials. A * marks outliers (LinkOutlier).",
        *sentences,
    ]
    if (more := len(tables) - plot.MOST_FIGURES) > 0:
        paragraphs.append(f"{count_text(more, 'more table')} omitted; `plimsoll results` shows all.")
    return Section(key="links", title="Links", blocks=[Text(paragraphs=paragraphs), *tables[: plot.MOST_FIGURES]])


def link_columns(links: Links) -> Sequence[Column[Pair]]:
    column, number = Column[Pair], Number[Pair]
    return (
        column("From", lambda pair: links.name(pair.client), sort=lambda pair: pair.client),
        column("To", lambda pair: links.name(pair.peer), sort=lambda pair: pair.peer),
        number(links.unit, links.value, text=links.text),
        number(f"lowest {links.unit}", links.least, show=number_text, priority=2),
        number("Retransmits", lambda pair: pair.retransmits, priority=1),
        column("Outlier", lambda pair: "outlier" if pair.is_outlier else "", priority=None),
    )
