"""Every attempt: the scatter of trials, throughput over time, and the attempts that do not count."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, OperationSummary, Series
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
    is_search,
    longest_stall,
    results_of,
    verdict_text,
)
from plimsoll.report.points import PHASE_COLUMNS, phase_rows, recovery_sentences
from plimsoll.report.view import MEBIBYTE, Block, Chart, Column, Json, Number, Section, Text, page_table

MOST_PANELS = 12
_POINTS = 16
_POINT_PIXELS = 34
_MARGIN_PIXELS = 130
_MOST_ROWS = 200
_COLOURS = {Verdict.VALID: plot.colour(0), Verdict.SUSPECT: "$warn", Verdict.INVALID: "$bad"}

_WORDS = (
    "The common window is the time in which all clients were measuring; dashed lines are its bounds. Each line is a "
    "trial that counts. Red crosses are intervals in which no client completed any operation."
)

_Case = tuple[BenchmarkResult, OperationSummary | None]

_TRIALS_WORDS = (
    "The bar is the mean over the trials that count with its 95 % confidence interval; every other marker is an "
    "attempt: filled if Valid, hollow with a dot if Suspect, hollow if Invalid, which does not count. Aborted attempts "
    "have no numbers; the table below lists them. Points whose intervals do not overlap differ; overlapping intervals "
    "do not mean that points are the same."
)


def attempt_text(trial: Trial) -> str:
    """Return the name of an attempt; passes and attempts count from 0, and the first attempt is not named."""
    again = f", attempt {trial.attempt}" if trial.attempt else ""
    return f"pass {trial.pass_number}{again}"


def _worst_client_text(trial: Trial) -> str | None:
    stalls = trial.stalls
    if stalls is None:
        return None
    name = "" if stalls.worst_client is None else f" (client {stalls.worst_client})"
    return f"{stalls.worst_client_seconds:g} s{name}"


_WINDOW_COLUMNS: Sequence[Column[Trial]] = (
    Column("Trial", attempt_text),
    Number("Window", lambda trial: trial.window and f"{trial.window.seconds:.3f} s"),
    Number("Overlap", lambda trial: trial.window and f"{trial.window.overlap:.3f}"),
    Number("Start spread", lambda trial: trial.window and f"{trial.window.spread_seconds:.3f} s"),
    Number("All stalled", lambda trial: trial.stalls and f"{trial.stalls.seconds:g} s"),
    Number("Worst client stalled", _worst_client_text),
    Column("Verdict", lambda trial: trial.verdict, mark=lambda trial: trial.verdict),
)


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
        table=page_table(f"Windows of {name}", _WINDOW_COLUMNS, trials, sortable=False),
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
        line={
            "color": plot.colour([*Operation].index(operation.operation)),
            "dash": plot.dash(trial.pass_number),
            "width": 1.8,
            "shape": "hv",
        },
        customdata=ios if in_bytes else volumes,
        hovertemplate="%{{{}}} IOPS, %{{{}}} MiB/s<extra>".format(*hover) + f"{name}</extra>",
    )


def _latencies(number: int, result: BenchmarkResult) -> Chart | None:
    """Return the 99th percentile over time of a point that takes OSDs away; None if it is unknown."""
    drawn = [(trial, operation, series) for trial, operation, series in _series_of(result) if series.p99_nanoseconds]
    if not drawn:
        return None
    traces = []
    for trial, operation, series in drawn:
        name = f"{operation.operation}, pass {trial.pass_number}"
        line = {
            "color": plot.colour([*Operation].index(operation.operation)),
            "dash": plot.dash(trial.pass_number),
            "shape": "hv",
        }
        # Slices are longer than the intervals of a long trial, so that most of these have no value.
        known = [(place, value) for place, value in enumerate(series.p99_nanoseconds) if value]
        starts = [place * series.interval_seconds for place, _ in known]
        tails = [plot.microseconds(value) for _, value in known]
        traces.append(plot.scatter(name, starts, tails, mode="lines", line=line))
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


def outcome_text(trial: Trial) -> str:
    """Return the verdict of an attempt, or `Aborted`."""
    return Outcome.ABORTED.value if trial.outcome is Outcome.ABORTED else trial.verdict.value


def why(trial: Trial) -> str:
    if trial.abort is not None:
        return f"{trial.abort.reason}: {trial.abort.message}"
    invalid = [finding for finding in trial.findings if finding.verdict is Verdict.INVALID]
    if not invalid and (reason := "; ".join(why_probe_not_counted(trial))):
        return reason
    if findings := invalid or trial.findings:
        return "; ".join(f"{finding.reason}: {finding.message}" for finding in findings)
    return "no reason was recorded" if trial.outcome is Outcome.ABORTED else "replaced by a later attempt"


_ATTEMPT_COLUMNS: Sequence[Column[tuple[ReportedRun, BenchmarkResult, Trial]]] = (
    Column("Run", lambda row: row[0].label),
    Column("Point", lambda row: row[1].spec.point, title=lambda row: row[1].spec.label),
    Column("Attempt", lambda row: attempt_text(row[2])),
    Column("Began", lambda row: row[2].started_at),
    Column("Outcome", lambda row: outcome_text(row[2]), mark=lambda row: outcome_text(row[2])),
    Column("Why", lambda row: why(row[2])),
)


def trials_section(runs: Sequence[ReportedRun]) -> Section:
    """Return the trials of all points, and a table of the attempts that do not count."""
    several = len(runs) > 1
    charts = [chart for number, run in enumerate(runs) for chart in _charts(number, run, several=several)]
    blocks: list[Block] = [*plot.limited(_TRIALS_WORDS, charts)]
    uncounted: list[tuple[ReportedRun, BenchmarkResult, Trial]] = []
    for run, result in results_of(runs):
        good = {(trial.pass_number, trial.attempt) for trial in counting(result)}
        attempts = (trial for trial in result.status.trials if (trial.pass_number, trial.attempt) not in good)
        uncounted += [(run, result, trial) for trial in attempts]
    if uncounted:
        caption = f"Attempts that do not count: {len(uncounted)}"
        leave_out = () if several else {"Run"}
        table = page_table(caption, _ATTEMPT_COLUMNS, uncounted, leave_out=leave_out, sortable=False)
        blocks += table.limited(_MOST_ROWS)
    else:
        blocks.append(Text(paragraphs=["Every attempt counts."]))
    return Section(key="trials", title="Trials", blocks=blocks)


def _charts(number: int, run: ReportedRun, *, several: bool) -> Iterator[Chart]:
    cases: dict[tuple[str, Operation], list[_Case]] = {}
    for result in run.results:
        if is_search(result):
            # Rates of different loads do not scatter around a mean.
            continue
        operations = {measured.operation for trial in result.status.trials for measured in trial.operations}
        summaries = {summary.operation: summary for summary in drawable(result)}
        for operation in sorted(operations, key=[*Operation].index):
            cases.setdefault((result.spec.workload, operation), []).append((result, summaries.get(operation)))
    for (workload, operation), points in cases.items():
        for place, words, part in plot.in_parts(points, _POINTS):
            title = f"{workload}, {operation}" + (f", {run.label}" if several else "") + words
            means = [(result, summary.iops) for result, summary in part if summary]
            bars = plot.scatter(
                "mean, 95 %",
                [iops.mean for _, iops in means],
                [result.spec.point for result, _ in means],
                error_x=plot.error_bars([(iops.low, iops.mean, iops.high) for _, iops in means], thickness=2, width=7),
                marker={"color": "$text", "symbol": "line-ns-open", "size": 16, "line": {"width": 2}},
                texts=[
                    f"{result.spec.label}\nmean {rate_text(iops.mean)} of {iops.trials} trials"
                    for result, iops in means
                ],
            )
            traces = [bars, *(_attempts(verdict, operation, part) for verdict in Verdict)]
            yield Chart(
                key=f"trials-{number}-{place}-{workload}-{operation}",
                title=f"Trials: {title}",
                description=(
                    f"Operations per second of every attempt at {len(part)} points of {title}, with the mean of those "
                    "that count and its confidence interval. The table of results has the means and the intervals."
                ),
                data=[trace for trace in traces if trace["x"]],
                x=plot.linear_axis("operations per second"),
                y=plot.category_axis([result.spec.point for result, _ in reversed(part)]),
                height=_MARGIN_PIXELS + _POINT_PIXELS * len(part),
            )


def _attempts(verdict: Verdict, operation: Operation, points: Sequence[_Case]) -> Json:
    attempts = [
        (result.spec.point, trial, measured.rates.iops)
        for result, _ in points
        for trial in result.status.trials
        for measured in trial.operations
        if measured.operation is operation and trial.verdict is verdict
    ]
    texts: list[str] = []
    for point, trial, iops in attempts:
        reasons = ", ".join(dict.fromkeys(finding.reason for finding in trial.findings))
        outcome = f"{attempt_text(trial)}: {outcome_text(trial)}" + (f" ({reasons})" if reasons else "")
        texts.append(f"{point}, {outcome}\n{rate_text(iops)} IOPS")
    return plot.scatter(
        verdict.value,
        [iops for _, _, iops in attempts],
        [point for point, _, _ in attempts],
        marker={"color": _COLOURS[verdict], "symbol": plot.symbol(0, verdict), "size": 9, "line": {"width": 1.5}},
        texts=texts,
    )
