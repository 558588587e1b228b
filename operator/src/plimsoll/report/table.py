"""The table of all points."""

from collections.abc import Iterator, Sequence

from plimsoll.api.result import BenchmarkResult, OperationSummary, Statistic
from plimsoll.measure.latency import PERCENTILES
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import counted
from plimsoll.report.figure import MEBIBYTE, NONE, duration_text
from plimsoll.report.points import drawable, verdict_text
from plimsoll.report.runs import Run
from plimsoll.report.verdicts import no_numbers
from plimsoll.report.view import Cell, Column, Section, Table, Text

_NAMES = [str(p) for p in PERCENTILES]

_WORDS = (
    "Rates and latencies are means over the trials that count; ± is half the 95 % confidence interval (Student's "
    "t), CV the standard deviation divided by the mean. A percentile is the mean of the trials' own percentiles, "
    "absent where a trial has fewer than ten operations beyond it. Click a heading to sort."
)


def results_section(runs: Sequence[Run]) -> Section:
    """Return every operation of every point; a point without numbers says why."""
    several = len(runs) > 1
    rows = [row for run in runs for result in run.results for row in _rows(run if several else None, result)]
    words = [_WORDS]
    table = Table(caption="All points", columns=_columns(several=several), rows=rows, sortable=True)
    return Section(key="results", title="Results", blocks=[Text(paragraphs=words), table])


def _columns(*, several: bool) -> list[Column]:
    numbers = ("IOPS", "±", "CV", "MiB/s", "mean", *(f"p{name}" for name in _NAMES), "max", "stalled")
    return [
        Column(heading="Point"),
        *([Column(heading="Run")] if several else []),
        Column(heading="Verdict"),
        Column(heading="Parameters"),
        Column(heading="Clients", number=True),
        Column(heading="Op"),
        *(Column(heading=heading, number=True) for heading in numbers),
        Column(heading="Trials", number=True),
        Column(heading="Steady"),
        Column(heading="Reasons"),
    ]


def _rows(run: Run | None, result: BenchmarkResult) -> Iterator[list[Cell]]:
    operations: Sequence[OperationSummary | None] = drawable(result) or [None]
    for operation in operations:
        yield _row(run, result, operation)


def _row(run: Run | None, result: BenchmarkResult, operation: OperationSummary | None) -> list[Cell]:
    spec, status = result.spec, result.status
    verdict = verdict_text(result)
    good = len(counted(status.trials)) if operation else 0
    replaced = len(status.trials) - spec.repetitions
    return [
        Cell(text=spec.point),
        *([Cell(text=run.label)] if run else []),
        Cell(text=verdict, mark=verdict),
        Cell(text=spec.label),
        Cell(text=str(spec.clients), sort=spec.clients),
        Cell(text=operation.operation if operation else NONE),
        *(_numbers(result, operation) if operation else [Cell(text=NONE)] * (7 + len(_NAMES))),
        Cell(
            text=f"{good}/{spec.repetitions}",
            sort=good / spec.repetitions if spec.repetitions else 0,
            title=f"{len(status.trials)} attempts were recorded" if replaced > 0 else "",
        ),
        Cell(text=_steady(result, operation) if operation else NONE),
        Cell(text=" ".join(dict.fromkeys(one.reason for one in status.findings)) if operation else no_numbers(result)),
    ]


def _numbers(result: BenchmarkResult, operation: OperationSummary) -> Iterator[Cell]:
    iops, volume = operation.iops, operation.bytes_per_second.mean
    half = None if iops.low is None or iops.high is None else (iops.high - iops.low) / 2
    variation = iops.coefficient_of_variation
    yield Cell(text=rate_text(iops.mean), sort=iops.mean)
    yield Cell(text=NONE if half is None else rate_text(half), sort=half)
    yield Cell(text=NONE if variation is None else f"{100 * variation:.1f} %", sort=variation)
    yield Cell(text=f"{volume / MEBIBYTE:,.1f}", sort=volume)
    for statistic in (operation.mean_latency, *(operation.percentiles.get(name) for name in _NAMES)):
        yield _latency(statistic)
    highest = operation.latency.max_nanoseconds
    yield Cell(text=duration_text(highest), sort=highest)
    stalls = [trial.stalls.seconds for trial in counted(result.status.trials) if trial.stalls]
    yield Cell(text=f"{max(stalls):g} s", sort=max(stalls)) if stalls else Cell(text=NONE)


def _latency(statistic: Statistic | None) -> Cell:
    if statistic is None:
        return Cell(text=NONE)
    bounds = (
        "" if statistic.low is None else f"{duration_text(max(0, statistic.low))} to {duration_text(statistic.high)}"
    )
    return Cell(text=duration_text(statistic.mean), sort=statistic.mean, title=bounds)


def _steady(result: BenchmarkResult, operation: OperationSummary) -> str:
    """Return whether all trials that count had come to rest, by operations per second."""
    judged = [
        one.steady_state.rate.attained
        for trial in counted(result.status.trials)
        for one in trial.operations
        if one.operation is operation.operation and one.steady_state
    ]
    return ("yes" if all(judged) else "no") if judged else "not judged"
