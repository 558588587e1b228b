"""`plimsoll results`: what runs and the last round of a suite show, as tables or documents."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import click
from rich.console import Console
from rich.text import Text

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.cli import Exit, options
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.compare import show_comparison
from plimsoll.cli.options import document_of
from plimsoll.cli.source import are_suites, load_results, selected_points
from plimsoll.cli.suite_rounds import SuiteRounds, accept_option, exit_code, load_rounds
from plimsoll.cli.tables import STYLES, Terminal, fitted, links_tables, print_line, results_table, results_tables
from plimsoll.measure.checks.judge import ranked, reasons_of, remedy_of
from plimsoll.measure.compare.values import operation_text
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.text import count_text, first_few
from plimsoll.report import pipelines
from plimsoll.report import points as rows_of
from plimsoll.report import suite as texts
from plimsoll.report.figure import result_rows, runs_of
from plimsoll.report.markdown import results_markdown, rounds_markdown
from plimsoll.report.overview import worst_cases
from plimsoll.report.view import csv_rows
from plimsoll.studies.model import Origin, StudyComparison
from plimsoll.suite.evaluation import outcome_of_variants
from plimsoll.suite.judging import RoundJudgement, VariantJudgement
from plimsoll.suite.rounds.turns import ACCEPT_ROUND

_SUSPECT = "* rests on Suspect points"


@click.command(short_help="Show results, also as CSV, JSON, JUnit XML or Markdown.")
@click.argument("sources", nargs=-1, required=True, metavar="RESULT...|ROUND...|bsuite/SUITE")
@click.option("--point", "points", multiple=True, help="Only this point, such as random-read-000; may be repeated.")
@click.option("--probes", is_flag=True, help="Show all probes of the searches for the line instead of the lines.")
@accept_option
@click.option("--strict", is_flag=True, help="Exit with 5 if a number is not Valid; JUnit counts it as failed.")
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
    if are_suites(sources):
        if points or probes or output == options.CSV:
            option = "--point" if points else "--probes" if probes else "-o csv"
            raise click.UsageError(f"{option} is for runs; name the results of one run of the suite")
        rounds = load_rounds(sources, accepted)
        _output_rounds(rounds, output, strict=strict)
        if rounds.failed:
            raise click.ClickException(rounds.failed)
        sys.exit(exit_code(rounds.last) or (exit_of_numbers(rounds.last_results, strict=True) if strict else Exit.DONE))
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
    if strict:
        sys.exit(exit_of_numbers([result for _, results in of_sources for result in results], strict=True))


def _output_rounds(rounds: SuiteRounds, output: str, *, strict: bool) -> None:
    match output:
        case "table":
            show_rounds(Terminal(), rounds)
        case "junit":
            click.echo(pipelines.junit_text([*pipelines.suites_of_rounds(rounds, strict=strict)]))
        case "markdown":
            click.echo(rounds_markdown(rounds), nl=False)
        case "otava-csv":
            options.write_otava(pipelines.otava_of_rounds(rounds))
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
            options.write_csv(rows_of.RESULT_COLUMNS, result_rows(rows_of.named(selected)))
        case "junit":
            click.echo(pipelines.junit_text([pipelines.suite_of_run(run, strict=strict) for run in runs_of(selected)]))
        case "markdown":
            click.echo(results_markdown(runs_of(selected)), nl=False)
        case "otava-csv":
            options.write_otava(pipelines.otava_of_runs(runs_of(selected)))
        case _:
            options.write_document([result.model_dump(mode="json") for result in selected], output)


def _output_probes(searches: Sequence[BenchmarkResult], output: str) -> None:
    if not searches:
        raise click.ClickException("no search for the line is among these results; omit --probes to see them")
    if output != options.TABLE:
        columns, rows = rows_of.probe_columns(), rows_of.objective_rows(rows_of.probe_rows(rows_of.named(searches)))
        if output == options.CSV:
            options.write_csv(columns, rows)
        else:
            options.write_document([*csv_rows(columns, rows)], output)
        return
    console = Terminal()
    for number, result in enumerate(searches):
        title = f"{result.spec.run}-{result.spec.point}: {rows_of.point_label(result)}"
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold"))
        console.print(
            fitted(
                rows_of.probe_columns(result.spec.line),
                [*rows_of.probe_rows(rows_of.named([result]))],
                remedy="--probes -o csv",
            )
        )
        for sentence in line_sentences([result]):
            print_line(console, sentence)


def show_results(console: Console, results: Sequence[BenchmarkResult]) -> None:
    """Print results as tables, the matrices of those that have one, what searches found, and reasons of verdicts."""
    for table in (*results_tables(results), *links_tables(results)):
        console.print(table)
    lines = [*line_sentences(results), *rows_of.recovery_sentences(results), rows_of.missing_percentiles(results)]
    lines += [rows_of.wide_intervals(results), rows_of.unseen_caches(results)]
    lines += [*explanations((result.spec.point, result) for result in results)]
    for line in filter(None, lines):
        print_line(console, line)


def exit_of_numbers(results: Iterable[BenchmarkResult], *, strict: bool) -> Exit:
    """Return NOT_VALID if a result is Invalid or, with `strict`, Suspect; otherwise DONE."""
    refused = {Verdict.INVALID, Verdict.SUSPECT} if strict else {Verdict.INVALID}
    return Exit.NOT_VALID if any(result.status.verdict in refused for result in results) else Exit.DONE


def show_next_step(results: Iterable[BenchmarkResult]) -> None:
    """Print what to do about the most frequent reason of the worst results; nothing if all are Valid."""
    judged = [result for result in results if result.status.verdict not in {None, Verdict.VALID}]
    severities = [(result.status.verdict or Verdict.VALID).severity for result in judged]
    worst = [result for result, severity in zip(judged, severities, strict=True) if severity == max(severities)]
    reasons = [next(iter(reasons_of(result.status)), "") for result in worst]
    if reason := next(iter(ranked(reasons)), ""):
        first = worst[reasons.index(reason)]
        if remedy := remedy_of(reason, first.status):
            click.echo(f"What to do about {reason} at {first.spec.point}: {remedy}")


def line_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    for row, text, why in rows_of.search_sentences(rows_of.line_rows(rows_of.named(results))):
        yield f"{row.result.spec.point} {text}. {why}"


def explanations(results: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[str]:
    """Yield every reason once, with its named points and the message of the first one with the worst verdict."""
    for case in worst_cases(results):
        yield f"{case.reason} ({case.verdict}) at {first_few(case.points, 1)}: {case.message}"


# Suites


def show_hypotheses(console: Console, decisions: Sequence[Decision]) -> None:
    """Print a table, then a line of text for each decision and note; nothing without decisions."""
    if not decisions:
        return
    console.print(fitted(texts.HYPOTHESIS_COLUMNS, decisions, remedy="-o json", stack="Hypothesis"))
    if any(decision.is_suspect for decision in decisions):
        console.print(Text(_SUSPECT, style="dim"))
    for line in texts.decision_texts(decisions):
        print_line(console, line)


def show_study(console: Console, compared: StudyComparison | None) -> None:
    """Print the shares of the study and the user's own; nothing without a study, or without shares."""
    if compared is None or not compared.shares:
        return
    console.print(Text(f"\nCompared with {texts.study_text(compared)}", style="bold"))
    console.print(fitted(texts.SHARE_COLUMNS, compared.shares, remedy="-o json"))
    if any(share.own.is_suspect for share in compared.shares):
        console.print(Text(_SUSPECT, style="dim"))
    if any(share.published.origin is Origin.DERIVED for share in compared.shares):
        console.print(Text("derived: computed from the study's numbers, not published itself", style="dim"))
    for share in compared.shares:
        if remark := share.own.missing or share.note:
            print_line(console, f"{share.name}: {remark}", "dim")
    for line in texts.difference_texts(compared):
        print_line(console, line)


def _study_document(compared: StudyComparison) -> Mapping[str, object]:
    shares = [
        {
            **document_of(share, "name", "experiment"),
            "published": {**document_of(share.published, "low", "high", "origin"), "numbers": share.published.text},
            "own": {
                **document_of(share.own, "value", "low", "high", "is_suspect", "missing"),
                "bytesPerSecond": share.own.rate,
                "ofBytesPerSecond": share.own.limit,
            },
        }
        for share in compared.shares
    ]
    return {"key": compared.study.key, "ownTestbed": [*compared.own_testbed], "shares": shares}


def show_rounds(console: Console, rounds: SuiteRounds) -> None:
    """Print the results of each variant in the last round, its comparisons and hypotheses, and the list of rounds."""
    evaluation = rounds.evaluation
    _show_variants(console, rounds)
    for compared in evaluation.comparisons:
        title = f"\n{compared.name}: is {compared.candidate} worse than {compared.baseline}?"
        console.print(Text(title, style="bold"))
        if compared.comparison is None:
            for line in (*compared.reasons, compared.conclusion.value):
                print_line(console, line, "yellow")
        else:
            show_comparison(
                console,
                compared.comparison,
                compared.likeness,
                of_runs=compared.of_runs,
                doubts=compared.reasons,
                conclusion=compared.conclusion,
                of_variants=True,
            )
    if evaluation.judgements:
        console.print(Text("\nRounds", style="bold"))
        console.print(fitted(texts.ROUND_COLUMNS, [(ended, ()) for ended, _ in rounds.rounds]))
    for name, judgement in evaluation.judgements.items():
        _show_judgement(console, name, judgement, rounds)
    if evaluation.decisions:
        console.print(Text("\nHypotheses", style="bold"))
        show_hypotheses(console, evaluation.decisions)
    show_study(console, rounds.study)


def show_conclusion(rounds: SuiteRounds) -> None:
    """Print what to do about results that are not Valid, and last what each comparison of variants shows."""
    show_next_step(rounds.last_results)
    for compared in rounds.evaluation.comparisons:
        outcome = outcome_of_variants(compared)
        what = f"Comparison {compared.name}, {compared.candidate} against {compared.baseline}"
        message = outcome.message.removeprefix(f"{outcome.verdict} ")
        click.echo(": ".join(filter(None, (what, outcome.verdict, message))))


def _show_variants(console: Console, rounds: SuiteRounds) -> None:
    reported = {variant.label: variant.results for variant in rounds.variants}
    for variant, runs in rounds.results.complete.items():
        done = f"{len(runs)} of {count_text(rounds.results.repeat, 'run')}"
        done += ", each counted as a trial" if len(runs) > 1 else ""
        console.print(Text(f"{variant}: {done}", style="bold"))
        if runs:
            console.print(results_table(reported[variant]))
    of_points = (
        (f"{variant} {result.spec.point}", result)
        for variant, results in rounds.results.complete.items()
        for run in results
        for result in run
    )
    for line in explanations(of_points):
        print_line(console, line)
    if rounds.directories and not rounds.evaluation.measured.is_complete:
        print_line(console, "Not all runs are measured completely; plimsoll run --resume continues.", "yellow")


def _show_judgement(console: Console, name: str, judgement: RoundJudgement, rounds: SuiteRounds) -> None:
    baseline = count_text(judgement.accepted, "accepted round")
    console.print(Text(f"\n{name}: is round {rounds.last.name} worse than {baseline}?", style="bold"))
    if changes := texts.notable_changes(judgement):
        console.print(fitted(texts.CHANGE_COLUMNS, changes, remedy="-o json"))
    for line in judgement.change_texts:
        print_line(console, line)
    for variant in judgement.variants:
        for reason in variant.reasons:
            print_line(console, f"{variant.variant}: {reason}", "yellow")
        drift = f"; drift from the pinned rounds: {variant.drift}" if variant.drift else ""
        against = f", but {variant.change} against the accepted rounds" if variant.is_drift else ""
        words = f"{variant.variant}: {variant.conclusion}{drift}{against}"
        print_line(console, words, STYLES[variant.conclusion])
    if judgement.conclusion is Conclusion.REGRESSION:
        how = "add --accept " if rounds.directories else f"annotate the suite with {ACCEPT_ROUND}="
        remedy = f"If this is intended, {how}{rounds.last.name}: the baseline then starts with this round."
        print_line(console, remedy, "dim")
    if len(rounds.directories) == 1:
        print_line(console, "plimsoll results DIR... compares several rounds with each other.", "dim")


def rounds_document(rounds: SuiteRounds) -> dict[str, object]:
    evaluation = rounds.evaluation
    return {
        "suite": rounds.suite.metadata.name,
        "variants": [
            {"name": name, "runs": [[result.model_dump(mode="json") for result in run] for run in runs]}
            for name, runs in rounds.results.complete.items()
        ],
        "comparisons": [
            {
                **document_of(compared, "name", "baseline", "candidate", "conclusion", "doubts"),
                "countsRuns": compared.of_runs,
                "missingRuns": compared.missing,
                "comparison": compared.comparison.model_dump(mode="json") if compared.comparison else None,
                "differences": [{**asdict(each), "points": points} for each, points in compared.likeness.differences],
                "unexplained": [asdict(difference) for difference in compared.unexplained],
            }
            for compared in evaluation.comparisons
        ],
        "hypotheses": [decision.model_dump(mode="json") for decision in evaluation.decisions],
        "study": _study_document(rounds.study) if rounds.study else None,
        "rounds": [
            {
                "round": ended.name,
                "directory": str(rounds.directories[ended.minute]) if rounds.directories else None,
                **document_of(ended, "digest", "verdict", "accepted", "pinned"),
            }
            for ended, _ in rounds.rounds
        ],
        "judgements": [
            {
                "name": name,
                "acceptedRounds": judgement.accepted,
                "conclusion": judgement.conclusion,
                "changes": [asdict(change) for change in judgement.changes],
                "variants": [_variant_document(variant) for variant in judgement.variants],
            }
            for name, judgement in evaluation.judgements.items()
        ],
    }


def _variant_document(variant: VariantJudgement) -> Mapping[str, object]:
    changes = [
        {
            **document_of(change, "against", "points", "rounds"),
            "workload": change.group.workload,
            "point": change.point or None,
            "operation": operation_text(change.group.operation, change.group.metric),
            **document_of(change.comparison, "metric", "ratio", "low", "high", "conclusion", "improved", "suspected"),
        }
        for change in variant.judged
    ]
    return {
        **document_of(variant, "variant", "conclusion", "drift", "is_drift"),
        "againstAccepted": variant.change,
        "reasons": [*variant.reasons],
        "found": changes,
    }
