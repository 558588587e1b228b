"""Which changes of a round are significant, of all that it tests.

A round tests the mean change of every workload of every variant, and every point of workloads with several, against all
accepted rounds and against the pinned ones. Each kind of test has a level for all of them together, so that neither
more variants nor more points make false alarms more frequent. The rates of error that follow are in `docs/suites.md`.
"""

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from plimsoll.measure.compare.conclusion import Conclusion, Judgement, conclude
from plimsoll.measure.compare.family import DOUBT, Assessment, Level, by_level, confirmed, grouped
from plimsoll.measure.compare.inference import LogChange, moments
from plimsoll.measure.compare.metrics import Metric, RegressionRule, worsening
from plimsoll.measure.compare.moderated import prior_of
from plimsoll.measure.compare.passes import Series, deviations_of, shared_correlation, weight_of_others
from plimsoll.suite.history.noise import change_between
from plimsoll.suite.history.rounds import Group, Quantity

ALONE = Level(rate=0.009, latency=0.001)
"""Of the changes of workloads if none has several points."""

MEANS = Level(rate=0.006, latency=0.0005)
"""Of the mean changes of workloads, if one has several points."""

POINTS = Level(rate=0.003, latency=0.0005)
"""Of single points among several."""


class Against(StrEnum):
    """The earlier rounds that a round is compared with."""

    ACCEPTED = "Accepted"
    PINNED = "Pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of one quantity, as logarithms: of each earlier round, and of the round that is judged."""

    earlier: Sequence[Series]
    judged: Series

    @property
    def rounds(self) -> Sequence[Series]:
        """All rounds, the judged one last."""
        return *self.earlier, self.judged

    def change(self) -> LogChange:
        """Return the change of the quantity."""
        return change_between([[*one.values()] for one in self.earlier], [*self.judged.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A change of a workload's mean, or of one of its several points, and the judgement of it.

    Attributes:
        point: name of the point; empty for the mean of `points` points.

    """

    against: Against
    group: Group
    point: str
    points: int
    change: LogChange
    judgement: Judgement

    @property
    def metric(self) -> Metric:
        """The metric that changed."""
        return self.group[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """A change to be tested; `own` is it without what other points lend or explain."""

    against: Against
    group: Group
    point: str
    points: int
    runs: Runs
    own: LogChange

    @property
    def metric(self) -> Metric:
        return self.group[3]


def judge_changes(baselines: Mapping[Against, Mapping[Quantity, Runs]], rule: RegressionRule) -> list[Found]:
    """Judge all changes of a round against these baselines, means first."""
    groups = {
        (against, group): {quantity: runs[quantity] for quantity in quantities}
        for against, runs in baselines.items()
        for group, quantities in grouped([*runs], lambda quantity: quantity.group).items()
    }
    several = {key: members for key, members in groups.items() if len(members) > 1}
    means = [_mean(key, members) for key, members in groups.items()]
    level = MEANS if several else ALONE
    # Variants have runs of their own, so they show the variance of a workload independently; its neighbours do not.
    changes = _moderated(means, [test.own for test in means], [test.group[1:] for test in means])
    assessed = by_level([test.metric for test in means], changes, changes, level)
    found = [_found(test, assessment, rule) for test, assessment in zip(means, assessed, strict=True)]
    regressed = {(one.against, one.group) for one in found if one.judgement.conclusion is Conclusion.REGRESSION}
    return [*found, *_points(several, regressed, rule)]


_Key = tuple[Against, Group]


def _points(
    groups: Mapping[_Key, Mapping[Quantity, Runs]], regressed: Collection[_Key], rule: RegressionRule
) -> Iterator[Found]:
    """Yield single points, without the noise that they share, unless their mean regressed: it is no noise then."""
    tests = [
        _point(key, quantity, runs, len(members))
        for key, members in groups.items()
        for quantity, runs in members.items()
    ]
    if not tests:
        return
    kinds = [test.group[2:] for test in tests]
    plain = _moderated(tests, [test.own for test in tests], kinds)
    apart = _moderated(tests, [change for members in groups.values() for change in _apart([*members.values()])], kinds)
    tested = [
        old if (test.against, test.group) in regressed else new
        for test, old, new in zip(tests, plain, apart, strict=True)
    ]
    metrics = [test.metric for test in tests]
    for test, assessment, doubt in zip(
        tests, by_level(metrics, plain, tested, POINTS), by_level(metrics, plain, plain, DOUBT), strict=True
    ):
        yield _found(test, confirmed(test.metric, assessment, doubt, test.own), rule)


def _mean(key: _Key, members: Mapping[Quantity, Runs]) -> _Test:
    runs = _mean_runs([*members.values()])
    return _Test(against=key[0], group=key[1], point="", points=len(members), runs=runs, own=runs.change())


def _point(key: _Key, quantity: Quantity, runs: Runs, points: int) -> _Test:
    return _Test(against=key[0], group=key[1], point=quantity.point, points=points, runs=runs, own=runs.change())


def _mean_runs(points: Sequence[Runs]) -> Runs:
    """Return the means over points of the runs that have all of them."""
    *earlier, judged = (_mean_series(one) for one in zip(*(runs.rounds for runs in points), strict=True))
    return Runs(earlier=earlier, judged=judged)


def _mean_series(points: Sequence[Series]) -> Series:
    common = [repeat for repeat in points[0] if all(repeat in series for series in points)]
    return {repeat: math.fsum(series[repeat] for series in points) / len(points) for repeat in common}


def _apart(points: Sequence[Runs]) -> list[LogChange]:
    """Return the change of each point without the part of the noise that the points of a run share."""
    rounds = [*zip(*(runs.rounds for runs in points), strict=True)]
    correlation = shared_correlation([[deviations_of(series) for series in one] for one in rounds])
    weight = weight_of_others(correlation, len(points))
    return [_without_others(index, rounds, weight).change() for index in range(len(points))]


def _without_others(index: int, rounds: Sequence[Sequence[Series]], weight: float) -> Runs:
    *earlier, judged = (_less(one[index], [*one[:index], *one[index + 1 :]], weight) for one in rounds)
    return Runs(earlier=earlier, judged=judged)


def _less(series: Series, others: Sequence[Series], weight: float) -> Series:
    """Return the runs of a point less the mean of the other points in them, with that weight."""
    shared = _mean_series(others)
    return {repeat: value - weight * shared[repeat] for repeat, value in series.items() if repeat in shared}


def _moderated(tests: Sequence[_Test], changes: Sequence[LogChange], kinds: Sequence[Hashable]) -> list[LogChange]:
    """Return the changes with what those of the same kind know of each other's variances."""
    found = [*changes]
    for indices in grouped(range(len(tests)), lambda index: (tests[index].against, kinds[index])).values():
        some = [changes[index] for index in indices]
        prior = prior_of([change.variance for change in some], [change.own_freedom for change in some])
        for index in indices:
            found[index] = replace(changes[index], prior=prior)
    return found


def _found(test: _Test, assessment: Assessment, rule: RegressionRule) -> Found:
    worse = assessment.worse and _exceeds_own_scatter(test)
    values = ([value for one in test.runs.earlier for value in one.values()], [*test.runs.judged.values()])
    return Found(
        against=test.against,
        group=test.group,
        point=test.point,
        points=test.points,
        change=assessment.change,
        judgement=conclude(test.metric, replace(assessment, worse=worse), values, rule),
    )


def _exceeds_own_scatter(test: _Test) -> bool:
    """Whether a round is worse by more than its own runs scatter: a single bad run is no regression."""
    judged = [*test.runs.judged.values()]
    if len(judged) < 2:  # noqa: PLR2004 - one run has no scatter
        return True
    return worsening(test.metric, test.own.estimate) > math.sqrt(moments(judged)[1])
