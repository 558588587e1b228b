"""The mean changes of workloads with several points, and the conclusions from them."""

import math
from collections.abc import Iterator, Mapping, Sequence

from plimsoll.measure.compare.between import Floor, between_means
from plimsoll.measure.compare.conclusion import Conclusion, conclude
from plimsoll.measure.compare.family import Group, MeanAssessment, Sample, assess_means, grouped
from plimsoll.measure.compare.inference import Between
from plimsoll.measure.compare.matching import Pair
from plimsoll.measure.compare.metrics import RegressionRule, values_of
from plimsoll.measure.compare.passes import Series, series_of
from plimsoll.measure.compare.results import MeanComparison, ratios_of
from plimsoll.measure.compare.sides import UNKNOWN_NOISE, Side, noise_note
from plimsoll.measure.summary import counted


def compare_means(
    pairs: Sequence[Pair], samples: Sequence[Sample], rule: RegressionRule, floor: Floor
) -> tuple[MeanComparison, ...]:
    """Compare the mean changes of gating metrics, of workloads with several points that can be compared."""
    between = _between(pairs, samples, floor) if floor.runs else {}
    known = {group: noise for group, noise in between.items() if noise is not None}
    return tuple(
        _unknown(mean) if between and mean.group not in known else _compared(mean, rule)
        for mean in assess_means(samples, known)
    )


def _between(pairs: Sequence[Pair], samples: Sequence[Sample], floor: Floor) -> Mapping[Group, Between | None]:
    """Return the noise between runs of every group; None where it is unknown."""
    by_point = {pair.baseline.spec.point: pair for pair in pairs}
    return {
        group: between_means([*_runs(group, [by_point[sample.point] for sample in found], floor)])
        for group, found in grouped(samples, lambda sample: sample.group).items()
        if len(found) > 1
    }


def _runs(group: Group, pairs: Sequence[Pair], floor: Floor) -> Iterator[list[Series]]:
    """Yield the points of each run that has a value in every trial."""
    _, operation, metric = group
    for results in floor.runs_of(pairs):
        trials = [counted(result.status.trials) for result in results]
        if all(value for of_point in trials for value in values_of(of_point, operation, metric)):
            yield [series_of(of_point, operation, metric) for of_point in trials]


def _compared(mean: MeanAssessment, rule: RegressionRule) -> MeanComparison:
    workload, operation, metric = mean.group
    assessment = mean.assessment
    judgement = conclude(metric, assessment, mean.values, rule)
    ratios = ratios_of(metric, assessment.change)
    baseline, candidate = assessment.change.trials
    scatter = Side(trials=baseline, deviation=math.sqrt(assessment.change.variances[0]))
    return MeanComparison(
        workload=workload,
        operation=operation,
        metric=metric,
        points=mean.points,
        baseline_passes=baseline,
        candidate_passes=candidate,
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
        notes=tuple(filter(None, (judgement.note, noise_note(scatter, metric, rule)))),
    )


def _unknown(mean: MeanAssessment) -> MeanComparison:
    workload, operation, metric = mean.group
    baseline, candidate = mean.assessment.change.trials
    return MeanComparison(
        workload=workload,
        operation=operation,
        metric=metric,
        points=mean.points,
        baseline_passes=baseline,
        candidate_passes=candidate,
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(UNKNOWN_NOISE,),
    )
