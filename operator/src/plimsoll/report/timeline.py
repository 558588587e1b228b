"""Throughput over time: the common window of every trial that counts, with the seconds in which nothing completed."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.result import BenchmarkResult, OperationResult, Trial
from plimsoll.measure.summary import counted
from plimsoll.report.figure import MEBIBYTE, NONE, colour, dash, linear_axis
from plimsoll.report.points import CLIENTS, axis_text, drawable, verdict_text
from plimsoll.report.runs import Run
from plimsoll.report.view import Block, Cell, Chart, Column, Json, Section, Table, Text

MOST_PANELS = 12
_OPERATIONS = tuple(Operation)

_WORDS = (
    "Time runs from the start of the common window, in which all clients were measuring, to its end; dashed lines "
    "bound it. A line is one trial that counts. Red crosses are intervals in which no client completed anything."
)


def timeline_section(runs: Sequence[Run]) -> Section | None:
    """Return the throughput over time; None if no tool kept any.

    Of many points those are shown that stood still longest, then those that are not Valid, then the others in order.
    """
    found = [(run, result) for run in runs for result in run.results if [*_series(result)]]
    if not found:
        return None
    # Sorting keeps the order of what is alike.
    chosen = sorted(found, key=lambda one: (-_stalled(one[1]), one[1].status.verdict is Verdict.VALID))[:MOST_PANELS]
    words = [_WORDS]
    if len(found) > MOST_PANELS:
        words.append(
            f"{len(found) - MOST_PANELS} more points are left out: those shown stood still longest, or are not Valid, "
            "or come first. `plimsoll results -o json` has the series of all."
        )
    several = len(runs) > 1
    charts = [
        _chart(number, run, result, several=several)
        for number, (run, result) in enumerate(one for one in found if one in chosen)
    ]
    blocks: list[Block] = [Text(paragraphs=words), *charts]
    return Section(key="time", title="Throughput over time", blocks=blocks)


def _series(result: BenchmarkResult) -> Iterator[tuple[Trial, OperationResult]]:
    """Yield what is drawn of a point: the series of its trials that count."""
    for trial in counted(result.status.trials) if drawable(result) else ():
        yield from ((trial, one) for one in trial.operations if one.series and one.series.iops)


def _stalled(result: BenchmarkResult) -> float:
    """Return the seconds without any completed operation, in the worst trial that counts."""
    return max((one.stalls.seconds for one in counted(result.status.trials) if one.stalls), default=0.0)


def _chart(number: int, run: Run, result: BenchmarkResult, *, several: bool) -> Chart:
    drawn = [*_series(result)]
    trials = counted(result.status.trials)
    with_series = {trial.pass_number for trial, _ in drawn}
    missing = [trial for trial in trials if trial.pass_number not in with_series]
    name = f"{result.spec.point}" + (f", {run.label}" if several else "")
    end = max((trial.window.seconds for trial in trials if trial.window), default=0.0)
    return Chart(
        key=f"time-{number}",
        title=f"{name}: {result.spec.label}, {axis_text(CLIENTS, result.spec.clients)}{_absent(missing)}",
        description=(
            f"Operations per second of {name} over the window of {len(with_series)} trials, up to {end:g} s long. "
            f"Verdict {verdict_text(result)}; longest standstill {_stalled(result):g} s."
        ),
        data=[*(_trace(trial, one) for trial, one in drawn), *_standstills(trials)],
        layout={
            "xaxis": {"title": {"text": "seconds of the common window"}, "range": [-0.02 * end, 1.02 * end]},
            "yaxis": linear_axis("operations per second"),
            "shapes": [_edge(0.0), _edge(end)],
            "showlegend": True,
        },
        height=300,
        table=_table(name, trials),
    )


def _absent(trials: Sequence[Trial]) -> str:
    """Name the trials that count but are not drawn: a client kept no series."""
    return f" ({', '.join(map(attempt_text, trials))} has no series)" if trials else ""


def _trace(trial: Trial, one: OperationResult) -> Json:
    times, iops = _steps(trial, one)
    name = f"{one.operation}, pass {trial.pass_number}"
    if trial.verdict is not Verdict.VALID:
        name += f" ({trial.verdict})"
    volumes = [0.0] if one.series is None else [volume / MEBIBYTE for volume in one.series.bytes_per_second]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": times,
        "y": iops,
        "customdata": [*volumes, volumes[-1]],
        "line": {
            "color": colour(_OPERATIONS.index(one.operation)),
            "dash": dash(trial.pass_number),
            "width": 1.8,
            "shape": "hv",
        },
        "hovertemplate": "%{y:,.0f} IOPS, %{customdata:,.1f} MiB/s<extra>" + name + "</extra>",
    }


def _steps(trial: Trial, one: OperationResult) -> tuple[list[float], list[float]]:
    """Return the start of each interval and the end of the last one, and the rates that hold from there on."""
    if one.series is None:
        return [], []
    rates = [*one.series.iops]
    starts = [0.0, *accumulate([float(one.series.interval_seconds)] * (len(rates) - 1))]
    end = trial.window.seconds if trial.window else starts[-1] + one.series.interval_seconds
    return [*starts, max(end, starts[-1])], [*rates, rates[-1]]


def _standstills(trials: Sequence[Trial]) -> Iterator[Json]:
    """Yield the marks of the intervals in which no operation of any kind completed."""
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
    """Yield the middle of every interval without any operation of a trial."""
    series = [one.series for one in trial.operations if one.series]
    for place, rates in enumerate(zip(*(one.iops for one in series), strict=False)):
        if not any(rates):
            yield (place + 0.5) * series[0].interval_seconds


def _edge(second: float) -> Json:
    """Return a bound of the window."""
    line = {"color": "$muted", "dash": "dash", "width": 1}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": second, "x1": second, "y0": 0, "y1": 1, "line": line}


def _table(name: str, trials: Sequence[Trial]) -> Table:
    return Table(
        caption=f"Windows of {name}",
        columns=[
            Column(heading="Trial"),
            Column(heading="Window", number=True),
            Column(heading="Overlap", number=True),
            Column(heading="Start spread", number=True),
            Column(heading="All stood still", number=True),
            Column(heading="Worst client stood still", number=True),
            Column(heading="Verdict"),
        ],
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
    """Return what an attempt is called everywhere: pass and attempt count from 0, and the first goes without saying."""
    again = f", attempt {trial.attempt}" if trial.attempt else ""
    return f"pass {trial.pass_number}{again}"


def outcome_text(trial: Trial) -> str:
    """Return the verdict of an attempt, or that it was aborted."""
    return Outcome.ABORTED.value if trial.outcome is Outcome.ABORTED else trial.verdict.value
