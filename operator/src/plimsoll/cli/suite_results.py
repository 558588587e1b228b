"""`plimsoll suite results DIR`: what a round of a suite shows."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import Allowance, SuiteComparison
from plimsoll.cli.compare import EXIT_OF
from plimsoll.cli.compare_view import show_comparison
from plimsoll.cli.fitted import stdout_console
from plimsoll.cli.output import JSON, TABLE, YAML, output_option, write_document
from plimsoll.cli.suite_round import Round, read_round
from plimsoll.cli.table import results_table
from plimsoll.measure.compare.comparison import Comparison, compare
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.inference import MINIMUM_TRIALS
from plimsoll.measure.compare.matching import match_points
from plimsoll.measure.compare.metrics import RegressionRule
from plimsoll.measure.compare.repeats import RepeatsDifferError, as_one_run
from plimsoll.report.likeness import Likeness, likeness_of

_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A comparison of a suite.

    Attributes:
        of_runs: whether each run counts as a trial; otherwise the first run of each variant is compared.

    """

    name: str
    baseline: str
    candidate: str
    comparison: Comparison
    likeness: Likeness
    of_runs: bool


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
    round_ = read_round(directory)
    if output == TABLE:
        show_round(stdout_console(), round_)
    else:
        write_document(_document(round_), output)
    conclusions = {one.comparison.conclusion for one in _comparisons(round_)}
    worst = next((one for one in (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE) if one in conclusions), None)
    sys.exit(EXIT_OF[worst] if worst else 0)


def show_round(console: Console, round_: Round) -> None:
    """Print the results of each variant, the comparisons and the hypotheses."""
    for variant in round_.suite.spec.variants:
        runs = round_.runs_of(variant.name)
        console.print(Text(f"{variant.name}: {len(runs)} of {round_.suite.spec.repeat} runs", style="bold"))
        if runs:
            console.print(results_table(_combined(runs)))
    for compared in _comparisons(round_):
        title = f"\n{compared.name}: is {compared.candidate} worse than {compared.baseline}?"
        console.print(Text(title, style="bold"))
        show_comparison(console, compared.comparison, compared.likeness, of_runs=compared.of_runs)


def _comparisons(round_: Round) -> Iterator[_Compared]:
    """Yield the comparisons whose variants both have a complete run."""
    for comparison in round_.suite.spec.comparisons:
        ours, theirs = (round_.runs_of(one.variant) for one in (comparison.baseline, comparison.candidate))
        if ours and theirs:
            yield _compared(comparison, ours, theirs)


def _compared(
    asked: SuiteComparison, ours: Sequence[list[BenchmarkResult]], theirs: Sequence[list[BenchmarkResult]]
) -> _Compared:
    of_runs = min(len(ours), len(theirs)) >= MINIMUM_TRIALS
    sides = (_combined(ours), _combined(theirs)) if of_runs else (ours[0], theirs[0])
    # What the variants change may be a parameter, which does not make it another point here.
    matching = match_points(*sides, also_by_name=True)
    return _Compared(
        name=asked.name,
        baseline=asked.baseline.variant,
        candidate=asked.candidate.variant,
        comparison=compare(matching, _rule(asked.allow)),
        likeness=likeness_of(matching.pairs),
        of_runs=of_runs,
    )


def _combined(runs: Sequence[list[BenchmarkResult]]) -> list[BenchmarkResult]:
    try:
        return as_one_run(runs)
    except RepeatsDifferError as error:
        raise click.ClickException(str(error)) from error


def _rule(allow: Allowance) -> RegressionRule:
    return RegressionRule(rate=allow.rate_percent / _PERCENT, latency=allow.latency_percent / _PERCENT)


def _document(round_: Round) -> dict[str, object]:
    """Return everything as a document; results are those of the runs."""
    return {
        "suite": round_.suite.metadata.name,
        "variants": [
            {
                "name": variant.name,
                "runs": [[result.model_dump(mode="json") for result in run] for run in round_.runs_of(variant.name)],
            }
            for variant in round_.suite.spec.variants
        ],
        "comparisons": [
            {
                "name": one.name,
                "baseline": one.baseline,
                "candidate": one.candidate,
                "countsRuns": one.of_runs,
                **one.comparison.model_dump(mode="json"),
                "differences": [{**asdict(each), "points": points} for each, points in one.likeness.differences],
            }
            for one in _comparisons(round_)
        ],
    }
