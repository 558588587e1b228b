"""The distribution of latencies: the share of slower operations, on logarithmic axes."""

import math
from collections.abc import Iterator, Mapping, Sequence

from plimsoll.api.operation import Latency
from plimsoll.measure.histogram import OPEN_BIN, Histogram, HistogramError, bin_bounds
from plimsoll.report.figure import (
    MOST_FIGURES,
    MOST_SERIES,
    chunks,
    colour,
    dash,
    latency_axis,
    limited,
    microseconds,
    part_text,
    symbol,
)
from plimsoll.report.points import PlottedPoint, PlottedSweep
from plimsoll.report.side_by_side import side_by_side
from plimsoll.report.text import NONE, duration_text
from plimsoll.report.view import Cell, Chart, Json, Section, Table

_NAMES = ("50", "90", "95", "99", "99.9", "99.99")
_WIDE = 50
_STEP = 0.02
"""Difference of the decimal logarithm of either coordinate; closer points are indistinguishable in the figure."""

_WORDS = (
    "The vertical axis is the share of operations that took longer than the latency on the horizontal axis. A line "
    "that extends far to the right has a long tail. The histograms of all trials that count are merged bin by bin, "
    "exact to 0.8 %; markers are the percentiles with at least ten operations beyond them."
)


def distribution_section(sweeps: Sequence[PlottedSweep]) -> Section | None:
    """Return the latency distributions; None if no tool records any."""
    charts = [chart for sweep in sweeps for chart in _charts(sweep)]
    if not charts:
        return None
    blocks = limited(_WORDS, charts, MOST_FIGURES, "`plimsoll percentile` prints any percentile of any point")
    compared = side_by_side(sweeps)
    if compared is not None:
        blocks.append(compared)
    return Section(key="latency", title="Latency", blocks=blocks)


def ccdf(histogram: Histogram) -> list[tuple[float, float]]:
    """Return (nanoseconds, share of operations that took at least as long), thinned to distinguishable points.

    It ends at the lower bound of the last bin that is not empty: a logarithmic axis cannot show the share 0 beyond its
    upper bound. Nor can it show 0 ns, which is counted as 1 ns. The open bin has a lower bound only.
    """
    total, slower = histogram.total, histogram.total
    points: list[tuple[float, float]] = []
    for index, count in _above_zero(histogram.counts).items():
        point = (float(bin_bounds(index)[0]), slower / total)
        if not points or _is_apart(points[-1], point) or slower == count or index == OPEN_BIN:
            points.append(point)
        slower -= count
    return points


def _above_zero(counts: Mapping[int, int]) -> Mapping[int, int]:
    if 0 not in counts:
        return counts
    return {1: counts[0] + counts.get(1, 0), **{index: count for index, count in counts.items() if index > 1}}


def _is_apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return any(abs(math.log10(a / b)) >= _STEP for a, b in zip(one, other, strict=True))


def _charts(sweep: PlottedSweep) -> Iterator[Chart]:
    known = [(one, histogram) for one in sweep.measured if (histogram := _histogram(one.operation.latency))]
    parts = [*chunks(known, MOST_SERIES)]
    for number, part in enumerate(parts):
        traces = [trace for place, (one, found) in enumerate(part) for trace in _traces(place, sweep, one, found)]
        yield Chart(
            key=f"latency-{number}-{sweep.key}",
            title=f"Latency distribution: {sweep.title}{part_text(number, len(parts))}",
            description=(
                f"Share of operations of {sweep.title} that took longer than a latency, both logarithmic, "
                f"for {len(part)} points. The table below it has the percentiles."
            ),
            data=traces,
            layout={
                "xaxis": latency_axis("latency, submission to completion", only_decades=_is_wide(traces)),
                "yaxis": {
                    "title": {"text": "share of operations that took longer"},
                    "type": "log",
                    "tickvals": [10**-power for power in range(8)],
                    "ticktext": ["all", "10 %", "1 %", "0.1 %", "0.01 %", "0.001 %", "10⁻⁶", "10⁻⁷"],
                },
            },
            height=420,
            table=_table(sweep, [one for one, _ in part]),
        )


def _is_wide(traces: Sequence[Json]) -> bool:
    """Whether the range of latencies is too wide for ticks between decades."""
    values: list[float] = [value for trace in traces for value in trace["x"]]
    return max(values) > _WIDE * min(values)


def _histogram(latency: Latency) -> Histogram | None:
    """Return the histogram of a point; None without a readable one, which is a finding."""
    if latency.histogram is None:
        return None
    try:
        found = Histogram.decode(latency.histogram)
    except HistogramError:
        return None
    return found if found.total else None


def _traces(number: int, sweep: PlottedSweep, one: PlottedPoint, histogram: Histogram) -> Iterator[Json]:
    name = _name(sweep, one)
    points = ccdf(histogram)
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": one.run.label + one.result.spec.point,
        "x": [microseconds(nanoseconds) for nanoseconds, _ in points],
        "y": [share for _, share in points],
        "line": {"color": colour(number), "dash": dash(number), "width": 2, "shape": "hv"},
        "hoverinfo": "skip",
    }
    known = [(p, value) for p in _NAMES if (value := one.operation.latency.percentiles.get(p)) is not None]
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": one.run.label + one.result.spec.point,
        "showlegend": False,
        "x": [microseconds(value) for _, value in known],
        "y": [1 - float(p) / 100 for p, _ in known],
        "marker": {"color": colour(number), "size": 8, "symbol": symbol(number, one.verdict)},
        "text": [f"{name}\np{p} {duration_text(value)}" for p, value in known],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _name(sweep: PlottedSweep, one: PlottedPoint) -> str:
    return sweep.label(one) + ("" if one.is_valid else f" ({one.verdict})")


def _table(sweep: PlottedSweep, points: Sequence[PlottedPoint]) -> Table:
    numbers = (*(f"p{p}" for p in _NAMES), "max", "operations")
    return Table(
        caption=f"Percentiles of the merged histograms: {sweep.title}",
        headings=("Point", *numbers),
        numbers=numbers,
        rows=[_row(sweep, one) for one in points],
    )


def _row(sweep: PlottedSweep, one: PlottedPoint) -> list[Cell]:
    latency = one.operation.latency
    found = [Cell(text=duration_text(latency.percentiles.get(p)), sort=latency.percentiles.get(p)) for p in _NAMES]
    highest = Cell(text=duration_text(latency.max_nanoseconds), sort=latency.max_nanoseconds)
    count = Cell(text=f"{latency.count:,}" if latency.count else NONE, sort=latency.count)
    return [Cell(text=_name(sweep, one), title=one.result.spec.point), *found, highest, count]
