"""Results, comparisons and rounds as GitHub-flavoured Markdown, such as for a comment on a pull request.

No name or message of a run can be markup: `inline` shows everything except plain words and numbers as a code span, in
which GitHub makes no links, images, HTML, mentions or references.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plimsoll.api.suite_status import RoundVerdict
from plimsoll.measure.compare.comparison import notes_of
from plimsoll.measure.text import count_text, first_few, quote
from plimsoll.report import comparing, points
from plimsoll.report.figure import SENSES, UNFINISHED, ReportedRun, ReportedSuite, is_search, result_rows
from plimsoll.report.figure import verdict_text as point_verdict
from plimsoll.report.layers_links import link_columns, links_of
from plimsoll.report.overview import verdict_reasons
from plimsoll.report.suite import CHANGE_COLUMNS, HYPOTHESIS_COLUMNS, ROUND_COLUMNS, notable_changes
from plimsoll.report.suite import notes_of as hypothesis_notes_of
from plimsoll.report.view import NONE, Cell, Column
from plimsoll.suite.evaluation import Compared
from plimsoll.suite.judging import RoundJudgement
from plimsoll.suite.rounds.turns import ACCEPT_ROUND

MAX_CHARACTERS = 65_536
"""The most that GitHub accepts as the body of a comment."""
_MARGIN = 100  # characters for a line that a pipeline adds, such as one that identifies the comment
_MOST_ROWS = 20  # of a table that is not collapsed
_LEAST_PRIORITY = 4  # of a column
_MOST_NAMES = 3
_SYMBOLS = {"good": "✅", "warn": "⚠️", "bad": "❌", "wait": "⏳"}
_MARKS = {mark: _SYMBOLS[sense] for mark, sense in SENSES.items()}
_WORST_FIRST = ("Invalid", UNFINISHED, "Suspect", "Valid")

# A word of letters, a percentile, or a number with its sign; a text of them begins no list.
_HARMLESS = (
    r"\(?(?:[A-Za-z]+|µs|MiB/s|p[0-9]+(?:\.[0-9]+)?|[-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[+/][0-9]+)?|[-±%])[,;:)]{0,2}"
)
_HARMLESS_TEXT = re.compile(rf"(?!(?:[-+]|[0-9]+[.)])(?: |$)){_HARMLESS}(?: {_HARMLESS})*\.?")

R = TypeVar("R")


def inline(text: str, *, in_table: bool = False) -> str:
    """Return a text on one line: as it is if it has only words and numbers, and otherwise as a code span."""
    line = quote(text, len(text))
    if not line or _HARMLESS_TEXT.fullmatch(line) or (in_table and line == NONE):
        return line
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    # A bar ends a cell even in a code span.
    shown = line.replace("|", r"\|") if in_table else line
    return f"{fence}{padding}{shown}{padding}{fence}"


def marked(verdict: str) -> str:
    return f"{_MARKS[verdict]} {verdict}" if verdict in _MARKS else inline(verdict)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together; the last ones may be left out, but not those that close them."""

    lines: Sequence[str]
    closing: Sequence[str] = ()
    heading: int = 0  # number of the first lines; without further lines the block is left out


def fitted(blocks: Iterable[Block], command: str) -> str:
    """Return a document that GitHub accepts; `command` shows what had to be left out."""
    cut = f"**Cut here:** a comment has at most {MAX_CHARACTERS:,} characters. `{command} -o json` shows everything."
    room = MAX_CHARACTERS - _MARGIN - len(cut) - 1
    parts: list[str] = []
    for block in blocks:
        room -= sum(len(line) + 1 for line in block.closing) + 1
        lines: list[str] = []
        for line in block.lines:
            room -= len(line) + 1
            if room < 0:
                break
            lines.append(line)
        if room >= 0 or len(lines) > block.heading:
            parts.append("\n".join((*lines, *block.closing)))
        if room < 0:
            parts.append(cut)
            break
    return "\n\n".join(parts) + "\n"


def table(title: str, columns: Iterable[Column[R]], rows: Sequence[R], *, collapsed: bool = False) -> Block:
    """Return a table with the columns of a terminal of usual width, the verdict first; a long one is collapsed."""
    shown = [
        column
        for column in columns
        if column.heading
        and column.priority is not None
        and column.priority <= _LEAST_PRIORITY
        and not (column.stacked and all(column.cell(row).text in {"", NONE} for row in rows))
    ]
    # GitHub cuts off the right of a wide table.
    shown.sort(key=lambda column: not any(column.mark(row) for row in rows))
    cells = [[inline_cell(column.cell(row), unbroken=column.right) for column in shown] for row in rows]
    rules = ["--:" if column.right else "---" for column in shown]
    lines = [f"| {' | '.join(line)} |" for line in ([column.heading for column in shown], rules, *cells)]
    if collapsed or len(rows) > _MOST_ROWS:
        summary = f"<summary>{title} ({count_text(len(rows), 'row')})</summary>"
        return Block(["<details>", summary, "", *lines], ["", "</details>"], heading=5)
    return Block([f"**{title}**", "", *lines], heading=4)


def inline_cell(cell: Cell, *, unbroken: bool = False) -> str:
    """Return the text of a cell after the symbol of its verdict; `unbroken` keeps numbers and units on one line."""
    text = inline(cell.text, in_table=True)
    return " ".join(
        filter(None, (_MARKS.get(cell.mark), text.replace(" ", "\N{NO-BREAK SPACE}") if unbroken else text))
    )


def _list(items: Iterable[str]) -> Iterator[Block]:
    if lines := [f"- {item}" for item in items]:
        yield Block(lines)


def results_markdown(runs: Sequence[ReportedRun]) -> str:
    blocks = (block for run in runs for block in _run(f"run {inline(run.place)}", run))
    return fitted(blocks, "plimsoll results")


def _run(name: str, run: ReportedRun) -> Iterator[Block]:
    counts = Counter(map(point_verdict, run.results))
    worst = next(verdict for verdict in _WORST_FIRST if counts[verdict])
    yield Block([f"## {marked(worst)}: {name}"])
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORST_FIRST if counts[verdict])
    yield Block([f"{count_text(len(run.results), 'point')}: {listed}."])
    yield from _points(run)
    yield from _reasons(run)


def _points(run: ReportedRun) -> Iterator[Block]:
    if rows := [*result_rows(points.named(result for result in run.results if not is_search(result)))]:
        yield table("Points", points.RESULT_COLUMNS, rows)
    if searches := [*points.line_rows(points.named(run.results))]:
        yield table("Searches for the line", points.LINE_COLUMNS, searches)
        yield from _list(
            f"{inline(row.result.spec.point)}: {inline(text)}. {inline(why)}"
            for row, text, why in points.search_sentences(searches)
        )
    if phases := [*points.phase_rows(run.results)]:
        yield table("Phases", points.PHASE_COLUMNS, phases)
        recoveries = (sentence.partition(": ") for sentence in points.recovery_sentences(run.results))
        yield from _list(f"{inline(point)}: {inline(sentence)}" for point, _, sentence in recoveries)
    for result in run.results:
        if links := links_of(result):
            starred = "; a star is far below comparable links (LinkOutlier)" if links.outliers else ""
            pairs = f"The slowest of {len(links.pairs)} links at {inline(result.spec.point)}"
            yield Block([f"{pairs}, in {links.unit}{starred}:"])
            yield table("Links", link_columns(links), links.pairs[:_MOST_ROWS])


def _reasons(run: ReportedRun) -> Iterator[Block]:
    yield from _list(
        f"{marked(case.verdict)}: {inline(case.reason)} at {inline(first_few(case.points, _MOST_NAMES))}: "
        f"{inline(case.message)}."
        for case in verdict_reasons([run])
    )


def comparison_markdown(compared: Compared) -> str:
    if compared.comparison is None:
        raise ValueError("without a comparison there is nothing to show")
    title = f"## {marked(compared.comparison.conclusion)}: {inline(compared.candidate)}"
    blocks = [Block([f"{title} against {inline(compared.baseline)}"]), *_comparison(compared)]
    return fitted(blocks, "plimsoll compare")


def _comparison(compared: Compared) -> Iterator[Block]:
    comparison = compared.comparison
    if comparison is None:
        return
    yield from _list(map(inline, comparison.reasons))
    rows = [*comparing.compared_rows(comparison)]
    gating = [row for row in rows if row.metric is None or row.metric.gates]
    if gating:
        yield table("What decides", comparing.COMPARED_COLUMNS, gating)
    notes = [f"{inline(first_few(places, 1))}: {inline(note)}" for note, places in notes_of(comparison).items()]
    yield from _list(notes)
    if others := [row for row in rows if row not in gating]:
        yield table("Other metrics, which do not decide", comparing.COMPARED_COLUMNS, others, collapsed=True)
    if text := comparing.unknown_text(inline(first_few(compared.likeness.unknown, _MOST_NAMES))):
        yield Block([text])
    if differences := compared.likeness.differences:
        columns = comparing.difference_columns("Baseline", "Candidate")
        yield table("Differences of the runs", columns, differences, collapsed=True)
    yield Block([" ".join([*map(inline, comparing.only_texts(comparison)), *comparing.rule_texts(comparison)])])


def rounds_markdown(suite: ReportedSuite) -> str:
    """Return the last round of a suite: its verdict, comparisons and hypotheses, and the points of each variant."""
    return fitted(_rounds(suite), "plimsoll results")


def _rounds(suite: ReportedSuite) -> Iterator[Block]:
    evaluation, (last, _) = suite.evaluation, suite.rounds[-1]
    is_intended = last.accepted and last.verdict is RoundVerdict.REGRESSED
    accepted = ", accepted" if is_intended else ""
    yield Block([f"## {marked(last.verdict)}{accepted}: round {inline(last.name)} of suite {inline(suite.label)}"])
    if suite.failed:
        yield Block([f"{marked(RoundVerdict.FAILED)}: {inline(suite.failed)}."])
    yield Block([f"{inline(evaluation.message)}."])
    for name, judgement in evaluation.judgements.items():
        yield from _judgement(name, judgement)
    if last.verdict is RoundVerdict.REGRESSED and not is_intended:
        remedy = f"`--accept {last.name}`, or in a cluster the annotation `{ACCEPT_ROUND}: {last.name}` of the suite"
        yield Block([f"If this is intended, accept the round: {remedy}."])
    for compared in evaluation.comparisons:
        # Of variants, which does not decide about the round.
        names = f"{inline(compared.candidate)} against {inline(compared.baseline)}"
        yield Block([f"### {marked(compared.conclusion)}: {inline(compared.name)}, {names}"])
        yield from _list(map(inline, compared.reasons))
        yield from _comparison(compared)
    if evaluation.decisions:
        yield table("Hypotheses", HYPOTHESIS_COLUMNS, evaluation.decisions)
        sentences = (f"{inline(decision.name)}: {inline(decision.sentence)}" for decision in evaluation.decisions)
        yield from _list([*sentences, *map(inline, hypothesis_notes_of(evaluation.decisions))])
    for variant in suite.variants:
        yield Block([f"### Variant {inline(variant.label)}"])
        yield from _points(variant)
        yield from _reasons(variant)
    yield table("Rounds", ROUND_COLUMNS, [(ended, ()) for ended, _ in reversed(suite.rounds)], collapsed=True)


def _judgement(name: str, judgement: RoundJudgement) -> Iterator[Block]:
    baseline = count_text(judgement.accepted, "accepted round")
    yield Block([f"### {marked(judgement.conclusion)}: {inline(name)}, compared with {baseline}"])
    changes = notable_changes(judgement)
    if changes:
        yield table("Mean changes, and points that are or may be worse", CHANGE_COLUMNS, changes)
    verdicts = [
        f"{inline(variant.variant)}: {marked(variant.conclusion)}"
        + (", slow drift from the pinned rounds" if variant.is_drift else "")
        + "".join(f"; {inline(reason)}" for reason in variant.reasons)
        for variant in judgement.variants
    ]
    yield from _list([*verdicts, *map(inline, judgement.change_texts)])
