"""`plimsoll suite results`: what the last round of a suite shows, also compared with those before."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click
from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.text import Text

from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.compare import EXIT_OF, show_comparison
from plimsoll.cli.options import JSON, TABLE, YAML, output_option, write_document
from plimsoll.cli.suite_history import Course, accept_option, history_document, load_rounds, show_judgement, show_rounds
from plimsoll.cli.suite_round import Findings
from plimsoll.cli.tables import FittedColumn, FittedTable, results_table, stdout_console
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.report import suite as texts
from plimsoll.report.view import count_text
from plimsoll.studies.model import ComparedShare, StudyComparison
from plimsoll.studies.shares import Origin
from plimsoll.suite.evaluation import VariantComparison

_COLOUR = {HypothesisVerdict.HELD: "green", HypothesisVerdict.REFUTED: "red", HypothesisVerdict.UNDECIDED: "yellow"}
_SUSPECT = "* rests on Suspect points"


def show_hypotheses(console: Console, decisions: Sequence[Decision]) -> None:
    """Print the decisions; nothing without any."""
    for part in hypotheses_view(decisions):
        console.print(part, soft_wrap=isinstance(part, Text))


def hypotheses_view(decisions: Sequence[Decision]) -> Iterator[RenderableType]:
    """Yield a table, then a line of text for each decision, reason and note; nothing without decisions."""
    if not decisions:
        return
    yield FittedTable(rows=decisions, layouts=_LAYOUTS, missed=_LAYOUTS[0], remedy="-o json")
    if any(decision.is_suspect for decision in decisions):
        yield Text(_SUSPECT, style="dim")
    for decision in decisions:
        yield Text(f"{decision.name}: ", style="bold").append(decision.sentence, style="not bold")
        # The sentence has the first one.
        yield from (Text(f"  - {reason}") for reason in decision.reasons[1:])
    # Each note once, with the hypotheses that it applies to.
    notes: dict[str, dict[str, None]] = {}
    for decision in decisions:
        for note in decision.notes:
            notes.setdefault(note, {})[decision.name] = None
    for note, names in notes.items():
        yield Text(f"{', '.join(names)}: {note}", style="dim")


def hypotheses_document(decisions: Sequence[Decision]) -> list[dict[str, JsonValue]]:
    """Return the decisions as a JSON document."""
    return [decision.model_dump(mode="json") for decision in decisions]


def _name(decision: Decision) -> Text:
    text = Text(decision.name)
    return text.append(f"\nin {decision.variant}", style="dim") if decision.variant else text


_Column = FittedColumn[Decision]
_NAME = _Column(heading="Hypothesis", cell=_name, folded=True)
_VERDICT = _Column(
    heading="Verdict",
    cell=lambda decision: Text(
        f"{decision.verdict}{' *' if decision.is_suspect else ''}", style=_COLOUR[decision.verdict]
    ),
)
_ESTIMATE = _Column(heading="Estimate", cell=lambda decision: texts.estimate_texts(decision)[0], right=True)
_INTERVAL = _Column(heading="95 % interval", cell=lambda decision: texts.estimate_texts(decision)[1], right=True)
_EXPECTED = _Column(heading="Expected", cell=texts.expected_text, right=True)
_RESTS_ON = _Column(heading="From", cell=texts.replicates_text, right=True)

_LAYOUTS = (
    (_NAME, _VERDICT, _ESTIMATE, _INTERVAL, _EXPECTED, _RESTS_ON),
    (_NAME, _VERDICT, _ESTIMATE, _INTERVAL, _EXPECTED),
    (_NAME, _VERDICT, _INTERVAL, _EXPECTED),
    (_NAME, _VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""


def show_study(console: Console, compared: StudyComparison | None) -> None:
    """Print the shares of the study and the user's own; nothing without a study, or without shares."""
    if compared is None or not compared.shares:
        return
    console.print(Text(f"\nBeside {texts.study_text(compared)}", style="bold"))
    console.print(FittedTable(rows=compared.shares, layouts=_STUDY_LAYOUTS, missed=_STUDY_LAYOUTS[0], remedy="-o json"))
    if any(share.own.is_suspect for share in compared.shares):
        console.print(Text(_SUSPECT, style="dim"))
    if any(share.published.origin is Origin.DERIVED for share in compared.shares):
        console.print(Text("derived: computed from the study's numbers, not published itself", style="dim"))
    for share in compared.shares:
        if remark := texts.remark_text(share):
            console.print(Text(f"{share.name}: {remark}", style="dim"), soft_wrap=True)
    for line in texts.difference_texts(compared):
        console.print(Text(line), soft_wrap=True)


def study_document(compared: StudyComparison | None) -> dict[str, JsonValue] | None:
    """Return the shares, as parts of 1, as a JSON document; None without a study."""
    if compared is None:
        return None
    shares: list[JsonValue] = [
        {
            "name": share.name,
            "experiment": share.experiment,
            "published": {
                "low": share.published.low,
                "high": share.published.high,
                "numbers": share.published.text,
                "origin": share.published.origin.value,
            },
            "own": {
                "value": share.own.value,
                "low": share.own.low,
                "high": share.own.high,
                "bytesPerSecond": share.own.rate,
                "ofBytesPerSecond": share.own.limit,
                "isSuspect": share.own.is_suspect,
                "missing": share.own.missing,
            },
        }
        for share in compared.shares
    ]
    return {"key": compared.study.key, "ownTestbed": [*compared.own_testbed], "shares": shares}


_ShareColumn = FittedColumn[ComparedShare]
_SHARE_NAME = _ShareColumn(heading="Share", cell=lambda share: share.name, folded=True)
_PUBLISHED = _ShareColumn(heading="Study", cell=texts.published_text, right=True)
_OWN = _ShareColumn(heading="Yours", cell=lambda share: texts.own_text(share.own), right=True)
_NUMBERS = _ShareColumn(heading="Study's numbers", cell=lambda share: share.published.text)
_RATES = _ShareColumn(heading="Your rates", cell=lambda share: texts.own_rates_text(share.own))

_STUDY_LAYOUTS = (
    (_SHARE_NAME, _PUBLISHED, _OWN, _NUMBERS, _RATES),
    (_SHARE_NAME, _PUBLISHED, _OWN, _RATES),
    (_SHARE_NAME, _PUBLISHED, _OWN),
)


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
    rounds = load_rounds(sources, accepted)
    if output == TABLE:
        show_findings(stdout_console(), rounds.findings, rounds.course)
    else:
        write_document(_document(rounds.findings) | history_document(rounds.course), output)
    sys.exit(EXIT_OF[rounds.conclusion] if rounds.conclusion else 0)


def show_findings(console: Console, findings: Findings, course: Course | None = None) -> None:
    """Print the results of each variant, the comparisons and the hypotheses; of comparisons with rounds, if known."""
    for variant, runs in findings.runs.items():
        done = f"{len(runs)} of {findings.suite.spec.repeat} runs, each counted as a trial"
        console.print(Text(f"{variant}: {done}", style="bold"))
        if runs:
            try:
                console.print(results_table(as_one_run(runs)))
            except RepeatsDifferError as error:
                console.print(Text(str(error), style="yellow"), soft_wrap=True)
    for compared in findings.comparisons:
        title = f"\n{compared.name}: is {compared.candidate} worse than {compared.baseline}?"
        console.print(Text(title, style="bold"))
        if compared.comparison is not None:
            show_comparison(console, compared.comparison, compared.likeness, of_runs=compared.of_runs)
        for line in doubts_of(compared):
            console.print(Text(line, style="yellow"), soft_wrap=True)
    _show_judgements(console, findings, course)
    if findings.decisions:
        console.print(Text("\nHypotheses", style="bold"))
        show_hypotheses(console, findings.decisions)
    show_study(console, findings.study)


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
                "name": compared.name,
                "baseline": compared.baseline,
                "candidate": compared.candidate,
                "conclusion": compared.conclusion,
                "countsRuns": compared.of_runs,
                "missingRuns": compared.missing,
                "comparison": compared.comparison.model_dump(mode="json") if compared.comparison else None,
                "differences": [{**asdict(each), "points": points} for each, points in compared.likeness.differences],
                "unexplained": [asdict(difference) for difference in compared.unexplained],
                "doubts": compared.doubts,
            }
            for compared in findings.comparisons
        ],
        "hypotheses": hypotheses_document(findings.decisions),
        "study": study_document(findings.study),
    }
