"""Compares two runs: every point, operation and metric, with one conclusion from all of them.

The trial is the unit: histograms are never pooled, since pooling hides how much trials differ. The mean change over its
points decides whether a workload has no regression, unless one of them is suspected of one. A search for the line has
one estimate with an interval instead. Only repeated runs, the floor, show the noise between runs.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean, geometric_mean
from typing import TypeVar

from pydantic import field_serializer

from plimsoll.api.model import Model
from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.result import ResultSpec, Trial
from plimsoll.api.suite_status import WORST_FIRST, Conclusion
from plimsoll.measure.attempts import counted, on_first_attempts, repeated_too_often, spoiled_attempts
from plimsoll.measure.compare.lines import line_change, line_problem, operation_of, position_of_result
from plimsoll.measure.compare.significance import (
    MINIMUM_RUNS,
    Assessment,
    BetweenVariance,
    Floor,
    Group,
    LogChange,
    Member,
    Sample,
    assess,
    assess_alone,
    between_variance,
    between_variance_of_logarithms,
    between_variance_of_runs,
    change_of,
    conclude,
    logarithms_of,
    pass_means,
    point_members,
    weights,
)
from plimsoll.measure.compare.values import (
    COMPARED,
    Matching,
    Pair,
    RegressionRule,
    check_distinct,
    first_attempts_text,
    gates_of,
    operation_text,
)
from plimsoll.measure.line.summary import rounded_load
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import CONFIDENCE, mean_and_variance
from plimsoll.measure.summary import (
    MINIMUM_TRIALS,
    OF_DISTURBANCES,
    complete,
    is_reported,
    operations_of,
    problem_of,
    results_of,
    values_of,
)
from plimsoll.measure.text import first_few

_LARGEST = 700.0  # logarithm whose exponential is finite
MOST_SCATTER_OF_THRESHOLD = 2 / 3  # the conclusion of a metric that scatters by more of its threshold is random
_UNKNOWN_NOISE = (
    f"its noise between runs is unknown: fewer than {MINIMUM_RUNS} of the --noise runs have this point with a line, or "
    f"with a value in all of at least {MINIMUM_TRIALS} trials that count; pass other --noise runs, or none"
)


class Side(Model):
    """One quantity on one side: rates per second, latencies in nanoseconds."""

    trials: int  # the number of trials that count
    mean: float | None = None  # arithmetic mean over them; absent if one has no value
    deviation: float | None = None  # of the logarithms; absent for fewer than two trials, and if a value is absent or 0


class Change(Model):
    """A change of a metric, and the conclusion from it."""

    operation: Operation  # in documents `all` if the metric is the line, which is one of all operations together
    metric: Metric
    ratio: float | None = None  # candidate divided by baseline, of geometric means; absent if not comparable
    low: float | None = None  # lower end of its 95 % interval, not adjusted for other tests; absent for too few trials
    high: float | None = None  # upper end of it
    bound: float | None = None  # with 95 % confidence it is no worse; `NoRegression` if within the threshold
    between: float | None = None  # deviation between repeated runs, which widens the interval; absent if unknown
    p_value: float | None = None  # two-sided, of no change; adjusted by Holm for all tests if the metric gates
    p_worse: float | None = None  # one-sided, of no change for the worse, adjusted; absent if the metric does not gate
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
    notes = tuple(filter(None, (judgement.pop("note"), *known.notes)))
    estimate = math.nan if change.may_be_lower or change.may_be_higher else change.estimate
    # The last one is one-sided, with the same confidence.
    bound = change.interval(2 * CONFIDENCE - 1)[0 if known.metric.is_rate else 1]
    logarithms = {"ratio": estimate, **dict(zip(("low", "high"), change.interval(), strict=True)), "bound": bound}
    finite = {key: math.exp(value) if abs(value) < _LARGEST else None for key, value in logarithms.items()}
    tested = {"p_value": assessment.p_value, "p_worse": assessment.p_worse, "notes": notes}
    return known.model_copy(update={**judgement, **finite, **tested})


Case = tuple[MetricComparison, Sample | None]
"""What is known of a metric without a test, and the values of every trial that counts; None if these have a problem."""


def cases_of(pair: Pair, rule: RegressionRule, floor: Floor) -> Iterator[Case]:
    """Yield what can or should be compared: metrics that the tool measures, with a value or gating."""
    trials = (counted(pair.baseline.status.trials), counted(pair.candidate.status.trials))
    both = [*trials[0], *trials[1]]
    repeated = [counted(result.status.trials) for (result,) in floor.runs_of([pair])] if floor.runs else None
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
    repeated: Sequence[Sequence[Trial]] | None,  # the trials of the repeated runs; None without such runs
    operation: Operation,
    metric: Metric,
    *,
    gates: bool,
) -> Case:
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
        problem = problem or ("" if between else _UNKNOWN_NOISE)
    known = MetricComparison(
        operation=operation,
        metric=metric,
        gates=gates,
        baseline=side_of(baseline),
        candidate=side_of(candidate),
        between=math.sqrt(between.variance) if between else None,
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(problem,) if problem else (),
    )
    if problem:
        return known.model_copy(update={"ratio": _ratio(baseline, candidate)}), None
    ours, theirs = (logarithms_of(of_side, operation, metric) for of_side in trials)
    group = (spec.workload, operation, metric)
    return known, Sample(group=group, point=spec.point, gates=gates, baseline=ours, candidate=theirs, between=between)


def _ratio(baseline: Sequence[float | None], candidate: Sequence[float | None]) -> float | None:
    """Return the ratio of the geometric means of what cannot be tested; None if a value is absent or 0."""
    ours, theirs = complete(baseline), complete(candidate)
    return geometric_mean(theirs) / geometric_mean(ours) if ours and theirs and min(*ours, *theirs) > 0 else None


def side_of(values: Sequence[float | None]) -> Side:
    whole, deviation = complete(values) or [], None
    if len(whole) > 1 and min(whole) > 0:
        deviation = math.sqrt(mean_and_variance([*map(math.log, whole)])[1])
    return Side(trials=len(values), mean=fmean(whole) if whole else None, deviation=deviation)


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
    """Return the mean changes of gating metrics of workloads with several points, and their tests; None without one."""
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
            problem = _UNKNOWN_NOISE
        change = None if problem else change_of(baseline.values(), candidate.values(), noise)
        note = noise_note(math.sqrt(max(change.variances)), metric, rule) if change else problem
        known = MeanComparison(
            workload=workload,
            operation=operation,
            metric=metric,
            points=len(members),
            baseline_passes=len(baseline),
            candidate_passes=len(candidate),
            between=math.sqrt(noise.variance) if noise else None,
            conclusion=Conclusion.INCONCLUSIVE,
            notes=(note,) if note else (),
        )
        weight, _ = weights(len(members))
        means.append((known, Member(metric=metric, change=change, weight=weight) if change else None))
    return means


def noise_of_means(
    pairs: Sequence[Pair], samples: Sequence[Sample], floor: Floor
) -> Mapping[Group, BetweenVariance | None]:
    """Return the noise between runs of every group with several points; None where it is unknown."""
    by_point, noise = {pair.baseline.spec.point: pair for pair in pairs}, dict[Group, BetweenVariance | None]()
    for group, members in grouped(samples, lambda sample: sample.group).items():
        if len(members) > 1:
            _, operation, metric = group
            runs = (
                [counted(result.status.trials) for result in results]
                for results in floor.runs_of([by_point[sample.point] for sample in members])
            )
            # The passes of each run that has a value in every trial of all points.
            noise[group] = between_variance_of_logarithms(
                pass_means([logarithms_of(of_point, operation, metric) for of_point in run]).values()
                for run in runs
                if all(value for of_point in run for value in values_of(of_point, operation, metric))
            )
    return noise


def is_search(pair: Pair) -> bool:
    """Whether either result comes from a search for the line, whose trials have different loads."""
    return any(result.spec.line is not None for result in (pair.baseline, pair.candidate))


def lines_of(pair: Pair, floor: Floor) -> tuple[MetricComparison, LogChange | None]:
    """Return what is known of the lines of a pair without a test, and their change; None if they cannot be compared."""
    sides = {"baseline": pair.baseline, "candidate": pair.candidate}
    problem = next(filter(None, (line_problem(name, result) for name, result in sides.items())), "")
    goals = [
        (search.vary, {objective.percentile: objective.latency for objective in search.objectives})
        for search in (result.spec.line for result in sides.values())
        if search is not None
    ]
    if not problem and goals[0] != goals[1]:
        problem = "the searches have different objectives or vary different loads, so their lines cannot be compared"
    away = [line.storm for line in (result.status.line for result in sides.values()) if line is not None]
    if not problem and away[0] != away[1]:
        texts = " and ".join("none" if osds is None else osds.text for osds in away)
        problem = f"the storm lines have different disturbances ({texts}), so they cannot be compared"
    # The variance of the runs' lines beyond their own errors.
    repeated = [result for (result,) in floor.runs_of([pair]) if not line_problem("run", result)]
    usable = (line for result in repeated if (line := position_of_result(result)) and line.is_estimate)
    between = between_variance([(line.value, line.error**2) for line in usable])
    if floor.runs and between is None:
        problem = problem or _UNKNOWN_NOISE
    positions = {name: position_of_result(result) for name, result in sides.items()}
    baseline, candidate = positions.values()
    bounds = [
        f"the line of the {name} is {'above' if position.may_be_higher else 'below'} "
        f"{rounded_load(math.exp(position.value))}; how far is unknown"
        for name, position in positions.items()
        if position and not position.is_estimate
    ]
    # The trials of a line are its probes, its deviation is the standard error.
    ours, theirs = (
        Side(
            trials=line.counted if line else 0,
            mean=line.estimate if line else None,
            deviation=position.error if position and position.is_estimate else None,
        )
        for line, position in zip((result.status.line for result in sides.values()), positions.values(), strict=True)
    )
    known = MetricComparison(
        operation=operation_of([*sides.values()]),
        metric=Metric.LINE,
        gates=True,
        baseline=ours,
        candidate=theirs,
        between=math.sqrt(between.variance) if between else None,
        conclusion=Conclusion.INCONCLUSIVE,
        notes=(problem,) if problem else tuple(bounds),
    )
    return known, line_change(baseline, candidate, between) if baseline and candidate and not problem else None


def compare_lines(known: MetricComparison, assessment: Assessment, rule: RegressionRule) -> MetricComparison:
    """Return the comparison of the lines of a pair, whose change was assessed."""
    compared, notes, change = judged(known, assessment, rule), known.notes, assessment.change
    is_within = change.estimate > -rule.log_threshold(Metric.LINE)
    if compared.conclusion is Conclusion.INCONCLUSIVE and compared.ratio is not None and is_within:
        why = "the intervals of the lines are too wide to show that nothing is worse"
        notes = (*notes, f"{why}; decrease precisionPercent, or tolerate more")
    # More probes do not help: a search ends when its interval is narrow enough.
    return compared.model_copy(update={"trials_needed": None, "notes": notes})


def overall(deciding: Iterable[Conclusion], others: Iterable[Conclusion], *, doubted: bool) -> Conclusion:
    """Return the conclusion: one Regression decides, NoRegression takes all `deciding` ones and nothing `doubted`."""
    needed = {*deciding}
    if Conclusion.REGRESSION in needed.union(others):
        return Conclusion.REGRESSION
    return Conclusion.INCONCLUSIVE if doubted or Conclusion.INCONCLUSIVE in needed else Conclusion.NO_REGRESSION


def has_to_decide(metric: MetricComparison) -> bool:
    """Whether a gating metric of a point has to show that there is no regression."""
    return not metric.in_mean or metric.suspected or metric.p_value is None


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


def marks_of(pair: Pair) -> Iterator[str]:
    """Yield the doubts about either result; none if both are Valid."""
    for name, status in (("baseline", pair.baseline.status), ("candidate", pair.candidate.status)):
        if not status.final:
            yield f"the {name} is not finished"
        elif status.verdict is not Verdict.VALID:
            reasons = ", ".join(dict.fromkeys(finding.reason for finding in status.findings))
            yield f"the {name} is {status.verdict}: {reasons or 'no reason is recorded'}"


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

    Inconclusive if too many attempts were replaced: the others are a selection. Otherwise, of the comparisons by the
    attempts that count and by the first attempts, the worse one is returned. `floor` are repeated runs without a
    change. `first` are the same points with the first attempts of all runs, if the results of `matching` stand for
    several runs; None to take them from `matching`.
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
            notes=tuple(marks_of(pair)),
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
    # Of several points the scatter of their mean decides, and has a note of its own; the scatter of two trials is none.
    deviations = [side.deviation for side in (known.baseline, known.candidate) if side.deviation is not None]
    is_short = min(known.baseline.trials, known.candidate.trials) < MINIMUM_TRIALS
    noise = "" if in_mean or is_short else noise_note(max(deviations, default=None), known.metric, rule)
    known = known.model_copy(update={"in_mean": in_mean, "notes": (*known.notes, noise) if noise else known.notes})
    if sample is None:
        return known
    assessment = next(assessed) if known.gates else assess_alone(known.metric, sample.change)
    return judged(known, assessment, rule)


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
    return {note: [place for _, place in pairs] for note, pairs in grouped(noted, lambda pair: pair[0]).items()}


def _notes(change: Change) -> Iterator[str]:
    yield from change.notes
    if change.trials_needed is not None:
        yield f"about {change.trials_needed} trials on each side would decide it at this scatter"
