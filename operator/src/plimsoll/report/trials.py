"""Every attempt: the scatter of trials, and the attempts that do not count."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import counted
from plimsoll.report.figure import (
    IN_RESULTS,
    MOST_FIGURES,
    chunks,
    colour,
    error_bars,
    limited,
    linear_axis,
    part_text,
    symbol,
)
from plimsoll.report.points import drawable
from plimsoll.report.runs import ReportedRun
from plimsoll.report.searches import is_search
from plimsoll.report.timeline import attempt_text, outcome_text
from plimsoll.report.view import Cell, Chart, Json, Section, Table, Text

_POINTS = 16
_POINT_PIXELS = 34
_MARGIN_PIXELS = 130
_MOST_ROWS = 200

_Case = tuple[BenchmarkResult, OperationSummary | None]

_WORDS = (
    "The bar is the mean over the trials that count with its 95 % confidence interval; every other marker is an "
    "attempt: filled if Valid, hollow with a dot if Suspect, hollow if Invalid, which does not count. Aborted attempts "
    "have no numbers; the table below lists them. Points whose intervals do not overlap differ; overlapping intervals "
    "do not mean that points are the same."
)


def trials_section(runs: Sequence[ReportedRun]) -> Section:
    """Return the trials of all points."""
    several = len(runs) > 1
    charts = [chart for number, run in enumerate(runs) for chart in _charts(number, run, several=several)]
    figures = limited(_WORDS, charts, MOST_FIGURES, IN_RESULTS)
    blocks = [*figures, *_uncounted_attempts(runs, several=several)]
    return Section(key="trials", title="Trials", blocks=blocks)


def _charts(number: int, run: ReportedRun, *, several: bool) -> Iterator[Chart]:
    """Yield a figure for each workload and operation of a run, split if it has many points."""
    found: dict[tuple[str, Operation], list[_Case]] = {}
    for result in run.results:
        if is_search(result):
            # Rates of different loads do not scatter around a mean.
            continue
        operations = {one.operation for trial in result.status.trials for one in trial.operations}
        summaries = {one.operation: one for one in drawable(result)}
        for operation in sorted(operations, key=[*Operation].index):
            found.setdefault((result.spec.workload, operation), []).append((result, summaries.get(operation)))
    for (workload, operation), points in found.items():
        parts = [*chunks(points, _POINTS)]
        for place, part in enumerate(parts):
            title = f"{workload}, {operation}" + (f", {run.label}" if several else "")
            key = f"trials-{number}-{place}-{workload}-{operation}"
            yield _chart(key, f"{title}{part_text(place, len(parts))}", operation, part)


def _chart(key: str, title: str, operation: Operation, points: Sequence[_Case]) -> Chart:
    traces = [_means(points), *(_attempts(verdict, operation, points) for verdict in Verdict)]
    return Chart(
        key=key,
        title=f"Trials: {title}",
        description=(
            f"Operations per second of every attempt at {len(points)} points of {title}, with the mean of those that "
            "count and its confidence interval. The table of results has the means and the intervals."
        ),
        data=[trace for trace in traces if trace["x"]],
        layout={
            "xaxis": linear_axis("operations per second"),
            "yaxis": {
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [result.spec.point for result, _ in reversed(points)],
                "automargin": True,
            },
            "showlegend": True,
        },
        height=_MARGIN_PIXELS + _POINT_PIXELS * len(points),
    )


def _means(points: Sequence[_Case]) -> Json:
    known = [(result, summary.iops) for result, summary in points if summary]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "mean, 95 %",
        "x": [iops.mean for _, iops in known],
        "y": [result.spec.point for result, _ in known],
        "error_x": {**error_bars([iops for _, iops in known]), "thickness": 2, "width": 7},
        "marker": {"color": "$text", "symbol": "line-ns-open", "size": 16, "line": {"width": 2}},
        "text": [f"{result.spec.label}\nmean {rate_text(iops.mean)} of {iops.trials} trials" for result, iops in known],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _attempts(verdict: Verdict, operation: Operation, points: Sequence[_Case]) -> Json:
    found = [
        (result, trial, one.rates.iops)
        for result, _ in points
        for trial in result.status.trials
        for one in trial.operations
        if one.operation is operation and trial.verdict is verdict
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": verdict.value,
        "x": [iops for _, _, iops in found],
        "y": [result.spec.point for result, _, _ in found],
        "marker": {"color": _COLOURS[verdict], "symbol": symbol(0, verdict), "size": 9, "line": {"width": 1.5}},
        "text": [f"{result.spec.point}, {_words(trial)}\n{rate_text(iops)} IOPS" for result, trial, iops in found],
        "hovertemplate": "%{text}<extra></extra>",
    }


_COLOURS = {Verdict.VALID: colour(0), Verdict.SUSPECT: "$warn", Verdict.INVALID: "$bad"}


def _words(trial: Trial) -> str:
    """Return attempt, verdict and reasons."""
    reasons = ", ".join(dict.fromkeys(finding.reason for finding in trial.findings))
    return f"{attempt_text(trial)}: {outcome_text(trial)}" + (f" ({reasons})" if reasons else "")


def _uncounted_attempts(runs: Sequence[ReportedRun], *, several: bool) -> Iterator[Table | Text]:
    """Yield a table of the attempts that do not count, or the statement that all count."""
    rows = [
        row
        for run in runs
        for result in run.results
        for trial in _uncounted(result.status.trials)
        for row in [_row(run if several else None, result, trial)]
    ]
    if not rows:
        yield Text(paragraphs=["Every attempt counts: none is aborted, Invalid or replaced."])
        return
    yield Table(
        caption=f"Attempts that do not count: {len(rows)}",
        headings=(*(["Run"] if several else []), "Point", "Attempt", "Began", "Outcome", "Why"),
        rows=rows[:_MOST_ROWS],
    )
    if len(rows) > _MOST_ROWS:
        yield Text(paragraphs=[f"{len(rows) - _MOST_ROWS} more are omitted; `plimsoll results -o json` has them."])


def _uncounted(trials: Sequence[Trial]) -> list[Trial]:
    good = [(trial.pass_number, trial.attempt) for trial in counted(trials)]
    return [trial for trial in trials if (trial.pass_number, trial.attempt) not in good]


def _row(run: ReportedRun | None, result: BenchmarkResult, trial: Trial) -> list[Cell]:
    outcome = outcome_text(trial)
    return [
        *([Cell(text=run.label)] if run else []),
        Cell(text=result.spec.point, title=result.spec.label),
        Cell(text=attempt_text(trial)),
        Cell(text=trial.started_at),
        Cell(text=outcome, mark=outcome),
        Cell(text=why(trial)),
    ]


def why(trial: Trial) -> str:
    """Return the reason why an attempt does not count."""
    if trial.abort is not None:
        return f"{trial.abort.reason}: {trial.abort.message}"
    found = [finding for finding in trial.findings if finding.verdict is Verdict.INVALID] or trial.findings
    words = "; ".join(f"{finding.reason}: {finding.message}" for finding in found)
    if words or trial.outcome is Outcome.ABORTED:
        return words or "no reason was recorded"
    return "replaced by a later attempt"
