"""Latencies of different tools that did the same: one operation at a time, of the same size, at random places."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from pydantic import ValidationError

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.result import BenchmarkResult
from plimsoll.report.figure import PlottedPoint, PlottedSweep
from plimsoll.report.view import NONE, Cell, Table, count_text, duration_text
from plimsoll.tools.registry import TOOLS

_PERCENTILES = ("50", "99")
_NUMBERS = ("p50", "p99", "other p50", "other p99", "p50 ratio", "p99 ratio")


class _Work(NamedTuple):
    """What the points of different tools have in common."""

    run: str
    operation: Operation
    size: int
    clients: int

    @property
    def text(self) -> str:
        return f"{self.operation} {format_quantity(self.size)}, {count_text(self.clients, 'client')}"


def side_by_side(sweeps: Iterable[PlottedSweep]) -> Table | None:
    """Return the percentiles of each two tools that did the same, and their ratios; None if there are none."""
    found = defaultdict[_Work, list[PlottedPoint]](list)
    for sweep in sweeps:
        for one in sweep.measured:
            size = _serial_size(one.result)
            if size is not None and one.operation.latency.kind is LatencyKind.FULL:
                found[_Work(one.run.label, sweep.operation, size, one.result.spec.clients)].append(one)
    rows = [row for work in sorted(found) for row in _rows(work, found[work])]
    if not rows:
        return None
    return Table(
        caption="The same work measured by different tools: one operation at a time, at random places",
        headings=("Work", "Tool", "p50", "p99", "Other tool", "other p50", "other p99", "p50 ratio", "p99 ratio"),
        numbers=_NUMBERS,
        rows=rows,
    )


def _serial_size(result: BenchmarkResult) -> int | None:
    """Return the size of the operations; None for other work, and for tools and parameters of other versions."""
    tool = TOOLS.get(result.spec.tool)
    if tool is None:
        return None
    try:
        size: int | None = tool.parameters.model_validate(result.spec.parameters).serial_size
    except ValidationError:
        return None
    return size


def _rows(work: _Work, points: Sequence[PlottedPoint]) -> Iterator[list[Cell]]:
    for one, other in combinations(points, 2):
        if one.result.spec.tool != other.result.spec.tool:
            first, second = _percentiles(one), _percentiles(other)
            ratios = [_ratio(before, after) for before, after in zip(first, second, strict=True)]
            yield [
                Cell(text=work.text),
                *(_name(one), *map(_duration, first)),
                *(_name(other), *map(_duration, second)),
                *ratios,
            ]


def _percentiles(one: PlottedPoint) -> list[int | None]:
    return [one.operation.latency.percentiles.get(p) for p in _PERCENTILES]


def _name(one: PlottedPoint) -> Cell:
    verdict = "" if one.is_valid else f" ({one.verdict})"
    return Cell(text=f"{one.result.spec.label}{verdict}", title=one.result.spec.point)


def _duration(nanoseconds: int | None) -> Cell:
    return Cell(text=duration_text(nanoseconds), sort=nanoseconds)


def _ratio(one: int | None, other: int | None) -> Cell:
    ratio = other / one if one and other else None
    return Cell(text=NONE if ratio is None else f"{ratio:.2f}", sort=ratio)
