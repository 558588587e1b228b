"""What the figures have in common: colours by name, marks of verdicts, axes."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Verdict
from plimsoll.api.result import Statistic
from plimsoll.report.view import Json

MEBIBYTE = 2**20
NONE = "-"
MOST_SERIES = 8
"""In one figure; the palette has as many colours that can be told apart by everybody."""

MOST_FIGURES = 12
"""Of one kind: a page of 512 points must stay usable."""

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "triangle-down")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
MICROSECOND = 1000
"""Nanoseconds; what stands on axes of latency."""

_STEPS = (1, 2, 5)
_TICKS = tuple(step * 10**power for power in range(2, 11) for step in _STEPS)
"""Nanoseconds."""

_DIGITS = 7

T = TypeVar("T")


def colour(number: int) -> str:
    """Return the theme's name of a series' colour."""
    return f"$series{number % MOST_SERIES}"


def dash(number: int) -> str:
    """Return the dash of a series, so that colour is not all that tells it apart."""
    return _DASHES[number % MOST_SERIES]


def symbol(number: int, verdict: str = Verdict.VALID) -> str:
    """Return the marker of a series: filled if Valid, hollow if Invalid, hollow with a dot otherwise."""
    form = _SYMBOLS[number % MOST_SERIES]
    if verdict == Verdict.VALID:
        return form
    return f"{form}-open" if verdict == Verdict.INVALID else f"{form}-open-dot"


def error_bars(statistics: Sequence[Statistic | None], scale: float = 1) -> Json:
    """Return the 95 % confidence intervals as plotly's error bars; of one trial there is none."""
    above = [None if one is None or one.high is None else (one.high - one.mean) / scale for one in statistics]
    # A rate cannot be negative, however few trials say so.
    below = [None if one is None or one.low is None else (one.mean - max(0.0, one.low)) / scale for one in statistics]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1, "width": 4}


def numbers_axis(title: str, values: Sequence[float], texts: Sequence[str]) -> Json:
    """Return a logarithmic axis with a tick at each value that was asked for."""
    return {"title": {"text": title}, "type": "log", "tickvals": [*values], "ticktext": [*texts]}


def linear_axis(title: str) -> Json:
    """Return an axis from 0 on: a rate that is half as high must look so."""
    return {"title": {"text": title}, "rangemode": "tozero"}


def latency_axis(title: str, *, only_decades: bool = False) -> Json:
    """Return a logarithmic axis of microseconds whose ticks have the units that suit them, so that none is turned."""
    ticks = _TICKS[:: len(_STEPS)] if only_decades else _TICKS
    return {
        "title": {"text": title},
        "type": "log",
        "tickvals": [tick / MICROSECOND for tick in ticks],
        "ticktext": [_tick_text(tick) for tick in ticks],
    }


def microseconds(nanoseconds: float | None) -> float | None:
    """Return a latency as it stands on an axis; None for none, and for 0, which a logarithmic axis cannot show."""
    return nanoseconds / MICROSECOND if nanoseconds else None


def duration_text(nanoseconds: float | None) -> str:
    """Return a latency as people write it."""
    return NONE if nanoseconds is None else format_duration(nanoseconds)


def rate_of_bytes(bytes_per_second: float | None) -> str:
    """Return bytes per second as people write them."""
    return NONE if bytes_per_second is None else f"{bytes_per_second / MEBIBYTE:,.1f} MiB/s"


def chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values in parts of at most that size, all about as large as each other."""
    parts = -(-len(values) // size)
    for number in range(parts):
        yield values[number * len(values) // parts : (number + 1) * len(values) // parts]


def part_text(number: int, parts: int) -> str:
    """Return which of several figures of one kind this is; empty for a single one."""
    return f" ({number + 1} of {parts})" if parts > 1 else ""


def _tick_text(nanoseconds: int) -> str:
    """Return a round latency without the digits that are known to be 0."""
    number, unit = format_duration(nanoseconds).split(" ")
    return f"{float(number):g} {unit}"


def plain(value: object, key: str = "") -> object:
    """Return a part of a figure in which nothing that was measured or named can be markup.

    plotly reads a few tags in every text. Its templates are constants of this package and keep theirs; in all other
    texts a line break is a newline.
    """
    match value:
        case str() if not key.endswith("template"):
            return html.escape(value, quote=False).replace("\n", "<br>")
        case Mapping():
            return {name: plain(part, str(name)) for name, part in value.items()}
        case list() | tuple():
            return [plain(part, key) for part in value]
        case float():
            # What is not finite has no place on an axis, and none in JSON.
            return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
        case _:
            return value
