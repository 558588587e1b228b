"""Which changes are significant, of all that a comparison tests."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.measure.compare.tests import ALONE, MEANS, POINTS, Sample, Trials, assess_means, assess_points
from plimsoll.measure.compare.values import Metric
from support.sweeps import Sweep, sample_of

QUIET = (0.99, 1.0, 1.01, 1.0, 1.0)


def slower(factor: float) -> list[float]:
    return [factor * value for value in QUIET]


def point(number: int, factor: float = 1.0, metric: Metric = Metric.IOPS) -> Sample:
    return sample_of(QUIET, slower(factor), metric, point=f"w-{number:03d}")


def test_rates_and_latencies_are_families_of_their_own() -> None:
    samples = [
        point(0),
        point(1),
        point(0, metric=Metric.P99),
        point(1, metric=Metric.P99),
        point(1, metric=Metric.BYTES),
    ]
    assert [one.tests for one in assess_points(samples)] == [3, 3, 2, 2, 3]
    assert [one.level for one in assess_points(samples)] == [POINTS.rate] * 2 + [POINTS.latency] * 2 + [POINTS.rate]


def test_a_point_alone_has_a_higher_level() -> None:
    samples = [point(0), point(0, metric=Metric.P99)]
    assert [one.level for one in assess_points(samples)] == [ALONE.rate, ALONE.latency]
    assert assess_means(samples, {}) == []


def test_direction_is_that_of_the_metric() -> None:
    for metric, factor in ((Metric.IOPS, 0.9), (Metric.P99, 1.1)):
        (worse,) = assess_points([point(0, factor, metric)])
        (better,) = assess_points([point(0, 1 / factor, metric)])
        assert (worse.worse, worse.better) == (True, False)
        assert (better.worse, better.better) == (False, True)


def test_what_does_not_gate_is_not_adjusted_and_in_no_family() -> None:
    samples = [point(0), point(1), *(replace(point(number, 0.9), gates=False) for number in range(2))]
    found = assess_points(samples)
    assert [(one.p_worse is None, one.level, one.tests) for one in found[2:]] == [(True, None, 1)] * 2
    assert all(one.worse for one in found[2:])
    assert found[0].tests == 2
    assert [mean.points for mean in assess_means(samples, {})] == [2]


def test_a_mean_is_of_one_workload_one_operation_and_one_metric() -> None:
    samples = [point(0), point(1), point(0, metric=Metric.P99), replace(point(0), workload="v", point="v-000")]
    (mean,) = assess_means(samples, {})
    assert (mean.group, mean.points) == (samples[0].group, 2)
    assert mean.assessment.level == MEANS.rate


def test_points_are_adjusted_for_all_workloads() -> None:
    samples = [replace(point(number), workload=f"w{number}", point=f"w{number}-000") for number in range(6)]
    assert {one.tests for one in assess_points(samples)} == {6}
    assert assess_means(samples, {}) == []


def test_own_trials_of_a_noisy_point_have_to_agree() -> None:
    """The variances of 99 quieter points would make a noisy one's change significant."""
    chance = random.Random(3)  # noqa: S311 - numbers, not secrets
    quiet = Sweep(points=99, scatter={Metric.IOPS: 0.03}).samples(chance, {})
    noise = (-0.075, 0.075, 0.0, -0.04, 0.04)
    noisy = sample_of([1 + one for one in noise], [0.9 * (1 + one) for one in reversed(noise)], point="w-099")
    found = assess_points([*quiet, noisy])[-1]
    assert found.p_worse is not None
    assert found.level is not None
    assert found.p_worse < found.level
    assert found.doubtful
    assert not found.worse


def test_a_loss_that_all_points_share_is_one_of_each_only_if_the_mean_regressed() -> None:
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    samples = Sweep(points=20, correlation=0.9).samples(chance, dict.fromkeys(range(20), -0.15))
    rates = [sample for sample in samples if sample.metric.is_rate]
    as_noise = assess_points(rates)
    as_loss = assess_points(rates, {rates[0].group})
    assert sum(one.worse for one in as_noise) < 3
    assert sum(one.worse for one in as_loss) > 15
    assert [one.change for one in as_noise] == [one.change for one in as_loss]


def test_a_point_among_better_ones_is_not_worse_itself() -> None:
    """That all others gain 10 % makes a point look worse beside them, but not in its own change."""
    chance = random.Random(2)  # noqa: S311 - numbers, not secrets
    gains = dict.fromkeys(range(1, 20), 0.1)
    for _ in range(20):
        rates = [one for one in Sweep(points=20, correlation=0.5).samples(chance, gains) if one.metric.is_rate]
        assert not assess_points(rates)[0].worse


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(2, 5), st.sampled_from([0.0, 0.5]))
def test_order_and_units_do_not_matter(seed: int, points: int, correlation: float) -> None:
    """Neither the order of points, nor that of a side's passes if it is the same at all points, nor a factor."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    samples = Sweep(points=points, trials=4, correlation=correlation).samples(chance, {0: -0.1})
    order = chance.sample(range(len(samples)), len(samples))
    passes = dict(enumerate(chance.sample(range(4), 4)))
    other = [
        replace(
            sample,
            trials=Trials(
                baseline={passes[number]: value + 3 for number, value in sample.trials.baseline.items()},
                candidate={number: value + 3 for number, value in sample.trials.candidate.items()},
            ),
        )
        for sample in (samples[index] for index in order)
    ]
    plain, mixed = assess_points(samples), assess_points(other)
    assert [mixed[order.index(index)].p_worse for index in range(len(samples))] == pytest.approx(
        [one.p_worse for one in plain], rel=1e-6
    )
    means = [sorted(one.assessment.p_worse or 0 for one in assess_means(of, {})) for of in (samples, other)]
    assert means[0] == pytest.approx(means[1], rel=1e-6)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(2, 5))
def test_a_regression_of_a_point_is_always_doubtful_too(seed: int, points: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    samples = Sweep(points=points, trials=4).samples(chance, {0: -0.15})
    assert all(one.doubtful for one in assess_points(samples) if one.worse)


@pytest.mark.parametrize("metric", [Metric.IOPS, Metric.P99])
def test_levels_of_points_and_means_together_are_at_most_one_percent(metric: Metric) -> None:
    assert POINTS.of(metric) + MEANS.of(metric) <= 0.0125
    assert POINTS.rate + POINTS.latency <= 0.01
    assert MEANS.rate + MEANS.latency <= 0.01
