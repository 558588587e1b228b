"""Which changes are significant, of all that a comparison tests."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.names import Metric, Operation
from plimsoll.measure.compare.comparison import means_of
from plimsoll.measure.compare.significance import (
    REGRESSION_LEVEL,
    Assessment,
    Sample,
    assess,
    assess_alone,
    point_members,
    weights,
)
from support.simulated_comparisons import RULE, Sweep, sample_of

QUIET = (0.99, 1.0, 1.01, 1.0, 1.0)


def point(number: int, factor: float = 1.0, metric: Metric = Metric.IOPS) -> Sample:
    return sample_of(QUIET, [factor * value for value in QUIET], metric, point=f"w-{number:03d}")


def assessed(samples: Sequence[Sample]) -> list[Assessment]:
    """Return the assessments of means, then of points."""
    return assess([*(test for _, test in means_of(samples, {}, RULE) if test), *point_members(samples)])


OTHER_WORKLOAD = replace(point(0), group=("v", Operation.READ, Metric.IOPS), point="v-000")


@pytest.mark.parametrize("points", [1, 2, 20])
def test_a_workload_with_several_points_weighs_as_much_as_one_with_one(points: int) -> None:
    of_mean, of_point = weights(points)
    assert points * of_point + (of_mean if points > 1 else 0) == pytest.approx(1)
    assert (of_mean, of_point) == ((1, 1) if points == 1 else (0.5, 0.5 / points))


def test_everything_that_gates_is_one_family() -> None:
    samples = [
        point(0),
        point(1),
        point(0, metric=Metric.P99),
        OTHER_WORKLOAD,
    ]
    assert [one.level for one in assessed(samples)] == pytest.approx(
        [REGRESSION_LEVEL / 6, REGRESSION_LEVEL / 12, REGRESSION_LEVEL / 12, REGRESSION_LEVEL / 3, REGRESSION_LEVEL / 3]
    )


def test_direction_is_that_of_the_metric() -> None:
    for metric, factor in ((Metric.IOPS, 0.9), (Metric.P99, 1.1)):
        (worse,) = assessed([point(0, factor, metric)])
        (better,) = assessed([point(0, 1 / factor, metric)])
        assert (worse.worse, worse.better) == (True, False)
        assert (better.worse, better.better) == (False, True)


def test_what_does_not_gate_is_not_adjusted_and_in_no_family() -> None:
    samples = [point(0), point(1), *(replace(point(number, 0.9), gates=False) for number in range(2))]
    assert len(assessed(samples)) == 3
    assert [mean.points for mean, _ in means_of(samples, {}, RULE)] == [2]
    found = assess_alone(Metric.IOPS, samples[2].change)
    assert (found.p_worse, found.worse) == (None, True)
    assert found.p_value == found.change.p_value()


def test_a_mean_is_of_one_workload_one_operation_and_one_metric() -> None:
    samples = [
        point(0),
        point(1),
        point(0, metric=Metric.P99),
        OTHER_WORKLOAD,
    ]
    ((mean, _),) = means_of(samples, {}, RULE)
    assert (mean.workload, mean.operation, mean.metric, mean.points) == (*samples[0].group, 2)


def test_a_point_among_better_ones_is_not_worse_itself() -> None:
    chance = random.Random(2)  # noqa: S311 - numbers, not secrets
    gains = dict.fromkeys(range(1, 20), 0.1)
    for _ in range(20):
        rates = [one for one in Sweep(points=20, correlation=0.5).samples(chance, gains) if one.group[2].is_rate]
        assert not assessed(rates)[1].worse


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(2, 5), st.sampled_from([0.0, 0.5]))
def test_order_and_units_do_not_matter(seed: int, points: int, correlation: float) -> None:
    """Neither the order of points, nor that of a side's passes if it is the same at all points, nor a factor."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    samples = Sweep(points=points, trials=4, correlation=correlation).samples(chance, {0: -0.1})
    passes = dict(enumerate(chance.sample(range(4), 4)))
    other = [
        replace(
            sample,
            baseline={passes[number]: value + 3 for number, value in sample.baseline.items()},
            candidate={number: value + 3 for number, value in sample.candidate.items()},
        )
        for sample in chance.sample(samples, len(samples))
    ]
    plain, mixed = (sorted(one.p_worse or 0 for one in assessed(of)) for of in (samples, other))
    assert mixed == pytest.approx(plain, rel=1e-6)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_what_is_worse_is_suspicious_too(seed: int, points: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    assert all(one.suspicious for one in assessed(Sweep(points=points).samples(chance, {0: -0.15})) if one.worse)
