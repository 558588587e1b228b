"""`plimsoll noise RESULT [SAME...]`: the smallest change that a comparison can detect."""

from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, rule_of, rule_options, write_csv, write_document
from plimsoll.cli.source import load_results
from plimsoll.cli.tables import FittedColumn, FittedTable, stdout_console
from plimsoll.measure.compare.comparison import quantity_text
from plimsoll.measure.compare.noise import MetricNoise, noise_of
from plimsoll.measure.compare.values import RepeatsError, check_distinct, match_points, operation_text
from plimsoll.measure.metric import MINIMUM_TRIALS
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.view import count_text, metric_text, ratio_text

COLUMNS = (
    *("point", "operation", "metric", "gates", "trials", "mean", "deviation", "within", "between", "runs"),
    *("detectable", "threshold", "note"),
)
"""Columns of CSV, a row per metric: operations and bytes per second, nanoseconds, and ratios to the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoiseLine:
    """The noise of one metric. Only the first one of a point shows its name."""

    result: BenchmarkResult
    noise: MetricNoise
    is_first: bool


@click.command()
@click.argument("result")
@click.argument("same", nargs=-1)
@rule_options
@click.option(
    "--trials",
    type=click.IntRange(min=MINIMUM_TRIALS, max=1000),
    help="Trials on each side of a future comparison; the planned trials of RESULT by default.",
)
@output_option(TABLE, JSON, YAML, CSV)
@cluster_options
def command(
    *,
    result: str,
    same: tuple[str, ...],
    threshold_rate: float,
    threshold_latency: float,
    gates: tuple[str, ...],
    trials: int | None,
    output: str,
) -> None:
    """Show the scatter of the trials of RESULT, and the smallest change that a comparison with it can detect.

    SAME are further runs with nothing changed: only they show the noise between runs. Two runs show little; five are
    enough to detect changes about five times as large as the noise. All are given as for `plimsoll compare`.
    """
    groups = _with_same(load_results(result), result, [(source, load_results(source)) for source in same])
    rule = rule_of(threshold_rate, threshold_latency, gates)
    lines = [
        _NoiseLine(result=results[0], noise=noise, is_first=number == 0)
        for results in groups
        for number, noise in enumerate(
            noise_of(results, rule, trials or max(MINIMUM_TRIALS, results[0].spec.repetitions))
        )
    ]
    if output == CSV:
        write_csv(COLUMNS, map(_row, lines))
        return
    if output != TABLE:
        documents = [{"point": line.result.spec.point, **line.noise.model_dump(mode="json")} for line in lines]
        write_document(documents, output)
        return
    console = stdout_console()
    console.print(FittedTable(rows=lines, layouts=(_LAYOUT, _NARROW), missed=_LAYOUT, remedy="-o json"))
    for line in lines:
        if line.noise.note and line.noise.gates:
            place = f"{line.result.spec.point} {quantity_text(line.noise.operation, line.noise.metric)}"
            console.print(Text(f"{place}: {line.noise.note}"), soft_wrap=True)


def _with_same(
    first: Sequence[BenchmarkResult], name: str, same: Sequence[tuple[str, Sequence[BenchmarkResult]]]
) -> list[list[BenchmarkResult]]:
    """Return the results of each point over all runs; refuses different specifications, and the same run twice."""
    sources = ", ".join([name, *(source for source, _ in same)])
    try:
        check_distinct([first, *(run for _, run in same)])
    except RepeatsError as error:
        raise click.ClickException(f"{sources}: {error}") from error
    groups = [[result] for result in first]
    for source, run in same:
        matching = match_points(first, run)
        if not matching.pairs or not likeness_of(matching.pairs).is_same:
            raise click.ClickException(
                f"{source} has another specification than {name}; `{program()} compare {name} {source}` lists the "
                "differences"
            )
        others = {pair.baseline.spec.point: pair.candidate for pair in matching.pairs}
        groups = [[*group, others[group[0].spec.point]] for group in groups if group[0].spec.point in others]
    if not groups:
        raise click.ClickException(f"{sources} have no point in common; name runs of the same workloads")
    return groups


def _row(line: _NoiseLine) -> dict[str, object]:
    noise = line.noise.model_dump(mode="json", by_alias=False)
    row = {**noise, **noise["side"], "point": line.result.spec.point}
    return {name: row[name] for name in COLUMNS}


def _verdict(noise: MetricNoise) -> Text:
    if noise.note:
        return Text("ungateable", style="red" if noise.gates else "dim")
    return Text("gates", style="green") if noise.gates else Text("could gate", style="dim")


def _point(line: _NoiseLine) -> str:
    spec = line.result.spec
    return f"{spec.workload} {spec.label}, {count_text(spec.clients, 'client')}" if line.is_first else ""


def _percent(part: float | None) -> str:
    return ratio_text(part, decimals=1)


_Column = FittedColumn[_NoiseLine]
_POINT = _Column(heading="Point", cell=_point, folded=True)
_NOISE = (
    _Column(heading="Op", cell=lambda line: operation_text(line.noise.operation, line.noise.metric)),
    _Column(heading="Metric", cell=lambda line: line.noise.metric.value),
    _Column(heading="Mean", cell=lambda line: metric_text(line.noise.metric, line.noise.side.mean), right=True),
    _Column(heading="Trials", cell=lambda line: str(line.noise.side.trials), right=True),
    _Column(heading="Scatter", cell=lambda line: _percent(line.noise.side.deviation), right=True),
    _Column(heading="Between runs", cell=lambda line: _percent(line.noise.between), right=True),
    _Column(heading="Detectable", cell=lambda line: _percent(line.noise.detectable), right=True),
    _Column(heading="Threshold", cell=lambda line: _percent(line.noise.threshold), right=True),
    _Column(heading="", cell=lambda line: _verdict(line.noise)),
)
_LAYOUT = (_POINT, *_NOISE)
_NARROW = (_POINT, _NOISE[0], _NOISE[1], _NOISE[6], _NOISE[8])
