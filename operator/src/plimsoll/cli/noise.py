"""`plimsoll noise RESULT [SAME...]`: the smallest change that a comparison can detect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, JSON, TABLE, YAML, output_option, rule_of, rule_options, write_csv, write_document
from plimsoll.cli.source import load_results
from plimsoll.cli.tables import fitted, stdout_console
from plimsoll.measure.compare.comparison import quantity_text
from plimsoll.measure.compare.noise import MetricNoise, noise_of
from plimsoll.measure.compare.values import RepeatsError, check_distinct, match_points, operation_text
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.plan.fingerprint import likeness_of
from plimsoll.report.view import Column, count_text, csv_names, csv_rows, metric_text, ratio_text


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoiseRow:
    """The noise of one metric of a point."""

    result: BenchmarkResult
    noise: MetricNoise


_Column = Column[_NoiseRow]


def _percent(heading: str, key: str, read: Callable[[MetricNoise], float | None], *, priority: int = 1) -> _Column:
    return _Column(
        heading=heading,
        key=key,
        value=lambda row: read(row.noise),
        show=partial(ratio_text, decimals=1),
        right=True,
        priority=priority,
    )


_COLUMNS: Sequence[_Column] = (
    _Column(key="point", value=lambda row: row.result.spec.point),
    _Column(heading="Workload", value=lambda row: row.result.spec.workload, stacked=True),
    _Column(
        heading="Parameters",
        value=lambda row: f"{row.result.spec.label}, {count_text(row.result.spec.clients, 'client')}",
        stacked=True,
    ),
    _Column(
        heading="Op",
        key="operation",
        value=lambda row: operation_text(row.noise.operation, row.noise.metric),
    ),
    _Column(heading="Metric", key="metric", value=lambda row: row.noise.metric),
    _Column(
        heading="Mean",
        key="mean",
        value=lambda row: row.noise.side.mean,
        text=lambda row: metric_text(row.noise.metric, row.noise.side.mean),
        right=True,
        priority=1,
    ),
    _Column(heading="Trials", key="trials", value=lambda row: row.noise.side.trials, right=True, priority=1),
    _percent("Scatter", "deviation", lambda noise: noise.side.deviation),
    _Column(key="within", value=lambda row: row.noise.within),
    _percent("Between runs", "between", lambda noise: noise.between),
    _Column(key="runs", value=lambda row: row.noise.runs),
    _percent("Detectable", "detectable", lambda noise: noise.detectable, priority=0),
    _percent("Threshold", "threshold", lambda noise: noise.threshold),
    _Column(
        heading="Gating",
        key="gates",
        value=lambda row: row.noise.gates,
        text=lambda row: "ungateable" if row.noise.note else "gates" if row.noise.gates else "could gate",
    ),
    _Column(key="note", value=lambda row: row.noise.note),
)
"""Operations and bytes per second, nanoseconds, and ratios to the mean."""


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
    rows = [
        _NoiseRow(result=results[0], noise=noise)
        for results in groups
        for noise in noise_of(results, rule, trials or max(MINIMUM_TRIALS, results[0].spec.repetitions))
    ]
    if output == CSV:
        write_csv(csv_names(_COLUMNS), csv_rows(_COLUMNS, rows))
        return
    if output != TABLE:
        documents = [{"point": row.result.spec.point, **row.noise.model_dump(mode="json")} for row in rows]
        write_document(documents, output)
        return
    console = stdout_console()
    console.print(fitted(_COLUMNS, rows, remedy="-o json", blank_repeats=True))
    for row in rows:
        if row.noise.note and row.noise.gates:
            place = f"{row.result.spec.point} {quantity_text(row.noise.operation, row.noise.metric)}"
            console.print(Text(f"{place}: {row.noise.note}"), soft_wrap=True)


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
