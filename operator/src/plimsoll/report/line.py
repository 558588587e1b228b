"""The line: what each search found, latency against load, and every probe."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.line import Line, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.measure.line import summary as lines
from plimsoll.measure.text import count_text
from plimsoll.report import plot, points
from plimsoll.report.figure import PlottedSearch, SearchedWorkload, verdict_text
from plimsoll.report.trials import attempt_text
from plimsoll.report.view import Block, Chart, Details, Json, Section, Text, duration_text, page_table

_TOGETHER = 5  # searches in one figure, whose intervals are still told apart
_FORMS = {
    ProbeOutcome.MET: "circle",
    ProbeOutcome.LATE: "triangle-up",
    ProbeOutcome.NOT_ACHIEVED: "x",
    ProbeOutcome.DEPTH_FULL: "square",
    ProbeOutcome.NOT_OFFERED: "diamond-wide",
    ProbeOutcome.NOT_RECOVERED: "hourglass",
    ProbeOutcome.UNKNOWN: "diamond",
}
_COLOURS = {
    ProbeOutcome.MET: "$good",
    ProbeOutcome.LATE: "$bad",
    ProbeOutcome.NOT_ACHIEVED: "$bad",
    ProbeOutcome.DEPTH_FULL: "$warn",
    ProbeOutcome.NOT_OFFERED: "$muted",
    ProbeOutcome.NOT_RECOVERED: "$muted",
    ProbeOutcome.UNKNOWN: "$muted",
}
"""Of the probes of a single search; with several searches, each search has its own colour."""

_SUFFIXES = {Verdict.VALID: "", Verdict.SUSPECT: "-open-dot", Verdict.INVALID: "-open"}
_SAME_LOAD = math.log(1.1)  # width of the groups of loads whose median latency the curve joins, as a logarithm
_BELOW = 0.6  # height of probes without a latency, as a part of the lowest one
_TICKS = tuple(step * 10**power for power in range(10) for step in (1, 2, 5))
_TICK_TEXTS = [
    f"{load // 10**6}M" if load >= 10**6 else f"{load // 10**3}k" if load >= 10**3 else str(load) for load in _TICKS
]
_MARGIN_PIXELS = 110
_SEARCH_PIXELS = 34
_MOST_SENTENCES = 12
_MOST_ROWS = 400

_WORDS = (
    "The line is the load at which half of the trials meet all objectives. A search offers one load after another; "
    "each trial is a probe, and the estimate rests on which of them met the objectives. The vertical line is the "
    "estimate and the band its 95 % interval; the dashed horizontal line is the objective. The curve joins the "
    "median latencies of neighbouring loads. Where a load was not achieved or the depth was full, operations "
    "started late. Their latency is counted from their start and looks shorter than it is: such a probe broke, "
    "however low its mark. Marks are filled if the probe is Valid, hollow with a dot if Suspect, and hollow if "
    "Invalid, which does not count. Probes without this percentile are at the lower edge."
)
_STORM_WORDS = (
    "The storm line is the line while OSDs are away: its probes show the latency from the start of the disturbance "
    "until all placement groups are clean, and its estimate is the dashed vertical line."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """One figure: some searches, and one objective with the loads and latencies that it shows."""

    workload: SearchedWorkload
    objective: Objective
    searches: Sequence[PlottedSearch]
    floor: float  # height of probes without a latency, in microseconds

    @property
    def is_single(self) -> bool:
        return len(self.searches) == 1

    @property
    def has_storm(self) -> bool:
        return any(search.line.storm for search in self.searches)

    def name_of(self, search: PlottedSearch) -> str:
        """Return the name in the legend: `calm line`, `storm line, 1 OSD out`, or what differs from other searches."""
        if not self.has_storm:
            return search.name
        return f"storm line, {search.line.storm.text}" if search.line.storm else "calm line"


def lines_section(workloads: Sequence[SearchedWorkload]) -> Section | None:
    """Return all searches for the line; None without one."""
    if not workloads:
        return None
    charts = [
        chart
        for number, workload in enumerate(workloads)
        for chart in (*_latency_charts(number, workload), *_lines_charts(number, workload))
    ]
    rows = [
        *points.line_rows((search.run.label, search.result) for workload in workloads for search in workload.searches)
    ]
    several = len({row.run for row in rows}) > 1
    leave_out = () if several else {"Run"}
    sentences = [
        f"{row.result.spec.point}, {row.result.spec.label}{f', {row.run}' if several else ''}: {text}. {why}"
        for row, text, why in points.search_sentences(rows)
    ]
    words = f"{_WORDS} {_STORM_WORDS}" if any(row.line.storm for row in rows) else _WORDS
    blocks: list[Block] = [
        Text(paragraphs=sentences[:_MOST_SENTENCES]),
        page_table("All lines", points.LINE_COLUMNS, rows, leave_out=leave_out),
        *plot.limited(words, charts, "the table of lines has every search"),
    ]
    for workload in workloads:
        probes = [*points.probe_rows((search.run.label, search.result) for search in workload.searches)]
        if probes:
            title = f"Probes of {workload.workload}"
            table = page_table(title, points.probe_columns(workload.search), probes, leave_out=leave_out)
            blocks.append(Details(title=f"{title}: {len(probes)}", blocks=[*table.limited(_MOST_ROWS)]))
    return Section(key="line", title="The line", blocks=blocks)


def headline_sentences(workloads: Sequence[SearchedWorkload]) -> Iterator[str]:
    """Yield what each search found in a few words: `line, 4Ki: carries 12,400 ± 600 IOPS at p99 <= 5 ms.`."""
    names = {id(search.result): search.name for workload in workloads for search in workload.searches}
    searches = [(search.run.label, search.result) for workload in workloads for search in workload.searches]
    rows = [*points.leading_rows(points.line_rows(searches))]
    for row in rows[:_MOST_SENTENCES]:
        verdicts = [verdict_text(row.result)]
        if row.storm is not None and verdict_text(row.storm) not in verdicts:
            verdicts.append(f"storm line {verdict_text(row.storm)}")
        mark = "" if verdicts == ["Valid"] else f" [{', '.join(verdicts)}]"
        yield f"{row.result.spec.workload}, {names[id(row.result)]}: {points.headline_of(row)}{mark}."
    if len(rows) > _MOST_SENTENCES:
        yield f"Searches that are not named here: {len(rows) - _MOST_SENTENCES}; the table of lines has them."


def _latency_charts(number: int, workload: SearchedWorkload) -> Iterator[Chart]:
    for place, part, searches in _together([search for search in workload.searches if search.probes]):
        for objective in workload.search.objectives:
            latencies = [plot.microseconds(probe.latency(objective)) for search in searches for probe in search.probes]
            lowest = min(filter(None, latencies), default=objective.latency_microseconds)
            figure = _Figure(workload=workload, objective=objective, searches=searches, floor=_BELOW * lowest)
            title = f"p{objective.percentile} latency against load: {workload.workload}"
            if len({search.pair for search in searches}) == 1 < len({search.pair for search in workload.searches}):
                title = f"{title}, {searches[0].name}"
            headlines = [f"{search.name} {lines.headline_text(search.line, workload.search)}" for search in searches]
            loads = "per second" if workload.search.vary is Vary.RATE else "in flight"
            yield Chart(
                key=f"line-{number}-{place}-p{objective.percentile.replace('.', '-')}",
                title=f"{title}{part}",
                description=(
                    f"{title}, of {count_text(sum(len(search.probes) for search in searches), 'probe')}; the objective "
                    f"is {lines.objective_text(objective)}. {'; '.join(headlines)}. The tables of lines and of probes "
                    "have the numbers."
                ),
                data=[*_traces(figure)],
                x=plot.numbers_axis(f"offered operations {loads}, all clients", _TICKS, _TICK_TEXTS),
                y=plot.latency_axis(f"p{objective.percentile} latency"),
                more={"shapes": [*_shapes(figure)]},
                height=420,
            )


def _together(searches: Sequence[PlottedSearch]) -> Iterator[tuple[int, str, Sequence[PlottedSearch]]]:
    """Yield the searches of each figure, as `in_parts` does; each storm line has one with its calm line."""
    if not any(search.line.storm for search in searches):
        yield from plot.in_parts(searches, _TOGETHER)
        return
    for place, pair in enumerate(dict.fromkeys(search.pair for search in searches)):
        yield place, "", [search for search in searches if search.pair == pair]


def _lines_charts(number: int, workload: SearchedWorkload) -> Iterator[Chart]:
    searches = [search for search in workload.searches if _drawn_load(search.line) is not None]
    if len(searches) < 2:  # noqa: PLR2004 - one line needs no comparison
        return
    unit = lines.unit_text(workload.search)
    title = f"The line: {workload.workload}"
    intervals = [(search.line.low, search.line.estimate, search.line.high) for search in searches]
    loads = [f"{search.name} {lines.load_text(search.line, workload.search)}" for search in searches]
    symbols: list[str] = []
    for search in searches:
        # Away from a bound.
        bound = "triangle-left" if search.line.low is None else "triangle-right"
        symbols.append((bound if search.line.estimate is None else "circle") + _suffix(search.result.status.verdict))
    trace = plot.scatter(
        "line, 95 %",
        [_drawn_load(search.line) for search in searches],
        [search.name for search in searches],
        error_x=plot.error_bars(intervals, thickness=2, width=6),
        marker={"color": plot.colour(0), "size": 10, "symbol": symbols},
        texts=[
            f"{search.result.spec.point}: {lines.headline_text(search.line, workload.search)}" for search in searches
        ],
    )
    varied = "operations per second" if workload.search.vary is Vary.RATE else unit
    yield Chart(
        key=f"lines-{number}",
        title=title,
        description=f"{title}, {unit}, with its 95 % interval: {'; '.join(loads)}.",
        data=[trace],
        x=plot.linear_axis(f"{varied}, all clients"),
        y=plot.category_axis([search.name for search in reversed(searches)]),
        legend=False,
        height=_MARGIN_PIXELS + _SEARCH_PIXELS * len(searches),
    )


def _drawn_load(line: Line) -> float | None:
    """Return the line, or the bound that is known of it."""
    return next((load for load in (line.estimate, line.low, line.high) if load is not None), None)


def _suffix(verdict: Verdict | None) -> str:
    return _SUFFIXES[verdict or Verdict.SUSPECT]


def _shapes(figure: _Figure) -> Iterator[Json]:
    """Yield the objective as a line with its text, the interval of each search as a band, its estimate as a line."""
    y = figure.objective.latency_microseconds
    label = {"text": lines.objective_text(figure.objective), "textposition": "start", "yanchor": "bottom"}
    across = {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": y, "y1": y}
    yield across | {"line": {"color": "$text", "dash": "dash", "width": 1.5}, "label": label}
    for number, search in enumerate(figure.searches):
        line, name = search.line, "$text" if figure.is_single else plot.colour(number)
        if line.low is not None or line.high is not None:
            # A logarithmic axis has no 0.
            loads = [probe.load for probe in search.probes if probe.load]
            low, high = line.low or min(loads, default=math.inf), line.high or max(loads, default=0)
            # A bound beyond all loads that were tried has no band.
            if low < high:
                band = {"type": "rect", "xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1}
                yield band | {"fillcolor": name, "opacity": 0.15, "line": {"width": 0}, "layer": "below"}
        if line.estimate:
            text = {"text": figure.name_of(search).partition(",")[0], "textposition": "end", "xanchor": "right"}
            yield plot.vertical_line(line.estimate, name, plot.dash(number)) | (
                {"label": text} if figure.has_storm else {}
            )


def _traces(figure: _Figure) -> Iterator[Json]:
    for number, search in enumerate(figure.searches):
        yield _curve(figure, number, search)
    for number, search in enumerate(figure.searches):
        for outcome in _outcomes([search]):
            yield _marks(figure, number, search, outcome)
    if not figure.is_single:
        # Marks of the searches have no legend of their own, so that it names each search and each form once.
        for outcome in _outcomes(figure.searches):
            marker = {"color": "$muted", "size": 9, "symbol": _FORMS[outcome]}
            yield plot.scatter(lines.outcome_text(outcome), [None], [None], marker=marker, hoverinfo="skip")


def _outcomes(searches: Sequence[PlottedSearch]) -> list[ProbeOutcome]:
    outcomes = {probed.probe.outcome for search in searches for probed in search.probes}
    return [outcome for outcome in ProbeOutcome if outcome in outcomes]


def _curve(figure: _Figure, number: int, search: PlottedSearch) -> Json:
    """Return the median latency of neighbouring loads that were achieved."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for probed in search.probes:
        height = plot.microseconds(probed.latency(figure.objective))
        if height is not None and probed.load and probed.probe.outcome in {ProbeOutcome.MET, ProbeOutcome.LATE}:
            groups.setdefault(round(math.log(probed.load) / _SAME_LOAD), []).append((probed.load, height))
    medians = [tuple(map(median, zip(*group, strict=True))) for _, group in sorted(groups.items())]
    interval = lines.interval_text(search.line, figure.workload.search)
    return plot.scatter(
        "median" if figure.is_single else f"{figure.name_of(search)}: {interval}",
        [x for x, _ in medians],
        [y for _, y in medians],
        mode="lines",
        line={"color": "$muted" if figure.is_single else plot.colour(number), "dash": plot.dash(number), "width": 1.5},
        hoverinfo="skip",
    )


def _marks(figure: _Figure, number: int, search: PlottedSearch, outcome: ProbeOutcome) -> Json:
    probes = [probed for probed in search.probes if probed.probe.outcome is outcome]
    texts: list[str] = []
    for probed in probes:
        offered, achieved = lines.rounded_load(probed.probe.offered), probed.probe.achieved
        load = f"offered {offered}, achieved {'unknown' if achieved is None else lines.rounded_load(achieved)}"
        latency = f"p{figure.objective.percentile} {duration_text(probed.latency(figure.objective))}"
        shown = (
            f"{search.result.spec.point}, {search.name}: {attempt_text(probed.trial)}",
            f"{load} {lines.unit_text(figure.workload.search)}",
            f"{latency}: {lines.outcome_text(outcome)}",
            probed.trial.verdict,
        )
        texts.append("\n".join(shown))
    symbols = [_FORMS[outcome] + _suffix(probed.trial.verdict) for probed in probes]
    return plot.scatter(
        lines.outcome_text(outcome),
        [probed.load or None for probed in probes],
        [plot.microseconds(probed.latency(figure.objective)) or figure.floor for probed in probes],
        marker={"color": _COLOURS[outcome] if figure.is_single else plot.colour(number), "size": 9, "symbol": symbols},
        texts=texts,
        showlegend=figure.is_single,
    )
