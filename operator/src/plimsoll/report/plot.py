"""What figures share: colours, markers, traces, axes, and how many of them a page has."""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from plimsoll.api.json_reader import printable_text
from plimsoll.api.names import Metric, Verdict, format_duration
from plimsoll.measure.text import count_text
from plimsoll.report.view import MEBIBYTE, Block, Chart, Json, Section, Text

MOST_SERIES = 8  # in one figure; the number of distinguishable colours of the palette
MOST_FIGURES = 12  # of one kind, so that a page of 512 points remains usable
IN_RESULTS = "the table of results has every point"

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MICROSECOND = 1000  # nanoseconds; the unit of latency axes
_STEPS = (1, 2, 5)
_TICKS = tuple(step * 10**power for power in range(2, 11) for step in _STEPS)  # nanoseconds

T = TypeVar("T")


def colour(number: int) -> str:
    return f"$series{number % MOST_SERIES}"


def dash(number: int) -> str:
    """Return the dash of a series, so that it does not differ in colour only."""
    return _DASHES[number % MOST_SERIES]


def symbol(number: int, verdict: str = Verdict.VALID) -> str:
    """Return the marker of a series: filled if Valid, hollow if Invalid, hollow with a dot otherwise."""
    form = _SYMBOLS[number % MOST_SERIES]
    if verdict == Verdict.VALID:
        return form
    return f"{form}-open" if verdict == Verdict.INVALID else f"{form}-open-dot"


def scatter(
    name: str,
    x: Iterable[object],
    y: Iterable[object],
    *,
    mode: str = "markers",
    texts: Iterable[str] | None = None,
    **parts: object,
) -> Json:
    """Return a trace of markers, of lines, or of both; the texts are its tooltips."""
    tooltips: Json = {} if texts is None else {"text": [*texts], "hovertemplate": "%{text}<extra></extra>"}
    return {"type": "scatter", "mode": mode, "name": name, "x": [*x], "y": [*y], **tooltips, **parts}


def error_bars(
    intervals: Iterable[tuple[float | None, float | None, float | None]],
    scale: float = 1,
    *,
    thickness: int = 1,
    width: int = 4,
) -> Json:
    """Return intervals as plotly's error bars: low end, value and high end of each, None if unknown."""
    below: list[float | None] = []
    above: list[float | None] = []
    for low, value, high in intervals:
        # No quantity in figures can be negative.
        below.append(None if value is None or low is None else (value - max(0.0, low)) / scale)
        above.append(None if value is None or high is None else (high - value) / scale)
    bars: Json = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
    return bars | {"thickness": thickness, "width": width}


def numbers_axis(title: str, values: Sequence[float], texts: Sequence[str]) -> Json:
    """Return a logarithmic axis with a tick at each of these values."""
    return {"title": {"text": title}, "type": "log", "tickvals": [*values], "ticktext": [*texts]}


def linear_axis(title: str) -> Json:
    """Return an axis from 0 on, so that heights are proportional to rates."""
    return {"title": {"text": title}, "rangemode": "tozero"}


def category_axis(names: Sequence[str]) -> Json:
    return {"type": "category", "categoryorder": "array", "categoryarray": [*names], "automargin": True}


def latency_axis(title: str, *, only_decades: bool = False) -> Json:
    """Return a logarithmic axis of microseconds with short tick labels in suitable units."""
    ticks = _TICKS[:: len(_STEPS)] if only_decades else _TICKS
    labels = [format_duration(tick).split(" ") for tick in ticks]
    texts = [f"{float(number):g} {unit}" for number, unit in labels]
    return numbers_axis(title, [tick / MICROSECOND for tick in ticks], texts)


def axis_title(metric: Metric) -> str:
    if metric is Metric.BYTES:
        return "MiB per second"
    if metric is Metric.LINE:
        return "load at the line"
    return "operations per second" if metric is Metric.IOPS else metric.words


def metric_axis(metric: Metric) -> Json:
    return linear_axis(axis_title(metric)) if metric.is_rate else latency_axis(axis_title(metric))


def metric_scale(metric: Metric) -> float:
    return MEBIBYTE if metric is Metric.BYTES else 1 if metric.is_rate else MICROSECOND


def vertical_line(x: float | str, name: str, dash: str) -> Json:
    line = {"color": name, "dash": dash, "width": 1.5}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def microseconds(nanoseconds: float | None) -> float | None:
    """Return a latency for a logarithmic axis; None if absent or 0."""
    return nanoseconds / MICROSECOND if nanoseconds else None


def in_parts(values: Sequence[T], size: int) -> Iterator[tuple[int, str, Sequence[T]]]:
    """Yield parts of at most this size, all about equally large, after their number and its words in a title."""
    parts = -(-len(values) // size)
    for number in range(parts):
        words = f" ({number + 1} of {parts})" if parts > 1 else ""
        yield number, words, values[number * len(values) // parts : (number + 1) * len(values) // parts]


def limited(words: str, charts: Sequence[Chart], remedy: str = IN_RESULTS, limit: int = MOST_FIGURES) -> list[Block]:
    """Return an introduction and the first charts; it mentions omitted ones."""
    paragraphs = [words]
    if len(charts) > limit:
        paragraphs.append(f"{count_text(len(charts) - limit, 'more figure')} omitted; {remedy}.")
    return [Text(paragraphs=paragraphs), *charts[:limit]]


def figures_section(
    key: str, title: str, words: str, charts: Sequence[Chart], *, remedy: str = IN_RESULTS, limit: int = MOST_FIGURES
) -> Section | None:
    if not charts:
        return None
    return Section(key=key, title=title, blocks=limited(words, charts, remedy, limit))


def plain(value: object, key: str = "") -> object:
    """Return a part of a figure with all texts escaped and printable.

    plotly interprets a few tags in every text. Templates are constants of this package and keep their tags; in all
    other texts a newline becomes a line break.
    """
    match value:
        case str() if not key.endswith("template"):
            return html.escape(printable_text(value), quote=False).replace("\n", "<br>")
        case Mapping():
            return {name: plain(part, str(name)) for name, part in value.items()}
        case list() | tuple():
            return [plain(part, key) for part in value]
        case float():
            # Neither an axis nor JSON can represent other values.
            return float(f"{value:.7g}") if math.isfinite(value) else None
        case _:
            return value
