"""`plimsoll percentile RESULT P`: any percentile, from the histograms in the results."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from operator import attrgetter

import click

from plimsoll.api.names import LatencyKind, Operation, format_duration
from plimsoll.api.operation import Latency, OperationResult, OperationSummary
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.source import load_results, selected_points
from plimsoll.measure.histogram import MINIMUM_BEYOND, OPEN_BIN, Histogram, HistogramError, bin_bounds
from plimsoll.measure.text import first_few
from plimsoll.report.view import Column

_TRIAL = re.compile(r"(?P<pass>[0-9]{1,4})(?:\.(?P<attempt>[0-9]{1,4}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileAnswer:
    """One percentile, or the reason why it is absent."""

    point: str
    operation: str
    percentile: float
    nanoseconds: int | None = None  # midpoint of the histogram's bin, off by at most 0.8 %; None if absent
    operations: int
    beyond: int | None = None  # operations beyond it
    because: str = ""


@click.command()
@click.argument("result")
@click.argument("percentile", type=click.FloatRange(min=0, max=100, min_open=True, max_open=True))
@click.option("--operation", type=click.Choice([name.value for name in Operation]), help="Only this operation.")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--trial", metavar="PASS[.ATTEMPT]", help="Only this trial; by default all that count, merged.")
@output_option(TABLE, JSON, YAML, CSV)
@cluster_options
def command(
    *, result: str, percentile: float, operation: str | None, points: tuple[str, ...], trial: str | None, output: str
) -> None:
    """Read the latency below which PERCENTILE of 100 operations stay, such as 99.95, from the stored histograms.

    RESULT is given as for `plimsoll compare`. A percentile with fewer than ten operations beyond it depends on single
    operations and is absent. The percentile of all trials together is for display: `plimsoll compare` uses that of
    each trial. Trials of a search for the line have different loads: choose one of its probes with --trial.
    """
    results = selected_points(load_results(result), points)
    if trial is None:
        results = _without_searches(results, result)
    answers = [
        _answer(each.spec.point, summary.operation, summary.latency, percentile)
        for each in results
        for summary in _operations(each, trial)
        if operation in {None, summary.operation.value}
    ]
    if not answers:
        raise click.ClickException(f"{result} has no such numbers; omit --operation, --point or --trial to see all")
    match output:
        case "table":
            for answer in answers:
                what = f"{answer.point} {answer.operation} p{str(answer.percentile).removesuffix('.0')}"
                if answer.nanoseconds is None:
                    click.echo(f"{what} absent: {answer.because} ({answer.operations} operations)")
                    continue
                value = f"{format_duration(answer.nanoseconds)} = {answer.nanoseconds} ns"
                click.echo(f"{what} {value} ({answer.beyond} of {answer.operations} operations beyond)")
        case "csv":
            names = [field.name for field in fields(PercentileAnswer)]
            write_csv([Column("", attrgetter(name), key=name) for name in names], answers)
        case _:
            write_document([asdict(answer) for answer in answers], output)


def _without_searches(results: Sequence[BenchmarkResult], source: str) -> list[BenchmarkResult]:
    """Leave out searches for the line, and name them; exits if nothing else is left."""
    searches = [result.spec.point for result in results if result.spec.line is not None]
    others = [result for result in results if result.spec.line is None]
    if searches:
        message = (
            f"{first_few(searches, 4)}: a search for the line, whose trials have different loads and no percentile "
            f"together; give --trial with the number of a probe, which `{program()} results {source} --probes` lists"
        )
        if not others:
            raise click.ClickException(message)
        click.echo(f"Left out: {message}", err=True)
    return others


def _operations(result: BenchmarkResult, named: str | None) -> Sequence[OperationSummary | OperationResult]:
    """Return the operations of all trials that count, of the named attempt, or of the last one of a named pass."""
    if named is None:
        return result.status.summary.operations if result.status.summary else ()
    match = _TRIAL.fullmatch(named)
    if match is None:
        raise click.UsageError(
            f"--trial {named} is not PASS or PASS.ATTEMPT; write 0 for the first pass, 0.1 for its second attempt"
        )
    attempts = [trial for trial in result.status.trials if trial.pass_number == int(match["pass"])]
    if match["attempt"] is not None:
        attempts = [trial for trial in attempts if trial.attempt == int(match["attempt"])]
    last = max(attempts, key=lambda trial: trial.attempt, default=None)
    return last.operations if last else ()


def _answer(point: str, operation: Operation, latency: Latency, percentile: float) -> PercentileAnswer:
    answer = partial(
        PercentileAnswer, point=point, operation=operation.value, percentile=percentile, operations=latency.count
    )
    highest = "" if latency.max_nanoseconds is None else f"; the maximum is {format_duration(latency.max_nanoseconds)}"
    if latency.histogram is None:
        is_full = latency.kind is LatencyKind.FULL
        reason = (
            "the histogram of a trial that does not count is not kept" if is_full else "the tool keeps no histogram"
        )
        return answer(because=f"{reason}{highest}")
    try:
        histogram = Histogram.decode(latency.histogram)
    except HistogramError as error:
        return answer(because=f"its histogram cannot be read: {error}")
    beyond = histogram.samples_beyond(percentile)
    if beyond < MINIMUM_BEYOND:
        return answer(beyond=beyond, because=f"fewer than {MINIMUM_BEYOND} operations beyond{highest}")
    value = histogram.percentile(percentile)
    if value is None:
        end = bin_bounds(OPEN_BIN)[0] / 10**9
        return answer(beyond=beyond, because=f"beyond {end:.2f} s, where the histogram ends{highest}")
    return answer(nanoseconds=value, beyond=beyond)
