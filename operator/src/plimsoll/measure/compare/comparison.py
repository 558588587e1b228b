"""Compares two runs: every point, operation and metric, with one conclusion from all of them.

The trial is the unit: percentiles are compared as those of each trial, and histograms are never pooled, since pooling
hides how much trials differ. Points whose trials are too few to show anything alone still show their mean change: it
decides whether a workload with several points has no regression, unless one of them is suspected of one.

A search for the line has one estimate with an interval, not trials that repeat a load: `searches` compares it.

This covers the scatter of trials. Only repeated runs, the floor, show the noise between runs; without them the rates of
error hold for two runs that share everything except the change.
"""

from collections.abc import Iterator, Sequence

from plimsoll.measure.compare.between import Floor
from plimsoll.measure.compare.conclusion import Conclusion, conclude
from plimsoll.measure.compare.doubts import gaps, marks_of, repeated_runs
from plimsoll.measure.compare.family import Assessment, Group, Sample, assess_points
from plimsoll.measure.compare.matching import Matching, Pair
from plimsoll.measure.compare.means import compare_means
from plimsoll.measure.compare.metrics import Metric, RegressionRule
from plimsoll.measure.compare.overall import has_to_decide, overall, tally
from plimsoll.measure.compare.results import (
    Comparison,
    MeanComparison,
    MetricComparison,
    PointComparison,
    deviation_of,
    ratios_of,
)
from plimsoll.measure.compare.searches import compare_lines, is_search
from plimsoll.measure.compare.sides import Case, cases_of

NO_FLOOR = Floor()


def compare(matching: Matching, rule: RegressionRule, floor: Floor = NO_FLOOR) -> Comparison:
    """Compare two runs, point by point as matched."""
    cases = [[] if is_search(pair) else [*cases_of(pair, rule, floor)] for pair in matching.pairs]
    samples = [case.sample for of_point in cases for case in of_point if case.sample]
    means = compare_means(matching.pairs, samples, rule, floor)
    assessed = iter(assess_points(samples, _regressed(means)))
    searches = [pair for pair in matching.pairs if is_search(pair)]
    lines = iter(compare_lines(searches, rule, floor, alone=len(searches) == len(matching.pairs)))
    judged = [
        (next(lines),) if is_search(pair) else tuple(_metrics(pair, of_point, assessed, means, rule))
        for pair, of_point in zip(matching.pairs, cases, strict=True)
    ]
    points = tuple(_point(pair, metrics) for pair, metrics in zip(matching.pairs, judged, strict=True))
    repeated = tuple(repeated_runs(matching))
    ungated = [point.baseline for point in points if not any(metric.gates for metric in point.metrics)]
    doubts = (*repeated, *gaps(matching, ungated))
    gating = [metric for point in points for metric in point.metrics if metric.gates]
    return Comparison(
        conclusion=Conclusion.INCONCLUSIVE if repeated else _overall(means, gating, doubted=bool(doubts)),
        reasons=(*doubts, *tally(means, gating)),
        rate_threshold=rule.rate,
        latency_threshold=rule.latency,
        gates=tuple(metric for metric in Metric if metric in rule.gates or (searches and metric is Metric.LINE)),
        means=means,
        points=points,
        baseline_only=tuple(result.spec.point for result in matching.baseline_only),
        candidate_only=tuple(result.spec.point for result in matching.candidate_only),
        noise_runs=len(floor.runs),
    )


def _overall(means: Sequence[MeanComparison], gating: Sequence[MetricComparison], *, doubted: bool) -> Conclusion:
    deciding = [*means, *filter(has_to_decide, gating)]
    return overall(
        (change.conclusion for change in deciding), (metric.conclusion for metric in gating), doubted=doubted
    )


def _group(mean: MeanComparison) -> Group:
    return mean.workload, mean.operation, mean.metric


def _regressed(means: Sequence[MeanComparison]) -> set[Group]:
    return {_group(mean) for mean in means if mean.conclusion is Conclusion.REGRESSION}


def _metrics(
    pair: Pair,
    cases: Sequence[Case],
    assessed: Iterator[Assessment],
    means: Sequence[MeanComparison],
    rule: RegressionRule,
) -> Iterator[MetricComparison]:
    included = {_group(mean) for mean in means}
    for case in cases:
        in_mean = (pair.baseline.spec.workload, case.operation, case.metric) in included
        if case.sample is None:
            yield _incomparable(case, in_mean=in_mean)
        else:
            yield _compared(case, case.sample, next(assessed), rule, in_mean=in_mean)


def _incomparable(case: Case, *, in_mean: bool) -> MetricComparison:
    return MetricComparison(
        operation=case.operation,
        metric=case.metric,
        gates=case.gates,
        baseline=case.sides[0],
        candidate=case.sides[1],
        between=deviation_of(case.between),
        conclusion=Conclusion.INCONCLUSIVE,
        in_mean=in_mean,
        notes=(*filter(None, (case.problem, case.noise)), *case.notes),
    )


def _compared(
    case: Case, sample: Sample, assessment: Assessment, rule: RegressionRule, *, in_mean: bool
) -> MetricComparison:
    baseline, candidate = (tuple(side.values()) for side in sample.trials.sides)
    judgement = conclude(case.metric, assessment, (baseline, candidate), rule)
    ratios = ratios_of(case.metric, assessment.change)
    return MetricComparison(
        operation=case.operation,
        metric=case.metric,
        gates=case.gates,
        baseline=case.sides[0],
        candidate=case.sides[1],
        ratio=ratios.ratio,
        low=ratios.low,
        high=ratios.high,
        bound=ratios.bound,
        between=ratios.between,
        p_value=assessment.p_value,
        p_worse=assessment.p_worse,
        level=assessment.level,
        conclusion=judgement.conclusion,
        confirmed=judgement.confirmed,
        improved=judgement.improved,
        trials_needed=judgement.trials_needed,
        in_mean=in_mean,
        suspected=in_mean and judgement.suspected,
        # Of several points the scatter of their mean decides, and has a note of its own.
        notes=(*filter(None, (judgement.note, "" if in_mean else case.noise)), *case.notes),
    )


def _point(pair: Pair, metrics: tuple[MetricComparison, ...]) -> PointComparison:
    spec = pair.baseline.spec
    return PointComparison(
        baseline=spec.point,
        candidate=pair.candidate.spec.point,
        workload=spec.workload,
        label=spec.label,
        clients=spec.clients,
        metrics=metrics,
        notes=marks_of(pair),
    )
