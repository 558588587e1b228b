"""`plimsoll noise RESULT [SAME...]`: the smallest change that a comparison can detect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, rule_of, rule_options, write_csv, write_document
from plimsoll.cli.source import load_results, runs_of
from plimsoll.cli.tables import FittedColumn, FittedTable, stdout_console, text_of
from plimsoll.measure.compare.comparison import quantity_text
from plimsoll.measure.compare.noise import MetricNoise, noise_of
from plimsoll.measure.compare.tests import MINIMUM_TRIALS
from plimsoll.measure.compare.values import RegressionRule, match_points, operation_text
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.view import count_text, metric_text, ratio_text

_MOST_TRIALS = 1000

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
    type=click.IntRange(min=MINIMUM_TRIALS, max=_MOST_TRIALS),
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
    found = load_results(result)
    groups = _with_same(found, result, [(source, load_results(source)) for source in same])
    lines = [*_lines(groups, rule_of(threshold_rate, threshold_latency, gates), trials)]
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
    found: Sequence[BenchmarkResult], name: str, same: Sequence[tuple[str, Sequence[BenchmarkResult]]]
) -> list[list[BenchmarkResult]]:
    """Return the results of each point over all runs; refuses different specifications, and the same run twice."""
    groups, seen = [[result] for result in found], {name: runs_of(found)}
    for source, run in same:
        matching = match_points(found, run)
        if not matching.pairs or not likeness_of(matching.pairs).is_same:
            message = (
                f"{source} has another specification than {name}; `{program()} compare {name} {source}` lists the "
                "differences"
            )
            raise click.ClickException(message)
        twin = next((known for known, runs in seen.items() if runs == runs_of(run)), None)
        if twin is not None:
            message = f"{twin} and {source} are the same run; name different runs, or only one of them"
            raise click.ClickException(message)
        seen[source] = runs_of(run)
        others = {pair.baseline.spec.point: pair.candidate for pair in matching.pairs}
        groups = [[*group, *([others[point]] if (point := group[0].spec.point) in others else [])] for group in groups]
    shared = [group for group in groups if len(group) == len(seen)]
    if not shared:
        message = f"{', '.join(seen)} have no point in common; name runs of the same workloads"
        raise click.ClickException(message)
    return shared


def _lines(
    groups: Sequence[Sequence[BenchmarkResult]], rule: RegressionRule, trials: int | None
) -> Iterator[_NoiseLine]:
    for results in groups:
        planned = max(MINIMUM_TRIALS, results[0].spec.repetitions)
        for number, noise in enumerate(noise_of(results, rule, trials or planned)):
            yield _NoiseLine(result=results[0], noise=noise, is_first=number == 0)


def _row(line: _NoiseLine) -> dict[str, object]:
    noise = line.noise.model_dump(mode="json", by_alias=False)
    row = {**noise, **noise["side"], "point": line.result.spec.point}
    return {name: row[name] for name in COLUMNS}


def _point(line: _NoiseLine) -> Text:
    spec = line.result.spec
    return Text(f"{spec.workload} {spec.label}, {count_text(spec.clients, 'client')}" if line.is_first else "")


def _verdict(line: _NoiseLine) -> Text:
    if not line.noise.note:
        return Text("gates" if line.noise.gates else "could gate", style="green" if line.noise.gates else "dim")
    return Text("ungateable", style="red" if line.noise.gates else "dim")


def _percent(part: float | None) -> str:
    return ratio_text(part, decimals=1)


_Column = FittedColumn[_NoiseLine]
_POINT = _Column(heading="Point", cell=_point, folded=True)
_NOISE = (
    _Column(heading="Op", cell=text_of(lambda line: operation_text(line.noise.operation, line.noise.metric))),
    _Column(heading="Metric", cell=text_of(lambda line: line.noise.metric.value)),
    _Column(
        heading="Mean", cell=text_of(lambda line: metric_text(line.noise.metric, line.noise.side.mean)), right=True
    ),
    _Column(heading="Trials", cell=text_of(lambda line: str(line.noise.side.trials)), right=True),
    _Column(heading="Scatter", cell=text_of(lambda line: _percent(line.noise.side.deviation)), right=True),
    _Column(heading="Between runs", cell=text_of(lambda line: _percent(line.noise.between)), right=True),
    _Column(heading="Detectable", cell=text_of(lambda line: _percent(line.noise.detectable)), right=True),
    _Column(heading="Threshold", cell=text_of(lambda line: _percent(line.noise.threshold)), right=True),
    _Column(heading="", cell=_verdict),
)
_LAYOUT = (_POINT, *_NOISE)
_NARROW = (_POINT, _NOISE[0], _NOISE[1], _NOISE[6], _NOISE[8])
