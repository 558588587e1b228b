"""The two sides of a comparison: values trial by trial or run by run, and the outcome."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TypeVar

from pydantic import field_serializer

from plimsoll.api.model import Model
from plimsoll.api.names import Metric, Operation
from plimsoll.api.result import ResultSpec, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.attempts import counted
from plimsoll.measure.compare.significance import (
    MINIMUM_RUNS,
    Assessment,
    BetweenVariance,
    Floor,
    Group,
    Member,
    Sample,
    Series,
    between_variance_of_logarithms,
    between_variance_of_runs,
    bound_of,
    change_of,
    conclude,
    log_mean_and_variance,
    logarithms_of,
    pass_means,
    weights,
)
from plimsoll.measure.compare.values import COMPARED, Pair, RegressionRule, gates_of, operation_text
from plimsoll.measure.rates import grouped
from plimsoll.measure.summary import (
    MINIMUM_TRIALS,
    complete,
    is_reported,
    operations_of,
    problem_of,
    results_of,
    values_of,
)

MOST_SCATTER_OF_THRESHOLD = 2 / 3  # the conclusion of a metric that scatters by more of its threshold is random
UNKNOWN_NOISE = (
    f"its noise between runs is unknown: fewer than {MINIMUM_RUNS} of the --noise runs have this point with "
    f"{MINIMUM_TRIALS} trials that count and a value in each; pass other --noise runs, or none"
)


class Side(Model):
    """One quantity on one side: rates per second, latencies in nanoseconds."""

    trials: int  # the number of trials that count
    mean: float | None = None  # arithmetic mean over them; absent if one has no value
    # Standard deviation of the logarithms, which if small is the coefficient of variation; absent for fewer than two
    # trials, and if a value is absent or 0.
    deviation: float | None = None


class Change(Model):
    """A change of a metric, and the conclusion from it."""

    operation: Operation  # in documents `all` if the metric is the line, which is one of all operations together
    metric: Metric
    ratio: float | None = None  # candidate divided by baseline, of geometric means; absent if not comparable
    low: float | None = None  # lower end of its 95 % confidence interval, not adjusted for other tests
    high: float | None = None  # upper end of it
    bound: float | None = None  # with 95 % confidence it is no worse; `NoRegression` if within the threshold
    between: float | None = None  # deviation between repeated runs, which widens the interval; absent if unknown
    # Two-sided p-value of the hypothesis of no change; adjusted by Holm for all tests of the comparison if the metric
    # gates.
    p_value: float | None = None
    # One-sided p-value of no change for the worse, adjusted; absent if the metric does not gate. A regression of a run
    # needs less than 2 %.
    p_worse: float | None = None
    conclusion: Conclusion
    confirmed: bool = False  # a regression whose whole interval is beyond the threshold
    improved: bool = False  # significantly better, and by more than the threshold
    suspected: bool = False  # worse by more than the threshold, not certainly, but too probably for `NoRegression`
    trials_needed: int | None = None  # on each side, to decide an inconclusive comparison by this change alone
    notes: tuple[str, ...] = ()

    @field_serializer("operation", when_used="json")
    def _operation_text(self, operation: Operation) -> str:
        return operation_text(operation, self.metric)


class MetricComparison(Change):
    """One metric of one operation at one point."""

    gates: bool  # whether it contributes to the conclusion of the whole comparison
    baseline: Side
    candidate: Side
    in_mean: bool = False  # whether a mean change includes it, which then decides what this point leaves open


class MeanComparison(Change):
    """The mean change of a gating metric over the points of a workload; its trials are passes."""

    workload: str
    points: int  # the number of points with this operation and metric
    baseline_passes: int  # the number of the baseline's passes
    candidate_passes: int  # the number of the candidate's passes


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
    """Two runs, compared."""

    conclusion: Conclusion
    reasons: tuple[str, ...]  # the basis of the conclusion, doubts about the comparison as a whole first
    rate_threshold: float
    latency_threshold: float
    gates: tuple[Metric, ...]
    means: tuple[MeanComparison, ...]  # of workloads with several points that can be compared
    points: tuple[PointComparison, ...]
    baseline_only: tuple[str, ...]
    candidate_only: tuple[str, ...]
    noise_runs: int  # number of repeated runs behind the noise between runs; without any it is assumed to be zero


C = TypeVar("C", bound=Change)


def judged(known: C, assessment: Assessment, rule: RegressionRule) -> C:
    """Return what is known of a change, with the conclusion from a test of it."""
    change, judgement = assessment.change, asdict(conclude(known.metric, assessment, rule))
    notes = filter(None, (judgement.pop("note"), *known.notes))
    low, high = change.interval()
    is_bound = change.may_be_lower or change.may_be_higher
    update = {
        **judgement,
        "ratio": None if is_bound else _finite_exp(change.estimate),
        "low": _finite_exp(low),
        "high": _finite_exp(high),
        "bound": _finite_exp(bound_of(known.metric, change)),
        "p_value": assessment.p_value,
        "p_worse": assessment.p_worse,
        "notes": tuple(notes),
    }
    return known.model_copy(update=update)


def deviation_of(between: BetweenVariance | None) -> float | None:
    """Return the standard deviation between runs; None if it is unknown."""
    return None if between is None else math.sqrt(between.variance)


def _finite_exp(logarithm: float) -> float | None:
    """Return e to that power; None if either is not finite."""
    try:
        return math.exp(logarithm) if math.isfinite(logarithm) else None
    except OverflowError:
        return None


Case = tuple[MetricComparison, Sample | None]
"""What is known of a metric without a test, and the values of every trial that counts; None if these have a problem."""


def cases_of(pair: Pair, rule: RegressionRule, floor: Floor) -> Iterator[Case]:
    """Yield the cases that can be compared, and those that should be and cannot.

    Metrics that the tool does not measure are omitted, and so are those without any value unless they gate.
    """
    trials = (counted(pair.baseline.status.trials), counted(pair.candidate.status.trials))
    both = [*trials[0], *trials[1]]
    repeated = [counted(result.status.trials) for result in floor.results_of(pair)] if floor.runs else None
    for operation in operations_of(both):
        gates = gates_of(rule, both, operation)
        results = [result for result in results_of(both, operation) if result is not None]
        for metric in COMPARED:
            has_values = any(value is not None for value in values_of(both, operation, metric))
            # Without any result, the operation is one that only some trials of each run have.
            if has_values or (metric in gates and (not results or is_reported(results, metric))):
                yield _case(pair.baseline.spec, trials, repeated, operation, metric, gates=metric in gates)


def _case(
    spec: ResultSpec,
    trials: tuple[list[Trial], list[Trial]],
    repeated: Sequence[Sequence[Trial]] | None,
    operation: Operation,
    metric: Metric,
    *,
    gates: bool,
) -> Case:
    """Return a case; `repeated` are the trials of the repeated runs, None without such runs."""
    baseline, candidate = (values_of(of_side, operation, metric) for of_side in trials)
    problem = problem_of(baseline, metric, "of the baseline") or problem_of(candidate, metric, "of the candidate")
    if min(map(len, trials)) < MINIMUM_TRIALS:
        problem = (
            f"not enough trials: at least {MINIMUM_TRIALS} must count on each side, but {len(trials[0])} of the "
            f"baseline and {len(trials[1])} of the candidate do; measure with more repetitions"
        )
    between = None
    if repeated is not None:
        between = between_variance_of_runs([values_of(of_run, operation, metric) for of_run in repeated])
        problem = problem or ("" if between else UNKNOWN_NOISE)
    known = MetricComparison(
        operation=operation,
        metric=metric,
        gates=gates,
        baseline=side_of(baseline),
        candidate=side_of(candidate),
        between=deviation_of(between),
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(problem,) if problem else (),
    )
    if problem:
        return known, None
    sample = Sample(
        workload=spec.workload,
        point=spec.point,
        operation=operation,
        metric=metric,
        gates=gates,
        baseline=logarithms_of(trials[0], operation, metric),
        candidate=logarithms_of(trials[1], operation, metric),
        between=between,
    )
    return known, sample


def side_of(values: Sequence[float | None]) -> Side:
    whole = complete(values) or []
    return Side(
        trials=len(values),
        mean=fmean(whole) if whole else None,
        deviation=math.sqrt(log_mean_and_variance(whole)[1]) if len(whole) > 1 and min(whole) > 0 else None,
    )


def noise_note(deviation: float | None, metric: Metric, rule: RegressionRule) -> str:
    """Return the note that a metric, which gates nevertheless, scatters too much; empty if it does not."""
    limit = MOST_SCATTER_OF_THRESHOLD * rule.threshold(metric)
    if deviation is None or deviation <= limit:
        return ""
    return (
        f"unreliable: it varies by {100 * deviation:.1f} % between trials (limit {100 * limit:.1f} %: two "
        "thirds of the threshold); measure for longer, or find the source of the noise"
    )


def means_of(
    samples: Sequence[Sample], between: Mapping[Group, BetweenVariance | None], rule: RegressionRule
) -> list[tuple[MeanComparison, Member | None]]:
    """Return what is known of the mean changes of gating metrics of workloads with several points, and their tests.

    The test is None if it is not possible. `between` may be empty.
    """
    gating, means = grouped([sample for sample in samples if sample.gates], lambda sample: sample.group), []
    for (workload, operation, metric), members in gating.items():
        if len(members) == 1:
            continue
        baseline = pass_means([sample.baseline for sample in members])
        candidate = pass_means([sample.candidate for sample in members])
        noise, problem = between.get((workload, operation, metric)), ""
        if min(len(baseline), len(candidate)) < MINIMUM_TRIALS:
            problem = (
                f"not enough passes with all {len(members)} points: at least {MINIMUM_TRIALS} are needed on each side, "
                f"but the baseline has {len(baseline)} and the candidate {len(candidate)}; find out why trials do not "
                "count"
            )
        elif between and noise is None:
            problem = UNKNOWN_NOISE
        change = None if problem else change_of(baseline.values(), candidate.values(), noise)
        note = noise_note(math.sqrt(change.variances[0]), metric, rule) if change else problem
        known = MeanComparison(
            workload=workload,
            operation=operation,
            metric=metric,
            points=len(members),
            baseline_passes=len(baseline),
            candidate_passes=len(candidate),
            between=deviation_of(noise),
            conclusion=Conclusion.INCONCLUSIVE,
            notes=(note,) if note else (),
        )
        means.append((known, change and Member(metric=metric, change=change, weight=weights(len(members))[0])))
    return means


def noise_of_means(
    pairs: Sequence[Pair], samples: Sequence[Sample], floor: Floor
) -> Mapping[Group, BetweenVariance | None]:
    """Return the noise between runs of every group with several points; None where it is unknown."""
    by_point, noise = {pair.baseline.spec.point: pair for pair in pairs}, dict[Group, BetweenVariance | None]()
    for group, members in grouped(samples, lambda sample: sample.group).items():
        if len(members) > 1:
            _, operation, metric = group
            # The passes of each run that has a value in every trial of all points.
            runs = list[Series]()
            for results in floor.runs_of([by_point[sample.point] for sample in members]):
                trials = [counted(result.status.trials) for result in results]
                if all(value for of_point in trials for value in values_of(of_point, operation, metric)):
                    runs.append(pass_means([logarithms_of(of_point, operation, metric) for of_point in trials]))
            noise[group] = between_variance_of_logarithms([run.values() for run in runs])
    return noise
