"""Every attempt: the scatter of trials, throughput over time, and the attempts that do not count."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, Series
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.line.summary import why_probe_not_counted
from plimsoll.measure.rates import rate_text
from plimsoll.measure.text import count_text
from plimsoll.report import plot
from plimsoll.report.figure import (
    ReportedRun,
    counting,
    does_data_set_once,
    drawable,
    longest_stall,
    results_of,
    verdict_text,
)
from plimsoll.report.points import PHASE_COLUMNS, phase_rows, recovery_sentences
from plimsoll.report.view import MEBIBYTE, Block, Chart, Column, Json, Number, Section, Text, page_table

MOST_PANELS = 12
_MOST_ROWS = 1000

_WORDS = (
    "The common window is the time in which all clients were measuring; dashed lines are its bounds. Each line is a "
    "trial that counts. Red crosses are intervals in which no client completed any operation."
)


def attempt_text(trial: Trial) -> str:
    """Return the name of an attempt; passes and attempts count from 0, and the first attempt is not named."""
    again = f", attempt {trial.attempt}" if trial.attempt else ""
    return f"pass {trial.pass_number}{again}"


def timeline_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the throughput over time, of many points of those with the longest stalls; None if it is unknown."""
    points = [(run, result) for run, result in results_of(runs) if _series_of(result)]
    if not points:
        return None
    # Sorting is stable.
    chosen = sorted(
        points, key=lambda point: (-(longest_stall(point[1]) or 0.0), point[1].status.verdict is Verdict.VALID)
    )[:MOST_PANELS]
    words = [_WORDS]
    if len(points) > MOST_PANELS:
        words.append(
            f"{len(points) - MOST_PANELS} more points are omitted: those shown have the longest stalls, are not Valid, "
            "or come first. `plimsoll results -o json` has the series of all."
        )
    shown = [point for point in points if point in chosen]
    charts = [
        chart
        for number, (run, result) in enumerate(shown)
        for chart in (_timeline(number, run, result, several=len(runs) > 1), _latencies(number, result))
        if chart
    ]
    disturbed = [result for _, result in shown]
    recoveries = [*recovery_sentences(disturbed)]
    phases = [page_table("Phases", PHASE_COLUMNS, phase_rows(disturbed), sortable=False)] if recoveries else []
    words += ["In the shaded time, OSDs were away.", *recoveries] if recoveries else []
    blocks: list[Block] = [Text(paragraphs=words), *charts, *phases]
    return Section(key="time", title="Throughput over time", blocks=blocks)


def _series_of(result: BenchmarkResult) -> list[tuple[Trial, OperationResult, Series]]:
    return [
        (trial, operation, operation.series)
        for trial in (counting(result) if drawable(result) else ())
        for operation in trial.operations
        if operation.series and operation.series.iops
    ]


def _timeline(number: int, run: ReportedRun, result: BenchmarkResult, *, several: bool) -> Chart:
    drawn = _series_of(result)
    trials = counting(result)
    with_series = {trial.pass_number for trial, _, _ in drawn}
    # Trials that count but are not shown, because a client recorded no series.
    missing = ", ".join(attempt_text(trial) for trial in trials if trial.pass_number not in with_series)
    absent = f" ({missing} has no series)" if missing else ""
    name = f"{result.spec.point}, {run.label}" if several else result.spec.point
    end = max((trial.window.seconds for trial in trials if trial.window), default=0.0)
    in_bytes = does_data_set_once(result)
    unit = "MiB per second" if in_bytes else "operations per second"
    return Chart(
        key=f"time-{number}",
        title=f"{name}: {result.spec.label}, {count_text(result.spec.clients, 'client')}{absent}",
        description=(
            f"{unit[0].upper()}{unit[1:]} of {name} over the window of {len(with_series)} trials, up to {end:g} s "
            f"long. Verdict {verdict_text(result)}; longest stall {longest_stall(result) or 0.0:g} s."
        ),
        data=[*(_trace(*series, in_bytes=in_bytes) for series in drawn), *_stalls(trials)],
        x={"title": {"text": "seconds of the common window"}, "range": [-0.02 * end, 1.02 * end]},
        y=plot.linear_axis(unit),
        more={"shapes": [*(plot.vertical_line(x, "$muted", "dash") for x in (0.0, end)), *_outages(trials)]},
        height=300,
    )


def _trace(trial: Trial, operation: OperationResult, series: Series, *, in_bytes: bool) -> Json:
    """Return the line of a trial; it holds each rate to the end of its interval."""
    mark = "" if trial.verdict is Verdict.VALID else f" ({trial.verdict})"
    name = f"{operation.operation}, pass {trial.pass_number}{mark}"
    ios = [*series.iops, series.iops[-1]]
    volumes = [rate / MEBIBYTE for rate in (*series.bytes_per_second, series.bytes_per_second[-1])]
    starts = [0.0, *accumulate([float(series.interval_seconds)] * (len(series.iops) - 1))]
    end = trial.window.seconds if trial.window else starts[-1] + series.interval_seconds
    hover = ("customdata:,.0f", "y:,.1f") if in_bytes else ("y:,.0f", "customdata:,.1f")
    return plot.scatter(
        name,
        [*starts, max(end, starts[-1])],  # the start of each interval, and the end of the last one
        volumes if in_bytes else ios,
        mode="lines",
        line=_line_of(trial, operation),
        customdata=ios if in_bytes else volumes,
        hovertemplate="%{{{}}} IOPS, %{{{}}} MiB/s<extra>".format(*hover) + f"{name}</extra>",
    )


def _line_of(trial: Trial, operation: OperationResult) -> Json:
    colour = plot.colour([*Operation].index(operation.operation))
    return {"color": colour, "dash": plot.dash(trial.pass_number), "width": 1.8, "shape": "hv"}


def _latencies(number: int, result: BenchmarkResult) -> Chart | None:
    """Return the 99th percentile over time of a point that takes OSDs away; None if it is unknown."""
    drawn = [(trial, operation, series) for trial, operation, series in _series_of(result) if series.p99_nanoseconds]
    if not drawn:
        return None
    traces = []
    for trial, operation, series in drawn:
        # Slices are longer than the intervals of a long trial, so that most of these have no value.
        known = [(place, value) for place, value in enumerate(series.p99_nanoseconds) if value]
        traces.append(
            plot.scatter(
                f"{operation.operation}, pass {trial.pass_number}",
                [place * series.interval_seconds for place, _ in known],
                [plot.microseconds(value) for _, value in known],
                mode="lines",
                line=_line_of(trial, operation),
            )
        )
    return Chart(
        key=f"time-p99-{number}",
        title=f"{result.spec.point}: 99th percentile of latency over time",
        description=f"99th percentile of latency of {result.spec.point} over the window; OSDs were away in the shade.",
        data=traces,
        x={"title": {"text": "seconds of the common window"}},
        y={"title": {"text": "µs"}, "type": "log"},
        more={"shapes": [*_outages(counting(result))]},
        height=300,
    )


def _outages(trials: Sequence[Trial]) -> Iterator[Json]:
    """Yield the time in which OSDs were away, of each trial: they overlap."""
    for outage in (trial.disturbance for trial in trials if trial.disturbance):
        place = {"x0": outage.start_seconds, "x1": outage.end_seconds, "y0": 0, "y1": 1}
        look = {"fillcolor": "$warn", "opacity": 0.15, "line": {"width": 0}, "layer": "below"}
        yield {"type": "rect", "xref": "x", "yref": "paper", **place, **look}


def _stalls(trials: Sequence[Trial]) -> Iterator[Json]:
    times: list[float] = []
    for trial in trials:
        series = [operation.series for operation in trial.operations if operation.series]
        counts = (each.iops if any(each.iops) else each.bytes_per_second for each in series)
        for place, rates in enumerate(zip(*counts, strict=False)):
            if not any(rates):
                times.append((place + 0.5) * series[0].interval_seconds)
    if times:
        yield plot.scatter(
            "nothing completed",
            times,
            [0.0] * len(times),
            marker={"color": "$bad", "symbol": "x", "size": 9},
            hovertemplate="%{x:.1f} s: nothing completed<extra></extra>",
        )


AttemptRow = tuple[ReportedRun, BenchmarkResult, Trial, bool]
"""An attempt, and whether it counts."""


def _outcome_text(row: AttemptRow) -> str:
    return Outcome.ABORTED.value if row[2].outcome is Outcome.ABORTED else row[2].verdict.value


def _why(row: AttemptRow) -> str:
    _, _, trial, counts = row
    if trial.abort is not None:
        return f"{trial.abort.reason}: {trial.abort.message}"
    findings = [finding for finding in trial.findings if counts or finding.verdict is Verdict.INVALID]
    if not counts and not findings and (reason := "; ".join(why_probe_not_counted(trial))):
        return reason
    if findings := findings or [*trial.findings]:
        return "; ".join(f"{finding.reason}: {finding.message}" for finding in findings)
    if counts:
        return ""
    return "no reason was recorded" if trial.outcome is Outcome.ABORTED else "replaced by a later attempt"


_ATTEMPT_COLUMNS: Sequence[Column[AttemptRow]] = (
    Column("Run", lambda row: row[0].label),
    Column("Point", lambda row: row[1].spec.point, title=lambda row: row[1].spec.label),
    Column("Attempt", lambda row: attempt_text(row[2])),
    Column("Began", lambda row: row[2].started_at),
    Number(
        "IOPS",
        lambda row: sum(part.rates.iops for part in row[2].operations) or None,
        text=lambda row: " / ".join(f"{part.operation} {rate_text(part.rates.iops)}" for part in row[2].operations),
    ),
    Column("Counts", lambda row: "yes" if row[3] else "no"),
    Column("Outcome", _outcome_text, mark=_outcome_text),
    Column("Why", _why),
)


def trials_section(runs: Sequence[ReportedRun]) -> Section:
    """Return a table of the attempts at all points, those that do not count first."""
    rows: list[AttemptRow] = []
    for run, result in results_of(runs):
        good = {(trial.pass_number, trial.attempt) for trial in counting(result)}
        trials = result.status.trials
        rows += [(run, result, trial, (trial.pass_number, trial.attempt) in good) for trial in trials]
    rows.sort(key=lambda row: row[3])
    uncounted = count_text(sum(not row[3] for row in rows), "attempt")
    words = f"{uncounted} of {len(rows)} do not count."
    table = page_table("All attempts", _ATTEMPT_COLUMNS, rows, leave_out=() if len(runs) > 1 else {"Run"})
    return Section(key="trials", title="Trials", blocks=[Text(paragraphs=[words]), *table.limited(_MOST_ROWS)])
