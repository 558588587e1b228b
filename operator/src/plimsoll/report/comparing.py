"""The comparison of two runs: changes, their confidence intervals, and the conclusion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Metric
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare import comparison as words
from plimsoll.measure.compare.comparison import Comparison, MeanComparison, MetricComparison, PointComparison
from plimsoll.measure.compare.values import operation_text
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import Difference
from plimsoll.report import plot
from plimsoll.report.overview import value_text
from plimsoll.report.view import (
    Block,
    Chart,
    Column,
    Details,
    Json,
    Number,
    Section,
    Text,
    metric_text,
    page_table,
)
from plimsoll.suite.evaluation import Compared

_MOST_DIFFERENCES = 100
_MOST_CHARTS, _CHANGES = 6, 20  # figures of a comparison, and changes in each
_MARKERS = {
    Conclusion.REGRESSION: ("$bad", "x"),
    Conclusion.NO_REGRESSION: ("$good", "circle"),
    Conclusion.INCONCLUSIVE: ("$warn", "diamond-open"),
}
_FINE = (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.4)  # ticks if all changes are small
_COARSE = (0.01, 0.1, 0.5, 1, 2, 10, 100)

_Change = tuple[PointComparison, MetricComparison]


def comparison_section(compared: Sequence[Compared]) -> Section | None:
    blocks: list[Block] = []
    for number, pair in enumerate(compared):
        names, comparison = f"{pair.candidate} against {pair.baseline}", pair.comparison
        if comparison is None:
            blocks.append(Text(paragraphs=[f"{names}: no workload has the same parameters and clients in both runs."]))
            continue
        blocks.append(Text(paragraphs=[*_words(names, pair, comparison)]))
        if charts := [*_charts(f"change-{number}", names, comparison)]:
            legend = "Changes of the metrics that gate, with 95 % intervals; the dotted line is the tolerated change."
            blocks += plot.limited(legend, charts, "the table has every metric", _MOST_CHARTS)
        blocks.append(page_table(f"{names}, all metrics", COMPARED_COLUMNS, compared_rows(comparison)))
        if notes := [f"{first_few(places)}: {note}." for note, places in words.notes_of(comparison).items()]:
            blocks.append(Text(paragraphs=notes))
        blocks += _differences(pair)
    return Section(key="comparison", title="Comparison", blocks=blocks) if blocks else None


def rule_texts(comparison: Comparison) -> tuple[str, str]:
    rate, latency = 100 * comparison.rate_threshold, 100 * comparison.latency_threshold
    gates = f"Gates: {', '.join(comparison.gates)}."
    return f"Tolerated: {rate:g} % less rate, {latency:g} % more latency.", gates


def _words(names: str, compared: Compared, comparison: Comparison) -> Iterator[str]:
    yield f"{names}: {comparison.conclusion}: {'; '.join(comparison.reasons)}."
    if not compared.likeness.is_same:
        yield (
            "The specifications of these runs differ or are unknown; the differences below may explain the change. "
            "`plimsoll compare` requires --allow-different for them."
        )
    tolerated, gates = rule_texts(comparison)
    yield (
        f"{tolerated} Regression: significantly worse, by more than that. NoRegression: with 95 % confidence no worse "
        "than that. Inconclusive: not enough evidence, which is not a weak form of NoRegression. "
        f"{' '.join((*legend_texts(comparison), gates))} The noise between runs is unknown here and may look like a "
        "change; `plimsoll compare --noise` takes it into account."
    )
    yield from only_texts(comparison)


def _charts(key: str, names: str, comparison: Comparison) -> Iterator[Chart]:
    changes = [
        (point, metric)
        for point in comparison.points
        for metric in point.metrics
        if metric.gates and metric.ratio and (metric.low or metric.high)
    ]
    for kind, is_rate, limit in (
        ("Rate", True, 1 - comparison.rate_threshold),
        ("Latency", False, 1 + comparison.latency_threshold),
    ):
        of_kind = [change for change in changes if change[1].metric.is_rate is is_rate]
        for number, part_text, part in plot.in_parts(of_kind, _CHANGES):
            bounds = [value for _, metric in part for value in (metric.ratio, metric.low, metric.high) if value]
            ticks = _FINE if _FINE[0] < min(bounds) and max(bounds) < _FINE[-1] else _COARSE
            labels = ["0" if tick == 1 else f"{100 * (tick - 1):+.0f} %" for tick in ticks]
            yield Chart(
                key=f"{key}-{kind.lower()}-{number}",
                title=f"{kind}: {names}{part_text}",
                description=(
                    f"Change of {count_text(len(part), 'gating metric')} in percent with its 95 % interval. The table "
                    "below has the numbers."
                ),
                data=[
                    _trace(conclusion, part) for conclusion in dict.fromkeys(metric.conclusion for _, metric in part)
                ],
                x=plot.numbers_axis("candidate / baseline", ticks, labels),
                y=plot.category_axis([words.place_of(*change) for change in reversed(part)]),
                more={
                    "shapes": [
                        plot.vertical_line(1, "$muted", "solid"),
                        plot.vertical_line(limit, plot.colour(1), "dot"),
                    ]
                },
                height=140 + 30 * len(part),
            )


def _trace(conclusion: Conclusion, changes: Sequence[_Change]) -> Json:
    drawn = [change for change in changes if change[1].conclusion is conclusion]
    colour, symbol = _MARKERS[conclusion]
    places = [words.place_of(*change) for change in drawn]
    bars = plot.error_bars([(metric.low, metric.ratio, metric.high) for _, metric in drawn], thickness=2, width=5)
    return plot.scatter(
        conclusion.value,
        [metric.ratio for _, metric in drawn],
        places,
        error_x=bars,
        marker={"color": colour, "symbol": symbol, "size": 10},
        texts=[
            f"{place}\n{words.change_text(metric.ratio)}: {words.interval_text(metric)}"
            for place, (_, metric) in zip(places, drawn, strict=True)
        ],
    )


def legend_texts(comparison: Comparison) -> Iterator[str]:
    if comparison.means:
        yield (
            "The mean change of a workload decides what its points alone leave Inconclusive, unless a regression of a "
            "point is suspected."
        )
    if Metric.LINE in comparison.gates:
        yield "A line has one estimate with an interval in each run; its trials are the probes behind it."


def only_texts(comparison: Comparison) -> Iterator[str]:
    for side, points in (("baseline", comparison.baseline_only), ("candidate", comparison.candidate_only)):
        if points:
            yield f"Only the {side} has {first_few(points, 3)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One metric of a point, or its mean change over a workload's points."""

    workload: str
    point: str | None  # of the baseline; None for a mean
    label: str
    clients: int | None
    change: MetricComparison | MeanComparison

    @property
    def metric(self) -> MetricComparison | None:
        """The change of a point; None for a mean."""
        return self.change if isinstance(self.change, MetricComparison) else None

    @property
    def place(self) -> str:
        return self.label if self.clients is None else f"{self.label}, {count_text(self.clients, 'client')}"

    @property
    def mark(self) -> str:
        """The conclusion if it decides, which it does not if the metric does not gate or is left to the mean."""
        decides = self.metric is None or (self.metric.gates and not words.is_left_to_mean(self.metric))
        return self.change.conclusion if decides else ""


def compared_rows(comparison: Comparison) -> Iterator[ComparedRow]:
    for mean in comparison.means:
        yield ComparedRow(workload=mean.workload, point=None, label=words.mean_text(mean), clients=None, change=mean)
    for point in comparison.points:
        for metric in point.metrics:
            yield ComparedRow(
                workload=point.workload, point=point.baseline, label=point.label, clients=point.clients, change=metric
            )


def _of_side(side: str, heading: str) -> Iterator[Column[ComparedRow]]:
    def trials(row: ComparedRow) -> int:
        count: int = getattr(row.metric, side).trials if row.metric else getattr(row.change, f"{side}_passes")
        return count

    def value(row: ComparedRow) -> float | None:
        mean: float | None = getattr(row.metric, side).mean if row.metric else None
        return mean

    yield Column("", trials, key=f"{side}_trials")
    yield Number(heading, value, key=side, text=lambda row: metric_text(row.change.metric, value(row)), priority=2)


def _change(key: str) -> Column[ComparedRow]:
    return Column("", lambda row: getattr(row.change, key), key=key)


_Column, _Number = Column[ComparedRow], Number[ComparedRow]
COMPARED_COLUMNS: Sequence[Column[ComparedRow]] = (
    _Column("Point", lambda row: row.point, key="point", text=lambda row: row.point or row.workload, priority=None),
    _Column("Workload", lambda row: row.workload, key="workload", stacked=True, in_page=False),
    _Column("Parameters", lambda row: row.label, key="label", text=lambda row: row.place, stacked=True),
    _Column("", lambda row: row.clients, key="clients"),
    _Column("Op", lambda row: operation_text(row.change.operation, row.change.metric), key="operation", priority=1),
    _Column("Metric", lambda row: row.change.metric, key="metric"),
    _Column("", lambda row: row.metric is None or row.metric.gates, key="gates"),
    *_of_side("baseline", "Baseline"),
    *_of_side("candidate", "Candidate"),
    _Number("Change", lambda row: row.change.ratio, key="ratio", show=words.change_text),
    _Number(
        "95 % interval",
        lambda row: row.change.low,
        key="low",
        text=lambda row: words.interval_text(row.change),
        priority=3,
    ),
    _change("high"),
    _Number("At worst", lambda row: row.change.bound, key="bound", show=words.change_text, priority=1),
    _Number("Trials", lambda row: words.trials_text(row.change), priority=4),
    _Column(
        "Conclusion",
        lambda row: row.change.conclusion,
        key="conclusion",
        text=lambda row: words.conclusion_text(row.metric) if row.metric else words.verdict_text(row.change),
        mark=lambda row: row.mark,
    ),
    *map(_change, ("p_value", "p_worse", "confirmed", "improved", "trials_needed")),
    _Column("", lambda row: row.metric is not None and row.metric.in_mean, key="in_mean"),
    _Column("", lambda row: row.metric is not None and row.metric.suspected, key="suspected"),
)
"""Of the metrics of a comparison: rates per second, nanoseconds, and ratios to the baseline; means have no point."""


DifferenceRow = tuple[Difference, Sequence[str]]  # a difference of two runs, and the points that have it


def difference_columns(baseline: str, candidate: str) -> Sequence[Column[DifferenceRow]]:
    return (
        Column("Part", lambda row: row[0].part, mark=lambda row: "Suspect" if row[0].part == "identity" else ""),
        Column("What", lambda row: row[0].key),
        Column(baseline, lambda row: value_text(row[0].baseline)),
        Column(candidate, lambda row: value_text(row[0].candidate)),
        Number("Points", lambda row: len(row[1]), title=lambda row: ", ".join(row[1]), priority=None),
    )


def unknown_text(points: str) -> str:
    """Return at which points no settings were recorded; empty if they were everywhere."""
    return f"No fingerprint was recorded at {points}: other differences are unknown." if points else ""


def _differences(compared: Compared) -> Iterator[Block]:
    likeness = compared.likeness
    if text := unknown_text(first_few(likeness.unknown)):
        yield Text(paragraphs=[text])
    if not likeness.differences:
        yield Text(paragraphs=["All other recorded settings of the runs are the same."])
        return
    table = page_table(
        "identity: the specification and the storage; context: other settings that may explain a change",
        difference_columns(compared.baseline, compared.candidate),
        likeness.differences[:_MOST_DIFFERENCES],
        sortable=False,
    )
    yield Details(title=f"Differences of the runs ({len(likeness.differences)})", blocks=[table])
