"""Throughput over the data set: of points whose clients work through their data sets once."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from plimsoll.api.operation import OperationResult
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.report.figure import MOST_FIGURES, does_data_set_once, limited, linear_axis, verdict_text
from plimsoll.report.inputs import ReportedRun
from plimsoll.report.trials import edges, line, line_name, mebibytes_of, series_of
from plimsoll.report.view import MEBIBYTE, Chart, Json, Section, count_text

_GIBIBYTE_MEBIBYTES = 1024

_WORDS = (
    "Each client works through its data set once. The horizontal axis is the part that a client has done, on average "
    "over the clients; with a sequential pattern, this is the position in the data set. Rates that change at the same "
    "position in every trial depend on the place, such as the outer and inner tracks of a disk, or on how much was "
    "written, such as a cache that is full. Time without any completed operation has no width here."
)


def positions_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the throughput over the data set; None without points that do their data sets once."""
    found = [
        (run, result) for run in runs for result in run.results if does_data_set_once(result) and [*series_of(result)]
    ]
    charts = [_chart(number, run, result, several=len(runs) > 1) for number, (run, result) in enumerate(found)]
    if not charts:
        return None
    blocks = [*limited(_WORDS, charts, MOST_FIGURES, "`plimsoll results -o json` has the series of all")]
    return Section(key="position", title="Throughput over the data set", blocks=blocks)


def _chart(number: int, run: ReportedRun, result: BenchmarkResult, *, several: bool) -> Chart:
    drawn = [*series_of(result)]
    name = result.spec.point + (f", {run.label}" if several else "")
    done = {trial.pass_number: _done(trial, result.spec.clients) for trial, _ in drawn}
    most = max(places[-1] for places in done.values())
    unit, scale = ("GiB", _GIBIBYTE_MEBIBYTES) if most >= _GIBIBYTE_MEBIBYTES else ("MiB", 1)
    return Chart(
        key=f"position-{number}",
        title=f"{name}: {result.spec.label}, {count_text(result.spec.clients, 'client')}",
        description=(
            f"MiB per second of {name} over its data set in {count_text(len(done), 'trial')}, up to "
            f"{most / scale:.4g} {unit} per client. Verdict {verdict_text(result)}."
        ),
        data=[_trace(trial, one, [place / scale for place in done[trial.pass_number]], unit) for trial, one in drawn],
        layout={
            "xaxis": linear_axis(f"{unit} of the data set done by each client"),
            "yaxis": linear_axis("MiB per second"),
            "showlegend": True,
        },
        height=300,
    )


def _done(trial: Trial, clients: int) -> list[float]:
    """Return the MiB that a client has done at each of the `edges`, over all operations."""
    return [0.0, *accumulate(volume / clients / MEBIBYTE for volume in _volumes(trial))]


def _volumes(trial: Trial) -> Iterator[float]:
    """Yield the bytes of all clients in each interval."""
    known = [one.series for one in trial.operations if one.series]
    lengths = [end - start for start, end in pairwise(edges(trial, known[0]))]
    for length, *rates in zip(lengths, *(series.bytes_per_second for series in known), strict=False):
        yield length * sum(rates)


def _trace(trial: Trial, one: OperationResult, places: Sequence[float], unit: str) -> Json:
    return {
        **line(trial, one),
        "x": [*places],
        "y": [] if one.series is None else mebibytes_of(one.series),
        "hovertemplate": f"%{{y:,.1f}} MiB/s after %{{x:,.4g}} {unit}<extra>{line_name(trial, one)}</extra>",
    }
