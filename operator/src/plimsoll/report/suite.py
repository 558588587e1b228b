"""The rounds of a suite with their verdicts, comparisons and hypotheses, and its shares next to the published study."""

import math
from collections.abc import Iterator, Sequence

from plimsoll.api.names import Verdict
from plimsoll.api.suite_status import Conclusion, EndedRound, RoundVerdict, round_name
from plimsoll.measure.compare.comparison import change_text
from plimsoll.measure.compare.values import operation_text
from plimsoll.measure.hypotheses.decide import (
    Decision,
    Form,
    Interval,
    expectation_text,
    interval_texts,
    known_end_text,
)
from plimsoll.measure.text import count_text
from plimsoll.plan.fingerprint import Difference
from plimsoll.report import plot
from plimsoll.report.overview import value_text
from plimsoll.report.trends import changes_before
from plimsoll.report.view import (
    NONE,
    Block,
    Chart,
    Column,
    Number,
    Section,
    Text,
    bytes_rate_text,
    page_table,
    ratio_text,
)
from plimsoll.studies.model import ComparedShare, OwnShare, StudyComparison
from plimsoll.studies.shares import Origin
from plimsoll.suite.evaluation import Evaluation
from plimsoll.suite.judging import JudgedChange, RoundJudgement
from plimsoll.suite.measured import MeasuredRound

_PERCENT = 100
_ROW_PIXELS = 44
_MARGIN_PIXELS = 140

_WORDS = (
    "A ratio is in percent; an exponent says how a quantity grows with an axis. A hypothesis is Held or Refuted if its "
    "whole 95 % confidence interval lies within or beyond the expectation, and Undecided otherwise. * rests on Suspect "
    "points."
)
_PUBLISHED_WORDS = (
    "Rates of other hardware and versions say nothing about yours, so both sides are shares: of the limit that is "
    "computed from the layers below, or of another point. The study's line covers all that it published, yours is "
    "the 95 % confidence interval of a ratio. A derived share is computed from the study's published numbers, a "
    "cited one is quoted from other work. * rests on Suspect points."
)


def rounds_section(rounds: Sequence[tuple[EndedRound, MeasuredRound]]) -> Section:
    """Return a table of the rounds, the last one first."""
    rows = reversed([(ended, changes) for (ended, _), changes in zip(rounds, changes_before(rounds), strict=True)])
    table = page_table("All rounds, the last one first", ROUND_COLUMNS, rows, sortable=False)
    return Section(key="rounds", title="Rounds", blocks=[table])


def judgements_section(evaluation: Evaluation) -> Section | None:
    """Return the comparisons of the last round; None without comparisons."""
    blocks: list[Block] = []
    for compared in evaluation.comparisons:
        question = f"{compared.name}: is {compared.candidate} worse than {compared.baseline}? {compared.conclusion}."
        blocks.append(Text(paragraphs=[question, *compared.remarks]))
    for name, judgement in evaluation.judgements.items():
        baseline = count_text(judgement.accepted, "accepted round")
        question = f"{name}: is round {round_name(judgement.minute)} worse than {baseline}? {judgement.conclusion}."
        reasons = [f"{variant.variant}: {reason}" for variant in judgement.variants for reason in variant.reasons]
        blocks.append(Text(paragraphs=[question, *reasons]))
        if changes := notable_changes(judgement):
            caption = f"{name}: mean changes of workloads, and points that are or may be worse"
            blocks.append(page_table(caption, CHANGE_COLUMNS, changes))
    return Section(key="judgement", title="The last round", blocks=blocks) if blocks else None


def notable_changes(judgement: RoundJudgement) -> Sequence[JudgedChange]:
    """Return the changes that are shown: every mean, and every point that is or may be worse."""
    return [
        change
        for variant in judgement.variants
        for change in variant.judged
        if not change.point or change.comparison.conclusion is Conclusion.REGRESSION or change.comparison.suspected
    ]


RoundRow = tuple[EndedRound, Sequence[Difference]]  # a round, and what changed since the one before


def _round_verdict(row: RoundRow) -> str:
    ended, _ = row
    compares_none = ended.verdict is RoundVerdict.NO_REGRESSION and not ended.comparisons
    return NONE if compares_none else ended.verdict.value


def _changes_text(row: RoundRow) -> str:
    texts = (f"{change.key}: {value_text(change.baseline)} → {value_text(change.candidate)}" for change in row[1])
    return "; ".join(texts) or NONE


ROUND_COLUMNS: Sequence[Column[RoundRow]] = (
    Column("Round", lambda row: row[0].name),
    Column("Verdict", _round_verdict, mark=_round_verdict),
    Column("Baseline", lambda row: "accepted, pinned" if row[0].pinned else "accepted" if row[0].accepted else NONE),
    Column(
        "Measured",
        lambda row: row[0].digest[:8],
        title=lambda _: "digest of the run, the variants and repeat",
        priority=None,
    ),
    Column("Changed since the round before", _changes_text, priority=None),
)


CHANGE_COLUMNS: Sequence[Column[JudgedChange]] = (
    Column("Variant", lambda change: change.group.variant),
    Column("Point", lambda change: change.place, folded=True),
    Column("Op", lambda change: operation_text(change.group.operation, change.group.metric)),
    Column("Metric", lambda change: change.group.metric),
    Column("Against", lambda change: change.against, priority=1),
    Number("Change", lambda change: change.comparison.ratio, show=change_text),
    Number(
        "95 % interval",
        lambda change: change.comparison.low,
        text=lambda change: f"{change_text(change.comparison.low)} to {change_text(change.comparison.high)}",
        priority=2,
    ),
    Number("Rounds", lambda change: change.rounds, priority=None),
    Column(
        "Conclusion",
        lambda change: change.comparison.conclusion,
        text=lambda change: f"{change.comparison.conclusion}{', improved' if change.comparison.improved else ''}",
        mark=lambda change: change.comparison.conclusion,
    ),
)


def hypotheses_section(decisions: Sequence[Decision]) -> Section | None:
    """Return the hypotheses as a table and sentences; None if there are none."""
    if not decisions:
        return None
    table = page_table("Hypotheses, decided in the last round", HYPOTHESIS_COLUMNS, decisions, sortable=False)
    # The sentence of a decision has its first reason.
    sentences = [
        " ".join([f"{decision.name}: {decision.sentence}", *(f"{reason}." for reason in decision.reasons[1:])])
        for decision in decisions
    ]
    blocks: list[Block] = [Text(paragraphs=[_WORDS]), table, Text(paragraphs=[*sentences, *notes_of(decisions)])]
    return Section(key="hypotheses", title="Hypotheses", blocks=blocks)


def notes_of(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield each note once, after the hypotheses that it applies to."""
    for note in dict.fromkeys(note for decision in decisions for note in decision.notes):
        names = dict.fromkeys(decision.name for decision in decisions if note in decision.notes)
        yield f"{', '.join(names)}: {note}"


def estimate_texts(decision: Decision) -> tuple[str, str]:
    """Return estimate and interval, or the known end of it."""
    if decision.estimate is None or decision.low is None or decision.high is None:
        start = -math.inf if decision.low is None else decision.low
        end = math.inf if decision.high is None else decision.high
        if math.isinf(start) and math.isinf(end):
            return NONE, NONE
        half_open = Interval(estimate=start, low=start, high=end)
        return NONE, known_end_text(half_open, (decision.at_least, decision.at_most))
    interval = Interval(estimate=decision.estimate, low=decision.low, high=decision.high)
    is_ratio = decision.form is Form.RATIO
    estimate, low, high = interval_texts(interval, (decision.at_least, decision.at_most), is_ratio=is_ratio)
    unit = " %" if is_ratio else ""
    return f"{estimate}{unit}", f"{low} to {high}{unit}"


def _replicates_text(decision: Decision) -> str:
    """Return the replicates on each side: `5+5 trials`."""
    if decision.unit is None:
        return NONE
    return f"{'+'.join(map(str, decision.replicates))} {decision.unit.lower()}s"


def _expected_text(decision: Decision) -> str:
    return expectation_text((decision.at_least, decision.at_most), is_ratio=decision.form is Form.RATIO)


HYPOTHESIS_COLUMNS: Sequence[Column[Decision]] = (
    Column("Hypothesis", lambda decision: decision.name, stacked=True),
    Column("Variant", lambda decision: decision.variant or None, stacked=True),
    Column(
        "Verdict",
        lambda decision: f"{decision.verdict}{' *' if decision.is_suspect else ''}",
        mark=lambda decision: decision.verdict,
    ),
    Number("Estimate", lambda each: each.estimate, text=lambda each: estimate_texts(each)[0], priority=2),
    Number("95 % interval", lambda each: each.low, text=lambda each: estimate_texts(each)[1], priority=1),
    Number("Expected", _expected_text, priority=1),
    Number("From", _replicates_text, priority=3),
)


def published_section(compared: StudyComparison | None) -> Section | None:
    """Return a figure and a table; None without a study, or if the suite measures none of its shares."""
    if compared is None or not compared.shares:
        return None
    shares, name = compared.shares, study_text(compared)
    words = "; ".join(f"{share.name}: study {published_text(share)}, yours {own_text(share.own)}" for share in shares)
    names = [share.name for share in shares]
    # The study's marker is in the middle of a line over what it published.
    middles = [(share.published.low + share.published.high) / 2 for share in shares]
    published = [
        (share.published.low, middle, share.published.high) for share, middle in zip(shares, middles, strict=True)
    ]
    own = [(share.own.low, share.own.value, share.own.high) for share in shares]
    chart = Chart(
        key="study-shares",
        title=f"Shares of {name} and yours",
        description=f"{words}.",
        data=[
            plot.scatter(
                name,
                [_PERCENT * middle for middle in middles],
                names,
                error_x=plot.error_bars(published, 1 / _PERCENT, thickness=2, width=5),
                marker={"color": plot.colour(1), "symbol": "diamond-open", "size": 18, "line": {"width": 2}},
                texts=[f"{share.name}\n{published_text(share)}: {share.published.text}" for share in shares],
            ),
            plot.scatter(
                "yours",
                [None if value is None else _PERCENT * value for _, value, _ in own],
                names,
                error_x=plot.error_bars(own, 1 / _PERCENT, thickness=2, width=5),
                marker={
                    "color": plot.colour(0),
                    "symbol": ["circle-open-dot" if share.own.is_suspect else "circle" for share in shares],
                    "size": 11,
                },
                texts=[f"{share.name}\n{own_text(share.own)}: {own_rates_text(share.own)}" for share in shares],
            ),
        ],
        x=plot.linear_axis("percent"),
        y={"type": "category", "autorange": "reversed", "automargin": True},
        height=_MARGIN_PIXELS + _ROW_PIXELS * len(shares),
    )
    paragraphs = [_PUBLISHED_WORDS, *difference_texts(compared)]
    table = page_table("Shares of the study and yours", SHARE_COLUMNS, shares, sortable=False)
    return Section(key="study", title=f"Compared with {name}", blocks=[Text(paragraphs=paragraphs), chart, table])


def study_text(compared: StudyComparison) -> str:
    """Return the study's key with its year: `KIT (2014)`."""
    year = compared.study.source.year
    return compared.study.key + (f" ({year})" if year else "")


def difference_texts(compared: StudyComparison) -> Iterator[str]:
    """Yield the testbeds of the study and of the user."""
    source = compared.study.source
    testbed = "; ".join(compared.study.testbed.values())
    yield f"{source.authors}, {source.title}, measured with {testbed}."
    own_testbed = "; ".join(compared.own_testbed)
    yield f"Yours: {own_testbed}." if own_testbed else "Yours: the results do not describe a cluster."


def published_text(share: ComparedShare) -> str:
    """Return the study's share in percent, both ends if it published several, and its origin if it did not: derived."""
    low, high = ratio_text(share.published.low), ratio_text(share.published.high)
    text = high if low == high else f"{low.removesuffix(' %')} to {high}"
    origin = share.published.origin
    return text if origin is Origin.PUBLISHED else f"{text} ({origin.lower()})"


def own_text(share: OwnShare) -> str:
    """Return the user's share in percent, with a * if it is Suspect."""
    return f"{ratio_text(share.value)}{' *' if share.is_suspect else ''}"


def own_rates_text(share: OwnShare) -> str:
    if share.limit is None:
        return NONE if share.rate is None else bytes_rate_text(share.rate)
    return f"{bytes_rate_text(share.rate)} of {bytes_rate_text(share.limit)}"


SHARE_COLUMNS: Sequence[Column[ComparedShare]] = (
    Column("Share", lambda share: share.name, folded=True),
    Column("Experiment", lambda share: share.experiment, priority=None),
    Number("Study", lambda share: share.published.high, text=published_text),
    Number(
        "Yours",
        lambda share: share.own.value,
        text=lambda share: own_text(share.own),
        mark=lambda share: Verdict.SUSPECT if share.own.is_suspect else "",
    ),
    Column("Study's numbers", lambda share: share.published.text, priority=2),
    Column("Published in", lambda share: share.published.place, priority=None),
    Column("Your rates", lambda share: own_rates_text(share.own), priority=1),
    Column("Remarks", lambda share: share.own.missing or share.note or None, priority=None),
)
