"""`plimsoll compare BASELINE CANDIDATE`: whether the candidate is worse."""

import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.compare_view import likeness_lines, show_comparison
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.output import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.rules import rule_of, rule_options
from plimsoll.cli.source import load_results, runs_of
from plimsoll.measure.compare.comparison import NO_FLOOR, compare, mean_text
from plimsoll.measure.compare.sides import Comparison
from plimsoll.measure.compare.tests import MINIMUM_RUNS, Conclusion, Floor
from plimsoll.measure.compare.values import Matching, match_points
from plimsoll.plan.likeness import Likeness, likeness_of
from plimsoll.report.text import count_text, first_few

COLUMNS = (
    *("point", "workload", "label", "clients", "operation", "metric", "gates"),
    *("baseline_trials", "baseline", "candidate_trials", "candidate"),
    *("ratio", "low", "high", "p_value", "conclusion", "confirmed", "improved", "trials_needed"),
    *("bound", "p_worse", "level", "in_mean", "suspected"),
)
"""Columns of CSV, a row per metric: operations and bytes per second, nanoseconds, and ratios to the baseline.

Mean changes come first; they have no point and no number of clients, and their trials are passes.
"""

EXIT_OF = {Conclusion.NO_REGRESSION: 0, Conclusion.REGRESSION: 3, Conclusion.INCONCLUSIVE: 4}


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
@click.option("--unlike", is_flag=True, hidden=True, deprecated="use --allow-different")
@output_option(TABLE, JSON, YAML, CSV)
@cluster_options
def command(
    *,
    baseline: str,
    candidate: str,
    threshold_rate: float,
    threshold_latency: float,
    gates: tuple[str, ...],
    same: tuple[str, ...],
    allow_different: bool,
    unlike: bool,
    output: str,
) -> None:
    """Compare two runs: whether CANDIDATE is worse than BASELINE, and how certain that is.

    Each is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Points are matched by workload, parameters and clients. A workload with several points is judged by its mean change
    and by each point that is certainly worse.

    Exits with 0 if no gating metric is worse by more than its threshold, 3 if one is (a regression), 4 if there is not
    enough evidence (inconclusive), 1 if the runs cannot be compared, 2 for a usage error.
    """
    allow_different = allow_different or unlike
    rule = rule_of(threshold_rate, threshold_latency, gates)
    ours, theirs = _one_run(baseline), _one_run(candidate)
    if runs_of(ours) == runs_of(theirs):
        message = f"{baseline} and {candidate} are the same run; name two different runs"
        raise click.ClickException(message)
    matching = match_points(ours, theirs, also_by_name=allow_different)
    likeness = likeness_of(matching.pairs)
    _check_comparable(matching, likeness, baseline, candidate, allow_different=allow_different)
    comparison = compare(matching, rule, _floor(same, ours, theirs, baseline))
    match output:
        case "table":
            show_comparison(stdout_console(), comparison, likeness)
        case "csv":
            write_csv(COLUMNS, _rows(comparison))
        case _:
            write_document(_document(comparison, likeness), output)
    sys.exit(EXIT_OF[comparison.conclusion])


def _one_run(source: str) -> list[BenchmarkResult]:
    found = load_results(source)
    if len(runs_of(found)) > 1:
        names = ", ".join(dict.fromkeys(f"{one.metadata.namespace}/{one.spec.run}" for one in found))
        message = f"{source} contains results of {len(runs_of(found))} runs ({names}); name one with a single run"
        raise click.ClickException(message)
    return found


def _floor(same: tuple[str, ...], ours: list[BenchmarkResult], theirs: list[BenchmarkResult], baseline: str) -> Floor:
    """Read the runs of --noise; refuses too few runs, the same run twice, and runs of another specification."""
    if not same:
        return NO_FLOOR
    runs = [_one_run(source) for source in same]
    if len(runs) < MINIMUM_RUNS:
        message = f"--noise {same[0]} alone shows no noise between runs; name at least {MINIMUM_RUNS} runs"
        raise click.ClickException(message)
    named = [runs_of(run) for run in runs]
    if any(named.count(run) > 1 for run in named):
        message = f"--noise {' '.join(same)} name a run more than once; name each run once"
        raise click.ClickException(message)
    for source, run in zip(same, runs, strict=True):
        if runs_of(run) == runs_of(theirs):
            message = f"--noise {source} is the candidate, which may have changed; name other runs"
            raise click.ClickException(message)
        pairs = match_points(ours, run).pairs
        if not pairs or not likeness_of(pairs).is_same:
            message = f"--noise {source} has another specification than {baseline}; compare them to see the differences"
            raise click.ClickException(message)
    return Floor(runs=runs)


def _check_comparable(
    matching: Matching, likeness: Likeness, baseline: str, candidate: str, *, allow_different: bool
) -> None:
    """Refuse runs without a common point, and different ones without --allow-different."""
    if not matching.pairs:
        ours, theirs = _points(matching.baseline_only), _points(matching.candidate_only)
        points = f"{ours} in the baseline, {theirs} in the candidate"
        remedy = "" if allow_different else "; --allow-different also matches points by name"
        message = f"{baseline} and {candidate} have no workload with the same parameters and clients: {points}{remedy}"
        raise click.ClickException(message)
    if not likeness.is_same and not allow_different:
        lines = "\n".join(line.plain for line in likeness_lines(likeness))
        message = f"{baseline} and {candidate} differ; --allow-different compares them anyway.\n{lines}"
        raise click.ClickException(message)


def _points(results: tuple[BenchmarkResult, ...]) -> str:
    specs = [result.spec for result in results]
    return first_few([f"{spec.workload} {spec.label} with {count_text(spec.clients, 'client')}" for spec in specs])


def _document(comparison: Comparison, likeness: Likeness) -> dict[str, object]:
    """Return the comparison as a document: the model's fields and the differences of the runs."""
    return {
        **comparison.model_dump(mode="json"),
        "differences": [{**asdict(difference), "points": points} for difference, points in likeness.differences],
        "withoutFingerprint": likeness.unknown,
    }


def _rows(comparison: Comparison) -> Iterator[dict[str, object]]:
    for mean in comparison.means:
        row = {**dict.fromkeys(COLUMNS), **mean.model_dump(mode="json", by_alias=False)}
        row |= {"label": mean_text(mean), "gates": True, "in_mean": False, "suspected": False}
        row |= {"baseline_trials": mean.baseline_passes, "candidate_trials": mean.candidate_passes}
        yield {name: row[name] for name in COLUMNS}
    for point in comparison.points:
        for metric in point.metrics:
            row = {**point.model_dump(by_alias=False), **metric.model_dump(mode="json", by_alias=False)}
            row |= {"baseline": metric.baseline.mean, "baseline_trials": metric.baseline.trials}
            row |= {"candidate": metric.candidate.mean, "candidate_trials": metric.candidate.trials}
            row["point"] = point.baseline
            yield {name: row[name] for name in COLUMNS}
