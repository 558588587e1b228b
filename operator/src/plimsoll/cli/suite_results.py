"""What the last round of a suite shows, compared with earlier ones: as tables, or as a document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from plimsoll.api.suite_status import Conclusion
from plimsoll.cli.compare import show_comparison
from plimsoll.cli.options import document_of
from plimsoll.cli.suite_rounds import SuiteRounds
from plimsoll.cli.tables import STYLES, fitted, print_line, results_table
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.values import RepeatsError, operation_text
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.text import count_text
from plimsoll.report import suite as texts
from plimsoll.studies.model import StudyComparison
from plimsoll.studies.shares import Origin
from plimsoll.suite.judging import RoundJudgement, VariantJudgement
from plimsoll.suite.rounds.baseline import ACCEPT_ROUND

_SUSPECT = "* rests on Suspect points"


def show_hypotheses(console: Console, decisions: Sequence[Decision]) -> None:
    """Print a table, then a line of text for each decision, reason and note; nothing without decisions."""
    if not decisions:
        return
    console.print(fitted(texts.HYPOTHESIS_COLUMNS, decisions, remedy="-o json", stack="Hypothesis"))
    if any(decision.is_suspect for decision in decisions):
        console.print(Text(_SUSPECT, style="dim"))
    for decision in decisions:
        sentence = Text(f"{decision.name}: ", style="bold").append(decision.sentence, style="not bold")
        console.print(sentence, soft_wrap=True)
        # The sentence has the first one.
        for reason in decision.reasons[1:]:
            print_line(console, f"  - {reason}")
    for note in texts.notes_of(decisions):
        print_line(console, note, "dim")


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
    """Return the shares, as parts of 1."""
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
        if compared.comparison is not None:
            show_comparison(console, compared.comparison, compared.likeness, of_runs=compared.of_runs)
        for line in compared.remarks:
            print_line(console, line, "yellow")
    if evaluation.judgements:
        console.print(Text("\nRounds", style="bold"))
        console.print(fitted(texts.ROUND_COLUMNS, [(ended, ()) for ended, _ in rounds.rounds]))
    for name, judgement in evaluation.judgements.items():
        _show_judgement(console, name, judgement, rounds)
    if evaluation.decisions:
        console.print(Text("\nHypotheses", style="bold"))
        show_hypotheses(console, evaluation.decisions)
    show_study(console, rounds.study)


def _show_variants(console: Console, rounds: SuiteRounds) -> None:
    for variant, runs in rounds.results.complete.items():
        done = f"{len(runs)} of {rounds.results.repeat} runs, each counted as a trial"
        console.print(Text(f"{variant}: {done}", style="bold"))
        if runs:
            try:
                console.print(results_table(as_one_run(runs)))
            except RepeatsError as error:
                print_line(console, str(error), "yellow")
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
    """Return the results, comparisons and hypotheses of the last round, and all rounds."""
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
            **document_of(change, "against", "points", "metric", "rounds"),
            "workload": change.group.workload,
            "point": change.point or None,
            "operation": operation_text(change.group.operation, change.metric),
            **document_of(change.ratios, "ratio", "low", "high"),
            **document_of(change.judgement, "conclusion", "improved", "suspected"),
        }
        for change in variant.judged
    ]
    return {
        **document_of(variant, "variant", "conclusion", "drift", "is_drift"),
        "againstAccepted": variant.change,
        "reasons": [*variant.reasons],
        "found": changes,
    }
