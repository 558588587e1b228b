"""`plimsoll results`: what runs and suites show, as tables or documents."""

import sys
from collections.abc import Iterable, Iterator, Sequence

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import Exit, options
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.report import reported_suite
from plimsoll.cli.source import are_suites, load_results, selected_points
from plimsoll.cli.suite_results import rounds_document, show_rounds
from plimsoll.cli.suite_rounds import SuiteRounds, accept_option, exit_code, load_rounds
from plimsoll.cli.tables import Terminal, fitted, links_tables, print_line, results_tables
from plimsoll.measure.checks.judge import reasons_of, remedy_of
from plimsoll.measure.text import first_few
from plimsoll.report.figure import runs_of
from plimsoll.report.markdown import results_markdown, rounds_markdown
from plimsoll.report.overview import worst_cases
from plimsoll.report.pipelines import junit_text, otava_of_rounds, otava_of_runs, suite_of_run, suites_of_rounds
from plimsoll.report.points import (
    RESULT_COLUMNS,
    line_rows,
    named,
    objective_rows,
    point_label,
    probe_columns,
    probe_rows,
    recovery_sentences,
    result_rows,
    search_sentences,
)
from plimsoll.report.view import csv_rows


@click.command(short_help="Show results, also as options.CSV, JSON, JUnit XML or Markdown.")
@click.argument("sources", nargs=-1, required=True, metavar="RESULT...|ROUND...|bsuite/SUITE")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--probes", is_flag=True, help="Show all probes of the searches for the line instead of the lines.")
@accept_option
@click.option("--strict", is_flag=True, help="With -o junit: a Suspect point has failed.")
@options.pipeline_option
@cluster_options
def command(
    *,
    sources: tuple[str, ...],
    points: tuple[str, ...],
    probes: bool,
    accepted: tuple[str, ...],
    strict: bool,
    output: str,
) -> None:
    """Show results as a table, as documents, or as CSV in base units; for a suite, the outcome of its last round.

    RESULT is a results directory, a file of BenchmarkResult documents, or a run in a cluster: NAME or NAMESPACE/NAME.
    Several are shown one after the other, or as one list of documents or rows.

    For pipelines: -o junit has a test case for each point, and -o markdown is a comment on a pull request. -o otava-csv
    has a row for each run, or for each round of a suite.

    A search for the line has one row, with the line and its interval. It is Valid or Suspect even if it ended
    with NeverBroke or BrokenAtFirst: then the line is a bound. --probes shows each trial of it: the offered and the
    achieved load, the percentiles of its objectives, and the outcome.

    ROUND is a directory with a round of a suite that `plimsoll run` has measured. SUITE is a suite in a cluster, NAME
    or NAMESPACE/NAME; its last round is the last one that was evaluated. Its output has the results, the comparisons
    and the hypotheses. Results of a variant are means over its runs. With at least three runs of each variant, a
    comparison counts runs, so that noise between runs is a part of it; with fewer it compares the first runs, trial by
    trial.

    Several directories are rounds of one suite. The last one is shown, and comparisons with accepted rounds judge it
    by those before: whether it is worse than them, and whether it has drifted from the first five.

    Of a suite, exits with 0 if the round shows no regression, or was accepted; 3 if it regressed; 4 if it is
    inconclusive; and 1 if a later round failed. Only comparisons with accepted rounds and missing runs decide: a
    comparison between variants shows what a variant costs. Hypotheses do not change the exit code.
    """
    if strict and output != options.JUNIT:
        raise click.UsageError("--strict is for -o junit; all other formats show Suspect points as such")
    if are_suites(sources):
        if points or probes or output == options.CSV:
            option = "--point" if points else "--probes" if probes else "-o csv"
            raise click.UsageError(f"{option} is for runs; name the results of one run of the suite")
        rounds = load_rounds(sources, accepted)
        _output_rounds(rounds, output, strict=strict)
        if rounds.failed:
            raise click.ClickException(rounds.failed)
        sys.exit(exit_code(rounds.last))
    if accepted:
        raise click.UsageError("--accept is for rounds of a suite")
    if probes and output in {options.JUNIT, options.MARKDOWN, options.OTAVA}:
        raise click.UsageError(f"--probes does not support -o {output}; use -o csv")
    of_sources = [(source, selected_points(load_results(source), points)) for source in sources]
    if probes:
        searches = [result for _, results in of_sources for result in results if result.spec.line is not None]
        _output_probes(searches, output)
    else:
        _output_runs(of_sources, output, strict=strict)


def _output_rounds(rounds: SuiteRounds, output: str, *, strict: bool) -> None:
    match output:
        case "table":
            show_rounds(Terminal(), rounds)
        case "junit":
            click.echo(junit_text([*suites_of_rounds(reported_suite(rounds), strict=strict)]))
        case "markdown":
            click.echo(rounds_markdown(reported_suite(rounds)), nl=False)
        case "otava-csv":
            options.write_otava(otava_of_rounds(reported_suite(rounds)))
        case _:
            options.write_document(rounds_document(rounds), output)


def _output_runs(of_sources: Sequence[tuple[str, Sequence[BenchmarkResult]]], output: str, *, strict: bool) -> None:
    selected = [result for _, results in of_sources for result in results]
    match output:
        case "table":
            console = Terminal()
            for number, (source, results) in enumerate(of_sources):
                if len(of_sources) > 1:
                    console.print(Text(f"{chr(10) if number else ''}{source}", style="bold"))
                show_results(console, results)
        case "csv":
            options.write_csv(RESULT_COLUMNS, result_rows(named(selected)))
        case "junit":
            click.echo(junit_text([suite_of_run(run, strict=strict) for run in runs_of(selected)]))
        case "markdown":
            click.echo(results_markdown(runs_of(selected)), nl=False)
        case "otava-csv":
            options.write_otava(otava_of_runs(runs_of(selected)))
        case _:
            options.write_document([result.model_dump(mode="json") for result in selected], output)


def _output_probes(searches: Sequence[BenchmarkResult], output: str) -> None:
    if not searches:
        raise click.ClickException("no search for the line is among these results; omit --probes to see them")
    if output != options.TABLE:
        columns, rows = probe_columns(), objective_rows(probe_rows(named(searches)))
        if output == options.CSV:
            options.write_csv(columns, rows)
        else:
            options.write_document([*csv_rows(columns, rows)], output)
        return
    console = Terminal()
    for number, result in enumerate(searches):
        title = f"{result.spec.run}-{result.spec.point}: {point_label(result)}"
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold"))
        console.print(fitted(probe_columns(result.spec.line), [*probe_rows(named([result]))], remedy="--probes -o csv"))
        for sentence in line_sentences([result]):
            print_line(console, sentence)


def show_results(console: Console, results: Sequence[BenchmarkResult]) -> None:
    """Print results as tables, the matrices of those that have one, what searches found, and reasons of verdicts."""
    for table in (*results_tables(results), *links_tables(results)):
        console.print(table)
    for line in (*line_sentences(results), *recovery_sentences(results), *explanations(results)):
        print_line(console, line)


def exit_of_numbers(results: Iterable[BenchmarkResult], *, strict: bool) -> Exit:
    """Return NOT_VALID if a result is Invalid or, with `strict`, Suspect; otherwise DONE."""
    refused = {Verdict.INVALID, Verdict.SUSPECT} if strict else {Verdict.INVALID}
    return Exit.NOT_VALID if any(result.status.verdict in refused for result in results) else Exit.DONE


def show_next_step(results: Iterable[BenchmarkResult]) -> None:
    """Print what to do about the first reason of the worst result; nothing if all are Valid."""
    judged = [result for result in results if result.status.verdict not in {None, Verdict.VALID}]
    worst = max(judged, key=lambda result: (result.status.verdict or Verdict.VALID).severity, default=None)
    reason = next(iter(reasons_of(worst.status)), "") if worst else ""
    if worst and (remedy := remedy_of(reason, worst.status)):
        click.echo(f"What to do about {reason} at {worst.spec.point}: {remedy}")


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what each search found and why it ended."""
    for row, text, why in search_sentences(line_rows(named(results))):
        yield f"{row.result.spec.point} {text}. {why}"


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield every reason once, with its points and the message of the first one with the worst verdict."""
    for case in worst_cases((result.spec.point, result) for result in results):
        yield f"{case.reason} ({case.verdict}) at {first_few(case.points, 1)}: {case.message}"
