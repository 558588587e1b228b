"""The line: what each search found, latency against load, and every probe."""

from collections.abc import Iterator, Sequence

from plimsoll.measure.line.summary import (
    ending_sentence,
    ending_text,
    headline_text,
    interval_text,
    line_probes_text,
    load_text,
    objectives_text,
    outcome_text,
    rounded_load,
    uncounted_text,
    unit_text,
    width_text,
)
from plimsoll.report.figure import MOST_FIGURES, limited
from plimsoll.report.line_figures import latency_charts, lines_chart
from plimsoll.report.points import verdict_text
from plimsoll.report.searches import PlottedSearch, ProbedLoad, SearchedWorkload
from plimsoll.report.text import NONE, duration_text
from plimsoll.report.timeline import attempt_text
from plimsoll.report.view import Block, Cell, Chart, Details, Section, Table, Text

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


def lines_section(workloads: Sequence[SearchedWorkload]) -> Section | None:
    """Return all searches for the line; None without one."""
    if not workloads:
        return None
    charts = [chart for number, workload in enumerate(workloads) for chart in _charts(number, workload)]
    several = len({one.run.label for workload in workloads for one in workload.searches}) > 1
    blocks: list[Block] = [
        Text(paragraphs=[*_sentences(workloads, several=several)]),
        _lines_table(workloads, several=several),
        *limited(_WORDS, charts, MOST_FIGURES, "the table of lines has every search"),
        *_probes(workloads, several=several),
    ]
    return Section(key="line", title="The line", blocks=blocks)


def headline_sentences(workloads: Sequence[SearchedWorkload]) -> Iterator[str]:
    """Yield what each search found in a few words: `line, 4Ki: carries 12,400 ± 600 IOPS at p99 <= 5 ms.`."""
    found = [(workload, one) for workload in workloads for one in workload.searches]
    for workload, one in found[:_MOST_SENTENCES]:
        yield f"{_title(workload, one)}: {headline_text(one.line, workload.search)}{_mark(one)}."
    if len(found) > _MOST_SENTENCES:
        yield f"Searches that are not named here: {len(found) - _MOST_SENTENCES}; the table of lines has them."


def _charts(number: int, workload: SearchedWorkload) -> Iterator[Chart]:
    yield from latency_charts(number, workload)
    beside = lines_chart(number, workload)
    if beside is not None:
        yield beside


def _sentences(workloads: Sequence[SearchedWorkload], *, several: bool) -> Iterator[str]:
    found = [(workload, one) for workload in workloads for one in workload.searches]
    for workload, one in found[:_MOST_SENTENCES]:
        run = f", {one.run.label}" if several else ""
        interval = interval_text(one.line, workload.search)
        known = "" if interval == NONE else f" (95 % interval {interval})"
        found_text = f"{headline_text(one.line, workload.search)}{known}"
        point = f"{one.result.spec.point}, {one.result.spec.label}{run}"
        yield f"{point}: {found_text}. {_ending(workload, one)}"


def _ending(workload: SearchedWorkload, one: PlottedSearch) -> str:
    asked = one.result.spec.line or workload.search
    return ending_sentence(one.line, asked, uncounted_text(one.result.status.trials))


def _title(workload: SearchedWorkload, one: PlottedSearch) -> str:
    return f"{workload.workload}, {one.name}"


def _mark(one: PlottedSearch) -> str:
    """Return the verdict of a search unless it is Valid."""
    verdict = verdict_text(one.result)
    return "" if verdict == "Valid" else f" [{verdict}]"


def _lines_table(workloads: Sequence[SearchedWorkload], *, several: bool) -> Table:
    numbers = ("Line", "95 % interval", "Width", "Probes")
    names = ("Point", *(["Run"] if several else []), "Verdict", "Parameters", "Objectives")
    return Table(
        caption="All lines",
        headings=(*names, "Line", "Unit", "95 % interval", "Width", "Probes", "Ended"),
        numbers=numbers,
        rows=[_line_row(workload, one, several=several) for workload in workloads for one in workload.searches],
        sortable=True,
    )


def _line_row(workload: SearchedWorkload, one: PlottedSearch, *, several: bool) -> list[Cell]:
    line, search, verdict = one.line, one.result.spec.line or workload.search, verdict_text(one.result)
    return [
        Cell(text=one.result.spec.point),
        *([Cell(text=one.run.label)] if several else []),
        Cell(text=verdict, mark=verdict),
        Cell(text=one.result.spec.label),
        Cell(text=objectives_text(search.objectives)),
        Cell(text=load_text(line, search), sort=line.estimate),
        Cell(text=unit_text(search)),
        Cell(text=interval_text(line, search), sort=line.low),
        Cell(text=width_text(line), sort=line.width_percent),
        Cell(text=line_probes_text(line), sort=line.probes),
        Cell(text=ending_text(line), title=_ending(workload, one)),
    ]


def _probes(workloads: Sequence[SearchedWorkload], *, several: bool) -> Iterator[Block]:
    """Yield the probes of each workload in a table that is folded away."""
    for workload in workloads:
        rows = [
            _probe_row(workload, one, probe, several=several)
            for one in workload.searches
            for probe in sorted(one.probes, key=lambda probe: (probe.trial.pass_number, probe.trial.attempt))
        ]
        if rows:
            yield Details(
                title=f"Probes of {workload.workload}: {len(rows)}",
                blocks=[*_probes_table(workload, rows, several=several)],
            )


def _probes_table(workload: SearchedWorkload, rows: Sequence[Sequence[Cell]], *, several: bool) -> Iterator[Block]:
    percentiles = [f"p{objective.percentile}" for objective in workload.search.objectives]
    unit = unit_text(workload.search)
    numbers = (f"Offered, {unit}", f"Achieved, {unit}", "Depth full", *percentiles)
    yield Table(
        caption=f"Probes of {workload.workload}",
        headings=("Point", *(["Run"] if several else []), "Probe", *numbers, "Outcome", "Verdict", "Why"),
        numbers=numbers,
        rows=rows[:_MOST_ROWS],
        sortable=True,
    )
    if len(rows) > _MOST_ROWS:
        yield Text(paragraphs=[f"{len(rows) - _MOST_ROWS} more are omitted; `plimsoll results -o json` has them."])


def _probe_row(workload: SearchedWorkload, one: PlottedSearch, probe: ProbedLoad, *, several: bool) -> list[Cell]:
    trial, achieved, full = probe.trial, probe.achieved, probe.depth_full_percent
    latencies = [probe.latency(objective) for objective in workload.search.objectives]
    return [
        Cell(text=one.result.spec.point, title=one.result.spec.label),
        *([Cell(text=one.run.label)] if several else []),
        Cell(text=attempt_text(trial), sort=trial.pass_number + trial.attempt / 100),
        Cell(text=rounded_load(probe.offered), sort=probe.offered),
        Cell(text=NONE if achieved is None else rounded_load(achieved), sort=achieved),
        Cell(text=NONE if full is None else f"{full:.1f} %", sort=full),
        *(Cell(text=duration_text(latency), sort=latency) for latency in latencies),
        Cell(text=outcome_text(probe.outcome)),
        Cell(text=trial.verdict, mark=trial.verdict),
        Cell(text=_why(probe)),
    ]


def _why(probe: ProbedLoad) -> str:
    """Return why a probe does not count, or what was found; empty if there is nothing to say."""
    trial = probe.trial
    if trial.abort is not None:
        return f"{trial.abort.reason}: {trial.abort.message}"
    return " ".join(dict.fromkeys(finding.reason for finding in trial.findings))
