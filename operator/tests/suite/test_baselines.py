"""Which earlier rounds a round is compared with."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Metric
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.suite.judging import Against, baselines_of
from plimsoll.suite.measured import MeasuredRound, Quantity
from support.simulated_comparisons import Losses, Rounds, drawn, everywhere, quantity_of

RULE = RegressionRule()
SUITE = Rounds(points=2, noise=0.01, shared=0.5)
RATE = quantity_of()
MISSING = quantity_of(point=1)
LATENCY = quantity_of(metric=Metric.P99)


def minutes(accepted: Sequence[MeasuredRound], quantity: Quantity = RATE) -> Mapping[Against, list[int]]:
    """Return the rounds that a quantity of a further one is compared with."""
    found = baselines_of(accepted, accepted[:5], SUITE.round(drawn("last"), 99), ["v0"], RULE)
    return {
        against: [earlier.minute for earlier in of_workload]
        for against, workloads in found.items()
        for quantities, of_workload in workloads.items()
        if quantity in quantities
    }


def rounds(*losses: Losses, seed: int = 1, suite: Rounds = SUITE) -> list[MeasuredRound]:
    chance = drawn(seed)
    return [suite.round(chance, minute, lost) for minute, lost in enumerate(losses)]


def gained(part: float) -> Losses:
    return everywhere(-part, SUITE.points)


def lacking(found: Sequence[MeasuredRound], where: Collection[int]) -> list[MeasuredRound]:
    """Return the rounds, of which some lack the rate of a point."""
    return [
        replace(one, values={key: series for key, series in one.values.items() if key != MISSING})
        if one.minute in where
        else one
        for one in found
    ]


def test_pinned_rounds_count_by_themselves_once_there_are_others() -> None:
    assert minutes(rounds(*[{}] * 5)) == {Against.ACCEPTED: [*range(5)]}
    assert minutes(rounds(*[{}] * 7)) == {Against.ACCEPTED: [*range(7)], Against.PINNED: [*range(5)]}


def test_fewer_than_three_rounds_are_no_baseline() -> None:
    assert minutes(rounds({}, {})) == {}


def test_pinned_rounds_that_lack_a_point_are_replaced_by_the_next_ones() -> None:
    found = lacking(rounds(*[{}] * 9), {0, 1, 3})
    assert minutes(found) == {Against.ACCEPTED: [2, 4, 5, 6, 7, 8], Against.PINNED: [2, 4, 5, 6, 7]}
    assert minutes(found, LATENCY)[Against.PINNED] == [*range(5)]


def test_only_rounds_since_the_last_improvement_count() -> None:
    steps = [*[{}] * 4, *[gained(0.1)] * 4, *[gained(0.25)] * 3]
    assert minutes(rounds(*steps[:8])) == {Against.ACCEPTED: [4, 5, 6, 7], Against.PINNED: [*range(5)]}
    assert minutes(rounds(*steps)) == {Against.ACCEPTED: [8, 9, 10], Against.PINNED: [*range(5)]}
    assert minutes(rounds(*steps), LATENCY)[Against.ACCEPTED] == [*range(11)]


def test_two_better_rounds_are_no_improvement_yet() -> None:
    assert minutes(rounds(*[{}] * 6, *[gained(0.2)] * 2))[Against.ACCEPTED] == [*range(8)]


def test_a_gain_that_is_tolerated_when_lost_is_no_improvement() -> None:
    quiet = replace(SUITE, noise=0.001)
    assert minutes(rounds(*[{}] * 5, *[gained(0.03)] * 5, suite=quiet))[Against.ACCEPTED] == [*range(10)]


def test_a_loss_is_no_improvement() -> None:
    assert minutes(rounds(*[gained(0.2)] * 5, *[{}] * 5))[Against.ACCEPTED] == [*range(10)]


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=3, max_value=12), st.sets(st.integers(0, 11)))
def test_each_baseline_has_at_least_three_rounds_with_all_points(seed: int, number: int, missing: set[int]) -> None:
    found = minutes(lacking(rounds(*[{}] * number, seed=seed), missing), MISSING)
    complete = [minute for minute in range(number) if minute not in missing]
    assert (Against.ACCEPTED in found) == (len(complete) >= 3)
    for used in found.values():
        assert len(used) >= 3
        assert {*used} <= {*complete}
    if Against.PINNED in found:
        assert found[Against.PINNED] == complete[:5]


def test_steady_rounds_hardly_ever_look_improved() -> None:
    """The noise is large, so that chance could look like a gain beyond what is tolerated."""
    noisy = Rounds(points=2, noise=0.1, shared=0.5)
    cut = sum(len(minutes(rounds(*[{}] * 10, seed=seed, suite=noisy))[Against.ACCEPTED]) < 10 for seed in range(100))
    assert cut <= 2
