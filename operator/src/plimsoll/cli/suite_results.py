"""`plimsoll suite results DIR`: what a round of a suite shows."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from plimsoll.cli.compare import EXIT_OF
from plimsoll.cli.compare_view import show_comparison
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.hypotheses_view import hypotheses_document, show_hypotheses
from plimsoll.cli.output import JSON, TABLE, YAML, output_option, write_document
from plimsoll.cli.suite_compared import VariantComparison, combined
from plimsoll.cli.suite_findings import Findings, findings_of
from plimsoll.cli.suite_round import read_round
from plimsoll.cli.table import results_table
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.report.text import count_text


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@output_option(TABLE, JSON, YAML)
def command(*, directory: Path, output: str) -> None:
    """Show the results, comparisons and hypotheses of a round in the directory of `plimsoll suite run`.

    Results of a variant are means over its runs. With at least three runs of each variant, a comparison counts runs,
    so that noise between runs is a part of it; with fewer it compares the first runs, trial by trial.

    Exits with 0 if no comparison of the suite has a regression, 3 if one has, 4 if none has but one is inconclusive,
    and 1 if the round cannot be read. Hypotheses do not change the exit code.
    """
    findings = findings_of(read_round(directory))
    if output == TABLE:
        show_findings(stdout_console(), findings)
    else:
        write_document(_document(findings), output)
    conclusions = {one.conclusion for one in findings.comparisons}
    worst = next((one for one in (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE) if one in conclusions), None)
    sys.exit(EXIT_OF[worst] if worst else 0)


def show_findings(console: Console, findings: Findings) -> None:
    """Print the results of each variant, the comparisons and the hypotheses."""
    for variant, runs in findings.runs.items():
        done = f"{len(runs)} of {findings.suite.spec.repeat} runs, each counted as a trial"
        console.print(Text(f"{variant}: {done}", style="bold"))
        if runs:
            console.print(results_table(combined(runs)))
    for compared in findings.comparisons:
        _show_comparison(console, compared)
    for comparison in findings.suite.spec.comparisons:
        if comparison.baseline.rounds is not None:
            line = f"\n{comparison.name}: not decided, because it needs earlier rounds, and this is a single one"
            console.print(Text(line, style="yellow"), soft_wrap=True)
    if findings.decisions:
        console.print(Text("\nHypotheses", style="bold"))
        show_hypotheses(console, findings.decisions)


def _show_comparison(console: Console, compared: VariantComparison) -> None:
    title = f"\n{compared.name}: is {compared.candidate} worse than {compared.baseline}?"
    console.print(Text(title, style="bold"))
    if compared.comparison is not None:
        show_comparison(console, compared.comparison, compared.likeness, of_runs=compared.of_runs)
    for line in _doubts(compared):
        console.print(Text(line, style="yellow"), soft_wrap=True)


def _doubts(compared: VariantComparison) -> Iterator[str]:
    """Yield why the conclusion is another one than that of the comparison of the results."""
    for difference in compared.unexplained:
        yield f"{difference.key} differs although no variant sets it, so other conditions changed between the runs."
    yield from compared.doubts
    if compared.missing:
        runs = count_text(compared.missing, "run")
        yield f"{runs} of the two variants not measured completely; continue with plimsoll suite run --resume."
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
    }
