"""Response curves, rate and latency against depth or clients, and the distribution of latencies."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import product

from plimsoll.api.hypothesis import CLIENTS
from plimsoll.api.names import Metric
from plimsoll.api.operation import Statistic
from plimsoll.measure.histogram import OPEN_BIN, Histogram, HistogramError, bin_bounds
from plimsoll.measure.rates import grouped
from plimsoll.report import plot, view
from plimsoll.report.figure import (
    PlottedSweep,
    PointRow,
    axis_number,
    axis_text,
    axis_value,
    statistic_of,
    verdict_text,
)
from plimsoll.tools.registry import DEPTH_AXES

_NAMES = ("50", "90", "95", "99", "99.9", "99.99")
_WIDE = 50
_SHARES = ("all", "10 %", "1 %", "0.1 %", "0.01 %", "0.001 %", "10⁻⁶", "10⁻⁷")
_STEP = 0.02
"""Difference of the decimal logarithm of either coordinate; closer points are indistinguishable in the figure."""

_DISTRIBUTION_WORDS = (
    "The vertical axis is the share of operations that took longer than the latency on the horizontal axis. A line "
    "that extends far to the right has a long tail. The histograms of all trials that count are merged bin by bin, "
    "exact to 0.8 %; markers are the percentiles with at least ten operations beyond them."
)


_WORDS = (
    "Each marker is the mean over the trials that count, with its 95 % confidence interval. "
    "Hollow markers with a dot are Suspect or unfinished; Invalid points are not shown."
)


_AGAINST = (
    (DEPTH_AXES, "depth", "depth: operations in flight", (Metric.IOPS, Metric.P99)),
    ((CLIENTS,), "clients", "clients", (Metric.BYTES, Metric.P99)),
)


def curves_section(sweeps: Sequence[PlottedSweep]) -> view.Section | None:
    charts = [chart for sweep in sweeps for chart in _curves(sweep)]
    return plot.figures_section("curves", "Response curves", _WORDS, charts, limit=2 * plot.MOST_FIGURES)


def _curves(sweep: PlottedSweep) -> Iterator[view.Chart]:
    for names, key, words, metrics in _AGAINST:
        axis = sweep.axis_among(names)
        if axis is None:
            continue
        parts = plot.in_parts([*_series(sweep, axis)], plot.MOST_SERIES)
        for (number, part, series), metric in product(parts, metrics):
            traces = [*_traces(series, axis, metric)]
            if not traces:
                continue
            drawn = [point.result for _, points in series for point in points if _statistic(point, metric)]
            ticks = {axis_number(result, axis) or 0.0: str(axis_value(result, axis)) for result in drawn}
            labels = [ticks[tick] for tick in sorted(ticks)]
            yield view.Chart(
                key=f"{metric}-{key}-{number}-{sweep.key}",
                title=f"{metric.words} against {key}: {sweep.title}{part}",
                description=(
                    f"{metric.words} of {sweep.title} for {', '.join(labels)} {words}, {len(traces)} series: "
                    f"{'; '.join(trace['name'] for trace in traces)}. The table of results has the numbers."
                ),
                data=traces,
                x=plot.numbers_axis(words, sorted(ticks), labels),
                y=plot.metric_axis(metric),
                legend=len(traces) > 1,
            )


def _series(sweep: PlottedSweep, axis: str) -> Iterator[tuple[str, Sequence[PointRow]]]:
    measured = (point for point in sweep.measured if axis_number(point.result, axis))
    for label, points in grouped(measured, lambda point: sweep.series(point, axis)).items():
        points.sort(key=lambda point: axis_number(point.result, axis) or 0)
        if len(points) > 1:
            yield label or sweep.workload, points


def _statistic(point: PointRow, metric: Metric) -> Statistic | None:
    statistic = statistic_of(point.measured, metric)
    # A logarithmic axis has no 0.
    return statistic if statistic and (metric.is_rate or statistic.mean) else None


def _traces(series: Sequence[tuple[str, Sequence[PointRow]]], axis: str, metric: Metric) -> Iterator[view.Json]:
    for number, (label, points) in enumerate(series):
        drawn = [(point, statistic) for point in points if (statistic := _statistic(point, metric))]
        if not drawn:
            continue
        scale = plot.metric_scale(metric)
        intervals = [(statistic.low, statistic.mean, statistic.high) for _, statistic in drawn]
        symbols = [plot.symbol(number, verdict_text(point.result)) for point, _ in drawn]
        yield plot.scatter(
            label,
            [axis_number(point.result, axis) for point, _ in drawn],
            [statistic.mean / scale for _, statistic in drawn],
            mode="lines+markers",
            error_y=plot.error_bars(intervals, scale),
            line={"color": plot.colour(number), "dash": plot.dash(number), "width": 2},
            marker={"color": plot.colour(number), "size": 9, "symbol": symbols},
            texts=[
                f"{point.result.spec.point}: {axis_text(axis, axis_value(point.result, axis))}\n"
                f"{view.metric_text(metric, statistic.mean)}\n{verdict_text(point.result)}"
                for point, statistic in drawn
            ],
        )


def distribution_section(sweeps: Sequence[PlottedSweep]) -> view.Section | None:
    charts = [chart for sweep in sweeps for chart in _distributions(sweep)]
    return plot.figures_section("latency", "Latency", _DISTRIBUTION_WORDS, charts)


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


def _distributions(sweep: PlottedSweep) -> Iterator[view.Chart]:
    recorded: list[tuple[PointRow, Histogram]] = []
    for point in sweep.measured:
        # One that is not readable is a finding.
        with suppress(HistogramError):
            text = point.measured.latency.histogram
            if text is not None and (histogram := Histogram.decode(text)).total:
                recorded.append((point, histogram))
    for number, words, part in plot.in_parts(recorded, plot.MOST_SERIES):
        traces = [
            trace
            for place, (point, histogram) in enumerate(part)
            for trace in _distribution(place, sweep, point, histogram)
        ]
        latencies: list[float] = [value for trace in traces for value in trace["x"]]
        # Too wide a range for ticks between decades.
        is_wide = max(latencies) > _WIDE * min(latencies)
        yield view.Chart(
            key=f"latency-{number}-{sweep.key}",
            title=f"Latency distribution: {sweep.title}{words}",
            description=(
                f"Share of operations of {sweep.title} that took longer than a latency, both logarithmic, "
                f"for {len(part)} points. The table below it has the percentiles."
            ),
            data=traces,
            x=plot.latency_axis("latency, submission to completion", only_decades=is_wide),
            y=plot.numbers_axis("share of operations that took longer", [10**-power for power in range(8)], _SHARES),
            legend=len(part) > 1,
            height=420,
            table=view.page_table(
                f"Percentiles of the merged histograms: {sweep.title}",
                [view.Column("Point", partial(_name, sweep), title=lambda point: point.result.spec.point), *_LATENCIES],
                [point for point, _ in part],
                sortable=False,
            ),
        )


def _percentile_column(name: str) -> view.Number[PointRow]:
    return view.Number(f"p{name}", lambda point: point.measured.latency.percentiles.get(name), show=view.duration_text)


_LATENCIES: Sequence[view.Number[PointRow]] = (
    *map(_percentile_column, _NAMES),
    view.Number("max", lambda point: point.measured.latency.max_nanoseconds, show=view.duration_text),
    view.Number("operations", lambda point: point.measured.latency.count or None, show="{:,}".format),
)


def _distribution(number: int, sweep: PlottedSweep, point: PointRow, histogram: Histogram) -> Iterator[view.Json]:
    name, group = _name(sweep, point), point.run + point.result.spec.point
    points = ccdf(histogram)
    yield plot.scatter(
        name,
        [plot.microseconds(nanoseconds) for nanoseconds, _ in points],
        [share for _, share in points],
        mode="lines",
        legendgroup=group,
        line={"color": plot.colour(number), "dash": plot.dash(number), "width": 2, "shape": "hv"},
        hoverinfo="skip",
    )
    percentiles = [(p, value) for p in _NAMES if (value := point.measured.latency.percentiles.get(p)) is not None]
    yield plot.scatter(
        name,
        [plot.microseconds(value) for _, value in percentiles],
        [1 - float(p) / 100 for p, _ in percentiles],
        legendgroup=group,
        showlegend=False,
        marker={"color": plot.colour(number), "size": 8, "symbol": plot.symbol(number, verdict_text(point.result))},
        texts=[f"{name}\np{p} {view.duration_text(value)}" for p, value in percentiles],
    )


def _name(sweep: PlottedSweep, point: PointRow) -> str:
    return sweep.label(point) + point.mark
