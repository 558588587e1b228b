"""Response curves, rate and latency against depth or clients, and the distribution of latencies."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.hypothesis import CLIENTS
from plimsoll.api.operation import Latency
from plimsoll.measure.histogram import OPEN_BIN, Histogram, HistogramError, bin_bounds
from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import (
    IN_RESULTS,
    MICROSECOND,
    MOST_FIGURES,
    MOST_SERIES,
    PlottedPoint,
    PlottedSweep,
    axis_number,
    axis_text,
    axis_value,
    chunks,
    colour,
    dash,
    error_bars,
    latency_axis,
    limited,
    linear_axis,
    microseconds,
    numbers_axis,
    part_text,
    symbol,
)
from plimsoll.report.view import MEBIBYTE, NONE, Cell, Chart, Json, Section, Table, bytes_rate_text, duration_text
from plimsoll.tools.registry import DEPTH_AXES

_P99 = "99"
_NAMES = ("50", "90", "95", "99", "99.9", "99.99")
_WIDE = 50
_STEP = 0.02
"""Difference of the decimal logarithm of either coordinate; closer points are indistinguishable in the figure."""

_DISTRIBUTION_WORDS = (
    "The vertical axis is the share of operations that took longer than the latency on the horizontal axis. A line "
    "that extends far to the right has a long tail. The histograms of all trials that count are merged bin by bin, "
    "exact to 0.8 %; markers are the percentiles with at least ten operations beyond them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """A quantity on the vertical axis."""

    key: str  # part of the anchor
    title: str  # start of the figure's title
    axis: Json  # the axis
    value: Callable[[PlottedPoint], float | None]  # value of a point in the unit of the axis; None if unknown
    errors: Callable[[Sequence[PlottedPoint]], Json]  # the error bars of a series


_WORDS = (
    "Each marker is the mean over the trials that count, with its 95 % confidence interval. "
    "Hollow markers with a dot are Suspect or unfinished; Invalid points are not shown."
)


_IOPS = _Quantity(
    key="iops",
    title="IOPS",
    axis=linear_axis("operations per second"),
    value=lambda point: point.operation.iops.mean,
    errors=lambda points: error_bars([point.operation.iops for point in points]),
)
_LATENCY = _Quantity(
    key="p99",
    title="p99 latency",
    axis=latency_axis("99th percentile of latency"),
    value=lambda point: microseconds(p99.mean) if (p99 := point.operation.percentiles.get(_P99)) else None,
    errors=lambda points: error_bars([point.operation.percentiles.get(_P99) for point in points], MICROSECOND),
)
_BYTES = _Quantity(
    key="bytes",
    title="Throughput",
    axis=linear_axis("MiB per second, all clients"),
    value=lambda point: point.operation.bytes_per_second.mean / MEBIBYTE,
    errors=lambda points: error_bars([point.operation.bytes_per_second for point in points], MEBIBYTE),
)
_AGAINST = (
    (DEPTH_AXES, "depth", "depth: operations in flight", (_IOPS, _LATENCY)),
    ((CLIENTS,), "clients", "clients", (_BYTES, _LATENCY)),
)


def curves_section(sweeps: Sequence[PlottedSweep]) -> Section | None:
    """Return the response curves; None without a sweep over depth or clients."""
    charts = [chart for sweep in sweeps for chart in _curves(sweep)]
    if not charts:
        return None
    blocks = limited(_WORDS, charts, 2 * MOST_FIGURES, IN_RESULTS)
    return Section(key="curves", title="Response curves", blocks=blocks)


def _curves(sweep: PlottedSweep) -> Iterator[Chart]:
    for names, key, title, quantities in _AGAINST:
        axis = sweep.axis_among(names)
        if axis is None:
            continue
        series = [*_series(sweep, axis)]
        parts = [*chunks(series, MOST_SERIES)]
        for number, part in enumerate(parts):
            for quantity in quantities:
                yield from _chart(sweep, axis, quantity, part, f"{key}-{number}", part_text(number, len(parts)), title)


def _series(sweep: PlottedSweep, axis: str) -> Iterator[tuple[str, Sequence[PlottedPoint]]]:
    """Yield the lines: points that differ in this axis only, at least two."""
    others = sweep.without(axis)
    by_label: dict[str, list[PlottedPoint]] = {}
    for point in sweep.measured:
        if axis_number(point.result, axis):
            by_label.setdefault(sweep.label(point, others), []).append(point)
    for label, points in by_label.items():
        points.sort(key=lambda point: axis_number(point.result, axis) or 0)
        if len(points) > 1:
            # Without other axes the label is empty, so the series has the name of its workload.
            yield (label if others or sweep.runs > 1 else sweep.workload), points


def _chart(
    sweep: PlottedSweep,
    axis: str,
    quantity: _Quantity,
    series: Sequence[tuple[str, Sequence[PlottedPoint]]],
    place: str,
    part: str,
    words: str,
) -> Iterator[Chart]:
    drawn = [(label, [point for point in points if quantity.value(point) is not None]) for label, points in series]
    traces = [_trace(number, label, points, axis, quantity) for number, (label, points) in enumerate(drawn) if points]
    if not traces:
        return
    results = [point.result for _, points in drawn for point in points]
    ticks = sorted({axis_number(result, axis) or 0.0: str(axis_value(result, axis)) for result in results}.items())
    name = "clients" if axis == CLIENTS else "depth"
    yield Chart(
        key=f"{quantity.key}-{place}-{sweep.key}",
        title=f"{quantity.title} against {name}: {sweep.title}{part}",
        description=(
            f"{quantity.title} of {sweep.title} for {', '.join(text for _, text in ticks)} {words}, "
            f"{len(traces)} series: {'; '.join(str(trace['name']) for trace in traces)}. "
            "The table of results has the numbers."
        ),
        data=traces,
        layout={
            "xaxis": numbers_axis(words, [value for value, _ in ticks], [text for _, text in ticks]),
            "yaxis": quantity.axis,
            "showlegend": len(traces) > 1,
        },
    )


def _trace(number: int, label: str, points: Sequence[PlottedPoint], axis: str, quantity: _Quantity) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": [axis_number(point.result, axis) for point in points],
        "y": [quantity.value(point) for point in points],
        "error_y": quantity.errors(points),
        "line": {"color": colour(number), "dash": dash(number), "width": 2},
        "marker": {"color": colour(number), "size": 9, "symbol": [symbol(number, point.verdict) for point in points]},
        "text": [_hover_text(point, axis) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _hover_text(point: PlottedPoint, axis: str) -> str:
    operation = point.operation
    p99 = operation.percentiles.get(_P99)
    iops = rate_text(operation.iops.mean, operation.iops.half_width)
    return "\n".join(
        (
            f"{point.result.spec.point}: {axis_text(axis, axis_value(point.result, axis))}",
            f"{iops} IOPS, {bytes_rate_text(operation.bytes_per_second.mean)}",
            f"p99 {duration_text(p99.mean if p99 else None)}",
            point.verdict,
        )
    )


def distribution_section(sweeps: Sequence[PlottedSweep]) -> Section | None:
    """Return the latency distributions; None if no tool records any."""
    charts = [chart for sweep in sweeps for chart in _charts(sweep)]
    if not charts:
        return None
    remedy = "`plimsoll percentile` prints any percentile of any point"
    return Section(key="latency", title="Latency", blocks=limited(_DISTRIBUTION_WORDS, charts, MOST_FIGURES, remedy))


def ccdf(histogram: Histogram) -> list[tuple[float, float]]:
    """Return (nanoseconds, share of operations that took at least as long), thinned to distinguishable points.

    It ends at the lower bound of the last bin that is not empty: a logarithmic axis cannot show the share 0 beyond its
    upper bound. Nor can it show 0 ns, which is counted as 1 ns. The open bin has a lower bound only.
    """
    total, slower = histogram.total, histogram.total
    points: list[tuple[float, float]] = []
    counts = histogram.counts
    if 0 in counts:
        counts = {1: counts[0] + counts.get(1, 0), **{index: count for index, count in counts.items() if index > 1}}
    for index, count in counts.items():
        point = (float(bin_bounds(index)[0]), slower / total)
        is_apart = not points or any(abs(math.log10(a / b)) >= _STEP for a, b in zip(points[-1], point, strict=True))
        if is_apart or slower == count or index == OPEN_BIN:
            points.append(point)
        slower -= count
    return points


def _charts(sweep: PlottedSweep) -> Iterator[Chart]:
    distributions = [
        (point, histogram) for point in sweep.measured if (histogram := _histogram(point.operation.latency))
    ]
    parts = [*chunks(distributions, MOST_SERIES)]
    for number, part in enumerate(parts):
        traces = [
            trace for place, (point, histogram) in enumerate(part) for trace in _traces(place, sweep, point, histogram)
        ]
        latencies: list[float] = [value for trace in traces for value in trace["x"]]
        # Too wide a range for ticks between decades.
        is_wide = max(latencies) > _WIDE * min(latencies)
        numbers = (*(f"p{p}" for p in _NAMES), "max", "operations")
        yield Chart(
            key=f"latency-{number}-{sweep.key}",
            title=f"Latency distribution: {sweep.title}{part_text(number, len(parts))}",
            description=(
                f"Share of operations of {sweep.title} that took longer than a latency, both logarithmic, "
                f"for {len(part)} points. The table below it has the percentiles."
            ),
            data=traces,
            layout={
                "xaxis": latency_axis("latency, submission to completion", only_decades=is_wide),
                "yaxis": {
                    "title": {"text": "share of operations that took longer"},
                    "type": "log",
                    "tickvals": [10**-power for power in range(8)],
                    "ticktext": ["all", "10 %", "1 %", "0.1 %", "0.01 %", "0.001 %", "10⁻⁶", "10⁻⁷"],
                },
            },
            height=420,
            table=Table(
                caption=f"Percentiles of the merged histograms: {sweep.title}",
                headings=("Point", *numbers),
                numbers=numbers,
                rows=[_row(sweep, point) for point, _ in part],
            ),
        )


def _histogram(latency: Latency) -> Histogram | None:
    """Return the histogram of a point; None without a readable one, which is a finding."""
    if latency.histogram is None:
        return None
    try:
        histogram = Histogram.decode(latency.histogram)
    except HistogramError:
        return None
    return histogram if histogram.total else None


def _traces(number: int, sweep: PlottedSweep, point: PlottedPoint, histogram: Histogram) -> Iterator[Json]:
    name = _name(sweep, point)
    points = ccdf(histogram)
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": point.run.label + point.result.spec.point,
        "x": [microseconds(nanoseconds) for nanoseconds, _ in points],
        "y": [share for _, share in points],
        "line": {"color": colour(number), "dash": dash(number), "width": 2, "shape": "hv"},
        "hoverinfo": "skip",
    }
    percentiles = [(p, value) for p in _NAMES if (value := point.operation.latency.percentiles.get(p)) is not None]
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": point.run.label + point.result.spec.point,
        "showlegend": False,
        "x": [microseconds(value) for _, value in percentiles],
        "y": [1 - float(p) / 100 for p, _ in percentiles],
        "marker": {"color": colour(number), "size": 8, "symbol": symbol(number, point.verdict)},
        "text": [f"{name}\np{p} {duration_text(value)}" for p, value in percentiles],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _name(sweep: PlottedSweep, point: PlottedPoint) -> str:
    return sweep.label(point) + ("" if point.is_valid else f" ({point.verdict})")


def _row(sweep: PlottedSweep, point: PlottedPoint) -> list[Cell]:
    latency = point.operation.latency
    percentiles = [
        Cell(text=duration_text(latency.percentiles.get(p)), sort=latency.percentiles.get(p)) for p in _NAMES
    ]
    highest = Cell(text=duration_text(latency.max_nanoseconds), sort=latency.max_nanoseconds)
    count = Cell(text=f"{latency.count:,}" if latency.count else NONE, sort=latency.count)
    return [Cell(text=_name(sweep, point), title=point.result.spec.point), *percentiles, highest, count]
