"""Compares two runs: every point, operation and metric, with one conclusion from all of them.

The trial is the unit: percentiles are compared as those of each trial, and histograms are never pooled, since pooling
hides how much trials differ. All gating metrics, at all points, are one family for Holm's adjustment, so that without a
change a comparison concludes `Regression` in at most 5 % of cases, however many points it has. `NoRegression` needs no
such adjustment: it needs evidence for every single metric.

This covers the scatter of trials. Only repeated runs, the floor, show the noise between runs; without them the 5 % hold
for two runs that share everything except the change.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from plimsoll.api.model import Model
from plimsoll.api.names import AbortReason, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.compare.between import Floor
from plimsoll.measure.compare.conclusion import Change, Conclusion, Judgement, conclude
from plimsoll.measure.compare.inference import holm, log_change
from plimsoll.measure.compare.matching import Matching, Pair
from plimsoll.measure.compare.metrics import Metric, RegressionRule
from plimsoll.measure.compare.sides import Case, Side, cases_of
from plimsoll.measure.summary import counted
from plimsoll.measure.wording import first_few

MAX_REPLACED = 0.2
"""Above this share of repeated trials, a run's numbers describe selected moments only."""

NO_FLOOR = Floor()


class MetricComparison(Model):
    """One metric of one operation at one point.

    Attributes:
        gates: whether it contributes to the conclusion of the whole comparison; if not, its p-value is not adjusted.
        ratio: geometric mean of the candidate divided by that of the baseline; absent if they cannot be compared.
        low: lower end of the unadjusted 95 % confidence interval of the ratio.
        high: upper end of it.
        between: standard deviation between repeated runs, which widens the interval; absent if unknown.
        p_value: of no change, two-sided; adjusted by Holm if the metric gates.
        confirmed: a regression whose whole interval is beyond the threshold.
        improved: significantly better, and by more than the threshold.
        trials_needed: on each side, to decide an inconclusive comparison.

    """

    operation: Operation
    metric: Metric
    gates: bool
    baseline: Side
    candidate: Side
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    between: float | None = None
    p_value: float | None = None
    conclusion: Conclusion
    confirmed: bool = False
    improved: bool = False
    trials_needed: int | None = None
    notes: tuple[str, ...] = ()


class PointComparison(Model):
    """One point; `notes` are doubts about either result as a whole."""

    baseline: str
    candidate: str
    workload: str
    label: str
    clients: int
    metrics: tuple[MetricComparison, ...]
    notes: tuple[str, ...] = ()


class Comparison(Model):
    """Two runs, compared.

    Attributes:
        reasons: the basis of the conclusion, doubts about the comparison as a whole first.
        noise_runs: number of repeated runs behind the noise between runs; without any it is assumed to be zero.

    """

    conclusion: Conclusion
    reasons: tuple[str, ...]
    rate_threshold: float
    latency_threshold: float
    gates: tuple[Metric, ...]
    points: tuple[PointComparison, ...]
    baseline_only: tuple[str, ...]
    candidate_only: tuple[str, ...]
    noise_runs: int


def compare(matching: Matching, rule: RegressionRule, floor: Floor = NO_FLOOR) -> Comparison:
    """Compare two runs, point by point as matched."""
    cases = [[*cases_of(pair, rule, floor)] for pair in matching.pairs]
    changes = _changes([case for of_point in cases for case in of_point])
    judged = [tuple(_metric(case, next(changes), rule) for case in of_point) for of_point in cases]
    points = tuple(_point(pair, metrics) for pair, metrics in zip(matching.pairs, judged, strict=True))
    repeated = tuple(_repeated(matching))
    doubts = (*repeated, *_gaps(matching, points))
    gating = [metric for point in points for metric in point.metrics if metric.gates]
    return Comparison(
        conclusion=Conclusion.INCONCLUSIVE if repeated else _overall(gating, doubts),
        reasons=(*doubts, *_tally(gating)),
        rate_threshold=rule.rate,
        latency_threshold=rule.latency,
        gates=tuple(metric for metric in Metric if metric in rule.gates),
        points=points,
        baseline_only=tuple(result.spec.point for result in matching.baseline_only),
        candidate_only=tuple(result.spec.point for result in matching.candidate_only),
        noise_runs=len(floor.runs),
    )


def _changes(cases: Sequence[Case]) -> Iterator[Change | None]:
    """Yield the change of each case, adjusted if it gates; None if it cannot be compared."""
    changes = [(case, _change(case)) for case in cases]
    gating = [change for case, change in changes if change and case.gates]
    adjusted = iter(holm([change.p_value for change in gating]))
    for case, change in changes:
        yield replace(change, p_value=next(adjusted), family=len(gating)) if change and case.gates else change


def _change(case: Case) -> Change | None:
    if case.problem:
        return None
    baseline, candidate = case.values
    log = log_change(baseline, candidate, case.between)
    return Change(metric=case.metric, baseline=baseline, candidate=candidate, log=log, p_value=log.p_value())


def _metric(case: Case, change: Change | None, rule: RegressionRule) -> MetricComparison:
    if change is None:
        judgement = Judgement(conclusion=Conclusion.INCONCLUSIVE, note=case.problem)
    else:
        judgement = conclude(change, rule)
    low, high = change.log.interval() if change else (None, None)
    return MetricComparison(
        operation=case.operation,
        metric=case.metric,
        gates=case.gates,
        baseline=case.sides[0],
        candidate=case.sides[1],
        ratio=_exp(change.log.estimate if change else None),
        low=_exp(low),
        high=_exp(high),
        between=math.sqrt(case.between.variance) if case.between else None,
        p_value=change.p_value if change else None,
        conclusion=judgement.conclusion,
        confirmed=judgement.confirmed,
        improved=judgement.improved,
        trials_needed=judgement.trials_needed,
        notes=(*([judgement.note] if judgement.note else ()), *case.notes),
    )


def _exp(logarithm: float | None) -> float | None:
    """Return e to that power; None if it is not finite."""
    if logarithm is None:
        return None
    try:
        return math.exp(logarithm)
    except OverflowError:
        return None


def _point(pair: Pair, metrics: tuple[MetricComparison, ...]) -> PointComparison:
    spec = pair.baseline.spec
    return PointComparison(
        baseline=spec.point,
        candidate=pair.candidate.spec.point,
        workload=spec.workload,
        label=spec.label,
        clients=spec.clients,
        metrics=metrics,
        notes=tuple(filter(None, (_mark("baseline", pair.baseline), _mark("candidate", pair.candidate)))),
    )


def _mark(name: str, result: BenchmarkResult) -> str:
    """Return the doubt about a result; empty if it is Valid."""
    status = result.status
    if not status.final:
        return f"the {name} is not finished"
    if status.verdict is Verdict.VALID:
        return ""
    reasons = ", ".join(dict.fromkeys(finding.reason for finding in status.findings))
    return f"the {name} is {status.verdict}: {reasons or 'no reason is recorded'}"


def _repeated(matching: Matching) -> Iterator[str]:
    """Yield the runs that repeated too many trials: the remaining ones are a selection."""
    for name, results in (
        ("baseline", [pair.baseline for pair in matching.pairs]),
        ("candidate", [pair.candidate for pair in matching.pairs]),
    ):
        planned = sum(result.spec.repetitions for result in results)
        failed = sum(len(_failed_passes(result.status.trials)) for result in results)
        if failed > MAX_REPLACED * planned:
            yield (
                f"{failed} of {planned} trials of the {name} were repeated or do not count (limit "
                f"{100 * MAX_REPLACED:g} %); find the cause, then measure again"
            )


def _failed_passes(trials: Sequence[Trial]) -> set[int]:
    """Return the passes with an attempt that does not count, unless the user interrupted it."""
    return {
        trial.pass_number
        for trial in trials
        if not counted([trial]) and not (trial.abort and trial.abort.reason is AbortReason.INTERRUPTED)
    }


def _gaps(matching: Matching, points: Sequence[PointComparison]) -> Iterator[str]:
    """Yield what should have been compared and was not."""
    if not matching.pairs:
        yield "the runs have no point in common"
    if matching.baseline_only:
        yield f"the candidate lacks these points: {first_few([one.spec.point for one in matching.baseline_only])}"
    unfinished = [
        pair.baseline.spec.point
        for pair in matching.pairs
        if not (pair.baseline.status.final and pair.candidate.status.final)
    ]
    if unfinished:
        yield f"trials are missing because a run is not finished: {first_few(unfinished)}"
    ungated = [point.baseline for point in points if not any(metric.gates for metric in point.metrics)]
    if ungated:
        yield f"no metric gates because no trial counts or the tool measures none: {first_few(ungated)}"


def _overall(gating: Sequence[MetricComparison], doubts: Sequence[str]) -> Conclusion:
    """Return the conclusion: one regression decides, whatever else is unknown."""
    found = {metric.conclusion for metric in gating}
    if Conclusion.REGRESSION in found:
        return Conclusion.REGRESSION
    if doubts or Conclusion.INCONCLUSIVE in found:
        return Conclusion.INCONCLUSIVE
    return Conclusion.NO_REGRESSION


def _tally(gating: Sequence[MetricComparison]) -> Iterator[str]:
    for conclusion in Conclusion:
        number = sum(metric.conclusion is conclusion for metric in gating)
        if number:
            yield f"{conclusion} in {number} of {len(gating)} gating metrics"
