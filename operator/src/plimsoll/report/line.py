"""The line: what each search found, latency against load, and every probe."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from plimsoll.api.line import Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.line import summary as lines
from plimsoll.measure.line.search import arrived_load
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import count_text
from plimsoll.report import plot, points
from plimsoll.report.figure import PointRow, ReportedRun, axes_of, judged_latency, label_of, results_of, verdict_text
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
}
"""Of the probes of a single search, by default `$muted`; with several searches, each search has its own colour."""

_SUFFIXES = {Verdict.VALID: "", Verdict.SUSPECT: "-open-dot", Verdict.INVALID: "-open"}
_SAME_LOAD = math.log(1.1)  # width of the groups of loads whose median latency the curve joins, as a logarithm
_BELOW = 0.6  # height of probes without a latency, as a part of the lowest one
_ON_CURVE = {ProbeOutcome.MET, ProbeOutcome.LATE}
_TICKS = tuple(step * 10**power for power in range(10) for step in (1, 2, 5))
_TICK_TEXTS = [
    f"{load // 10**6}M" if load >= 10**6 else f"{load // 10**3}k" if load >= 10**3 else str(load) for load in _TICKS
]
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


_Named = Sequence[tuple[str, PointRow]]
"""Searches of a figure, with their names in its legend."""


def lines_section(runs: Sequence[ReportedRun]) -> Section | None:
    rows = [*points.line_rows((run.label, result) for run, result in results_of(runs))]
    if not rows:
        return None
    workloads = grouped(rows, lambda row: (row.result.spec.workload, row.search.vary, row.search.objectives)).values()
    charts = [chart for number, searches in enumerate(workloads) for chart in _charts(number, searches)]
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
    for first, *others in workloads:
        if probes := [*points.probe_rows((row.run, row.result) for row in (first, *others))]:
            title = f"Probes of {first.result.spec.workload}"
            table = page_table(title, points.probe_columns(first.search), probes, leave_out=leave_out)
            blocks.append(Details(title=f"{title}: {len(probes)}", blocks=[*table.limited(_MOST_ROWS)]))
    return Section(key="line", title="The line", blocks=blocks)


def headline_sentences(runs: Sequence[ReportedRun]) -> Iterator[str]:
    """Yield what each search found in a few words: `line, 4Ki: carries 12,400 ± 600 IOPS at p99 <= 5 ms.`."""
    rows = [*points.leading_rows(points.line_rows((run.label, result) for run, result in results_of(runs)))]
    for row in rows[:_MOST_SENTENCES]:
        verdicts = [verdict_text(row.result)]
        if row.storm is not None and verdict_text(row.storm) not in verdicts:
            verdicts.append(f"storm line {verdict_text(row.storm)}")
        mark = "" if verdicts == ["Valid"] else f" [{', '.join(verdicts)}]"
        run = f", {row.run}" if len(runs) > 1 else ""
        yield f"{row.result.spec.workload}, {row.result.spec.label}{run}: {points.headline_of(row)}{mark}."
    if len(rows) > _MOST_SENTENCES:
        yield f"Searches that are not named here: {len(rows) - _MOST_SENTENCES}; the table of lines has them."


def _charts(number: int, rows: Sequence[PointRow]) -> Iterator[Chart]:
    """Yield the figures of the searches of one workload with the same objectives."""
    search, axes, several = rows[0].search, axes_of([row.result for row in rows]), len({row.run for row in rows}) > 1
    named = [(label_of(row.result, axes, row.run if several else ""), row) for row in rows if _probes(row)]
    figures = plot.in_parts(named, _TOGETHER)
    if any(row.line.storm for _, row in named):
        # Each storm line has a figure with its calm line.
        pairs = grouped(named, lambda case: (case[1].run, case[1].result.spec.calm or case[1].result.spec.point))
        figures = (
            (place, f", {pair[0][0]}" if len(pairs) > 1 else "", pair) for place, pair in enumerate(pairs.values())
        )
    loads = "per second" if search.vary is Vary.RATE else "in flight"
    for place, part, searches in figures:
        for objective in search.objectives:
            percentile = f"p{objective.percentile}"
            title = f"{percentile} latency against load: {rows[0].result.spec.workload}{part}"
            count = count_text(sum(len(_probes(row)) for _, row in searches), "probe")
            headlines = [f"{name} {lines.headline_text(row.line, search)}" for name, row in searches]
            yield Chart(
                key=f"line-{number}-{place}-{percentile.replace('.', '-')}",
                title=title,
                description=(
                    f"{title}, of {count}; the objective is {lines.objective_text(objective)}. {'; '.join(headlines)}. "
                    "The tables of lines and of probes have the numbers."
                ),
                data=[*_traces(objective, searches)],
                x=plot.numbers_axis(f"offered operations {loads}, all clients", _TICKS, _TICK_TEXTS),
                y=plot.latency_axis(f"{percentile} latency"),
                more={"shapes": [*_shapes(objective, searches)]},
                height=420,
            )


def _probes(row: PointRow) -> Sequence[tuple[Trial, Probe]]:
    return [(trial, trial.probe) for trial in row.result.status.trials if trial.probe is not None]


def _shapes(objective: Objective, searches: _Named) -> Iterator[Json]:
    """Yield the objective as a line with its text, the interval of each search as a band, its estimate as a line."""
    y = objective.latency_microseconds
    label = {"text": lines.objective_text(objective), "textposition": "start", "yanchor": "bottom"}
    across = {"type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": y, "y1": y}
    yield across | {"line": {"color": "$text", "dash": "dash", "width": 1.5}, "label": label}
    for number, (_, row) in enumerate(searches):
        line, colour = row.line, "$text" if len(searches) == 1 else plot.colour(number)
        if line.low is not None or line.high is not None:
            # A logarithmic axis has no 0.
            loads = [load for probed in _probes(row) if (load := arrived_load(*probed))]
            low, high = line.low or min(loads, default=math.inf), line.high or max(loads, default=0)
            # A bound beyond all loads that were tried has no band.
            if low < high:
                band = {"type": "rect", "xref": "x", "yref": "paper", "x0": low, "x1": high, "y0": 0, "y1": 1}
                yield band | {"fillcolor": colour, "opacity": 0.15, "line": {"width": 0}, "layer": "below"}
        if line.estimate:
            yield plot.vertical_line(line.estimate, colour, plot.dash(number))


def _traces(objective: Objective, searches: _Named) -> Iterator[Json]:
    is_single = len(searches) == 1
    heights = [
        [plot.microseconds(judged_latency(trial, objective)) for trial, _ in _probes(row)] for _, row in searches
    ]
    floor = _BELOW * min(
        (height for each in heights for height in each if height), default=objective.latency_microseconds
    )
    for number, (name, row) in enumerate(searches):
        # The median latency of neighbouring loads that were achieved.
        groups: dict[int, list[tuple[float, float]]] = {}
        for (trial, probe), height in zip(_probes(row), heights[number], strict=True):
            if height is not None and probe.outcome in _ON_CURVE and (load := arrived_load(trial, probe)):
                groups.setdefault(round(math.log(load) / _SAME_LOAD), []).append((load, height))
        medians = [tuple(map(median, zip(*group, strict=True))) for _, group in sorted(groups.items())]
        colour = "$muted" if is_single else plot.colour(number)
        yield plot.scatter(
            "median" if is_single else f"{name}: {lines.interval_text(row.line, row.search)}",
            [x for x, _ in medians],
            [y for _, y in medians],
            mode="lines",
            line={"color": colour, "dash": plot.dash(number), "width": 1.5},
            hoverinfo="skip",
        )
    outcomes = {probe.outcome for _, row in searches for _, probe in _probes(row)}
    for outcome in (outcome for outcome in ProbeOutcome if outcome in outcomes):
        colour = _COLOURS.get(outcome, "$muted")
        for number, (name, row) in enumerate(searches):
            probes = [
                (trial, probe, height)
                for (trial, probe), height in zip(_probes(row), heights[number], strict=True)
                if probe.outcome is outcome
            ]
            symbols = [_FORMS[outcome] + _SUFFIXES[trial.verdict] for trial, _, _ in probes]
            yield plot.scatter(
                lines.outcome_text(outcome),
                [arrived_load(trial, probe) or None for trial, probe, _ in probes],
                [height or floor for _, _, height in probes],
                marker={"color": colour if is_single else plot.colour(number), "size": 9, "symbol": symbols},
                texts=[_mark_text(objective, name, row, trial, probe) for trial, probe, _ in probes],
                showlegend=is_single,
            )
        if not is_single:
            # Marks of the searches have no legend of their own, so that it names each search and each form once.
            marker = {"color": "$muted", "size": 9, "symbol": _FORMS[outcome]}
            yield plot.scatter(lines.outcome_text(outcome), [None], [None], marker=marker, hoverinfo="skip")


def _mark_text(objective: Objective, name: str, row: PointRow, trial: Trial, probe: Probe) -> str:
    achieved = "unknown" if probe.achieved is None else lines.rounded_load(probe.achieved)
    latency = duration_text(judged_latency(trial, objective))
    return (
        f"{row.result.spec.point}, {name}: {attempt_text(trial)}\n"
        f"offered {lines.rounded_load(probe.offered)}, achieved {achieved} {lines.unit_text(row.search)}\n"
        f"p{objective.percentile} {latency}: {lines.outcome_text(probe.outcome)}\n"
        f"{trial.verdict}"
    )
