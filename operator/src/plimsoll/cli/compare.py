"""`plimsoll compare BASELINE CANDIDATE`: whether the candidate is worse. `plimsoll noise`: the detectable changes."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from plimsoll.api.names import Metric
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, TABLE, output_option, rule_options, write_csv, write_document
from plimsoll.cli.source import load_results, runs_of
from plimsoll.cli.tables import STYLES, Terminal, fitted, print_line
from plimsoll.measure.compare.comparison import NO_FLOOR, compare, notes_of, quantity_text
from plimsoll.measure.compare.noise import MetricNoise, noise_of
from plimsoll.measure.compare.sides import Comparison
from plimsoll.measure.compare.significance import MINIMUM_RUNS, Floor
from plimsoll.measure.compare.values import RegressionRule, RepeatsError, check_distinct, match_points, operation_text
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.measure.text import first_few
from plimsoll.plan.fingerprint import Likeness, likeness_of
from plimsoll.report.comparing import COMPARED_COLUMNS, compared_rows
from plimsoll.report.view import Column, count_text, metric_text, ratio_text

_VALUE_CHARACTERS = 60
EXIT_OF = {Conclusion.NO_REGRESSION: 0, Conclusion.REGRESSION: 3, Conclusion.INCONCLUSIVE: 4}


def show_comparison(console: Console, comparison: Comparison, likeness: Likeness, *, of_runs: bool = False) -> None:
    """Print a comparison; `of_runs` means that each run counted as a trial."""
    if rows := [*compared_rows(comparison)]:
        console.print(fitted(COMPARED_COLUMNS, rows, remedy="-o json", blank_repeats=True))
        legend = [
            "At worst: with 95 % confidence it is no worse.",
            "In brackets: metrics that do not gate; their p-values are not adjusted.",
        ]
        if Metric.LINE in comparison.gates:
            legend.append("Trials of a line are its probes.")
        if comparison.means:
            legend.append(
                "The mean decides what a point alone leaves Inconclusive, unless that is suspected to be a regression."
            )
        print_line(console, " ".join(legend), "dim")
    notes = (Text(f"{first_few(places, 1)}: {note}") for note, places in notes_of(comparison).items())
    for text in (*notes, *likeness_lines(likeness)):
        console.print(text, soft_wrap=True)
    if comparison.candidate_only:
        print_line(console, f"Only the candidate has {first_few(comparison.candidate_only, 1)}.")
    limits = f"{100 * comparison.rate_threshold:g} % less rate, {100 * comparison.latency_threshold:g} % more latency"
    print_line(console, f"Tolerated: {limits}. Gates: {', '.join(comparison.gates)}.", "dim")
    if of_runs:
        print_line(console, "Each run counts as a trial, so noise between runs is included.", "dim")
    elif runs := comparison.noise_runs:
        words = f"Noise between runs: from {runs} runs, so at most {runs - 1} degrees of freedom."
        print_line(console, words, "dim")
    else:
        words = (
            "Noise between runs: unknown and not taken into account, so it may look like a change; measure the "
            "baseline several times and name those runs with --noise."
        )
        print_line(console, words, "yellow")
    for reason in comparison.reasons:
        print_line(console, f"- {reason}")
    print_line(console, comparison.conclusion.value, f"bold {STYLES[comparison.conclusion]}")


def likeness_lines(likeness: Likeness) -> Iterator[Text]:
    """Yield the differences between the runs."""
    if likeness.unknown:
        yield Text(f"No fingerprint was recorded at {first_few(likeness.unknown, 1)}: other differences are unknown.")
    if likeness.differences:
        yield Text("The runs differ in (baseline -> candidate):", style="bold")
    elif not likeness.unknown:
        yield Text("The recorded settings of the runs do not differ.")
    for difference, points in likeness.differences:
        change = f"{_value(difference.baseline)} -> {_value(difference.candidate)}"
        style = "yellow" if difference.part == "identity" else ""
        yield Text(f"  {difference.part} {difference.key}: {change}, at {first_few(points, 1)}", style=style)


def _value(value: JsonValue) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"


@click.command()
@click.argument("baseline")
@click.argument("candidate")
@rule_options
@click.option(
    "--noise",
    "same",
    multiple=True,
    metavar="RUN",
    help="A repetition of BASELINE with nothing changed; give it at least twice. The noise between these runs widens "
    "every interval. BASELINE may be one of them.",
)
@click.option(
    "--allow-different",
    is_flag=True,
    help="Compare runs with different specifications, and match points by name even if their parameters differ.",
)
@output_option
@cluster_options
def command(
    *, baseline: str, candidate: str, rule: RegressionRule, same: tuple[str, ...], allow_different: bool, output: str
) -> None:
    """Compare two runs: whether CANDIDATE is worse than BASELINE, and how certain that is.

    Each is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Points are matched by workload, parameters and clients. A workload with several points is judged by its mean change
    and by each point that is certainly worse.

    Exits with 0 if no gating metric is worse by more than its threshold, 3 if one is (a regression), 4 if there is not
    enough evidence (inconclusive), 1 if the runs cannot be compared, 2 for a usage error.
    """
    ours, theirs = _one_run(baseline), _one_run(candidate)
    if runs_of(ours) == runs_of(theirs):
        raise click.ClickException(f"{baseline} and {candidate} are the same run; name two different runs")
    matching = match_points(ours, theirs, also_by_name=allow_different)
    likeness = likeness_of(matching.pairs)
    if not matching.pairs:
        points = (
            f"{_points(matching.baseline_only)} in the baseline, {_points(matching.candidate_only)} in the candidate"
        )
        remedy = "" if allow_different else "; --allow-different also matches points by name"
        raise click.ClickException(
            f"{baseline} and {candidate} have no workload with the same parameters and clients: {points}{remedy}"
        )
    if not likeness.is_same and not allow_different:
        lines = "\n".join(line.plain for line in likeness_lines(likeness))
        message = f"{baseline} and {candidate} differ; --allow-different compares them anyway.\n{lines}"
        raise click.ClickException(message)
    comparison = compare(matching, rule, _floor(same, ours, theirs, baseline))
    match output:
        case "table":
            show_comparison(Terminal(), comparison, likeness)
        case "csv":
            write_csv(COMPARED_COLUMNS, compared_rows(comparison))
        case _:
            differences = [{**asdict(difference), "points": points} for difference, points in likeness.differences]
            document = {"differences": differences, "withoutFingerprint": likeness.unknown}
            write_document(comparison.model_dump(mode="json") | document, output)
    sys.exit(EXIT_OF[comparison.conclusion])


def _one_run(source: str) -> list[BenchmarkResult]:
    results = load_results(source)
    runs = len(runs_of(results))
    if runs > 1:
        names = ", ".join(dict.fromkeys(f"{each.metadata.namespace}/{each.spec.run}" for each in results))
        raise click.ClickException(f"{source} contains results of {runs} runs ({names}); name one with a single run")
    return results


def _floor(same: tuple[str, ...], ours: list[BenchmarkResult], theirs: list[BenchmarkResult], baseline: str) -> Floor:
    """Read the runs of --noise; refuses too few runs, the same run twice, and runs of another specification."""
    if not same:
        return NO_FLOOR
    runs = [_one_run(source) for source in same]
    if len(runs) < MINIMUM_RUNS:
        message = f"--noise {same[0]} alone shows no noise between runs; name at least {MINIMUM_RUNS} runs"
        raise click.ClickException(message)
    for source, run in zip(same, runs, strict=True):
        if runs_of(run) == runs_of(theirs):
            raise click.ClickException(f"--noise {source} is the candidate, which may have changed; name other runs")
        pairs = match_points(ours, run).pairs
        if not pairs or not likeness_of(pairs).is_same:
            message = f"--noise {source} has another specification than {baseline}; compare them to see the differences"
            raise click.ClickException(message)
    try:
        return Floor(runs=runs)
    except RepeatsError as error:
        raise click.ClickException(f"--noise {' '.join(same)}: {error}") from error


def _points(results: tuple[BenchmarkResult, ...]) -> str:
    specs = [result.spec for result in results]
    return first_few([f"{spec.workload} {spec.label} with {count_text(spec.clients, 'client')}" for spec in specs], 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoiseRow:
    result: BenchmarkResult
    noise: MetricNoise


_NoiseColumn = Column[_NoiseRow]


def _percent(heading: str, key: str, read: Callable[[MetricNoise], float | None], *, priority: int = 1) -> _NoiseColumn:
    show = partial(ratio_text, decimals=1)
    return Column(heading, lambda row: read(row.noise), key=key, show=show, right=True, priority=priority)


_NOISE_COLUMNS: Sequence[_NoiseColumn] = (
    _NoiseColumn("", lambda row: row.result.spec.point, key="point"),
    _NoiseColumn("Workload", lambda row: row.result.spec.workload, stacked=True),
    _NoiseColumn(
        "Parameters",
        lambda row: f"{row.result.spec.label}, {count_text(row.result.spec.clients, 'client')}",
        stacked=True,
    ),
    _NoiseColumn("Op", lambda row: operation_text(row.noise.operation, row.noise.metric), key="operation"),
    _NoiseColumn("Metric", lambda row: row.noise.metric, key="metric"),
    _NoiseColumn(
        "Mean",
        lambda row: row.noise.side.mean,
        key="mean",
        text=lambda row: metric_text(row.noise.metric, row.noise.side.mean),
        right=True,
        priority=1,
    ),
    _NoiseColumn("Trials", lambda row: row.noise.side.trials, key="trials", right=True, priority=1),
    _percent("Scatter", "deviation", lambda noise: noise.side.deviation),
    _NoiseColumn("", lambda row: row.noise.within, key="within"),
    _percent("Between runs", "between", lambda noise: noise.between),
    _NoiseColumn("", lambda row: row.noise.runs, key="runs"),
    _percent("Detectable", "detectable", lambda noise: noise.detectable, priority=0),
    _percent("Threshold", "threshold", lambda noise: noise.threshold),
    _NoiseColumn(
        "Gating",
        lambda row: row.noise.gates,
        key="gates",
        text=lambda row: "ungateable" if row.noise.note else "gates" if row.noise.gates else "could gate",
    ),
    _NoiseColumn("", lambda row: row.noise.note, key="note"),
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
@output_option
@cluster_options
def noise_command(*, result: str, same: tuple[str, ...], rule: RegressionRule, trials: int | None, output: str) -> None:
    """Show the scatter of the trials of RESULT, and the smallest change that a comparison with it can detect.

    SAME are further runs with nothing changed: only they show the noise between runs. Two runs show little; five are
    enough to detect changes about five times as large as the noise. All are given as for `plimsoll compare`.
    """
    groups = _with_same(load_results(result), result, [(source, load_results(source)) for source in same])
    rows = [
        _NoiseRow(result=results[0], noise=noise)
        for results in groups
        for noise in noise_of(results, rule, trials or max(MINIMUM_TRIALS, results[0].spec.repetitions))
    ]
    if output == CSV:
        write_csv(_NOISE_COLUMNS, rows)
        return
    if output != TABLE:
        documents = [{"point": row.result.spec.point, **row.noise.model_dump(mode="json")} for row in rows]
        write_document(documents, output)
        return
    console = Terminal()
    console.print(fitted(_NOISE_COLUMNS, rows, remedy="-o json", blank_repeats=True))
    for row in rows:
        if row.noise.note and row.noise.gates:
            place = f"{row.result.spec.point} {quantity_text(row.noise.operation, row.noise.metric)}"
            print_line(console, f"{place}: {row.noise.note}")


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
