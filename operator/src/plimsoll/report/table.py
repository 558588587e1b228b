"""The table of all points."""

from collections.abc import Iterator, Sequence

from plimsoll.api.line import LineSearch
from plimsoll.api.operation import OperationSummary, Statistic
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.histogram import PERCENTILES
from plimsoll.measure.line.summary import headline_text, line_probes_text
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import counted, iops_of
from plimsoll.report.points import drawable, is_steady, longest_stall, verdict_text
from plimsoll.report.runs import ReportedRun
from plimsoll.report.searches import line_of
from plimsoll.report.text import NONE, duration_text, mebibytes, ratio_text
from plimsoll.report.verdicts import no_numbers
from plimsoll.report.view import Cell, Section, Table, Text

_NAMES = [str(p) for p in PERCENTILES]
_COLUMNS_OF_NUMBERS = 7 + len(_NAMES)

_WORDS = (
    "Rates and latencies are means over the trials that count; ± is half the 95 % confidence interval (Student's "
    "t), CV the standard deviation divided by the mean. A percentile is the mean of the trials' own percentiles, "
    "absent where a trial has fewer than ten operations beyond it. A search for the line has no means: its line is in "
    "the last column. Click a heading to sort."
)


def results_section(runs: Sequence[ReportedRun]) -> Section:
    """Return every operation of every point; a point without numbers has the reason."""
    several = len(runs) > 1
    rows = [row for run in runs for result in run.results for row in _rows(run if several else None, result)]
    numbers = ("IOPS", "±", "CV", "MiB/s", "mean", *(f"p{name}" for name in _NAMES), "max", "stalled")
    names = ("Point", *(["Run"] if several else []), "Verdict", "Parameters", "Clients", "Op")
    table = Table(
        caption="All points",
        headings=(*names, *numbers, "Trials", "Steady", "Reasons"),
        numbers=("Clients", *numbers, "Trials"),
        rows=rows,
        sortable=True,
    )
    return Section(key="results", title="Results", blocks=[Text(paragraphs=[_WORDS]), table])


def _rows(run: ReportedRun | None, result: BenchmarkResult) -> Iterator[list[Cell]]:
    if (search := result.spec.line) is not None:
        yield _search_row(run, result, search)
        return
    operations: Sequence[OperationSummary | None] = drawable(result) or [None]
    for operation in operations:
        yield _row(run, result, operation)


def _search_row(run: ReportedRun | None, result: BenchmarkResult, search: LineSearch) -> list[Cell]:
    """Return the line of a search; it has no means, because its trials had different loads."""
    line = line_of(result)
    reasons = " ".join(dict.fromkeys(one.reason for one in result.status.findings))
    return [
        *_described(run, result),
        *[Cell(text=NONE)] * (_COLUMNS_OF_NUMBERS + 1),
        Cell(
            text=line_probes_text(line),
            sort=line.probes,
            title=f"probes of a search; it may make {result.spec.repetitions}",
        ),
        Cell(text=NONE),
        Cell(text=" ".join(filter(None, (headline_text(line, search), reasons)))),
    ]


def _described(run: ReportedRun | None, result: BenchmarkResult) -> list[Cell]:
    spec, verdict = result.spec, verdict_text(result)
    return [
        Cell(text=spec.point),
        *([Cell(text=run.label)] if run else []),
        Cell(text=verdict, mark=verdict),
        Cell(text=spec.label),
        Cell(text=str(spec.clients), sort=spec.clients),
    ]


def _row(run: ReportedRun | None, result: BenchmarkResult, operation: OperationSummary | None) -> list[Cell]:
    spec, status = result.spec, result.status
    good = len(counted(status.trials)) if operation else 0
    replaced = len(status.trials) - spec.repetitions
    return [
        *_described(run, result),
        Cell(text=operation.operation if operation else NONE),
        *(_numbers(result, operation) if operation else [Cell(text=NONE)] * _COLUMNS_OF_NUMBERS),
        Cell(
            text=f"{good}/{spec.repetitions}",
            sort=good / spec.repetitions if spec.repetitions else 0,
            title=f"{len(status.trials)} recorded attempts" if replaced > 0 else "",
        ),
        Cell(text=_steady(result, operation) if operation else NONE),
        Cell(text=" ".join(dict.fromkeys(one.reason for one in status.findings)) if operation else no_numbers(result)),
    ]


def _numbers(result: BenchmarkResult, operation: OperationSummary) -> Iterator[Cell]:
    volume = operation.bytes_per_second.mean
    yield from _rate(iops_of(operation))
    yield Cell(text=mebibytes(volume), sort=volume)
    for statistic in (operation.mean_latency, *(operation.percentiles.get(name) for name in _NAMES)):
        yield _latency(statistic)
    highest = operation.latency.max_nanoseconds
    yield Cell(text=duration_text(highest), sort=highest)
    stall = longest_stall(result)
    yield Cell(text=NONE if stall is None else f"{stall:g} s", sort=stall)


def _rate(iops: Statistic | None) -> list[Cell]:
    """Return the operations per second, half their interval, and their variation."""
    if iops is None:
        return [Cell(text=NONE)] * 3
    half, variation = iops.half_width, iops.coefficient_of_variation
    return [
        Cell(text=rate_text(iops.mean), sort=iops.mean),
        Cell(text=NONE if half is None else rate_text(half), sort=half),
        Cell(text=ratio_text(variation, decimals=1), sort=variation),
    ]


def _latency(statistic: Statistic | None) -> Cell:
    if statistic is None:
        return Cell(text=NONE)
    bounds = (
        "" if statistic.low is None else f"{duration_text(max(0, statistic.low))} to {duration_text(statistic.high)}"
    )
    return Cell(text=duration_text(statistic.mean), sort=statistic.mean, title=bounds)


def _steady(result: BenchmarkResult, operation: OperationSummary) -> str:
    return {True: "yes", False: "no", None: "not judged"}[is_steady(result, operation.operation)]
