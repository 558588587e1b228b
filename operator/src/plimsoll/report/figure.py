"""Shared parts of figures: colours, markers of verdicts, axes."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Verdict
from plimsoll.api.operation import Statistic
from plimsoll.report.text import count_text
from plimsoll.report.view import Block, Chart, Json, Text

MOST_SERIES = 8
"""In one figure; the number of distinguishable colours of the palette."""

MOST_FIGURES = 12
"""Of one kind, so that a page of 512 points stays usable."""

IN_RESULTS = "the table of results has every point"

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MICROSECOND = 1000
"""Nanoseconds; the unit of latency axes."""

_STEPS = (1, 2, 5)
_TICKS = tuple(step * 10**power for power in range(2, 11) for step in _STEPS)
"""Nanoseconds."""

_DIGITS = 7

T = TypeVar("T")


def colour(number: int) -> str:
    """Return the name of a series' colour in the theme."""
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


def error_bars(statistics: Sequence[Statistic | None], scale: float = 1) -> Json:
    """Return the 95 % confidence intervals as plotly's error bars; a single trial has none."""
    above = [None if one is None or one.high is None else (one.high - one.mean) / scale for one in statistics]
    # A rate cannot be negative.
    below = [None if one is None or one.low is None else (one.mean - max(0.0, one.low)) / scale for one in statistics]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1, "width": 4}


def numbers_axis(title: str, values: Sequence[float], texts: Sequence[str]) -> Json:
    """Return a logarithmic axis with a tick at each of these values."""
    return {"title": {"text": title}, "type": "log", "tickvals": [*values], "ticktext": [*texts]}


def linear_axis(title: str) -> Json:
    """Return an axis from 0 on, so that heights are proportional to rates."""
    return {"title": {"text": title}, "rangemode": "tozero"}


def latency_axis(title: str, *, only_decades: bool = False) -> Json:
    """Return a logarithmic axis of microseconds with short tick labels in suitable units."""
    ticks = _TICKS[:: len(_STEPS)] if only_decades else _TICKS
    return {
        "title": {"text": title},
        "type": "log",
        "tickvals": [tick / MICROSECOND for tick in ticks],
        "ticktext": [_tick_text(tick) for tick in ticks],
    }


def vertical_line(x: float, name: str, dash: str) -> Json:
    """Return a line over the whole height of a figure."""
    line = {"color": name, "dash": dash, "width": 1.5}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def microseconds(nanoseconds: float | None) -> float | None:
    """Return a latency for a logarithmic axis; None if absent or 0."""
    return nanoseconds / MICROSECOND if nanoseconds else None


def chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values in parts of at most this size, all about equally large."""
    parts = -(-len(values) // size)
    for number in range(parts):
        yield values[number * len(values) // parts : (number + 1) * len(values) // parts]


def part_text(number: int, parts: int) -> str:
    """Return the number of a figure among several of one kind; empty for a single one."""
    return f" ({number + 1} of {parts})" if parts > 1 else ""


def limited(introduction: str, charts: Sequence[Chart], limit: int, remedy: str) -> list[Block]:
    """Return an introduction and the first charts; the introduction mentions omitted ones."""
    paragraphs = [introduction]
    if len(charts) > limit:
        paragraphs.append(f"{count_text(len(charts) - limit, 'more figure')} omitted; {remedy}.")
    return [Text(paragraphs=paragraphs), *charts[:limit]]


def _tick_text(nanoseconds: int) -> str:
    """Return a round latency without trailing zeros."""
    number, unit = format_duration(nanoseconds).split(" ")
    return f"{float(number):g} {unit}"


def plain(value: object, key: str = "") -> object:
    """Return a part of a figure with all texts escaped.

    plotly interprets a few tags in every text. Templates are constants of this package and keep their tags; in all
    other texts a newline becomes a line break.
    """
    match value:
        case str() if not key.endswith("template"):
            return html.escape(value, quote=False).replace("\n", "<br>")
        case Mapping():
            return {name: plain(part, str(name)) for name, part in value.items()}
        case list() | tuple():
            return [plain(part, key) for part in value]
        case float():
            # Neither an axis nor JSON can represent other values.
            return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
        case _:
            return value
