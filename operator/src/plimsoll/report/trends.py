"""How each point developed over the rounds of a suite, and the variants of its last round."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.operation import Statistic
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import EndedRound, RoundVerdict
from plimsoll.measure.compare.values import operation_text
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.report import plot
from plimsoll.report.figure import ReportedRun, drawable, statistic_of, verdict_text
from plimsoll.report.view import Chart, Column, Json, Number, Section, metric_text, page_table
from plimsoll.suite.judging import Trend, TrendRow, trends_of
from plimsoll.suite.measured import MeasuredRound

_WORDS = (
    "Each marker is the geometric mean over the runs of a round, with the 95 % confidence interval that follows from "
    "the noise between the runs of all rounds; noise between rounds is not a part of it. A filled marker is a round "
    "of the baseline, a hollow one is not, and a cross is a round that regressed, possibly at another point. A "
    "vertical line marks a round before which something changed: Ceph, the kernel, the nodes, or what is measured."
)
_IN_ROUNDS = "the figures that are shown have a round that regressed, or come first"

_VARIANTS_WORDS = (
    "Each marker is the mean over the runs of a variant in the last round, with its 95 % confidence interval. A "
    "filled marker is Valid. A comparison decides whether variants differ by more than noise, not two intervals."
)

_UPPER_END = {"xref": "x", "xanchor": "right", "y": 1, "yref": "paper", "yanchor": "top"}
_ALONG_LINE: Json = {**_UPPER_END, "showarrow": False, "textangle": -90}
"""A text along a vertical line, at its upper end: a figure may be narrow, and rounds close together."""

_Place = tuple[str, str, Operation, Metric]  # workload, point, operation and metric of a figure
_NAMES = {"ceph.versions": "Ceph", "kubernetes": "Kubernetes"}
"""Key of a change -> its name next to a line; other keys are shown as they are."""


def trends_section(rounds: Sequence[tuple[EndedRound, MeasuredRound]]) -> Section | None:
    """Return a figure for each point, operation and metric over all rounds; None if only one round has numbers."""
    places: dict[_Place, list[Trend]] = {}
    for trend in trends_of(rounds):
        if len(trend.rows) > 1:
            quantity = trend.quantity
            place = (quantity.workload, quantity.point, quantity.operation, quantity.metric)
            places.setdefault(place, []).append(trend)
    # Sorting is stable.
    ordered = sorted(
        places.items(), key=lambda case: not any(_regressed(row) for trend in case[1] for row in trend.rows)
    )
    charts = [
        _chart(f"trend-{number}-{part}", place, drawn, words)
        for number, (place, trends) in enumerate(ordered)
        for part, words, drawn in plot.in_parts(trends, plot.MOST_SERIES)
    ]
    return plot.figures_section("trend", "Over the rounds", _WORDS, charts, remedy=_IN_ROUNDS)


def changes_before(rounds: Sequence[tuple[EndedRound, MeasuredRound]]) -> list[list[Difference]]:
    """Return what changed before each round, each change once."""
    rows = [row for trend in trends_of(rounds) for row in trend.rows]
    before: list[list[Difference]] = []
    for ended, _ in rounds:
        changes: list[Difference] = []
        for row in rows:
            if row.round.minute == ended.minute:
                # JSON values cannot be keys of a dictionary.
                changes += [change for change in row.changes if change not in changes]
        before.append(changes)
    return before


def _chart(key: str, place: _Place, trends: Sequence[Trend], part: str) -> Chart:
    workload, point, operation, metric = place
    rows = [row for trend in trends for row in trend.rows]
    rounds = {row.round.minute for row in rows}
    # The rounds before which something changed, with the names of what did.
    marks: list[tuple[int, str]] = []
    before = ""
    for minute, digest in sorted({row.round.minute: row.round.digest for row in rows}.items()):
        changed = [_change_name(change) for row in rows if row.round.minute == minute for change in row.changes]
        names = [*dict.fromkeys([*(["suite"] if digest != (before or digest) else []), *changed])]
        before = digest
        if names:
            marks.append((minute, first_few(names, 4)))
    title = f"{point}: {operation_text(operation, metric)}, {metric}{part}"
    marked = f" {count_text(len(marks), 'change')} of conditions marked." if marks else ""
    return Chart(
        key=key,
        title=title,
        description=(
            f"{plot.axis_title(metric)} of point {point} of workload {workload} over "
            f"{count_text(len(rounds), 'round')}, a line for each of {count_text(len(trends), 'variant')}.{marked}"
        ),
        data=[_trace(index, trend) for index, trend in enumerate(trends)],
        x={"title": {"text": "start of the round (UTC)"}, "type": "date"},
        y=plot.metric_axis(metric),
        more={
            "shapes": [plot.vertical_line(_time(minute), "$muted", "dot") for minute, _ in marks],
            "annotations": [_ALONG_LINE | {"x": _time(minute), "text": text} for minute, text in marks],
        },
        table=page_table(
            f"{title}, all rounds", _TREND_COLUMNS, [(trend, row) for trend in trends for row in trend.rows]
        ),
    )


def _trace(index: int, trend: Trend) -> Json:
    metric, rows = trend.quantity.metric, trend.rows
    scale = plot.metric_scale(metric)
    symbols: list[str] = []
    texts: list[str] = []
    for row in rows:
        hollow = "x" if _regressed(row) else f"{plot.symbol(index)}-open"
        symbols.append(plot.symbol(index) if row.round.accepted else hollow)
        value = metric_text(metric, row.estimate) + (f" ({_interval_text(trend, row)})" if row.interval else "")
        texts.append(f"{trend.quantity.variant}, round {row.round.name}\n{value}\n{_state_text(row)}")
    ends = [row.interval or (None, None) for row in rows]
    intervals = [(low, row.estimate, high) for row, (low, high) in zip(rows, ends, strict=True)]
    return plot.scatter(
        trend.quantity.variant,
        [_time(row.round.minute) for row in rows],
        [row.estimate / scale for row in rows],
        mode="lines+markers",
        error_y=plot.error_bars(intervals, scale),
        line={"color": plot.colour(index), "dash": plot.dash(index), "width": 1.5},
        marker={"color": plot.colour(index), "symbol": symbols, "size": 9},
        texts=texts,
    )


def _interval_text(trend: Trend, row: TrendRow) -> str:
    return " to ".join(metric_text(trend.quantity.metric, end) for end in row.interval or ())


def _regressed(row: TrendRow) -> bool:
    return row.round.verdict is RoundVerdict.REGRESSED


def _state_text(row: TrendRow) -> str:
    return f"{'accepted' if row.round.accepted else 'not accepted'}{', regressed' if _regressed(row) else ''}"


def _change_name(change: Difference) -> str:
    return _NAMES.get(change.key, change.key)


_TREND_COLUMNS: Sequence[Column[tuple[Trend, TrendRow]]] = (
    Column("Variant", lambda case: case[0].quantity.variant),
    Column("Round", lambda case: case[1].round.name, sort=lambda case: case[1].round.minute),
    Number(
        "Mean", lambda case: case[1].estimate, text=lambda case: metric_text(case[0].quantity.metric, case[1].estimate)
    ),
    Number(
        "95 % interval",
        lambda case: case[1].interval and case[1].interval[0],
        text=lambda case: _interval_text(*case),
    ),
    Column(
        "Baseline",
        lambda case: _state_text(case[1]),
        mark=lambda case: "Regression" if _regressed(case[1]) and not case[1].round.accepted else "",
    ),
    Column("Changed", lambda case: ", ".join(dict.fromkeys(map(_change_name, case[1].changes)))),
)


def _time(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%d %H:%M")


def _statistic(result: BenchmarkResult, operation: Operation, metric: Metric) -> Statistic | None:
    """Return a number of a point; the line counts all operations, so only the first operation has it."""
    if metric is Metric.LINE:
        line = result.status.line if result.status.verdict is not Verdict.INVALID else None
        measured = {each.operation for trial in result.status.trials for each in trial.operations}
        first = next((each for each in Operation if each in measured), None)
        if line is None or line.estimate is None or first is not operation:
            return None
        return Statistic(trials=line.counted, mean=line.estimate, low=line.low, high=line.high)
    summary = next((summary for summary in drawable(result) if summary.operation is operation), None)
    return None if summary is None else statistic_of(summary, metric)


def variants_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return a figure for each workload, operation and metric; None with fewer than two variants."""
    if len(runs) < 2:  # noqa: PLR2004 - one variant differs from none
        return None
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    charts = [
        chart
        for number, workload in enumerate(workloads)
        for operation in Operation
        for metric in (Metric.IOPS, Metric.P99, Metric.LINE)
        for chart in _variants_charts(
            f"variants-{number}-{operation.value}-{metric}", runs, workload, operation, metric
        )
    ]
    return plot.figures_section("variants", "Variants", _VARIANTS_WORDS, charts)


def _variants_charts(
    key: str, runs: Sequence[ReportedRun], workload: str, operation: Operation, metric: Metric
) -> Iterator[Chart]:
    variants: list[tuple[str, list[tuple[BenchmarkResult, Statistic]]]] = []
    for run in runs:
        results = [result for result in run.results if result.spec.workload == workload]
        statistics = [(result, _statistic(result, operation, metric)) for result in results]
        if points := [(result, statistic) for result, statistic in statistics if statistic and statistic.mean > 0]:
            variants.append((run.label, points))
    what, of_what = metric.words, metric.words
    if metric is not Metric.LINE:
        name = plot.axis_title(metric)
        what, of_what = f"{operation}, {name}", f"{name} of {operation}s"
    for part, words, drawn in plot.in_parts(variants, plot.MOST_SERIES):
        # Points of variants may differ in what the variants set.
        places = dict.fromkeys(result.spec.point for _, points in drawn for result, _ in points)
        yield Chart(
            key=f"{key}-{part}",
            title=f"{workload}: {what}{words}",
            description=(
                f"{of_what} of {workload} at {count_text(len(places), 'point')}, a series for each of "
                f"{count_text(len(drawn), 'variant')}."
            ),
            data=[_variant_trace(index, name, points, metric) for index, (name, points) in enumerate(drawn)],
            x=plot.category_axis([*places]),
            y=plot.metric_axis(metric),
            more={"scattermode": "group"},
        )


def _variant_trace(index: int, name: str, points: Sequence[tuple[BenchmarkResult, Statistic]], metric: Metric) -> Json:
    texts: list[str] = []
    for result, statistic in points:
        ends = (statistic.low, statistic.high)
        interval = " to ".join(metric_text(metric, max(0.0, end)) for end in ends if end is not None)
        value = metric_text(metric, statistic.mean) + (f" ({interval})" if None not in ends else "")
        texts.append(f"{name}, {result.spec.point}: {verdict_text(result)}\n{value}")
    scale, symbols = plot.metric_scale(metric), [plot.symbol(index, verdict_text(result)) for result, _ in points]
    return plot.scatter(
        name,
        [result.spec.point for result, _ in points],
        [statistic.mean / scale for _, statistic in points],
        error_y=plot.error_bars([(each.low, each.mean, each.high) for _, each in points], scale),
        marker={"color": plot.colour(index), "symbol": symbols, "size": 10},
        texts=texts,
    )
