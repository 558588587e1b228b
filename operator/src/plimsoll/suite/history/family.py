"""Which changes of a round are significant, of all that it tests.

A round tests the mean change of every workload of every variant, and every point of workloads with several, against all
accepted rounds and against the pinned ones. Each kind of test has a level for all of them together, so that neither
more variants nor more points make false alarms more frequent. The rates of error that follow are in `docs/suites.md`.
"""

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from plimsoll.measure.compare.tests import (
    DOUBT,
    Assessment,
    Conclusion,
    Judgement,
    Level,
    LogChange,
    Prior,
    by_level,
    conclude,
    confirmed,
    grouped,
    moments,
    prior_of,
)
from plimsoll.measure.compare.values import Metric, RegressionRule, worsening
from plimsoll.suite.history.rounds import Group, Quantity
from plimsoll.suite.history.samples import Runs, mean_runs, runs_apart, shared_noise

ALONE = Level(rate=0.009, latency=0.001)
"""Of the changes of workloads if none has several points."""

MEANS = Level(rate=0.006, latency=0.0005)
"""Of the mean changes of workloads, if one has several points."""

POINTS = Level(rate=0.003, latency=0.0005)
"""Of single points among several."""

_USUAL_RUNS = 3


class Against(StrEnum):
    """The earlier rounds that a round is compared with."""

    ACCEPTED = "Accepted"
    PINNED = "Pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A change of a workload's mean, or of one of its several points, and the judgement of it.

    Attributes:
        point: name of the point; empty for the mean of `points` points.
        rounds: number of the earlier rounds.

    """

    against: Against
    group: Group
    point: str
    points: int
    rounds: int
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
    # Variants have runs of their own, but the same rounds; the workloads of a variant have the same runs, too.
    kinds = [test.group[1:] for test in means]
    changes = _moderated(means, [test.own for test in means], kinds, independent=False)
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
    # Points share noise, which is subtracted here. `plain` only confirms what the rest and a point's own runs show.
    plain = _moderated(tests, [test.own for test in tests], kinds, independent=True)
    without = [runs.change() for members in groups.values() for runs in runs_apart([*members.values()])]
    apart = _moderated(tests, without, kinds, independent=True)
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
    runs = mean_runs([*members.values()])
    return _Test(against=key[0], group=key[1], point="", points=len(members), runs=runs, own=runs.change())


def _point(key: _Key, quantity: Quantity, runs: Runs, points: int) -> _Test:
    return _Test(against=key[0], group=key[1], point=quantity.point, points=points, runs=runs, own=runs.change())


def _moderated(
    tests: Sequence[_Test], changes: Sequence[LogChange], kinds: Sequence[Hashable], *, independent: bool
) -> list[LogChange]:
    """Return the changes with what those of the same kind know of each other's variances."""
    found = [*changes]
    for indices in grouped(range(len(tests)), lambda index: (tests[index].against, kinds[index])).values():
        some = [changes[index] for index in indices]
        prior = prior_of([change.variance for change in some], [change.own_freedom for change in some])
        if prior is not None and not independent:
            prior = _of_dependent(prior, [tests[index].runs for index in indices])
        for index in indices:
            found[index] = replace(changes[index], prior=prior)
    return found


def _of_dependent(prior: Prior, runs: Sequence[Runs]) -> Prior:
    """Return what variances know that are the less independent the more noise between rounds they share."""
    number = len(runs)
    # Sample variances of normal variables correlate by the square of the variables' correlation. The mean of as many
    # independent ones has the same error:
    independent = number / (1 + (number - 1) * shared_noise(runs))
    lent = prior.freedom * (independent - 1) / (number - 1)
    return replace(prior, freedom=lent, most=prior.most * independent / number)


def _found(test: _Test, assessment: Assessment, rule: RegressionRule) -> Found:
    worse = assessment.worse and _exceeds_own_scatter(test)
    values = ([value for one in test.runs.earlier.values() for value in one.values()], [*test.runs.judged.values()])
    return Found(
        against=test.against,
        group=test.group,
        point=test.point,
        points=test.points,
        rounds=len(test.runs.earlier),
        change=assessment.change,
        judgement=conclude(test.metric, replace(assessment, worse=worse), values, rule),
    )


def _exceeds_own_scatter(test: _Test) -> bool:
    """Whether a round is worse by more than its own runs scatter: a single bad run is no regression.

    The limit shrinks like the error of the mean, and is one standard deviation of three runs. One bad run of any number
    stays below it.
    """
    judged = [*test.runs.judged.values()]
    if len(judged) < 2:  # noqa: PLR2004 - one run has no scatter
        return True
    limit = math.sqrt(moments(judged)[1] * _USUAL_RUNS / len(judged))
    return worsening(test.metric, test.own.estimate) > limit
