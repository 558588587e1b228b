"""Compares two runs: every point, operation and metric, with one conclusion from all of them.

The trial is the unit: histograms are never pooled, since pooling hides how much trials differ. The mean change over its
points decides whether a workload has no regression, unless one of them is suspected of one. A search for the line has
one estimate with an interval instead (`lines`). Only repeated runs, the floor, show the noise between runs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.suite_status import WORST_FIRST, Conclusion
from plimsoll.measure.attempts import on_first_attempts, repeated_too_often, spoiled_attempts
from plimsoll.measure.compare.lines import compare_lines, is_search, lines_of
from plimsoll.measure.compare.sides import (
    Case,
    Change,
    Comparison,
    MeanComparison,
    MetricComparison,
    PointComparison,
    cases_of,
    judged,
    means_of,
    noise_note,
    noise_of_means,
)
from plimsoll.measure.compare.significance import Assessment, Floor, Group, Member, assess, assess_alone, point_members
from plimsoll.measure.compare.values import (
    COMPARED,
    Matching,
    Pair,
    RegressionRule,
    check_distinct,
    first_attempts_text,
)
from plimsoll.measure.summary import OF_DISTURBANCES
from plimsoll.measure.text import first_few


def overall(deciding: Iterable[Conclusion], others: Iterable[Conclusion], *, doubted: bool) -> Conclusion:
    """Return the conclusion of a comparison: one Regression decides, and NoRegression takes all `deciding` ones.

    Nothing may be `doubted` then. The `others` may be Inconclusive, because a mean includes them.
    """
    needed = {*deciding}
    if Conclusion.REGRESSION in needed.union(others):
        return Conclusion.REGRESSION
    return Conclusion.INCONCLUSIVE if doubted or Conclusion.INCONCLUSIVE in needed else Conclusion.NO_REGRESSION


def has_to_decide(metric: MetricComparison) -> bool:
    """Whether a gating metric of a point has to show that there is no regression."""
    return not metric.in_mean or metric.suspected or metric.ratio is None


def tally(means: Sequence[MeanComparison], gating: Sequence[MetricComparison]) -> Iterator[str]:
    """Yield how many changes have which conclusion."""
    alone = [metric for metric in gating if not metric.in_mean]
    groups: dict[str, Sequence[Change]] = {
        "mean changes of workloads": means,
        f"gating metrics{' that no mean includes' if means else ''}": alone,
    }
    for what, changes in groups.items():
        counts = Counter(change.conclusion for change in changes)
        yield from (f"{each} in {counts[each]} of {len(changes)} {what}" for each in Conclusion if counts[each])
    included = [metric for metric in gating if metric.in_mean]
    those = f"of {len(included)} gating metrics of single points"
    if regressed := sum(metric.conclusion is Conclusion.REGRESSION for metric in included):
        yield f"{Conclusion.REGRESSION} in {regressed} {those}"
    if suspected := sum(metric.suspected for metric in included):
        yield f"a regression is suspected in {suspected} {those}"


def marks_of(pair: Pair) -> tuple[str, ...]:
    """Return the doubts about either result; none if both are Valid."""
    marks = []
    for name, status in (("baseline", pair.baseline.status), ("candidate", pair.candidate.status)):
        if not status.final:
            marks.append(f"the {name} is not finished")
        elif status.verdict is not Verdict.VALID:
            reasons = ", ".join(dict.fromkeys(finding.reason for finding in status.findings))
            marks.append(f"the {name} is {status.verdict}: {reasons or 'no reason is recorded'}")
    return tuple(marks)


def gaps(matching: Matching, ungated: Sequence[str]) -> Iterator[str]:
    """Yield what should have been compared and was not; `ungated` are the points without a gating metric."""
    pairs = matching.pairs
    if not pairs:
        yield "the runs have no point in common"
    if matching.baseline_only:
        yield f"the candidate lacks these points: {first_few([result.spec.point for result in matching.baseline_only])}"
    finished = {pair.baseline.spec.point: pair.baseline.status.final and pair.candidate.status.final for pair in pairs}
    if unfinished := [point for point, is_final in finished.items() if not is_final]:
        yield f"trials are missing because a run is not finished: {first_few(unfinished)}"
    if ungated:
        yield f"no metric gates because no trial counts or the tool measures none: {first_few(ungated)}"


def compare(
    matching: Matching, rule: RegressionRule, floor: Floor | None = None, *, first: Matching | None = None
) -> Comparison:
    """Compare two runs, point by point as matched; RepeatsError if they are the same run.

    Of the comparisons by the attempts that count and by the first attempts, the worse one is returned. `floor` are
    repeated runs without a change. `first` are the same points with the first attempts of all runs, if the results of
    `matching` stand for several runs; None to take them from `matching`.
    """
    floor = floor or Floor()
    sides = ([pair.baseline for pair in matching.pairs], [pair.candidate for pair in matching.pairs])
    check_distinct(sides)
    counted = _compare(matching, rule, floor)
    repeated = (*repeated_too_often("the baseline", sides[0]), *repeated_too_often("the candidate", sides[1]))
    if repeated:
        reasons = (*repeated, *counted.reasons)
        return counted.model_copy(update={"conclusion": Conclusion.INCONCLUSIVE, "reasons": reasons})
    spoiled = spoiled_attempts([*sides[0], *sides[1]])
    if first is None:
        if not spoiled:
            return counted
        pairs = zip(*(map(on_first_attempts, side) for side in sides), strict=True)
        first = replace(matching, pairs=tuple(Pair(baseline=ours, candidate=theirs) for ours, theirs in pairs))
    of_first = _compare(first, rule, floor)
    if WORST_FIRST.index(of_first.conclusion) >= WORST_FIRST.index(counted.conclusion):
        return counted
    reason = first_attempts_text("conclusion", of_first.conclusion, counted.conclusion, spoiled)
    return of_first.model_copy(update={"reasons": (reason, *of_first.reasons)})


def _compare(matching: Matching, rule: RegressionRule, floor: Floor) -> Comparison:
    """Compare two runs on the trials that count."""
    searches = [lines_of(pair, floor) if is_search(pair) else None for pair in matching.pairs]
    cases = [[] if is_search(pair) else [*cases_of(pair, rule, floor)] for pair in matching.pairs]
    samples = [sample for of_point in cases for _, sample in of_point if sample]
    mean_changes = means_of(samples, noise_of_means(matching.pairs, samples, floor) if floor.runs else {}, rule)
    tested = (
        *(test for _, test in mean_changes if test),
        *(Member(metric=Metric.LINE, change=search[1]) for search in searches if search and search[1]),
        *point_members(samples),
    )
    assessed = iter(assess(tested))
    means = tuple(judged(known, next(assessed), rule) if test else known for known, test in mean_changes)
    lines = [
        search and (compare_lines(search[0], next(assessed), rule) if search[1] else search[0]) for search in searches
    ]
    in_mean = {(mean.workload, mean.operation, mean.metric) for mean in means}
    points = tuple(
        PointComparison(
            baseline=pair.baseline.spec.point,
            candidate=pair.candidate.spec.point,
            workload=pair.baseline.spec.workload,
            label=pair.baseline.spec.label,
            clients=pair.baseline.spec.clients,
            metrics=(line,) if line else tuple(_metric(pair, case, assessed, in_mean, rule) for case in of_point),
            notes=marks_of(pair),
        )
        for pair, line, of_point in zip(matching.pairs, lines, cases, strict=True)
    )
    ungated = [point.baseline for point in points if not any(metric.gates for metric in point.metrics)]
    doubts = tuple(gaps(matching, ungated))
    gating = [metric for point in points for metric in point.metrics if metric.gates]
    # Suites always ask for these metrics, whether or not a workload has a disturbance.
    absent = OF_DISTURBANCES - {metric.metric for metric in gating}
    gates = [metric for metric in COMPARED if metric in rule.gates - absent]
    conclusion = overall(
        [change.conclusion for change in (*means, *filter(has_to_decide, gating))],
        [metric.conclusion for metric in gating],
        doubted=bool(doubts),
    )
    return Comparison(
        conclusion=conclusion,
        reasons=(*doubts, *tally(means, gating)),
        rate_threshold=rule.rate,
        latency_threshold=rule.latency,
        gates=(*gates, *((Metric.LINE,) if any(lines) else ())),
        means=means,
        points=points,
        baseline_only=tuple(result.spec.point for result in matching.baseline_only),
        candidate_only=tuple(result.spec.point for result in matching.candidate_only),
        noise_runs=len(floor.runs),
    )


def _metric(
    pair: Pair, case: Case, assessed: Iterator[Assessment], means: Collection[Group], rule: RegressionRule
) -> MetricComparison:
    known, sample = case
    in_mean = (pair.baseline.spec.workload, known.operation, known.metric) in means
    # Of several points the scatter of their mean decides, and has a note of its own.
    noise = "" if in_mean else noise_note(known.baseline.deviation, known.metric, rule)
    known = known.model_copy(update={"in_mean": in_mean, "notes": (*known.notes, noise) if noise else known.notes})
    if sample is None:
        return known
    assessment = next(assessed) if known.gates else assess_alone(known.metric, sample.change)
    compared = judged(known, assessment, rule)
    return compared if in_mean else compared.model_copy(update={"suspected": False})


def place_of(point: PointComparison, metric: MetricComparison) -> str:
    """Return the point, the operation and the metric."""
    return f"{point.baseline} {quantity_text(metric.operation, metric.metric)}"


def quantity_text(operation: Operation, metric: Metric) -> str:
    """Return an operation and a metric: `read iops`. The line is one of all operations together."""
    return metric.value if metric is Metric.LINE else f"{operation} {metric}"


def change_text(ratio: float | None) -> str:
    """Return a ratio of candidate to baseline as a change: `-3.2 %`."""
    return "-" if ratio is None else f"{100 * (ratio - 1):+,.1f} %"


def interval_text(change: Change) -> str:
    """Return the 95 % confidence interval of the change: `-5.1 % to +0.2 %`, or its known end: `below -5.1 %`."""
    low, high = change.low, change.high
    if low is not None and high is not None:
        return f"{change_text(low)} to {change_text(high)}"
    if low is not None:
        return f"above {change_text(low)}"
    return "-" if high is None else f"below {change_text(high)}"


def mean_text(mean: MeanComparison) -> str:
    return f"mean of {mean.points} points"


def trials_text(change: MetricComparison | MeanComparison) -> str:
    """Return the numbers of trials, or of passes, on both sides."""
    if isinstance(change, MeanComparison):
        return f"{change.baseline_passes}+{change.candidate_passes}"
    return f"{change.baseline.trials}+{change.candidate.trials}"


def verdict_text(change: Change) -> str:
    """Return the conclusion with what else is known of it."""
    return change.conclusion + (", confirmed" if change.confirmed else ", improved" if change.improved else "")


def conclusion_text(metric: MetricComparison) -> str:
    """Return the conclusion, in brackets if the metric does not gate: its p-value is not adjusted."""
    words = verdict_text(metric) + (", suspected" if metric.suspected else "")
    return words if metric.gates else f"({words})"


def is_left_to_mean(metric: MetricComparison) -> bool:
    """Whether the mean change of its workload decides for a point."""
    return metric.gates and metric.conclusion is Conclusion.INCONCLUSIVE and not has_to_decide(metric)


def notes_of(comparison: Comparison) -> Mapping[str, Sequence[str]]:
    """Return all notes: each text once -> the places that it applies to."""
    noted = [(note, point.baseline) for point in comparison.points for note in point.notes]
    for mean in comparison.means:
        place = f"{mean.workload} {mean.operation} {mean.metric}, {mean_text(mean)}"
        noted += [(note, place) for note in _notes(mean)]
    for point in comparison.points:
        for metric in point.metrics:
            if metric.gates and not is_left_to_mean(metric):
                noted += [(note, place_of(point, metric)) for note in _notes(metric)]
    places: dict[str, list[str]] = {}
    for note, place in noted:
        places.setdefault(note, []).append(place)
    return places


def _notes(change: Change) -> Iterator[str]:
    yield from change.notes
    if change.trials_needed is not None:
        yield f"about {change.trials_needed} trials on each side would decide it at this scatter"
