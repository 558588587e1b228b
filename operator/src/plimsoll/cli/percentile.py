"""`plimsoll percentile RESULT P`: any percentile, from the histograms in the results."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields

import click

from plimsoll.api.names import LatencyKind, Operation, format_duration
from plimsoll.api.operation import Latency
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.source import load_results, selected_points
from plimsoll.measure.histogram import MINIMUM_BEYOND, OPEN_BIN, Histogram, HistogramError, bin_bounds
from plimsoll.report.view import first_few

_TRIAL = re.compile(r"(?P<pass>[0-9]{1,4})(?:\.(?P<attempt>[0-9]{1,4}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileAnswer:
    """One percentile, or the reason why it is absent.

    Attributes:
        nanoseconds: midpoint of the histogram's bin, off by at most 0.8 %; None if absent.
        beyond: operations beyond it.

    """

    point: str
    operation: str
    percentile: float
    nanoseconds: int | None
    operations: int
    beyond: int | None = None
    because: str = ""


@click.command()
@click.argument("result")
@click.argument("percentile", type=click.FloatRange(min=0, max=100, min_open=True, max_open=True))
@click.option("--operation", type=click.Choice([one.value for one in Operation]), help="Only this operation.")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--trial", metavar="PASS[.ATTEMPT]", help="Only this trial; by default all that count, merged.")
@output_option(TABLE, JSON, YAML, CSV)
@cluster_options
def command(
    *,
    result: str,
    percentile: float,
    operation: str | None,
    points: tuple[str, ...],
    trial: str | None,
    output: str,
) -> None:
    """Read the latency below which PERCENTILE of 100 operations stay, such as 99.95, from the stored histograms.

    RESULT is given as for `plimsoll compare`. A percentile with fewer than ten operations beyond it depends on single
    operations and is absent. The percentile of all trials together is for display: `plimsoll compare` uses that of
    each trial. Trials of a search for the line have different loads: choose one of its probes with --trial.
    """
    found = selected_points(load_results(result), points)
    if trial is None:
        found = _without_searches(found, result)
    answers = [*_answers(found, percentile, operation, trial)]
    if not answers:
        message = f"{result} has no such numbers; omit --operation, --point or --trial to see all"
        raise click.ClickException(message)
    match output:
        case "table":
            click.echo("\n".join(map(_line, answers)))
        case "csv":
            write_csv([field.name for field in fields(PercentileAnswer)], map(asdict, answers))
        case _:
            write_document([asdict(answer) for answer in answers], output)


def _without_searches(results: Sequence[BenchmarkResult], source: str) -> list[BenchmarkResult]:
    """Leave out searches for the line, and name them.

    Raises:
        click.ClickException: if nothing else is left.

    """
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


def _answers(
    results: Sequence[BenchmarkResult], percentile: float, operation: str | None, trial: str | None
) -> Iterator[PercentileAnswer]:
    for result in results:
        for name, latency in _latencies(result, trial):
            if operation in {None, name.value}:
                yield _answer(result.spec.point, name, latency, percentile)


def _latencies(result: BenchmarkResult, trial: str | None) -> list[tuple[Operation, Latency]]:
    """Return the latency of each operation, in one trial or in all that count."""
    if trial is not None:
        found = _trial(result, trial)
        return [(one.operation, one.latency) for one in found.operations] if found else []
    summary = result.status.summary
    return [(one.operation, one.latency) for one in summary.operations] if summary else []


def _trial(result: BenchmarkResult, named: str) -> Trial | None:
    """Return the named attempt, or the last one of a pass; None if there is none."""
    match = _TRIAL.fullmatch(named)
    if match is None:
        message = f"--trial {named} is not PASS or PASS.ATTEMPT; write 0 for the first pass, 0.1 for its second attempt"
        raise click.UsageError(message)
    attempts = [trial for trial in result.status.trials if trial.pass_number == int(match["pass"])]
    if match["attempt"] is not None:
        attempts = [trial for trial in attempts if trial.attempt == int(match["attempt"])]
    return max(attempts, key=lambda trial: trial.attempt, default=None)


def _answer(point: str, operation: Operation, latency: Latency, percentile: float) -> PercentileAnswer:
    def answer(value: int | None, beyond: int | None = None, because: str = "") -> PercentileAnswer:
        return PercentileAnswer(
            point=point,
            operation=operation.value,
            percentile=percentile,
            nanoseconds=value,
            operations=latency.count,
            beyond=beyond,
            because=because,
        )

    highest = "" if latency.max_nanoseconds is None else f"; the maximum is {format_duration(latency.max_nanoseconds)}"
    if latency.histogram is None:
        known = latency.kind is LatencyKind.FULL
        reason = "the histogram of a trial that does not count is not kept" if known else "the tool keeps no histogram"
        return answer(None, because=f"{reason}{highest}")
    try:
        histogram = Histogram.decode(latency.histogram)
    except HistogramError as error:
        return answer(None, because=f"its histogram cannot be read: {error}")
    beyond = histogram.samples_beyond(percentile)
    if beyond < MINIMUM_BEYOND:
        return answer(None, beyond, f"fewer than {MINIMUM_BEYOND} operations beyond{highest}")
    value = histogram.percentile(percentile)
    if value is None:
        end = bin_bounds(OPEN_BIN)[0] / 10**9
        return answer(None, beyond, f"beyond {end:.2f} s, where the histogram ends{highest}")
    return answer(value, beyond)


def _line(answer: PercentileAnswer) -> str:
    what = f"{answer.point} {answer.operation} p{str(answer.percentile).removesuffix('.0')}"
    if answer.nanoseconds is None:
        return f"{what} absent: {answer.because} ({answer.operations} operations)"
    value = f"{format_duration(answer.nanoseconds)} = {answer.nanoseconds} ns"
    return f"{what} {value} ({answer.beyond} of {answer.operations} operations beyond)"
