"""Throughput over time: the common window of every trial that counts, with its stalls."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, Series
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.summary import counted
from plimsoll.report.figure import colour, dash, linear_axis, vertical_line
from plimsoll.report.points import does_data_set_once, drawable, longest_stall, verdict_text
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import MEBIBYTE, NONE, count_text
from plimsoll.report.view import Block, Cell, Chart, Json, Section, Table, Text

MOST_PANELS = 12
_OPERATIONS = tuple(Operation)

_WORDS = (
    "The common window is the time in which all clients were measuring; dashed lines are its bounds. Each line is a "
    "trial that counts. Red crosses are intervals in which no client completed any operation."
)


def timeline_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the throughput over time; None if no tool recorded it.

    With many points, those with the longest stalls are shown first, then those that are not Valid, then the others.
    """
    found = [(run, result) for run in runs for result in run.results if [*series_of(result)]]
    if not found:
        return None
    # Sorting is stable.
    chosen = sorted(found, key=lambda one: (-_stall(one[1]), one[1].status.verdict is Verdict.VALID))[:MOST_PANELS]
    words = [_WORDS]
    if len(found) > MOST_PANELS:
        words.append(
            f"{len(found) - MOST_PANELS} more points are omitted: those shown have the longest stalls, are not Valid, "
            "or come first. `plimsoll results -o json` has the series of all."
        )
    several = len(runs) > 1
    charts = [
        _chart(number, run, result, several=several)
        for number, (run, result) in enumerate(one for one in found if one in chosen)
    ]
    blocks: list[Block] = [Text(paragraphs=words), *charts]
    return Section(key="time", title="Throughput over time", blocks=blocks)


def series_of(result: BenchmarkResult) -> Iterator[tuple[Trial, OperationResult]]:
    """Yield the series of the trials of a point that count."""
    for trial in counted(result.status.trials) if drawable(result) else ():
        yield from ((trial, one) for one in trial.operations if one.series and one.series.iops)


def _stall(result: BenchmarkResult) -> float:
    return longest_stall(result) or 0.0


def _chart(number: int, run: ReportedRun, result: BenchmarkResult, *, several: bool) -> Chart:
    drawn = [*series_of(result)]
    trials = counted(result.status.trials)
    with_series = {trial.pass_number for trial, _ in drawn}
    missing = [trial for trial in trials if trial.pass_number not in with_series]
    name = f"{result.spec.point}" + (f", {run.label}" if several else "")
    end = max((trial.window.seconds for trial in trials if trial.window), default=0.0)
    in_bytes = does_data_set_once(result)
    unit = "MiB per second" if in_bytes else "operations per second"
    return Chart(
        key=f"time-{number}",
        title=f"{name}: {result.spec.label}, {count_text(result.spec.clients, 'client')}{_absent(missing)}",
        description=(
            f"{unit[0].upper()}{unit[1:]} of {name} over the window of {len(with_series)} trials, up to {end:g} s "
            f"long. Verdict {verdict_text(result)}; longest stall {_stall(result):g} s."
        ),
        data=[*(_trace(trial, one, in_bytes=in_bytes) for trial, one in drawn), *_stalls(trials)],
        layout={
            "xaxis": {"title": {"text": "seconds of the common window"}, "range": [-0.02 * end, 1.02 * end]},
            "yaxis": linear_axis(unit),
            "shapes": [vertical_line(x, "$muted", "dash") for x in (0.0, end)],
            "showlegend": True,
        },
        height=300,
        table=_table(name, trials),
    )


def _absent(trials: Sequence[Trial]) -> str:
    """Return the trials that count but are not shown, because a client recorded no series."""
    return f" ({', '.join(map(attempt_text, trials))} has no series)" if trials else ""


def _trace(trial: Trial, one: OperationResult, *, in_bytes: bool) -> Json:
    series = one.series
    if series is None:
        return {}
    ios, volumes = [*series.iops, series.iops[-1]], mebibytes_of(series)
    hover = ("customdata:,.0f", "y:,.1f") if in_bytes else ("y:,.0f", "customdata:,.1f")
    return {
        **line(trial, one),
        "x": edges(trial, series),
        "y": volumes if in_bytes else ios,
        "customdata": ios if in_bytes else volumes,
        "hovertemplate": "%{{{}}} IOPS, %{{{}}} MiB/s<extra>".format(*hover) + f"{line_name(trial, one)}</extra>",
    }


def line(trial: Trial, one: OperationResult) -> Json:
    """Return the line of a trial without its places; it holds each rate to the end of its interval."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": line_name(trial, one),
        "line": {
            "color": colour(_OPERATIONS.index(one.operation)),
            "dash": dash(trial.pass_number),
            "width": 1.8,
            "shape": "hv",
        },
    }


def line_name(trial: Trial, one: OperationResult) -> str:
    """Return operation and pass, and the verdict unless the trial is Valid."""
    mark = "" if trial.verdict is Verdict.VALID else f" ({trial.verdict})"
    return f"{one.operation}, pass {trial.pass_number}{mark}"


def mebibytes_of(series: Series) -> list[float]:
    """Return MiB per second at each of the `edges`, from there on."""
    rates = [rate / MEBIBYTE for rate in series.bytes_per_second]
    return [*rates, rates[-1]]


def edges(trial: Trial, series: Series) -> list[float]:
    """Return the start of each interval and the end of the last one, in seconds of the common window."""
    starts = [0.0, *accumulate([float(series.interval_seconds)] * (len(series.iops) - 1))]
    end = trial.window.seconds if trial.window else starts[-1] + series.interval_seconds
    return [*starts, max(end, starts[-1])]


def _stalls(trials: Sequence[Trial]) -> Iterator[Json]:
    """Yield markers of the intervals without any completed operation."""
    times = [time for trial in trials for time in _empty(trial)]
    if times:
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": "nothing completed",
            "x": times,
            "y": [0.0] * len(times),
            "marker": {"color": "$bad", "symbol": "x", "size": 9},
            "hovertemplate": "%{x:.1f} s: nothing completed<extra></extra>",
        }


def _empty(trial: Trial) -> Iterator[float]:
    """Yield the middle of every interval of a trial without any operation or byte."""
    series = [one.series for one in trial.operations if one.series]
    counts = (one.iops if any(one.iops) else one.bytes_per_second for one in series)
    for place, rates in enumerate(zip(*counts, strict=False)):
        if not any(rates):
            yield (place + 0.5) * series[0].interval_seconds


def _table(name: str, trials: Sequence[Trial]) -> Table:
    numbers = ("Window", "Overlap", "Start spread", "All stalled", "Worst client stalled")
    return Table(
        caption=f"Windows of {name}",
        headings=("Trial", *numbers, "Verdict"),
        numbers=numbers,
        rows=[_row(trial) for trial in trials],
    )


def _row(trial: Trial) -> list[Cell]:
    window, stalls = trial.window, trial.stalls
    client = "" if stalls is None or stalls.worst_client is None else f" (client {stalls.worst_client})"
    return [
        Cell(text=attempt_text(trial)),
        Cell(text=f"{window.seconds:.3f} s" if window else NONE),
        Cell(text=f"{window.overlap:.3f}" if window else NONE),
        Cell(text=f"{window.spread_seconds:.3f} s" if window else NONE),
        Cell(text=f"{stalls.seconds:g} s" if stalls else NONE),
        Cell(text=f"{stalls.worst_client_seconds:g} s{client}" if stalls else NONE),
        Cell(text=trial.verdict, mark=trial.verdict),
    ]


def attempt_text(trial: Trial) -> str:
    """Return the name of an attempt; passes and attempts count from 0, and the first attempt is not named."""
    again = f", attempt {trial.attempt}" if trial.attempt else ""
    return f"pass {trial.pass_number}{again}"


def outcome_text(trial: Trial) -> str:
    """Return the verdict of an attempt, or `Aborted`."""
    return Outcome.ABORTED.value if trial.outcome is Outcome.ABORTED else trial.verdict.value
