"""The rounds of a suite with verdicts, trends and hypotheses, its variants, and its shares of a published study."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

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
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.report import plot, view
from plimsoll.report.overview import value_text
from plimsoll.studies.model import ComparedShare, Origin, OwnShare, StudyComparison
from plimsoll.suite.evaluation import Evaluation
from plimsoll.suite.judging import JudgedChange, RoundJudgement, Trend, TrendRow, trends_of
from plimsoll.suite.measured import MeasuredRound

_WORDS = (
    "A ratio is in percent; an exponent says how a quantity grows with an axis. A hypothesis is Held or Refuted if its "
    "whole 95 % confidence interval lies within or beyond the expectation, and Undecided otherwise. * rests on Suspect "
    "points."
)
_PUBLISHED_WORDS = (
    "Rates of other hardware and versions say nothing about yours, so both sides are shares: of the limit that is "
    "computed from the layers below, or of another point. A derived share is computed from the study's published "
    "numbers, a cited one is quoted from other work. * rests on Suspect points."
)


_TREND_WORDS = (
    "Each marker is the geometric mean over the runs of a round, with the 95 % confidence interval that follows from "
    "the noise between the runs of all rounds; noise between rounds is not a part of it. A filled marker is a round "
    "of the baseline, a hollow one is not, and a cross is a round that regressed, possibly at another point. A "
    "vertical line marks a round before which something changed: Ceph, the kernel, the nodes, or what is measured."
)
_IN_ROUNDS = "the figures that are shown have a round that regressed, or come first"

_UPPER_END: view.Json = {"xref": "x", "xanchor": "right", "y": 1, "yref": "paper", "yanchor": "top"}
_ALONG_LINE = _UPPER_END | {"showarrow": False, "textangle": -90}
"""A text along a vertical line, at its upper end: a figure may be narrow, and rounds close together."""

_NAMES = {"ceph.versions": "Ceph", "kubernetes": "Kubernetes"}
"""Key of a change -> its name next to a line; other keys are shown as they are."""


Rounds = Sequence[tuple[EndedRound, MeasuredRound]]  # in the order of time


def rounds_section(rounds: Rounds) -> view.Section:
    changes = _changes_before(rounds)
    rows = [(ended, changes[ended.minute]) for ended, _ in reversed(rounds)]
    table = view.page_table("All rounds, the last one first", ROUND_COLUMNS, rows, sortable=False)
    return view.Section(key="rounds", title="Rounds", blocks=[table])


def _changes_before(rounds: Rounds) -> Mapping[int, Sequence[Difference]]:
    """Return what changed before each round, by its minute, each change once."""
    changes: dict[int, list[Difference]] = {ended.minute: [] for ended, _ in rounds}
    for row in (row for trend in trends_of(rounds) for row in trend.rows):
        before = changes[row.round.minute]
        # JSON values cannot be keys of a dictionary.
        before += [change for change in row.changes if change not in before]
    return changes


def judgements_section(evaluation: Evaluation) -> view.Section | None:
    blocks: list[view.Block] = []
    for compared in evaluation.comparisons:
        question = f"{compared.name}: is {compared.candidate} worse than {compared.baseline}? {compared.conclusion}."
        blocks.append(view.Text(paragraphs=[question, *compared.remarks]))
    for name, judgement in evaluation.judgements.items():
        baseline = count_text(judgement.accepted, "accepted round")
        question = f"{name}: is round {round_name(judgement.minute)} worse than {baseline}? {judgement.conclusion}."
        reasons = [f"{variant.variant}: {reason}" for variant in judgement.variants for reason in variant.reasons]
        blocks.append(view.Text(paragraphs=[question, *reasons]))
        if changes := notable_changes(judgement):
            caption = f"{name}: mean changes of workloads, and points that are or may be worse"
            blocks.append(view.page_table(caption, CHANGE_COLUMNS, changes))
    return view.Section(key="judgement", title="The last round", blocks=blocks) if blocks else None


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
    return view.NONE if ended.compares_none else ended.verdict.value


def _baseline_text(row: RoundRow) -> str:
    return "accepted, pinned" if row[0].pinned else "accepted" if row[0].accepted else view.NONE


def _changes_text(row: RoundRow) -> str:
    texts = (f"{change.key}: {value_text(change.baseline)} → {value_text(change.candidate)}" for change in row[1])
    return "; ".join(texts) or view.NONE


ROUND_COLUMNS: Sequence[view.Column[RoundRow]] = (
    view.Column("Round", lambda row: row[0].name),
    view.Column("Verdict", _round_verdict, mark=_round_verdict),
    view.Column("Baseline", _baseline_text),
    view.Column(
        "Measured",
        lambda row: row[0].digest[:8],
        title=lambda _: "digest of the run, the variants and repeat",
        priority=None,
    ),
    view.Column("Changed since the round before", _changes_text, priority=None),
)


CHANGE_COLUMNS: Sequence[view.Column[JudgedChange]] = (
    view.Column("Variant", lambda change: change.group.variant),
    view.Column("Point", lambda change: change.place, folded=True),
    view.Column("Op", lambda change: operation_text(change.group.operation, change.group.metric)),
    view.Column("Metric", lambda change: change.group.metric),
    view.Column("Against", lambda change: change.against, priority=1),
    view.Number("Change", lambda change: change.comparison.ratio, show=change_text),
    view.Number(
        "95 % interval",
        lambda change: change.comparison.low,
        text=lambda change: f"{change_text(change.comparison.low)} to {change_text(change.comparison.high)}",
        priority=2,
    ),
    view.Number("Rounds", lambda change: change.rounds, priority=None),
    view.Column(
        "Conclusion",
        lambda change: change.comparison.conclusion,
        text=lambda change: f"{change.comparison.conclusion}{', improved' if change.comparison.improved else ''}",
        mark=lambda change: change.comparison.conclusion,
    ),
)


def hypotheses_section(decisions: Sequence[Decision]) -> view.Section | None:
    if not decisions:
        return None
    table = view.page_table("Hypotheses, decided in the last round", HYPOTHESIS_COLUMNS, decisions, sortable=False)
    words, sentences = view.Text(paragraphs=[_WORDS]), view.Text(paragraphs=[*decision_texts(decisions)])
    return view.Section(key="hypotheses", title="Hypotheses", blocks=[words, table, sentences])


def decision_texts(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield what was decided about each hypothesis and why, then the notes."""
    for decision in decisions:
        # The sentence has the first reason.
        yield " ".join([f"{decision.name}: {decision.sentence}", *(f"{reason}." for reason in decision.reasons[1:])])
    yield from notes_of(decisions)


def notes_of(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield each note once, after the hypotheses that it applies to."""
    for note in dict.fromkeys(note for decision in decisions for note in decision.notes):
        names = dict.fromkeys(decision.name for decision in decisions if note in decision.notes)
        yield f"{', '.join(names)}: {note}"


def estimate_texts(decision: Decision) -> tuple[str, str]:
    if decision.estimate is None or decision.low is None or decision.high is None:
        start = -math.inf if decision.low is None else decision.low
        end = math.inf if decision.high is None else decision.high
        if math.isinf(start) and math.isinf(end):
            return view.NONE, view.NONE
        half_open = Interval(estimate=start, low=start, high=end)
        return view.NONE, known_end_text(half_open, (decision.at_least, decision.at_most))
    interval = Interval(estimate=decision.estimate, low=decision.low, high=decision.high)
    is_ratio = decision.form is Form.RATIO
    estimate, low, high = interval_texts(interval, (decision.at_least, decision.at_most), is_ratio=is_ratio)
    unit = " %" if is_ratio else ""
    return f"{estimate}{unit}", f"{low} to {high}{unit}"


def _replicates_text(decision: Decision) -> str:
    if decision.unit is None:
        return view.NONE
    return f"{'+'.join(map(str, decision.replicates))} {decision.unit.lower()}s"


def _expected_text(decision: Decision) -> str:
    return expectation_text((decision.at_least, decision.at_most), is_ratio=decision.form is Form.RATIO)


HYPOTHESIS_COLUMNS: Sequence[view.Column[Decision]] = (
    view.Column("Hypothesis", lambda decision: decision.name, stacked=True),
    view.Column("Variant", lambda decision: decision.variant or None, stacked=True),
    view.Column(
        "Verdict",
        lambda decision: f"{decision.verdict}{' *' if decision.is_suspect else ''}",
        mark=lambda decision: decision.verdict,
    ),
    view.Number("Estimate", lambda each: each.estimate, text=lambda each: estimate_texts(each)[0], priority=2),
    view.Number("95 % interval", lambda each: each.low, text=lambda each: estimate_texts(each)[1], priority=1),
    view.Number("Expected", _expected_text, priority=1),
    view.Number("From", _replicates_text, priority=3),
)


def published_section(compared: StudyComparison | None) -> view.Section | None:
    """Return the shares; None without a study, or if the suite measures none of them."""
    if compared is None or not compared.shares:
        return None
    words = view.Text(paragraphs=[_PUBLISHED_WORDS, *difference_texts(compared)])
    table = view.page_table("Shares of the study and yours", SHARE_COLUMNS, compared.shares, sortable=False)
    return view.Section(key="study", title=f"Compared with {study_text(compared)}", blocks=[words, table])


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
    low, high = view.ratio_text(share.published.low), view.ratio_text(share.published.high)
    text = high if low == high else f"{low.removesuffix(' %')} to {high}"
    origin = share.published.origin
    return text if origin is Origin.PUBLISHED else f"{text} ({origin.lower()})"


def own_text(share: OwnShare) -> str:
    return f"{view.ratio_text(share.value)}{' *' if share.is_suspect else ''}"


def _own_interval(share: OwnShare) -> str:
    return view.NONE if share.low is None else f"{view.ratio_text(share.low)} to {view.ratio_text(share.high)}"


def own_rates_text(share: OwnShare) -> str:
    if share.limit is None:
        return view.NONE if share.rate is None else view.bytes_rate_text(share.rate)
    return f"{view.bytes_rate_text(share.rate)} of {view.bytes_rate_text(share.limit)}"


SHARE_COLUMNS: Sequence[view.Column[ComparedShare]] = (
    view.Column("Share", lambda share: share.name, folded=True),
    view.Column("Experiment", lambda share: share.experiment, priority=None),
    view.Number("Study", lambda share: share.published.high, text=published_text),
    view.Number(
        "Yours",
        lambda share: share.own.value,
        text=lambda share: own_text(share.own),
        mark=lambda share: Verdict.SUSPECT if share.own.is_suspect else "",
    ),
    view.Number(
        "95 % interval", lambda share: share.own.low, text=lambda share: _own_interval(share.own), priority=None
    ),
    view.Column("Study's numbers", lambda share: share.published.text, priority=2),
    view.Column("Published in", lambda share: share.published.place, priority=None),
    view.Column("Your rates", lambda share: own_rates_text(share.own), priority=1),
    view.Column("Remarks", lambda share: share.own.missing or share.note or None, priority=None),
)


def trends_section(rounds: Rounds) -> view.Section | None:
    """Return a figure for each point, operation and metric over all rounds; None if only one round has numbers."""
    marks = {
        minute: [*dict.fromkeys(_NAMES.get(change.key, change.key) for change in changes)]
        for minute, changes in _changes_before(rounds).items()
    }
    for (before, _), (ended, _) in pairwise(rounds):
        if before.digest != ended.digest:
            marks[ended.minute].insert(0, "suite")
    trends = [trend for trend in trends_of(rounds) if len(trend.rows) > 1]
    # Sorting is stable.
    trends.sort(key=lambda trend: not any(map(_regressed, trend.rows)))
    figures = grouped(trends, lambda trend: (trend.quantity.point, trend.quantity.operation, trend.quantity.metric))
    charts = [
        _trend_chart(
            f"trend-{number}-{part}", words, drawn, {minute: names for minute, names in marks.items() if names}
        )
        for number, together in enumerate(figures.values())
        for part, words, drawn in plot.in_parts(together, plot.MOST_SERIES)
    ]
    return plot.figures_section("trend", "Over the rounds", _TREND_WORDS, charts, remedy=_IN_ROUNDS)


def _trend_chart(key: str, part: str, trends: Sequence[Trend], marks: Mapping[int, Sequence[str]]) -> view.Chart:
    quantity = trends[0].quantity
    title = f"{quantity.point}: {operation_text(quantity.operation, quantity.metric)}, {quantity.metric}{part}"
    rounds = {row.round.minute for trend in trends for row in trend.rows}
    return view.Chart(
        key=key,
        title=title,
        description=(
            f"{plot.axis_title(quantity.metric)} of point {quantity.point} of workload {quantity.workload} over "
            f"{count_text(len(rounds), 'round')}, a line for each of {count_text(len(trends), 'variant')}; changes of "
            f"conditions are marked: {len(marks)}."
        ),
        data=[_trend_trace(number, trend) for number, trend in enumerate(trends)],
        x={"title": {"text": "start of the round (UTC)"}, "type": "date"},
        y=plot.metric_axis(quantity.metric),
        more={
            "shapes": [plot.vertical_line(_time(minute), "$muted", "dot") for minute in marks],
            "annotations": [
                _ALONG_LINE | {"x": _time(minute), "text": first_few(names, 4)} for minute, names in marks.items()
            ],
        },
    )


def _trend_trace(number: int, trend: Trend) -> view.Json:
    scale = plot.metric_scale(trend.quantity.metric)
    symbols: list[str] = []
    for row in trend.rows:
        hollow = "x" if _regressed(row) else f"{plot.symbol(number)}-open"
        symbols.append(plot.symbol(number) if row.round.accepted else hollow)
    ends = [row.interval or (None, None) for row in trend.rows]
    return plot.scatter(
        trend.quantity.variant,
        [_time(row.round.minute) for row in trend.rows],
        [row.estimate / scale for row in trend.rows],
        mode="lines+markers",
        error_y=plot.error_bars(
            [(low, row.estimate, high) for row, (low, high) in zip(trend.rows, ends, strict=True)], scale
        ),
        line={"color": plot.colour(number), "dash": plot.dash(number), "width": 1.5},
        marker={"color": plot.colour(number), "symbol": symbols, "size": 9},
        texts=[_round_text(trend, row) for row in trend.rows],
    )


def _round_text(trend: Trend, row: TrendRow) -> str:
    metric = trend.quantity.metric
    interval = " to ".join(view.metric_text(metric, end) for end in row.interval or ()) or view.NONE
    state = f"{'accepted' if row.round.accepted else 'not accepted'}{', regressed' if _regressed(row) else ''}"
    name = f"{trend.quantity.variant}, round {row.round.name}"
    return f"{name}\n{view.metric_text(metric, row.estimate)} ({interval})\n{state}"


def _regressed(row: TrendRow) -> bool:
    return row.round.verdict is RoundVerdict.REGRESSED


def _time(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%d %H:%M")
