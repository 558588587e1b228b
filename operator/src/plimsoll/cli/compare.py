"""`plimsoll compare BASELINE CANDIDATE`: whether the candidate is worse."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click
from rich.console import Console

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.cli import Exit, exit_on
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.options import pipeline_option, rule_options, write_csv, write_document, write_otava
from plimsoll.cli.source import load_results, runs_of
from plimsoll.cli.tables import STYLES, Terminal, fitted, print_line
from plimsoll.measure.compare.comparison import Comparison, compare, notes_of
from plimsoll.measure.compare.significance import MINIMUM_RUNS, Floor
from plimsoll.measure.compare.values import RegressionRule, RepeatsError, match_points
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import Likeness, likeness_of
from plimsoll.report import comparing
from plimsoll.report.figure import runs_of as reported_runs
from plimsoll.report.markdown import comparison_markdown
from plimsoll.report.overview import value_text
from plimsoll.report.pipelines import junit_text, otava_of_runs, suite_of_comparison
from plimsoll.report.view import NONE
from plimsoll.suite.evaluation import Compared

_MOST_KEYS = 8
_OF_POOLS = ("ceph.image.", "ceph.osds.placementGroups.", "ceph.osds.utilisation.", "ceph.pools")
"""Conditions that differ as soon as pools do."""
EXIT_OF = {
    Conclusion.NO_REGRESSION: Exit.DONE,
    Conclusion.REGRESSION: Exit.REGRESSION,
    Conclusion.INCONCLUSIVE: Exit.NOT_ENOUGH_EVIDENCE,
}


def show_comparison(
    console: Console,
    comparison: Comparison,
    likeness: Likeness,
    *,
    of_runs: bool = False,
    doubts: Sequence[str] = (),
    conclusion: Conclusion | None = None,
    of_variants: bool = False,
) -> None:
    """Print a comparison; `of_runs` means that each run counted as a trial.

    `doubts` about the runs may lead to another `conclusion` than their numbers. `of_variants`: of a suite, which differ
    by intention.
    """
    if rows := [*comparing.compared_rows(comparison)]:
        # Without enough trials there are no intervals, and more room for the values.
        columns = [it for it in comparing.COMPARED_COLUMNS if any(it.cell(row).text != NONE for row in rows)]
        console.print(fitted(columns, rows, remedy="-o json", blank_repeats=True))
        legend = "In brackets: metrics that do not gate."
        if any(row.change.bound is not None for row in rows):
            legend += " At worst: with 95 % confidence, one-sided, it is no worse."
        print_line(console, " ".join((legend, *comparing.legend_texts(comparison))), "dim")
    notes = (f"{first_few(places, 1)}: {note}" for note, places in notes_of(comparison).items())
    differences = variants_lines(likeness) if of_variants else likeness_lines(likeness)
    for text in (*notes, *differences, *comparing.only_texts(comparison)):
        print_line(console, text)
    print_line(console, " ".join(comparing.rule_texts(comparison)), "dim")
    if of_runs:
        print_line(console, "Each run counts as a trial, so noise between runs is included.", "dim")
    elif runs := comparison.noise_runs:
        words = f"Noise between runs: from {runs} runs, so at most {runs - 1} degrees of freedom."
        print_line(console, words, "dim")
    else:
        remedy = "measure the baseline several times and name those runs with --noise"
        if of_variants:
            remedy = (
                f"with at least {MINIMUM_TRIALS} complete runs of each variant, suites compare runs instead of trials"
            )
        words = "Noise between runs: unknown and not taken into account, so it may look like a change"
        print_line(console, f"{words}; {remedy}.", "yellow")
    for reason in comparison.reasons:
        print_line(console, f"- {reason}")
    for doubt in doubts:
        print_line(console, doubt, "yellow")
    final = conclusion or comparison.conclusion
    numbers = "" if final is comparison.conclusion else f"; the numbers alone would show {comparison.conclusion}"
    print_line(console, f"{final}{numbers}", f"bold {STYLES[final]}")


def likeness_lines(likeness: Likeness) -> Iterator[str]:
    if text := comparing.unknown_text(first_few(likeness.unknown, 1)):
        yield text
    if not likeness.differences and not likeness.unknown:
        yield "The recorded settings of the runs do not differ."
    if likeness.differences:
        yield "The runs differ in (baseline -> candidate):"
    for difference, points in likeness.differences:
        change = f"{value_text(difference.baseline)} -> {value_text(difference.candidate)}"
        yield f"{difference.part} {difference.key}: {change}, at {first_few(points, 1)}"


def variants_lines(likeness: Likeness) -> Iterator[str]:
    """Yield in what the runs of two variants differ, without the values: most of them follow from the variants."""
    if text := comparing.unknown_text(first_few(likeness.unknown, 1)):
        yield text
    differences = [difference for difference, _ in likeness.differences if difference.key != "seed"]
    measured = [difference.key for difference in differences if difference.part == "identity"]
    layout = _OF_POOLS if any(key.startswith("pool.") for key in measured) else ()
    conditions = [it for it in differences if it.part != "identity" and not it.key.startswith(layout)]
    if measured:
        yield f"The variants differ in what is measured: {first_few(measured, _MOST_KEYS)} (-o json has the values)."
    for it in conditions:
        yield f"Their runs differ in {it.key}: {value_text(it.baseline)} -> {value_text(it.candidate)}"


@click.command(short_help="Decide whether one run is worse than another.")
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
@pipeline_option
@cluster_options
def command(
    *, baseline: str, candidate: str, rule: RegressionRule, same: tuple[str, ...], allow_different: bool, output: str
) -> None:
    """Compare two runs: whether CANDIDATE is worse than BASELINE, and how certain that is.

    Each is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Points are matched by workload, parameters and clients. A workload with several points is judged by its mean change
    and by each point that is certainly worse.

    Exits with 0 if no gating metric is worse by more than its threshold, 3 if one is (a regression), and 4 if there is
    not enough evidence (inconclusive).
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
        lines = "\n".join(likeness_lines(likeness))
        message = f"{baseline} and {candidate} differ; --allow-different compares them anyway.\n{lines}"
        raise click.ClickException(message)
    comparison = compare(matching, rule, _floor(same, ours, theirs, baseline))
    match output:
        case "table":
            show_comparison(Terminal(), comparison, likeness)
        case "csv":
            write_csv(comparing.COMPARED_COLUMNS, comparing.compared_rows(comparison))
        case "junit":
            click.echo(junit_text([suite_of_comparison(f"{candidate} against {baseline}", comparison)]))
        case "markdown":
            compared = Compared(baseline=baseline, candidate=candidate, comparison=comparison, likeness=likeness)
            click.echo(comparison_markdown(compared), nl=False)
        case "otava-csv":
            write_otava(otava_of_runs(reported_runs([*ours, *theirs])))
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
        return Floor()
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
    with exit_on(RepeatsError, what=f"--noise {' '.join(same)}: "):
        return Floor(runs=runs)


def _points(results: tuple[BenchmarkResult, ...]) -> str:
    specs = [result.spec for result in results]
    return first_few([f"{spec.workload} {spec.label} with {count_text(spec.clients, 'client')}" for spec in specs], 1)
