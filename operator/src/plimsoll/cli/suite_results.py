"""`plimsoll suite results`: what the last round of a suite shows, also compared with those before."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.compare_view import show_comparison
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.hypotheses_view import hypotheses_document, show_hypotheses
from plimsoll.cli.output import JSON, TABLE, YAML, output_option, write_document
from plimsoll.cli.study_view import show_study, study_document
from plimsoll.cli.suite_findings import Findings
from plimsoll.cli.suite_history import Course
from plimsoll.cli.suite_history_view import history_document, show_judgement, show_rounds
from plimsoll.cli.suite_rounds import accept_option, load_rounds
from plimsoll.cli.table import results_table
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.report.text import count_text
from plimsoll.suite.compared import VariantComparison


@click.command()
@click.argument("sources", metavar="DIR...|SUITE", nargs=-1, required=True)
@accept_option
@output_option(TABLE, JSON, YAML)
@cluster_options
def command(*, sources: tuple[str, ...], accepted: tuple[str, ...], output: str) -> None:
    """Show the results, comparisons and hypotheses of the last round of a suite.

    Each DIR is a directory of `plimsoll suite run`. SUITE is a suite in a cluster, NAME or NAMESPACE/NAME; its last
    round is the last one that was evaluated.

    Results of a variant are means over its runs. With at least three runs of each variant, a comparison counts runs,
    so that noise between runs is a part of it; with fewer it compares the first runs, trial by trial.

    Several directories are rounds of one suite. The last one is shown, and comparisons with accepted rounds judge it
    by those before: whether it is worse than them, and whether it has drifted from the first five.

    Exits with 0 if no comparison of the suite has a regression, 3 if one has, 4 if none has but one is inconclusive,
    and 1 if a round cannot be read. Hypotheses do not change the exit code.
    """
    found = load_rounds(sources, accepted)
    if output == TABLE:
        show_findings(stdout_console(), found.findings, found.course)
    else:
        write_document(_document(found.findings) | history_document(found.course), output)
    sys.exit(found.exit_code)


def show_findings(console: Console, findings: Findings, course: Course | None = None) -> None:
    """Print the results of each variant, the comparisons and the hypotheses; of comparisons with rounds, if known."""
    for variant, runs in findings.runs.items():
        done = f"{len(runs)} of {findings.suite.spec.repeat} runs, each counted as a trial"
        console.print(Text(f"{variant}: {done}", style="bold"))
        if runs:
            _show_runs(console, runs)
    for compared in findings.comparisons:
        _show_comparison(console, compared)
    _show_judgements(console, findings, course)
    if findings.decisions:
        console.print(Text("\nHypotheses", style="bold"))
        show_hypotheses(console, findings.decisions)
    show_study(console, findings.study)


def _show_runs(console: Console, runs: Sequence[list[BenchmarkResult]]) -> None:
    """Print the means over the runs of a variant, unless they measured different things."""
    try:
        console.print(results_table(as_one_run(runs)))
    except RepeatsDifferError as error:
        console.print(Text(str(error), style="yellow"), soft_wrap=True)


def _show_judgements(console: Console, findings: Findings, course: Course | None) -> None:
    if course is not None:
        if course.judgements:
            show_rounds(console, course)
        for name, judgement in course.judgements.items():
            show_judgement(console, name, judgement, is_local=course.rounds[-1].directory is not None)
        return
    for comparison in findings.suite.spec.comparisons:
        if comparison.baseline.rounds is not None:
            line = f"\n{comparison.name}: compare this round with earlier ones by plimsoll suite results DIR..."
            console.print(Text(line, style="yellow"), soft_wrap=True)


def _show_comparison(console: Console, compared: VariantComparison) -> None:
    title = f"\n{compared.name}: is {compared.candidate} worse than {compared.baseline}?"
    console.print(Text(title, style="bold"))
    if compared.comparison is not None:
        show_comparison(console, compared.comparison, compared.likeness, of_runs=compared.of_runs)
    for line in doubts_of(compared):
        console.print(Text(line, style="yellow"), soft_wrap=True)


def doubts_of(compared: VariantComparison) -> Iterator[str]:
    """Yield why the conclusion is another one than that of the comparison of the results."""
    for difference in compared.unexplained:
        yield f"{difference.key} differs although no variant sets it, so other conditions changed between the runs."
    yield from compared.doubts
    if compared.missing:
        runs = count_text(compared.missing, "run")
        remedy = "on one machine, plimsoll suite run --resume continues"
        yield f"{runs} of the two variants not measured completely; {remedy}."
    if compared.comparison is None or compared.conclusion is not compared.comparison.conclusion:
        yield compared.conclusion


def _document(findings: Findings) -> dict[str, object]:
    """Return everything as a document; results are those of the runs."""
    return {
        "suite": findings.suite.metadata.name,
        "variants": [
            {"name": name, "runs": [[result.model_dump(mode="json") for result in run] for run in runs]}
            for name, runs in findings.runs.items()
        ],
        "comparisons": [
            {
                "name": one.name,
                "baseline": one.baseline,
                "candidate": one.candidate,
                "conclusion": one.conclusion,
                "countsRuns": one.of_runs,
                "missingRuns": one.missing,
                "comparison": one.comparison.model_dump(mode="json") if one.comparison else None,
                "differences": [{**asdict(each), "points": points} for each, points in one.likeness.differences],
                "unexplained": [asdict(each) for each in one.unexplained],
                "doubts": one.doubts,
            }
            for one in findings.comparisons
        ],
        "hypotheses": hypotheses_document(findings.decisions),
        "study": study_document(findings.study),
    }
