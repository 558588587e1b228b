"""Which changes of a comparison are significant, of all that it tests.

A comparison tests every gating metric at every point, and the mean change of every workload. The more it tests, the
more it finds by chance, so that each kind of test has a level for all of them together. A rate gets more of it than a
latency, which scatters more and would mostly add false alarms.

`ALONE` may be higher than the others because a change must also exceed its threshold: at one point that prevents most
false alarms, among many points hardly any. The rates of error that follow are in `docs/comparing.md`.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from plimsoll.api.names import Operation
from plimsoll.measure.compare.inference import Between, LogChange, holm
from plimsoll.measure.compare.metrics import Metric, worsening
from plimsoll.measure.compare.moderated import moderate
from plimsoll.measure.compare.passes import Trials, change_of, changes_apart, mean_change, mean_over


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The probability of any false alarm of one kind of test, one-sided, for all rates and for all latencies."""

    rate: float
    latency: float

    def of(self, metric: Metric) -> float:
        """Return the level of all tests of the metric's kind."""
        return self.rate if metric.is_rate else self.latency


ALONE = Level(rate=0.02, latency=0.01)
"""Of a comparison of one point."""

MEANS = Level(rate=0.006, latency=0.003)
"""Of the mean changes of workloads with several points."""

POINTS = Level(rate=0.0065, latency=0.001)
"""Of single points among several."""

DOUBT = Level(rate=0.026, latency=0.004)
"""Of single points that prevent `NoRegression`, and without which there is no regression of a point."""

OWN = 0.01
"""Of the test by a point's own trials alone, not adjusted: variances of others may not describe this point."""

_NOTICED = 0.05
"""Of metrics that do not gate, two-sided and not adjusted."""

Group = tuple[str, Operation, Metric]
"""Workload, operation and metric: what has a mean change."""

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The trials of one metric of one operation at one point, on both sides."""

    workload: str
    point: str
    operation: Operation
    metric: Metric
    gates: bool
    trials: Trials

    @property
    def group(self) -> Group:
        """The mean change that it is a part of."""
        return self.workload, self.operation, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A change, and whether it is significant.

    Attributes:
        change: of a point, with a variance to which the other points contributed.
        p_value: of no change, two-sided; adjusted for the other tests if the metric gates.
        p_worse: of no change for the worse, one-sided, adjusted, without noise that points share; None if the metric
            does not gate.
        level: the value that `p_worse` has to be below; None likewise.
        tests: the number of tests that both are adjusted for.
        worse: whether it is significantly worse.
        better: whether it is significantly better.
        doubtful: whether it is worse by the test that prevents `NoRegression`.

    """

    change: LogChange
    p_value: float
    p_worse: float | None = None
    level: float | None = None
    tests: int = 1
    worse: bool
    better: bool
    doubtful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAssessment:
    """The mean change of a workload's points; `values` are the logarithms' means in the passes of both sides."""

    group: Group
    points: int
    values: tuple[Sequence[float], Sequence[float]]
    assessment: Assessment


def grouped(items: Sequence[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Return the items by key, both in the order given."""
    found: dict[_K, list[_T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def assess_means(samples: Sequence[Sample], between: Mapping[Group, Between]) -> list[MeanAssessment]:
    """Assess the mean changes of gating metrics, of workloads that have several points."""
    gating = grouped([sample for sample in samples if sample.gates], lambda sample: sample.group)
    several = {group: [one.trials for one in found] for group, found in gating.items() if len(found) > 1}
    changes = [mean_change(trials, between.get(group)) for group, trials in several.items()]
    metrics = [metric for _, _, metric in several]
    assessed = by_level(metrics, changes, changes, MEANS)
    return [
        MeanAssessment(group=group, points=len(trials), values=_pass_values(trials), assessment=assessment)
        for (group, trials), assessment in zip(several.items(), assessed, strict=True)
    ]


def assess_points(samples: Sequence[Sample], regressed: Collection[Group] = ()) -> list[Assessment]:
    """Assess the changes of single points.

    The noise that a workload's points share is subtracted from them, unless their mean regressed: what they share is
    no noise then.
    """
    own = [change_of(sample.trials) for sample in samples]
    plain = _moderated(samples, own)
    found = [_unadjusted(sample.metric, change) for sample, change in zip(samples, plain, strict=True)]
    gating = [index for index, sample in enumerate(samples) if sample.gates]
    metrics, shown = [samples[index].metric for index in gating], [plain[index] for index in gating]
    if len({samples[index].point for index in gating}) <= 1:
        assessed = by_level(metrics, shown, shown, ALONE)
    else:
        apart = _apart(samples, plain, regressed)
        assessed = [
            confirmed(metric, assessment, doubt, own[index])
            for index, metric, assessment, doubt in zip(
                gating,
                metrics,
                by_level(metrics, shown, [apart[index] for index in gating], POINTS),
                by_level(metrics, shown, shown, DOUBT),
                strict=True,
            )
        ]
    for index, assessment in zip(gating, assessed, strict=True):
        found[index] = assessment
    return found


def by_level(
    metrics: Sequence[Metric], shown: Sequence[LogChange], tested: Sequence[LogChange], level: Level
) -> list[Assessment]:
    """Assess changes by the p-values of those tested in their place, rates and latencies each as one family.

    `shown` are the changes that are reported; a single list for both if a change is tested as it is.
    """
    worse = [_for_the_worse(metric, change) for metric, change in zip(metrics, tested, strict=True)]
    differing = [change.p_value() for change in shown]
    rates = [metric.is_rate for metric in metrics]
    adjusted = zip(_holm_by_kind(rates, worse), _holm_by_kind(rates, differing), strict=True)
    return [
        Assessment(
            change=change,
            p_value=p_value,
            p_worse=p_worse,
            level=level.of(metric),
            tests=rates.count(metric.is_rate),
            worse=p_worse < level.of(metric),
            better=worsening(metric, change.estimate) < 0 and p_value < 2 * level.of(metric),
            doubtful=p_worse < level.of(metric),
        )
        for metric, change, (p_worse, p_value) in zip(metrics, shown, adjusted, strict=True)
    ]


def confirmed(metric: Metric, assessment: Assessment, doubt: Assessment, own: LogChange) -> Assessment:
    """Return an assessment that is worse only if the other tests of the point agree."""
    agree = doubt.worse and _for_the_worse(metric, own) < OWN
    return replace(assessment, worse=assessment.worse and agree, doubtful=doubt.worse)


def _unadjusted(metric: Metric, change: LogChange) -> Assessment:
    p_value, worse = change.p_value(), worsening(metric, change.estimate) > 0
    noticed = p_value < _NOTICED
    return Assessment(change=change, p_value=p_value, worse=worse and noticed, better=noticed and not worse)


def _moderated(samples: Sequence[Sample], changes: Sequence[LogChange]) -> list[LogChange]:
    """Return the changes with variances shared by all points with the same operation and metric."""
    found = [*changes]
    for indices in grouped(
        range(len(samples)), lambda index: (samples[index].operation, samples[index].metric)
    ).values():
        for index, change in zip(indices, moderate([changes[index] for index in indices]), strict=True):
            found[index] = change
    return found


def _apart(samples: Sequence[Sample], plain: Sequence[LogChange], regressed: Collection[Group]) -> list[LogChange]:
    """Return the moderated changes without shared noise; those of workloads that regressed as they are."""
    found = [*plain]
    for indices in grouped(range(len(samples)), lambda index: samples[index].group).values():
        for index, change in zip(indices, changes_apart([samples[index].trials for index in indices]), strict=True):
            found[index] = change
    moderated = _moderated(samples, found)
    return [
        old if sample.group in regressed else new for sample, old, new in zip(samples, plain, moderated, strict=True)
    ]


def _for_the_worse(metric: Metric, change: LogChange) -> float:
    """Return the one-sided p-value of no change for the worse."""
    half = change.p_value() / 2
    return half if worsening(metric, change.estimate) > 0 else 1 - half


def _holm_by_kind(rates: Sequence[bool], p_values: Sequence[float]) -> list[float]:
    adjusted = {
        kind: iter(holm([p_value for rate, p_value in zip(rates, p_values, strict=True) if rate is kind]))
        for kind in (True, False)
    }
    return [next(adjusted[rate]) for rate in rates]


def _pass_values(points: Sequence[Trials]) -> tuple[Sequence[float], Sequence[float]]:
    return mean_over([one.baseline for one in points]).values, mean_over([one.candidate for one in points]).values
