"""What a comparison of two runs could find, before either is measured.

The probabilities follow from the distribution of a sample variance: given that, the probability that an estimate
passes all tests is one of the normal distribution. They hold for one operation per point, trials with the same scatter
at all points, and runs that differ in nothing but the change; `tests/measure/compare/test_power.py` checks them against
simulated comparisons.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist

from plimsoll.measure.compare.family import ALONE, DOUBT, MEANS, OWN, POINTS
from plimsoll.measure.compare.inference import MINIMUM_TRIALS, MOST_TRIALS
from plimsoll.measure.compare.metrics import Metric, RegressionRule
from plimsoll.measure.compare.moderated import usual_worths
from plimsoll.measure.statistics import CONFIDENCE

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
