"""Throughput and rate by block size, as heat maps."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import Verdict
from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import (
    CLIENTS,
    IN_RESULTS,
    MOST_FIGURES,
    PlottedPoint,
    PlottedSweep,
    axis_number,
    axis_text,
    axis_value,
    limited,
)
from plimsoll.report.sweeps import hover_text
from plimsoll.report.view import MEBIBYTE, Chart, Section
from plimsoll.tools.registry import DEPTH_AXES, SIZE_AXES

_ROWS = 16
_ROW_PIXELS = 44
_MARGIN_PIXELS = 150


def heat_section(sweeps: Sequence[PlottedSweep]) -> Section | None:
    """Return a heat map of every workload with a sweep over block sizes; None without one."""
    charts = [chart for sweep in sweeps for chart in _maps(sweep)]
    if not charts:
        return None
    words = "MiB per second of all clients. A * marks Suspect and unfinished points; Invalid points are empty."
    blocks = limited(words, charts, MOST_FIGURES, IN_RESULTS)
    return Section(key="sizes", title="Block sizes", blocks=blocks)


def _maps(sweep: PlottedSweep) -> Iterator[Chart]:
    """Yield a map for each combination of values on the other axes."""
    size = sweep.axis_among(SIZE_AXES)
    if size is None:
        return
    upwards = sweep.axis_among((*DEPTH_AXES, CLIENTS))
    others = sweep.without(size, upwards)
    found: dict[str, list[PlottedPoint]] = {}
    for one in sweep.measured:
        key = sweep.label(one, others) if others or sweep.runs > 1 else ""
        found.setdefault(key, []).append(one)
    for number, (label, points) in enumerate(found.items()):
        if len({axis_number(one.result, size) for one in points}) > 1:
            yield _map(sweep, size, upwards, points, label=label, number=number)


def _map(
    sweep: PlottedSweep, size: str, upwards: str | None, points: Sequence[PlottedPoint], *, label: str, number: int
) -> Chart:
    columns = _values(points, size)
    rows = _values(points, upwards)[:_ROWS] if upwards else [(0.0, sweep.workload)]
    cells = {(_number(one, upwards), _number(one, size)): one for one in points}
    grid = [[cells.get((row, column)) for column, _ in columns] for row, _ in rows]
    suffix = f", {label}" if label else ""
    return Chart(
        key=f"size-{number}-{sweep.key}",
        title=f"Throughput by block size: {sweep.title}{suffix}",
        description=(
            f"Heat map of the throughput of {sweep.title}{suffix} for block sizes {', '.join(t for _, t in columns)}"
            f"{' and ' + ', '.join(t for _, t in rows) if upwards else ''}. The table of results has the numbers."
        ),
        data=[
            {
                "type": "heatmap",
                "x": [text for _, text in columns],
                "y": [text for _, text in rows],
                "z": [[one.operation.bytes_per_second.mean / MEBIBYTE if one else None for one in row] for row in grid],
                "text": [[_text(one) for one in row] for row in grid],
                "customdata": [[hover_text(one, size) if one else "no numbers" for one in row] for row in grid],
                "texttemplate": "%{text}",
                "textfont": {"size": 12},
                "hovertemplate": "%{customdata}<extra></extra>",
                "colorscale": "Cividis",
                "zmin": 0,
                "colorbar": {"title": {"text": "MiB/s"}, "thickness": 12},
                "xgap": 2,
                "ygap": 2,
            }
        ],
        layout={
            "xaxis": {"title": {"text": "block size"}, "type": "category"},
            "yaxis": {"type": "category", "automargin": True},
        },
        height=_MARGIN_PIXELS + _ROW_PIXELS * len(rows),
    )


def _values(points: Sequence[PlottedPoint], axis: str) -> list[tuple[float, str]]:
    """Return the values of an axis in ascending order, with their texts."""
    found = {_number(one, axis): axis_text(axis, axis_value(one.result, axis)) for one in points}
    return sorted(found.items())


def _number(one: PlottedPoint, axis: str | None) -> float:
    return (axis_number(one.result, axis) or 0.0) if axis else 0.0


def _text(one: PlottedPoint | None) -> str:
    if one is None:
        return ""
    return rate_text(one.operation.bytes_per_second.mean / MEBIBYTE) + ("" if one.verdict == Verdict.VALID else " *")
