"""The two sides of a comparison: values trial by trial or run by run, and the outcome."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

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
    Judgement,
    LogChange,
    Member,
    Sample,
    Series,
    Trials,
    between_variance_of_means,
    between_variance_of_runs,
    bound_of,
    change_of,
    conclude,
    log_standard_deviation,
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

_BIMODAL_FROM = 8  # fewer values form two groups too often by chance


class Side(Model):
    """One quantity on one side: rates per second, latencies in nanoseconds."""

    trials: int  # the number of trials that count
    mean: float | None = None  # arithmetic mean over them; absent if one has no value
    # Standard deviation of the logarithms, which if small is the coefficient of variation; absent for fewer than two
    # trials, and if a value is absent or 0.
    deviation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One metric of one operation on both sides."""

    unassessed: "MetricComparison"  # what is known of it without a test
    sample: Sample | None  # the values of every trial that counts; None if they cannot be compared
    noise: str  # that the metric scatters too much to be relied on at this point alone; empty if it does not
    remarks: tuple[str, ...]  # other notes on the values


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
                yield _case(pair.baseline.spec, trials, repeated, operation, metric, rule, gates=metric in gates)


def side_of(values: Sequence[float | None]) -> Side:
    whole = complete(values) or []
    return Side(
        trials=len(values),
        mean=fmean(whole) if whole else None,
        deviation=log_standard_deviation(whole) if len(whole) > 1 and min(whole) > 0 else None,
    )


def noise_note(side: Side, metric: Metric, rule: RegressionRule) -> str:
    """Return the note that a metric, which gates nevertheless, scatters too much; empty if it does not."""
    limit = MOST_SCATTER_OF_THRESHOLD * rule.threshold(metric)
    if side.deviation is None or side.deviation <= limit:
        return ""
    return (
        f"unreliable: it varies by {100 * side.deviation:.1f} % between trials (limit {100 * limit:.1f} %: two "
        "thirds of the threshold); measure for longer, or find the source of the noise"
    )


def is_bimodal(values: Sequence[float]) -> bool:
    """Whether values look as if they came from two different states of a system.

    They do if a gap, with at least two values on either side, is more than 1.5 times as wide as either group: 3 % of
    sets of 8 normally distributed values, less than 1 % of sets of 10; 9 in 10 of two states ten deviations apart.
    """
    if len(values) < _BIMODAL_FROM:
        return False
    ordered = sorted(values)
    groups = ((ordered[:cut], ordered[cut:]) for cut in range(2, len(ordered) - 1))
    return any(upper[0] - lower[-1] > 1.5 * max(lower[-1] - lower[0], upper[-1] - upper[0]) for lower, upper in groups)


def _case(
    spec: ResultSpec,
    trials: tuple[list[Trial], list[Trial]],
    repeated: Sequence[Sequence[Trial]] | None,
    operation: Operation,
    metric: Metric,
    rule: RegressionRule,
    *,
    gates: bool,
) -> Case:
    """Return a case; `repeated` are the trials of the repeated runs, None without such runs."""
    baseline, candidate = (values_of(of_side, operation, metric) for of_side in trials)
    values = {"baseline": baseline, "candidate": candidate}
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
    sample = None
    if not problem:
        ours, theirs = (logarithms_of(of_side, operation, metric) for of_side in trials)
        sample = Sample(
            workload=spec.workload,
            point=spec.point,
            operation=operation,
            metric=metric,
            gates=gates,
            trials=Trials(baseline=ours, candidate=theirs, between=between),
        )
    baseline_side = side_of(baseline)
    noise = noise_note(baseline_side, metric, rule)
    remarks = tuple(
        f"the trials of the {name} form two groups, and their mean describes neither; look for two system states"
        for name, of_side in values.items()
        if is_bimodal([value for value in of_side if value is not None])
    )
    unassessed = MetricComparison(
        operation=operation,
        metric=metric,
        gates=gates,
        baseline=baseline_side,
        candidate=side_of(candidate),
        between=deviation_of(between),
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(*filter(None, (problem, noise)), *remarks),
    )
    return Case(unassessed=unassessed, sample=sample, noise=noise, remarks=remarks)


class MetricModel(Model):
    """The base of documents about one metric of one operation."""

    operation: Operation  # in documents `all` if the metric is the line, which is one of all operations together
    metric: Metric

    @field_serializer("operation", when_used="json")
    def _operation_text(self, operation: Operation) -> str:
        return operation_text(operation, self.metric)


class Change(MetricModel):
    """A change of a metric, and the conclusion from it."""

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
    trials_needed: int | None = None  # on each side, to decide an inconclusive comparison by this change alone
    notes: tuple[str, ...] = ()


class MetricComparison(Change):
    """One metric of one operation at one point."""

    gates: bool  # whether it contributes to the conclusion of the whole comparison
    baseline: Side
    candidate: Side
    in_mean: bool = False  # whether a mean change includes it, which then decides what this point leaves open
    suspected: bool = False  # worse by more than the threshold, not certainly, but too probably for `NoRegression`


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


class Ratios(NamedTuple):
    """A change of logarithms as ratios, and its deviation between runs."""

    ratio: float | None
    low: float | None
    high: float | None
    bound: float | None
    between: float | None


def ratios_of(metric: Metric, change: LogChange) -> Ratios:
    """Return the fields of a `Change` that follow from a change of logarithms."""
    low, high = change.interval()
    is_bound = change.may_be_lower or change.may_be_higher
    return Ratios(
        ratio=None if is_bound else _finite_exp(change.estimate),
        low=_finite_exp(low),
        high=_finite_exp(high),
        bound=_finite_exp(bound_of(metric, change)),
        between=deviation_of(change.between),
    )


def fields_of(metric: Metric, assessment: Assessment, judgement: Judgement) -> dict[str, object]:
    """Return the fields of a `Change`, except its subject and its notes."""
    return {
        **ratios_of(metric, assessment.change)._asdict(),
        "p_value": assessment.p_value,
        "p_worse": assessment.p_worse,
        "conclusion": judgement.conclusion,
        "confirmed": judgement.confirmed,
        "improved": judgement.improved,
        "trials_needed": judgement.trials_needed,
    }


def deviation_of(between: BetweenVariance | None) -> float | None:
    """Return the standard deviation between runs; None if it is unknown."""
    return None if between is None else math.sqrt(between.variance)


def _finite_exp(logarithm: float) -> float | None:
    """Return e to that power; None if either is not finite."""
    try:
        return math.exp(logarithm) if math.isfinite(logarithm) else None
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean change of a workload's points."""

    group: Group
    points: int
    passes: tuple[int, int]  # of baseline and candidate, with all points
    change: LogChange | None  # None if it cannot be tested
    problem: str = ""  # why not

    @property
    def member(self) -> Member | None:
        """The sample that it tests, if it can be tested."""
        if self.change is None:
            return None
        return Member(metric=self.group[2], change=self.change, weight=weights(self.points)[0])


def means_of(samples: Sequence[Sample], between: Mapping[Group, BetweenVariance | None]) -> list[Mean]:
    """Return the mean changes of gating metrics of workloads with several points; `between` may be empty."""
    gating, means = grouped([sample for sample in samples if sample.gates], lambda sample: sample.group), []
    for group, members in gating.items():
        if len(members) == 1:
            continue
        baseline, candidate = (pass_means([sample.trials.sides[side] for sample in members]) for side in (0, 1))
        passes, noise = (len(baseline), len(candidate)), between.get(group)
        problem = UNKNOWN_NOISE if between and noise is None else ""
        if min(passes) < MINIMUM_TRIALS:
            problem = (
                f"not enough passes with all {len(members)} points: at least {MINIMUM_TRIALS} are needed on each side, "
                f"but the baseline has {passes[0]} and the candidate {passes[1]}; find out why trials do not count"
            )
        trials = Trials(baseline=baseline, candidate=candidate, between=noise)
        change = None if problem else change_of(trials)
        means.append(Mean(group=group, points=len(members), passes=passes, change=change, problem=problem))
    return means


def noise_of_means(
    pairs: Sequence[Pair], samples: Sequence[Sample], floor: Floor
) -> Mapping[Group, BetweenVariance | None]:
    """Return the noise between runs of every group with several points; None where it is unknown."""
    by_point, noise = {pair.baseline.spec.point: pair for pair in pairs}, dict[Group, BetweenVariance | None]()
    for group, members in grouped(samples, lambda sample: sample.group).items():
        if len(members) > 1:
            _, operation, metric = group
            # The points of each run that has a value in every trial.
            runs = list[list[Series]]()
            for results in floor.runs_of([by_point[sample.point] for sample in members]):
                trials = [counted(result.status.trials) for result in results]
                if all(value for of_point in trials for value in values_of(of_point, operation, metric)):
                    runs.append([logarithms_of(of_point, operation, metric) for of_point in trials])
            noise[group] = between_variance_of_means(runs)
    return noise


def compare_mean(mean: Mean, assessment: Assessment | None, rule: RegressionRule) -> MeanComparison:
    """Return the comparison of a mean; without an assessment it is inconclusive."""
    workload, operation, metric = mean.group
    unassessed = MeanComparison(
        workload=workload,
        operation=operation,
        metric=metric,
        points=mean.points,
        baseline_passes=mean.passes[0],
        candidate_passes=mean.passes[1],
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(mean.problem,),
    )
    if assessment is None:
        return unassessed
    judgement = conclude(metric, assessment, rule)
    scatter = Side(trials=mean.passes[0], deviation=math.sqrt(assessment.change.variances[0]))
    notes = tuple(filter(None, (judgement.note, noise_note(scatter, metric, rule))))
    return unassessed.model_copy(update={**fields_of(metric, assessment, judgement), "notes": notes})
