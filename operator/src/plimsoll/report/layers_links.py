"""The rates of each layer of a Ceph cluster with their limits, and the matrix of links between clients."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from plimsoll.api.names import Metric, Verdict
from plimsoll.api.result import BenchmarkResult, Pair
from plimsoll.measure.layers import Best, LayerRow
from plimsoll.measure.text import count_text, number_text
from plimsoll.report import plot, view
from plimsoll.report.figure import UNFINISHED, ReportedRun, results_of

T = TypeVar("T")

_MOST_ROWS = 512
_BITS = 8
_UNITS = ((10**9, "Gbit/s"), (10**6, "Mbit/s"))


def layers_section(runs: Sequence[ReportedRun]) -> view.Section | None:
    layered = [run for run in runs if len({row.layer for row in run.layers}) > 1]
    if not layered:
        return None
    blocks: list[view.Block] = []
    for run in layered:
        caption = "Best rates of each layer" + (f", {run.label}" if len(runs) > 1 else "")
        blocks += [
            view.Text(paragraphs=[*view.layer_sentences(run.layers), *run.layer_notes]),
            view.page_table(caption, LAYER_COLUMNS, run.layers, sortable=False),
        ]
    return view.Section(key="layers", title="Layers", blocks=blocks)


def _star(best: Best) -> str:
    return "" if best.verdict is Verdict.VALID else " *"


def is_marked(row: LayerRow) -> bool:
    return any(best and _star(best) for best in (row.bytes_per_second, row.iops))


def _quantity_columns(
    name: str, key: str, best_of: Callable[[LayerRow], Best | None], show: Callable[[float | None], str], priority: int
) -> Iterator[view.Column[LayerRow]]:
    def part(read: Callable[[Best], T]) -> Callable[[LayerRow], T | None]:
        return lambda row: None if (best := best_of(row)) is None else read(best)

    def shown(read: Callable[[LayerRow, Best], str]) -> Callable[[LayerRow], str]:
        return lambda row: view.NONE if (best := best_of(row)) is None else read(row, best)

    column, number = view.Column[LayerRow], view.Number[LayerRow]
    value = shown(lambda _, best: f"{show(best.value)}{_star(best)}")
    limiting = shown(lambda row, best: view.limiting_text(row.layer, best))
    yield number(name, part(lambda best: best.value), key=key, text=value, priority=priority)
    yield number("Limit", part(lambda best: best.limit), key=f"{key}_limit", show=show, priority=priority)
    yield column("Set by", part(lambda best: best.limited_by), key=f"{key}_limited_by", text=limiting, priority=None)
    efficiency = part(lambda best: best.efficiency)
    yield number("Of limit", efficiency, key=f"{key}_efficiency", show=view.ratio_text, priority=priority)
    yield column("At", part(lambda best: best.point), key=f"{key}_point", priority=None)
    verdict = part(lambda best: best.verdict or UNFINISHED)
    yield column("Verdict", verdict, key=f"{key}_verdict", mark=lambda row: verdict(row) or "", priority=None)


LAYER_COLUMNS: Sequence[view.Column[LayerRow]] = (
    view.Column("Layer", lambda row: row.layer, key="layer"),
    view.Column("Op", lambda row: row.operation, key="operation"),
    *_quantity_columns("MiB/s", "bytes_per_second", lambda row: row.bytes_per_second, view.mebibytes, 0),
    *_quantity_columns("IOPS", "iops", lambda row: row.iops, partial(view.metric_text, Metric.IOPS), 1),
)
"""Of the layers of a cluster: bytes and operations per second, and ratios to the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The pairs of a matrix, slowest first, in one unit."""

    pairs: Sequence[Pair]
    nodes: Mapping[int, str]
    counts_bytes: bool
    unit: str
    divisor: float

    @property
    def outliers(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.is_outlier]

    def value(self, pair: Pair) -> float:
        return (pair.bytes_per_second * _BITS if self.counts_bytes else pair.iops or 0.0) / self.divisor

    def least(self, pair: Pair) -> float | None:
        """Return the lowest rate of a cell in the unit; None if unknown."""
        if not self.counts_bytes:
            return pair.least_iops
        volume = pair.least_bytes_per_second
        return None if volume is None else volume * _BITS / self.divisor

    def text(self, pair: Pair) -> str:
        """Return the mean of a cell without its unit, with a * for an outlier."""
        return f"{number_text(self.value(pair))}{'*' if pair.is_outlier else ''}"

    def name(self, number: int) -> str:
        node = self.nodes[number]
        return f"client {number} ({node})" if node else f"client {number}"


def links_of(result: BenchmarkResult) -> Links | None:
    summary = result.status.summary
    if summary is None or summary.matrix is None:
        return None
    matrix = summary.matrix
    divisor, unit = 1.0, "operations/s"
    if matrix.counts_bytes:
        most = max(matrix.bytes_per_second, default=0) * _BITS
        divisor, unit = next((unit for unit in _UNITS if most >= unit[0]), _UNITS[-1])
    pairs = sorted(matrix.pairs(), key=lambda pair: pair.bytes_per_second if matrix.counts_bytes else pair.iops or 0.0)
    return Links(pairs=pairs, nodes=matrix.nodes, counts_bytes=matrix.counts_bytes, unit=unit, divisor=divisor)


def links_section(runs: Sequence[ReportedRun]) -> view.Section | None:
    """Return the matrix of every point that has one; None without any. Invalid points are left out."""
    tables: list[view.Table] = []
    sentences: list[str] = []
    for run, result in results_of(runs):
        links, spec = links_of(result), result.spec
        if links is None or result.status.verdict is Verdict.INVALID:
            continue
        title = f"{run.label}: {spec.workload} {spec.label}, {count_text(spec.clients, 'client')}"
        omitted = len(links.pairs) - _MOST_ROWS
        caption = "Rates between clients, slowest first" + (
            f"; the {omitted} fastest are left out" if omitted > 0 else ""
        )
        tables.append(view.page_table(f"{caption}: {title}", link_columns(links), links.pairs[:_MOST_ROWS]))
        outliers = count_text(len(links.outliers), "outlier")
        sentences.append(f"{title}: {outliers} among {count_text(len(links.pairs), 'pair')}.")
    if not sentences:
        return None
    paragraphs = [
        "Rates from each client to those that served it, means over the trials. A * marks outliers (LinkOutlier).",
        *sentences,
    ]
    if (more := len(tables) - plot.MOST_FIGURES) > 0:
        paragraphs.append(f"{count_text(more, 'more table')} omitted; `plimsoll results` shows all.")
    return view.Section(
        key="links", title="Links", blocks=[view.Text(paragraphs=paragraphs), *tables[: plot.MOST_FIGURES]]
    )


def link_columns(links: Links) -> Sequence[view.Column[Pair]]:
    column, number = view.Column[Pair], view.Number[Pair]
    return (
        column("From", lambda pair: links.name(pair.client), sort=lambda pair: pair.client),
        column("To", lambda pair: links.name(pair.peer), sort=lambda pair: pair.peer),
        number(links.unit, links.value, text=links.text),
        number(f"lowest {links.unit}", links.least, show=number_text, priority=2),
        number("Retransmits", lambda pair: pair.retransmits, priority=1),
        column("Outlier", lambda pair: "outlier" if pair.is_outlier else "", priority=None),
    )
