"""Figures of searches for the line: latency against load, and the lines of a workload beside each other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.line import Line, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.measure.line.summary import (
    headline_text,
    interval_text,
    load_text,
    objective_text,
    outcome_text,
    rounded_load,
    unit_text,
)
from plimsoll.report.figure import (
    MICROSECOND,
    chunks,
    colour,
    dash,
    latency_axis,
    linear_axis,
    part_text,
    vertical_line,
)
from plimsoll.report.searches import PlottedSearch, ProbedLoad, SearchedWorkload
from plimsoll.report.text import count_text, duration_text
from plimsoll.report.timeline import attempt_text
from plimsoll.report.view import Chart, Json

_TOGETHER = 5
"""Searches in one figure, whose intervals are still told apart."""

_FORMS = {
    ProbeOutcome.MET: "circle",
    ProbeOutcome.LATE: "triangle-up",
    ProbeOutcome.NOT_ACHIEVED: "x",
    ProbeOutcome.DEPTH_FULL: "square",
    ProbeOutcome.NOT_OFFERED: "diamond-wide",
    ProbeOutcome.UNKNOWN: "diamond",
}
_COLOURS = {
    ProbeOutcome.MET: "$good",
    ProbeOutcome.LATE: "$bad",
    ProbeOutcome.NOT_ACHIEVED: "$bad",
    ProbeOutcome.DEPTH_FULL: "$warn",
    ProbeOutcome.NOT_OFFERED: "$muted",
    ProbeOutcome.UNKNOWN: "$muted",
}
"""Of the probes of a single search; those of several searches have the colours of their searches."""

_SUFFIXES = {Verdict.VALID: "", Verdict.SUSPECT: "-open-dot", Verdict.INVALID: "-open"}
_SAME_LOAD = math.log(1.1)
"""Width of the groups of loads whose median latency the curve joins, as a logarithm."""

_BELOW = 0.6
"""Height of probes without a latency, as a part of the lowest one."""

_STEPS = (1, 2, 5)
_TICKS = tuple(step * 10**power for power in range(10) for step in _STEPS)
_AXIS = {
    Vary.RATE: "offered operations per second, all clients",
    Vary.DEPTH: "offered operations in flight, all clients",
}
_BAND_OPACITY = 0.15
_MARGIN_PIXELS = 110
_SEARCH_PIXELS = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """One figure: some searches, and one objective with the loads and latencies that it shows.

    Attributes:
        floor: height of probes without a latency, in microseconds.

    """

    workload: SearchedWorkload
    objective: Objective
    searches: Sequence[PlottedSearch]
    floor: float

    @property
    def is_single(self) -> bool:
        return len(self.searches) == 1


def latency_charts(number: int, workload: SearchedWorkload) -> Iterator[Chart]:
    """Yield latency against load for each objective, some searches in each figure; none without a probe."""
    probed = [one for one in workload.searches if one.probes]
    parts = [*chunks(probed, _TOGETHER)] if probed else []
    for place, part in enumerate(parts):
        for objective in workload.search.objectives:
            words = part_text(place, len(parts))
            yield _latency_chart(
                f"line-{number}-{place}-p{objective.percentile.replace('.', '-')}", workload, objective, part, words
            )


def lines_chart(number: int, workload: SearchedWorkload) -> Chart | None:
    """Return the lines of a workload beside each other; None if fewer than two are known."""
    known = [one for one in workload.searches if _drawn_load(one.line) is not None]
    if len(known) < 2:  # noqa: PLR2004 - one line needs no comparison
        return None
    unit = unit_text(workload.search)
    title = f"The line: {workload.workload}"
    found = [f"{one.name} {load_text(one.line, workload.search)}" for one in known]
    return Chart(
        key=f"lines-{number}",
        title=title,
        description=f"{title}, {unit}, with its 95 % interval: {'; '.join(found)}.",
        data=[_lines_trace(workload, known)],
        layout={
            "xaxis": linear_axis(
                f"{'operations per second' if workload.search.vary is Vary.RATE else unit}, all clients"
            ),
            "yaxis": {
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [one.name for one in reversed(known)],
                "automargin": True,
            },
            "showlegend": False,
        },
        height=_MARGIN_PIXELS + _SEARCH_PIXELS * len(known),
    )


def _lines_trace(workload: SearchedWorkload, known: Sequence[PlottedSearch]) -> Json:
    lines = [one.line for one in known]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "line, 95 %",
        "x": [_drawn_load(line) for line in lines],
        "y": [one.name for one in known],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_distance(line.estimate, line.high) for line in lines],
            "arrayminus": [_distance(line.estimate, line.low) for line in lines],
            "thickness": 2,
            "width": 6,
        },
        "marker": {"color": colour(0), "size": 10, "symbol": [_line_symbol(one) for one in known]},
        "text": [f"{one.result.spec.point}: {headline_text(one.line, workload.search)}" for one in known],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _drawn_load(line: Line) -> float | None:
    """Return the line, or the bound that is known of it."""
    return next((load for load in (line.estimate, line.low, line.high) if load is not None), None)


def _distance(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else abs(one - other)


def _line_symbol(one: PlottedSearch) -> str:
    """Return a mark that points away from a bound, filled if the search is Valid."""
    form = "circle"
    if one.line.estimate is None:
        form = "triangle-left" if one.line.low is None else "triangle-right"
    return form + _suffix(one.result.status.verdict)


def _suffix(verdict: Verdict | None) -> str:
    return _SUFFIXES[verdict or Verdict.SUSPECT]


def _latency_chart(
    key: str, workload: SearchedWorkload, objective: Objective, searches: Sequence[PlottedSearch], part: str
) -> Chart:
    latencies = [_height(probe, objective) for one in searches for probe in one.probes]
    lowest = min((one for one in latencies if one is not None), default=objective.latency_microseconds)
    figure = _Figure(workload=workload, objective=objective, searches=searches, floor=_BELOW * lowest)
    title = f"p{objective.percentile} latency against load: {workload.workload}"
    if len(searches) == 1 and len(workload.searches) > 1:
        title = f"{title}, {searches[0].name}"
    return Chart(
        key=key,
        title=f"{title}{part}",
        description=(
            f"{title}, of {count_text(sum(len(one.probes) for one in searches), 'probe')}; the objective is "
            f"{objective_text(objective)}. "
            f"{'; '.join(f'{one.name} {headline_text(one.line, workload.search)}' for one in searches)}. "
            "The tables of lines and of probes have the numbers."
        ),
        data=[*_traces(figure)],
        layout={
            "xaxis": _load_axis(workload),
            "yaxis": latency_axis(f"p{objective.percentile} latency"),
            "shapes": [_objective_line(objective), *(shape for shape in _line_shapes(figure))],
            "showlegend": True,
        },
        height=420,
    )


def _load_axis(workload: SearchedWorkload) -> Json:
    return {
        "title": {"text": _AXIS[workload.search.vary]},
        "type": "log",
        "tickvals": [*_TICKS],
        "ticktext": [_tick_text(tick) for tick in _TICKS],
    }


def _tick_text(load: int) -> str:
    """Return a round load in a few characters: `500`, `20k`, `1M`."""
    size, letter = next(((size, letter) for size, letter in ((10**6, "M"), (10**3, "k")) if load >= size), (1, ""))
    return f"{load // size}{letter}"


def _objective_line(objective: Objective) -> Json:
    """Return a line over the whole width of a figure with its text above it."""
    y = objective.latency_microseconds
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": "$text", "dash": "dash", "width": 1.5},
        "label": {"text": objective_text(objective), "textposition": "start", "yanchor": "bottom"},
    }


def _line_shapes(figure: _Figure) -> Iterator[Json]:
    """Yield the interval of each search as a band, and its estimate as a line."""
    for number, one in enumerate(figure.searches):
        line, name = one.line, "$text" if figure.is_single else colour(number)
        if line.low is not None or line.high is not None:
            # A logarithmic axis has no 0.
            loads = [probe.load for probe in one.probes if probe.load]
            low, high = line.low or min(loads, default=math.inf), line.high or max(loads, default=0)
            # A bound beyond all loads that were tried has no band.
            if low < high:
                yield _band(low, high, name)
        if line.estimate:
            yield vertical_line(line.estimate, name, dash(number))


def _band(low: float, high: float, name: str) -> Json:
    place = {"xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1}
    return {
        "type": "rect",
        **place,
        "fillcolor": name,
        "opacity": _BAND_OPACITY,
        "line": {"width": 0},
        "layer": "below",
    }


def _traces(figure: _Figure) -> Iterator[Json]:
    for number, one in enumerate(figure.searches):
        yield _curve(figure, number, one)
    for number, one in enumerate(figure.searches):
        for outcome in _outcomes([one]):
            yield _marks(figure, number, one, outcome)
    if not figure.is_single:
        # Marks of the searches have no legend of their own, so that it names each search and each form once.
        yield from map(_explained, _outcomes(figure.searches))


def _outcomes(searches: Sequence[PlottedSearch]) -> list[ProbeOutcome]:
    found = {probe.outcome for one in searches for probe in one.probes}
    return [outcome for outcome in ProbeOutcome if outcome in found]


def _curve(figure: _Figure, number: int, one: PlottedSearch) -> Json:
    """Return the median latency of neighbouring loads that were achieved."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for probe in one.probes:
        height = _height(probe, figure.objective)
        if height is not None and probe.load and probe.outcome in {ProbeOutcome.MET, ProbeOutcome.LATE}:
            groups.setdefault(round(math.log(probe.load) / _SAME_LOAD), []).append((probe.load, height))
    medians = [tuple(map(median, zip(*group, strict=True))) for _, group in sorted(groups.items())]
    name = "median" if figure.is_single else f"{one.name}: {interval_text(one.line, figure.workload.search)}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [x for x, _ in medians],
        "y": [y for _, y in medians],
        "line": {"color": "$muted" if figure.is_single else colour(number), "dash": dash(number), "width": 1.5},
        "hoverinfo": "skip",
    }


def _marks(figure: _Figure, number: int, one: PlottedSearch, outcome: ProbeOutcome) -> Json:
    probes = [probe for probe in one.probes if probe.outcome is outcome]
    name = _COLOURS[outcome] if figure.is_single else colour(number)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": outcome_text(outcome),
        "x": [probe.load or None for probe in probes],
        "y": [_height(probe, figure.objective) or figure.floor for probe in probes],
        "marker": {
            "color": name,
            "size": 9,
            "symbol": [_FORMS[outcome] + _suffix(probe.trial.verdict) for probe in probes],
        },
        "text": [_hover_text(figure, one, probe) for probe in probes],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": figure.is_single,
    }


def _explained(outcome: ProbeOutcome) -> Json:
    """Return an entry of the legend without a mark in the figure."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": outcome_text(outcome),
        "x": [None],
        "y": [None],
        "marker": {"color": "$muted", "size": 9, "symbol": _FORMS[outcome]},
        "hoverinfo": "skip",
    }


def _height(probe: ProbedLoad, objective: Objective) -> float | None:
    """Return a latency in microseconds; None if it is unknown, or 0, which a logarithmic axis cannot show."""
    latency = probe.latency(objective)
    return latency / MICROSECOND if latency else None


def _hover_text(figure: _Figure, one: PlottedSearch, probe: ProbedLoad) -> str:
    achieved = "unknown" if probe.achieved is None else rounded_load(probe.achieved)
    latency = duration_text(probe.latency(figure.objective))
    return "\n".join(
        (
            f"{one.result.spec.point}, {one.name}: {attempt_text(probe.trial)}",
            f"offered {rounded_load(probe.offered)}, achieved {achieved} {unit_text(figure.workload.search)}",
            f"p{figure.objective.percentile} {latency}: {outcome_text(probe.outcome)}",
            probe.trial.verdict,
        )
    )
