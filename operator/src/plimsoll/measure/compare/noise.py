"""Noise: repeated runs as one result, and the smallest change that a comparison could detect."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist

from pydantic import field_serializer

from plimsoll.api.line import Ending, Line
from plimsoll.api.model import Model
from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import BenchmarkResult, Finding, ResultStatus, Trial
from plimsoll.measure.compare.lines import LINES, line_estimate, lines_between, operation_of, side_of_line
from plimsoll.measure.compare.sides import Side, noise_note, side_of
from plimsoll.measure.compare.tests import (
    ALONE,
    DOUBT,
    MEANS,
    MINIMUM_TRIALS,
    MOST_TRIALS,
    OWN,
    POINTS,
    Between,
    components_of,
    detectable_change,
    moments_of_logarithms,
    usual_worths,
)
from plimsoll.measure.compare.values import (
    OF_TRIALS,
    Metric,
    RegressionRule,
    gates_of,
    match_points,
    operation_text,
    values_of,
)
from plimsoll.measure.statistics import CONFIDENCE, t_quantile
from plimsoll.measure.summary import counted, summarise


class MetricNoise(Model):
    """The noise of one metric of one operation.

    Attributes:
        operation: in documents `all` if the metric is the line, which is one of all operations together.
        side: over all trials that count; for several runs, its deviation is that of trials of different runs.
        within: standard deviation of the logarithms within a run; absent if unknown.
        between: the same between the means of runs, without what the scatter within them explains; absent for one run.
        runs: the number of runs behind `between`; 0 for one run.
        detectable: the smallest change for the worse that would be significant in about 80 % of comparisons of this
            point alone, as a part of the baseline; absent if unknown.
        threshold: the change that matters, likewise.
        note: that the metric is ungateable, and what to do; empty if it is not.

    """

    operation: Operation
    metric: Metric
    gates: bool
    side: Side
    within: float | None = None
    between: float | None = None
    runs: int = 0
    detectable: float | None = None
    threshold: float
    note: str = ""

    @field_serializer("operation", when_used="json")
    def _operation_text(self, operation: Operation) -> str:
        return operation_text(operation, self.metric)


def noise_of(results: Sequence[BenchmarkResult], rule: RegressionRule, trials: int) -> tuple[MetricNoise, ...]:
    """Return the noise of every metric of a point, from all its results, for comparisons with that many trials a side.

    That of a search is the error of its line, whatever the number of trials is.

    Raises:
        ValueError: for fewer than two trials a side.

    """
    if trials < 2:  # noqa: PLR2004 - one trial has no deviation
        raise ValueError(f"a comparison needs at least 2 trials on each side, not {trials}")
    if any(result.spec.line is not None for result in results):
        return tuple(_noise_of_line(results, rule))
    runs = [counted(result.status.trials) for result in results]
    good = [trial for run in runs for trial in run]
    done = {result.operation for trial in good for result in trial.operations}
    found = []
    for operation in (one for one in Operation if one in done):
        gates = gates_of(rule, good, operation)
        for metric in OF_TRIALS:
            values = [values_of(run, operation, metric) for run in runs]
            if any(value is not None for run in values for value in run):
                found.append(_noise(operation, metric, values, replace(rule, gates=gates), trials))
    return tuple(found)


def _noise(
    operation: Operation, metric: Metric, values: Sequence[Sequence[float | None]], rule: RegressionRule, trials: int
) -> MetricNoise:
    side, components = side_of([value for run in values for value in run]), components_of(values)
    between = components.between if components else None
    # Without components, the scatter of several runs is not that within one run.
    alone = side.deviation if len(values) == 1 else None
    within = components.within if components else alone
    if components:
        side = side.model_copy(update={"deviation": components.whole})
    return MetricNoise(
        operation=operation,
        metric=metric,
        gates=metric in rule.gates,
        side=side,
        within=within,
        between=math.sqrt(between.variance) if between else None,
        runs=between.runs if between else 0,
        detectable=None if within is None else _for_the_worse(metric, within, trials, between),
        threshold=rule.threshold(metric),
        note=noise_note(side, metric, rule),
    )


def _noise_of_line(results: Sequence[BenchmarkResult], rule: RegressionRule) -> Iterator[MetricNoise]:
    """Yield the noise of a line, from the mean error of these searches; nothing if none has an interval."""
    sides = [side for side in map(side_of_line, results) if side.mean is not None and side.deviation is not None]
    if not sides:
        return
    within = math.sqrt(math.fsum((side.deviation or 0) ** 2 for side in sides) / len(sides))
    between = lines_between(results)
    mean = math.fsum(side.mean or 0 for side in sides) / len(sides)
    whole = math.hypot(within, math.sqrt(between.variance)) if between else within
    change = (NormalDist().inv_cdf(1 - LINES) + NormalDist().inv_cdf(_POWER)) * math.sqrt(2) * whole
    yield MetricNoise(
        operation=operation_of(results),
        metric=Metric.LINE,
        gates=True,
        side=Side(trials=sum(side.trials for side in sides), mean=mean, deviation=whole),
        within=within,
        between=math.sqrt(between.variance) if between else None,
        runs=between.runs if between else 0,
        detectable=-math.expm1(-change),
        threshold=rule.threshold(Metric.LINE),
    )


def _for_the_worse(metric: Metric, deviation: float, trials: int, between: Between | None) -> float:
    """Return the detectable change as a part of the baseline."""
    change = detectable_change(deviation, trials, between, 1 - 2 * ALONE.of(metric))
    return -math.expm1(-change) if metric.is_rate else math.expm1(min(change, _MOST))


_POWER = 0.8
_MOST = 100.0
"""The largest logarithm; its exponential is still finite."""


_ONE_SIDED = 1 - CONFIDENCE
_STEPS = 80
_BELOW, _ABOVE = 8.0, 6.0
_WELCH = 1.35
_ENOUGH = 0.9
_SUSPECTED = 2 / 3
"""The part of its level that `DOUBT` uses, in simulations: a suspected change also has to exceed its threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWorkload:
    """A workload of runs to compare: its number of points, and whether p99 gates in addition to a rate."""

    points: int
    has_latency: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What is assumed about runs that are not measured yet.

    Attributes:
        rate: coefficient of variation of a point's rate from trial to trial.
        latency: likewise of its p99.
        correlation: of the noise of different points in the same pass.
        loss: of a rate, as a part of it, that is to be found.

    """

    rate: float = 0.03
    latency: float = 0.08
    correlation: float = 0.0
    loss: float = 0.1
    rule: RegressionRule = field(default_factory=RegressionRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How likely something is with the planned repetitions, and how many make it 90 %; None for more than 100."""

    probability: float
    enough: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What a comparison of two runs could find.

    Attributes:
        everywhere: that a loss at all points of a workload is a regression, for the workload where it is least likely.
        somewhere: that a loss at a single point is one.
        nothing: that runs without a change have no regression.

    """

    everywhere: Chance
    somewhere: Chance
    nothing: Chance


def power_of(workloads: Sequence[PlannedWorkload], repetitions: int, assumed: Assumptions) -> Power:
    """Return what a comparison of two runs of these workloads could find."""
    return Power(
        everywhere=_chance(lambda trials: _everywhere(workloads, trials, assumed), repetitions),
        somewhere=_chance(lambda trials: _somewhere(workloads, trials, assumed), repetitions),
        nothing=_chance(lambda trials: _nothing(workloads, trials, assumed), repetitions),
    )


def _chance(probability: Callable[[int], float], repetitions: int) -> Chance:
    now = probability(repetitions) if repetitions >= MINIMUM_TRIALS else 0.0
    low, high = MINIMUM_TRIALS, MOST_TRIALS + 1
    while low < high:
        middle = (low + high) // 2
        if middle > MOST_TRIALS or probability(middle) >= _ENOUGH:
            high = middle
        else:
            low = middle + 1
    return Chance(probability=now, enough=low if low <= MOST_TRIALS else None)


def _everywhere(workloads: Sequence[PlannedWorkload], trials: int, assumed: Assumptions) -> float:
    points = sum(one.points for one in workloads)
    return min(
        _mean_found(one.points, _several(workloads), trials, assumed)
        if one.points > 1
        else _point_found(one.points, points, trials, assumed)
        for one in {*workloads}
    )


def _somewhere(workloads: Sequence[PlannedWorkload], trials: int, assumed: Assumptions) -> float:
    points = sum(one.points for one in workloads)
    return min(_point_found(one.points, points, trials, assumed) for one in {*workloads})


def _mean_found(points: int, means: int, trials: int, assumed: Assumptions) -> float:
    shared = assumed.correlation + (1 - assumed.correlation) / points
    error = assumed.rate * math.sqrt(2 / trials * shared)
    freedom = 2 * (trials - 1)
    critical = quick_t_quantile(MEANS.rate / means, _welch(trials))
    return _found(assumed, error, freedom, lambda scatter: critical * scatter * error)


def _point_found(points: int, all_points: int, trials: int, assumed: Assumptions) -> float:
    """Return the probability that all tests of a point see its loss; only those of its workload lend it a variance."""
    error, freedom = assumed.rate * math.sqrt(2 / trials), 2 * (trials - 1)
    if all_points == 1:
        critical = quick_t_quantile(ALONE.rate, _welch(trials))
        return _found(assumed, error, freedom, lambda scatter: critical * scatter * error)
    by_own = quick_t_quantile(OWN, _welch(trials))
    apart = _apart(points, assumed.correlation)

    def found(lent: float) -> float:
        known = min(lent + freedom, points * freedom)
        doubted = quick_t_quantile(DOUBT.rate / all_points, known)
        moderated = max(doubted, apart * quick_t_quantile(POINTS.rate / all_points, known))
        return _found(
            assumed,
            error,
            freedom,
            lambda scatter: error * max(by_own * scatter, moderated * _moderated(scatter, lent, freedom)),
        )

    worths = usual_worths(points, freedom) if points > 1 else (0.0,)
    return math.fsum(map(found, worths)) / len(worths)


def _moderated(scatter: float, lent: float, freedom: float) -> float:
    """Return the deviation that a point has with what others lend it, as factors of the true one."""
    return math.sqrt((lent + freedom * scatter * scatter) / (lent + freedom))


def _welch(trials: int) -> float:
    """Return the mean degrees of freedom of Welch's test if both sides scatter alike: fitted to simulated ones."""
    return (trials - 1) * (2 - _WELCH / trials)


def _apart(points: int, correlation: float) -> float:
    """Return the part of a trial's deviation that is left without what the other points of the pass explain."""
    return math.sqrt(1 - correlation**2 * (points - 1) / (1 + correlation * (points - 2))) if points > 1 else 1.0


def _found(assumed: Assumptions, error: float, freedom: float, needed: Callable[[float], float]) -> float:
    """Return the probability that a loss exceeds the threshold and what the scatter's estimate, as a factor, needs."""
    threshold, loss = assumed.rule.log_threshold(Metric.IOPS), -math.log1p(-assumed.loss)
    return _expected(freedom, lambda scatter: _below((loss - max(threshold, needed(scatter))) / error))


def _nothing(workloads: Sequence[PlannedWorkload], trials: int, assumed: Assumptions) -> float:
    found = math.prod(_equivalent(one, trials, assumed) ** count for one, count in Counter(workloads).items())
    if not _several(workloads):
        return found
    suspected = [DOUBT.rate, *([DOUBT.latency] if any(one.has_latency for one in workloads) else [])]
    return found * math.prod(1 - _SUSPECTED * level for level in suspected)


def _equivalent(workload: PlannedWorkload, trials: int, assumed: Assumptions) -> float:
    """Return the probability that the mean change of a workload is within all thresholds."""
    shared = assumed.correlation + (1 - assumed.correlation) / workload.points
    freedom = 2 * (trials - 1)
    quantile = quick_t_quantile(_ONE_SIDED, _welch(trials))
    scatters = {Metric.IOPS: assumed.rate} | ({Metric.P99: assumed.latency} if workload.has_latency else {})
    # In errors of the mean change.
    thresholds = [
        assumed.rule.log_threshold(metric) / (scatter * math.sqrt(2 / trials * shared))
        for metric, scatter in scatters.items()
    ]

    def within(scatter: float, threshold: float) -> float:
        return _below(threshold - quantile * scatter)

    return math.prod(_expected(freedom, partial(within, threshold=threshold)) for threshold in thresholds)


def _several(workloads: Sequence[PlannedWorkload]) -> int:
    return sum(one.points > 1 for one in workloads)


def _expected(freedom: float, function: Callable[[float], float]) -> float:
    """Return the mean of a function of a sample deviation, as a factor of the true one."""
    width = math.sqrt(2 / freedom)
    # Of the logarithm of the variance, whose density is proportional to exp(freedom / 2 (u - e^u)).
    places = [width * (-_BELOW + (_BELOW + _ABOVE) * (step + 0.5) / _STEPS) for step in range(_STEPS)]
    weights = [math.exp(freedom / 2 * (place - math.exp(place) + 1)) for place in places]
    values = [function(math.exp(place / 2)) for place in places]
    return math.fsum(map(float.__mul__, weights, values)) / math.fsum(weights)


def _below(deviations: float) -> float:
    """Return the standard normal distribution."""
    return math.erfc(-deviations / math.sqrt(2)) / 2


def quick_t_quantile(tail: float, freedom: float) -> float:
    """Return the quantile of t above which this probability lies, below 0.5; to 1 % from four degrees of freedom on.

    Source: Hill, Algorithm 396: Student's t-Quantiles, 1970.
    """
    a = 1 / (freedom - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (2 * d * tail) ** (2 / freedom)
    if y > 0.05 + a:
        return math.sqrt(freedom * _near_normal(NormalDist().inv_cdf(tail), freedom, (a, b, c, d)))
    y = (
        (1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3) + 0.5 / (freedom + 4)) * y - 1
    ) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)


def _near_normal(x: float, freedom: float, terms: tuple[float, float, float, float]) -> float:
    """Return t^2 / freedom by an expansion about the normal quantile."""
    a, b, c, d = terms
    y = x * x
    if freedom < 5:  # noqa: PLR2004 - where the source corrects it
        c += 0.3 * (freedom - 4.5) * (x + 0.6)
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.expm1(a * y * y)


class RepeatsDifferError(ValueError):
    """Runs that should be repetitions measured different things; the message names the point and the runs."""


def as_one_run(runs: Sequence[Sequence[BenchmarkResult]]) -> list[BenchmarkResult]:
    """Return a result for each point of the first run, with a trial for each run that has numbers of it.

    Raises:
        RepeatsDifferError: the identities of a point differ between runs.

    """
    first = runs[0]
    return [_combined(result, [_counterpart(result, run) for run in runs]) for result in first]


def _counterpart(result: BenchmarkResult, run: Sequence[BenchmarkResult]) -> BenchmarkResult | None:
    return next((pair.candidate for pair in match_points([result], run).pairs), None)


def _combined(first: BenchmarkResult, results: Sequence[BenchmarkResult | None]) -> BenchmarkResult:
    if first.spec.line is not None and len(results) == 1:
        return first
    known = [result for result in results if result is not None]
    _check_same(first, known)
    represent = _trial if first.spec.line is None else _last_probe
    found = [represent(number, result) for number, result in enumerate(results) if result is not None]
    trials = tuple(trial for trial in found if trial is not None)
    return first.model_copy(
        update={
            "spec": first.spec.model_copy(update={"repetitions": len(results)}),
            "status": ResultStatus(
                trials=trials,
                summary=summarise(trials, len(results)).summary if first.spec.line is None else None,
                line=_line([result.status.line for result in known], [line_estimate(result) for result in known]),
                verdict=_worst(result.status.verdict for result in known),
                findings=_distinct(finding for result in known for finding in result.status.findings),
                environment=first.status.environment,
                fingerprint=first.status.fingerprint,
                final=len(known) == len(results) and all(result.status.final for result in known),
            ),
        }
    )


def _check_same(first: BenchmarkResult, results: Sequence[BenchmarkResult]) -> None:
    ours = first.status.fingerprint
    for result in results:
        theirs = result.status.fingerprint
        if ours is not None and theirs is not None and ours.identity_sha256 != theirs.identity_sha256:
            names = f"{first.spec.run} and {result.spec.run}"
            message = f"{first.spec.point}: {names} are not repetitions of the same; compare them to see the difference"
            raise RepeatsDifferError(message)


def _trial(number: int, result: BenchmarkResult) -> Trial | None:
    """Return a run's trials that count as one; None if none does."""
    trials = counted(result.status.trials)
    if not trials:
        return None
    done = [operation for operation in Operation if any(_of(trial, operation) for trial in trials)]
    return Trial(
        pass_number=number,
        attempt=0,
        epoch=result.spec.run_uid,
        clients=trials[-1].clients,
        outcome=Outcome.MEASURED,
        started_at=trials[0].started_at,
        finished_at=trials[-1].finished_at,
        verdict=_worst(trial.verdict for trial in trials) or Verdict.VALID,
        operations=tuple(_mean(operation, [_of(trial, operation) for trial in trials]) for operation in done),
    )


def _last_probe(number: int, result: BenchmarkResult) -> Trial | None:
    """Return the last probe of a search that counts, without a load: it stands for the run; None if none does."""
    trials = counted(result.status.trials)
    update = {"pass_number": number, "attempt": 0, "probe": None}
    return trials[-1].model_copy(update=update) if trials else None


def _line(lines: Sequence[Line | None], estimates: Sequence[float | None]) -> Line | None:
    """Return the line of all runs, in which each run counts like a probe; None if no run searched for it.

    Its interval is that of the geometric mean, so it contains the noise between runs. Without an estimate of every run
    it has none: the others would be a selection.
    """
    known = [line for line in lines if line is not None]
    if not known or len(lines) == 1:
        return known[0] if known else None
    values = [value for value in estimates if value is not None]
    probes = sum(line.probes for line in known)
    if len(values) < len(lines):
        return Line(ending=_common_ending(known), probes=probes, counted=len(known))
    mean, variance = moments_of_logarithms(values)
    half = t_quantile((1 + CONFIDENCE) / 2, len(values) - 1) * math.sqrt(variance / len(values))
    low, estimate, high = map(math.exp, (mean - half, mean, mean + half))
    ending = _common_ending(known)
    return Line(ending=ending, probes=probes, counted=len(values), estimate=estimate, low=low, high=high)


def _common_ending(lines: Sequence[Line]) -> Ending | None:
    """Return the worst ending; None if a search goes on."""
    endings = [line.ending for line in lines]
    return None if None in endings else max(filter(None, endings), key=[*Ending].index)


def _of(trial: Trial, operation: Operation) -> OperationResult | None:
    return next((result for result in trial.operations if result.operation is operation), None)


def _mean(operation: Operation, results: Sequence[OperationResult | None]) -> OperationResult:
    """Return the means over trials; without a latency that a trial does not have, since omitting it would bias them."""
    known = [result for result in results if result is not None]
    whole = len(known) == len(results)
    latencies = [result.latency for result in known]
    names = set.intersection(*(set(latency.percentiles) for latency in latencies)) if whole else set()
    means = [latency.mean_nanoseconds for latency in latencies if latency.mean_nanoseconds is not None]
    return OperationResult(
        operation=operation,
        ios=sum(result.ios for result in known),
        bytes=sum(result.bytes for result in known),
        rates=_rates([result.rates for result in known], len(results)),
        whole_run=_rates([result.whole_run for result in known], len(results)),
        sum_of_rates=_rates([result.sum_of_rates for result in known], len(results)),
        latency=Latency(
            kind=latencies[0].kind,
            count=sum(latency.count for latency in latencies),
            mean_nanoseconds=_average(means) if len(means) == len(results) else None,
            percentiles={
                name: round(_average([latency.percentiles[name] for latency in latencies])) for name in sorted(names)
            },
        ),
    )


def _rates(found: Sequence[Rates], trials: int) -> Rates:
    """Return the mean rates; a trial without the operation did none of it."""
    return Rates(
        iops=math.fsum(rates.iops for rates in found) / trials,
        bytes_per_second=round(math.fsum(rates.bytes_per_second for rates in found) / trials),
    )


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    known = [verdict for verdict in verdicts if verdict is not None]
    return max(known, key=[*Verdict].index, default=None)


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return a finding for each reason, the first."""
    found: dict[str, Finding] = {}
    for finding in findings:
        found.setdefault(finding.reason, finding)
    return tuple(found.values())
