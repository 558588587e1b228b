"""Response curves: rate and latency against depth, throughput and latency against clients."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import (
    IN_RESULTS,
    MICROSECOND,
    MOST_FIGURES,
    MOST_SERIES,
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
from plimsoll.report.points import (
    CLIENTS,
    PlottedPoint,
    PlottedSweep,
    axis_number,
    axis_text,
    axis_value,
)
from plimsoll.report.text import MEBIBYTE, bytes_rate_text, duration_text
from plimsoll.report.view import Chart, Json, Section
from plimsoll.tools.registry import DEPTH_AXES

_P99 = "99"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """A quantity on the vertical axis.

    Attributes:
        key: part of the anchor.
        title: start of the figure's title.
        axis: the axis.
        value: value of a point in the unit of the axis; None if unknown.
        errors: the error bars of a series.

    """

    key: str
    title: str
    axis: Json
    value: Callable[[PlottedPoint], float | None]
    errors: Callable[[Sequence[PlottedPoint]], Json]


_WORDS = (
    "Each marker is the mean over the trials that count, with its 95 % confidence interval. "
    "Hollow markers with a dot are Suspect or unfinished; Invalid points are not shown."
)


def _p99(one: PlottedPoint) -> float | None:
    statistic = one.operation.percentiles.get(_P99)
    return microseconds(statistic.mean) if statistic else None


_IOPS = _Quantity(
    key="iops",
    title="IOPS",
    axis=linear_axis("operations per second"),
    value=lambda one: one.operation.iops.mean,
    errors=lambda points: error_bars([one.operation.iops for one in points]),
)
_LATENCY = _Quantity(
    key="p99",
    title="p99 latency",
    axis=latency_axis("99th percentile of latency"),
    value=_p99,
    errors=lambda points: error_bars([one.operation.percentiles.get(_P99) for one in points], MICROSECOND),
)
_BYTES = _Quantity(
    key="bytes",
    title="Throughput",
    axis=linear_axis("MiB per second, all clients"),
    value=lambda one: one.operation.bytes_per_second.mean / MEBIBYTE,
    errors=lambda points: error_bars([one.operation.bytes_per_second for one in points], MEBIBYTE),
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
    found: dict[str, list[PlottedPoint]] = {}
    for one in sweep.measured:
        if axis_number(one.result, axis):
            found.setdefault(sweep.label(one, others), []).append(one)
    for label, points in found.items():
        points.sort(key=lambda one: axis_number(one.result, axis) or 0)
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
    known = [(label, [one for one in points if quantity.value(one) is not None]) for label, points in series]
    traces = [_trace(number, label, points, axis, quantity) for number, (label, points) in enumerate(known) if points]
    if not traces:
        return
    ticks = _ticks([one for _, found in known for one in found], axis)
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


def _ticks(points: Sequence[PlottedPoint], axis: str) -> list[tuple[float, str]]:
    """Return the values of the axis in ascending order, with their texts."""
    return sorted({axis_number(one.result, axis) or 0.0: str(axis_value(one.result, axis)) for one in points}.items())


def _trace(number: int, label: str, points: Sequence[PlottedPoint], axis: str, quantity: _Quantity) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": [axis_number(one.result, axis) for one in points],
        "y": [quantity.value(one) for one in points],
        "error_y": quantity.errors(points),
        "line": {"color": colour(number), "dash": dash(number), "width": 2},
        "marker": {"color": colour(number), "size": 9, "symbol": [symbol(number, one.verdict) for one in points]},
        "text": [hover_text(one, axis) for one in points],
        "hovertemplate": "%{text}<extra></extra>",
    }


def hover_text(one: PlottedPoint, axis: str) -> str:
    """Return the numbers of a point in a few lines."""
    operation = one.operation
    p99 = operation.percentiles.get(_P99)
    iops = rate_text(operation.iops.mean, operation.iops.half_width)
    return "\n".join(
        (
            f"{one.result.spec.point}: {axis_text(axis, axis_value(one.result, axis))}",
            f"{iops} IOPS, {bytes_rate_text(operation.bytes_per_second.mean)}",
            f"p99 {duration_text(p99.mean if p99 else None)}",
            one.verdict,
        )
    )
