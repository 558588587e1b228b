"""The variants of a suite side by side: rates and latencies of the last round, with their intervals."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.operation import OperationSummary, Statistic
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.report.figure import (
    IN_RESULTS,
    MICROSECOND,
    MOST_FIGURES,
    MOST_SERIES,
    chunks,
    colour,
    error_bars,
    latency_axis,
    limited,
    linear_axis,
    part_text,
    symbol,
)
from plimsoll.report.points import drawable, verdict_text
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import count_text, duration_text
from plimsoll.report.view import Chart, Json, Section

_LEAST_VARIANTS = 2
_P99 = "99"

_WORDS = (
    "Each marker is the mean over the runs of a variant in the last round, with its 95 % confidence interval. A filled "
    "marker is Valid. Whether variants differ by more than noise is the conclusion of a comparison, not that of two "
    "intervals."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """A quantity on the vertical axis, in units of `scale`; the line is one of all operations together."""

    key: str
    title: str
    axis: Json
    statistic: Callable[[BenchmarkResult, Operation], Statistic | None]
    text: Callable[[float], str]
    scale: float = 1
    is_of_operation: bool = True


def _of_operation(
    result: BenchmarkResult, operation: Operation, statistic: Callable[[OperationSummary], Statistic | None]
) -> Statistic | None:
    found = (statistic(summary) for summary in drawable(result) if summary.operation is operation)
    return next(found, None)


def _line(result: BenchmarkResult, operation: Operation) -> Statistic | None:
    """Return the line; None for all but the first operation of its trials, so that it is drawn once."""
    line = result.status.line if result.status.verdict is not Verdict.INVALID else None
    done = {each.operation for trial in result.status.trials for each in trial.operations}
    if line is None or line.estimate is None or next((one for one in Operation if one in done), None) is not operation:
        return None
    return Statistic(trials=line.counted, mean=line.estimate, low=line.low, high=line.high)


_QUANTITIES = (
    _Quantity(
        key="rate",
        title="operations per second",
        axis=linear_axis("operations per second"),
        statistic=lambda result, operation: _of_operation(result, operation, iops_of),
        text=lambda value: f"{rate_text(value)} IOPS",
    ),
    _Quantity(
        key="p99",
        title="p99 latency",
        axis=latency_axis("p99 latency"),
        statistic=lambda result, operation: _of_operation(
            result, operation, lambda summary: summary.percentiles.get(_P99)
        ),
        text=duration_text,
        scale=MICROSECOND,
    ),
    _Quantity(
        key="line",
        title="line",
        axis=linear_axis("load at the line"),
        statistic=_line,
        text=rate_text,
        is_of_operation=False,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """The value of one variant at one point."""

    place: str
    verdict: str
    statistic: Statistic


def variants_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return a figure for each workload, operation and quantity; None with fewer than two variants."""
    if len(runs) < _LEAST_VARIANTS:
        return None
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    charts = [
        chart
        for number, workload in enumerate(workloads)
        for operation in Operation
        for quantity in _QUANTITIES
        for chart in _charts(f"variants-{number}-{operation.value}", runs, workload, operation, quantity)
    ]
    if not charts:
        return None
    return Section(key="variants", title="Variants", blocks=limited(_WORDS, charts, MOST_FIGURES, IN_RESULTS))


def _charts(
    key: str, runs: Sequence[ReportedRun], workload: str, operation: Operation, quantity: _Quantity
) -> Iterator[Chart]:
    found = [(run.label, marks) for run in runs if (marks := [*_marks(run, workload, operation, quantity)])]
    parts = [*chunks(found, MOST_SERIES)]
    for part, drawn in enumerate(parts):
        # Points of variants may differ in what the variants set.
        places = dict.fromkeys(mark.place for _, marks in drawn for mark in marks)
        what = f"{operation}, {quantity.title}" if quantity.is_of_operation else quantity.title
        of = f"{quantity.title} of {operation}s of" if quantity.is_of_operation else f"{quantity.title} of"
        title = f"{workload}: {what}{part_text(part, len(parts))}"
        yield Chart(
            key=f"{key}-{quantity.key}-{part}",
            title=title,
            description=(
                f"{of} {workload} at {count_text(len(places), 'point')}, a series for "
                f"each of {count_text(len(drawn), 'variant')}."
            ),
            data=[_trace(index, name, marks, quantity) for index, (name, marks) in enumerate(drawn)],
            layout={
                "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": [*places], "automargin": True},
                "yaxis": quantity.axis,
                "scattermode": "group",
                "showlegend": True,
            },
        )


def _marks(run: ReportedRun, workload: str, operation: Operation, quantity: _Quantity) -> Iterator[_Mark]:
    for result in run.results:
        if result.spec.workload != workload:
            continue
        statistic = quantity.statistic(result, operation)
        if statistic is not None and statistic.mean > 0:
            yield _Mark(place=result.spec.point, verdict=verdict_text(result), statistic=statistic)


def _trace(index: int, name: str, marks: Sequence[_Mark], quantity: _Quantity) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [mark.place for mark in marks],
        "y": [mark.statistic.mean / quantity.scale for mark in marks],
        "error_y": error_bars([mark.statistic for mark in marks], quantity.scale),
        "marker": {"color": colour(index), "symbol": [symbol(index, mark.verdict) for mark in marks], "size": 10},
        "text": [_hover(name, mark, quantity) for mark in marks],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _hover(name: str, mark: _Mark, quantity: _Quantity) -> str:
    statistic = mark.statistic
    interval = ""
    if statistic.low is not None and statistic.high is not None:
        interval = f" ({quantity.text(max(0.0, statistic.low))} to {quantity.text(statistic.high)})"
    return f"{name}, {mark.place}: {mark.verdict}\n{quantity.text(statistic.mean)}{interval}"
