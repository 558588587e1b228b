"""The judgement of a round: what is a regression, what is none, and what nothing can be said about."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.api.names import Metric
from plimsoll.api.result import Fingerprint
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.significance import Series
from plimsoll.measure.compare.values import RegressionRule, worsening
from plimsoll.suite.judging import Against, RoundJudgement, judge
from plimsoll.suite.measured import Condition, MeasuredRound, Quantity
from support.simulated_comparisons import Course, Rounds, drawn, everywhere, quantity_of

RULE = RegressionRule()
SUITES = st.builds(
    Rounds,
    points=st.sampled_from([1, 2, 5]),
    variants=st.sampled_from([1, 2]),
    shared=st.sampled_from([0.0, 0.5, 1.0]),
    noise=st.sampled_from([0.0, 0.01, 0.03, 0.1]),
    between=st.sampled_from([0.0, 0.05]),
)
SEEDS = st.integers(min_value=0, max_value=10**6)


def rounds_of(suite: Rounds, seed: int, number: int) -> list[MeasuredRound]:
    chance = drawn(seed)
    return [suite.round(chance, minute) for minute in range(number)]


def judged(accepted: Sequence[MeasuredRound], measured: MeasuredRound, variants: int = 1) -> RoundJudgement:
    return judge(accepted, accepted[:5], measured, [f"v{number}" for number in range(variants)], RULE)


def changed(measured: MeasuredRound, values: Mapping[Quantity, Series]) -> MeasuredRound:
    return replace(measured, values=values)


def under(
    measured: MeasuredRound,
    *,
    context: str = "19.2.0",
    fio: str = "3.40",
    nodes: str = "a",
    facts: Mapping[str, JsonValue] | None = None,
) -> MeasuredRound:
    """Return a round that was measured under these conditions."""
    fingerprint = Fingerprint(
        identity={"toolVersions": {"fio": fio}},
        context={"ceph": {"version": context}, "seed": measured.minute, **(facts or {})},
        identity_sha256=fio,
        context_sha256=context,
    )
    condition = Condition(variant="v0", point="w-000", fingerprint=fingerprint, nodes=frozenset(nodes))
    return replace(measured, conditions=[condition])


@pytest.mark.parametrize("points", [1, 4])
def test_a_loss_is_a_regression_and_no_loss_is_none(points: int) -> None:
    suite = Rounds(points=points, noise=0.005)
    accepted = rounds_of(suite, 1, 5)
    chance = drawn(2)
    steady = judged(accepted, suite.round(chance, 6))
    assert (steady.conclusion, steady.variants[0].is_drift) == (Conclusion.NO_REGRESSION, None)
    lost = judged(accepted, suite.round(chance, 6, everywhere(0.1, points)))
    assert (lost.conclusion, lost.variants[0].is_drift) == (Conclusion.REGRESSION, False)


def test_one_point_of_many_is_found() -> None:
    suite = Rounds(points=20, noise=0.01, shared=0.5)
    found = judged(rounds_of(suite, 1, 5), suite.round(drawn(2), 6, {7: 0.1}))
    assert found.conclusion is Conclusion.REGRESSION
    (variant,) = found.variants
    regressed = {one.point for one in variant.judged if one.comparison.conclusion is Conclusion.REGRESSION}
    assert regressed == {"w-007"}


def test_only_the_variant_that_lost_is_named() -> None:
    suite = Rounds(points=2, variants=2, noise=0.005)
    found = judged(rounds_of(suite, 1, 5), suite.round(drawn(2), 6, everywhere(0.1, 2)), variants=2)
    assert [one.conclusion for one in found.variants] == [Conclusion.REGRESSION, Conclusion.NO_REGRESSION]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_accepted_rounds_are_no_evidence(number: int) -> None:
    suite = Rounds(points=2, noise=0.005)
    found = judged(rounds_of(suite, 1, number), suite.round(drawn(2), 6, everywhere(0.5, 2)))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.comparable
    assert found.variants[0].reasons[0].startswith(f"accepted rounds before this one: {number}; at least 3")


def test_slow_drift_is_found_against_the_pinned_rounds() -> None:
    suite = Rounds(points=4, noise=0.005)
    chance = drawn(3)
    course = Course()
    drifts: list[Conclusion | None] = []
    for minute in range(16):
        found = course.add(suite.round(chance, minute, everywhere(max(0, minute - 4) * 0.01, 4)))
        drifts.append(found.variants[0].drift)
        if found.conclusion is Conclusion.REGRESSION:
            break
    assert 8 < minute < 15
    assert drifts[-1] is Conclusion.REGRESSION
    regressed = [one for one in found.variants[0].judged if one.comparison.conclusion is Conclusion.REGRESSION]
    assert {one.against for one in regressed} == {Against.PINNED}
    assert found.variants[0].is_drift is True
    assert found.variants[0].change is not Conclusion.REGRESSION


def test_drift_is_found_although_most_pinned_rounds_lack_a_point() -> None:
    """The workload's drift is that from the first five rounds with all of its points."""
    suite = Rounds(points=2, noise=0.005)
    chance = drawn(3)
    course = Course()
    for minute in range(20):
        measured = suite.round(chance, minute, everywhere(max(0, minute - 7) * 0.01, 2))
        if minute < 3:
            values = {one: series for one, series in measured.values.items() if one.point != "w-001"}
            measured = replace(measured, values=values, gaps={"v0": ["Invalid: w-001"]})
        found = course.add(measured)
        if found.conclusion is Conclusion.REGRESSION:
            break
    assert [one.minute for one in course.pinned] == [*range(5)]
    assert 11 < minute < 18
    assert found.variants[0].is_drift is True


def test_the_loss_of_what_was_gained_is_found() -> None:
    suite = Rounds(points=4, noise=0.01, shared=0.5)
    chance = drawn(4)
    course = Course()
    for minute in range(10):
        found = course.add(suite.round(chance, minute, everywhere(-0.12 if minute >= 5 else 0.0, 4)))
        assert found.conclusion is not Conclusion.REGRESSION
    assert [one.minute for one in course.accepted] == [*range(10)]
    found = course.judged(suite.round(chance, 10))
    assert (found.conclusion, found.variants[0].is_drift) == (Conclusion.REGRESSION, False)


def test_the_loss_of_what_one_point_had_gained_is_found() -> None:
    suite = Rounds(points=10, noise=0.01, shared=0.5)
    chance = drawn(5)
    accepted = [suite.round(chance, minute, {3: -0.15} if minute >= 5 else {}) for minute in range(10)]
    found = judged(accepted, suite.round(chance, 10))
    regressed = {one.point for one in found.variants[0].judged if one.comparison.conclusion is Conclusion.REGRESSION}
    assert regressed == {"w-003"}


@pytest.mark.parametrize("repeat", [2, 3, 5, 10])
@given(SEEDS, st.floats(min_value=0.0, max_value=0.9))
def test_one_bad_run_of_any_number_never_alarms(repeat: int, seed: int, loss: float) -> None:
    suite = Rounds(points=1, repeat=repeat, noise=0.01)
    accepted = rounds_of(suite, seed, 6)
    last: dict[Quantity, Series] = {}
    for quantity in accepted[0].values:
        usual = math.fsum(math.fsum(one.values[quantity].values()) for one in accepted) / (6 * repeat)
        bad = usual + worsening(quantity.metric, -math.log1p(-loss))
        last[quantity] = dict.fromkeys(range(1, repeat), usual) | {0: bad}
    assert judged(accepted, changed(accepted[0], last)).conclusion is not Conclusion.REGRESSION


def test_a_loss_within_the_scatter_of_its_own_runs_says_so() -> None:
    suite = Rounds(points=1, noise=0.005)
    last = suite.round(drawn(2), 6)
    bad = {quantity_of(): {0: math.log(0.6), 1: 0.0, 2: 0.0}}
    (variant,) = judged(rounds_of(suite, 1, 20), changed(last, {**last.values, **bad})).variants
    words = "w read iops: worse, but by no more than the runs of the round scatter"
    assert (variant.conclusion, [reason.partition(";")[0] for reason in variant.reasons]) == ("Inconclusive", [words])


def test_a_single_run_is_compared_with_the_scatter_of_the_accepted_rounds_alone() -> None:
    suite = Rounds(points=1, repeat=1, noise=0.01)
    last = suite.round(drawn(2), 6)
    bad = {quantity_of(): {0: math.log(0.8)}}
    assert judged(rounds_of(suite, 1, 5), changed(last, {**last.values, **bad})).conclusion is Conclusion.REGRESSION


def test_an_open_change_says_how_many_runs_would_decide_it() -> None:
    suite = Rounds(points=1, noise=0.03)
    last = suite.round(drawn(2), 6)
    near = {quantity_of(): {0: -0.04, 1: -0.05, 2: -0.03}}
    (variant,) = judged(rounds_of(suite, 1, 5), changed(last, {**last.values, **near})).variants
    assert variant.conclusion is Conclusion.INCONCLUSIVE
    assert any("runs on each side would decide it" in reason for reason in variant.reasons)


def test_a_bad_run_of_one_point_of_several_leaves_a_doubt() -> None:
    """Scatter takes the certainty away that the round is worse, not the doubt that it is as good."""
    suite = Rounds(points=2, noise=0.03)
    accepted, last = rounds_of(suite, 1, 10), suite.round(drawn(2), 11)
    found = judged(accepted, changed(last, {**last.values, quantity_of(point=1): {0: math.log(0.6), 1: 0.0, 2: 0.0}}))
    (point,) = (
        change
        for change in found.variants[0].judged
        if (change.point, change.group.metric, change.against) == ("w-001", Metric.IOPS, Against.ACCEPTED)
    )
    assert (point.comparison.conclusion, point.comparison.suspected) == (Conclusion.INCONCLUSIVE, True)
    assert found.conclusion is Conclusion.INCONCLUSIVE


def test_more_repeats_find_a_loss_below_the_scatter_of_runs() -> None:
    suite = Rounds(points=1, repeat=10, noise=0.1)
    last = suite.round(drawn(2), 6)
    # Ten runs that scatter by 12 % around a loss of 12 %.
    lost = {repeat: -0.13 + (0.12 if repeat % 2 else -0.12) for repeat in range(10)}
    found = judged(rounds_of(suite, 1, 5), changed(last, {**last.values, quantity_of(): lost}))
    assert found.conclusion is Conclusion.REGRESSION


@given(SUITES, SEEDS, st.integers(min_value=1, max_value=8))
def test_a_better_round_is_never_regressed(suite: Rounds, seed: int, number: int) -> None:
    """Better: each quantity is in each run at least as good as in every accepted one."""
    accepted = rounds_of(suite, seed, number)
    last = suite.round(drawn(seed + 1), number)
    better: dict[Quantity, Series] = {}
    for quantity, series in last.values.items():
        seen = [value for one in accepted for value in one.values[quantity].values()]
        best = max(seen) if quantity.metric.is_rate else min(seen)
        gains = {repeat: abs(value) for repeat, value in series.items()}
        better[quantity] = {repeat: best - worsening(quantity.metric, gain) for repeat, gain in gains.items()}
    assert judged(accepted, changed(last, better), suite.variants).conclusion is not Conclusion.REGRESSION


@given(SUITES, SEEDS, st.sampled_from([0.0, 0.08, 0.2]), st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(suite: Rounds, seed: int, loss: float, chance: random.Random) -> None:
    accepted = rounds_of(suite, seed, 5)
    last = suite.round(drawn(seed + 1), 5, everywhere(loss, suite.points))
    found = judged(accepted, last, suite.variants)
    mixed = judged([shuffled(one, chance) for one in accepted], shuffled(last, chance), suite.variants)
    assert [one.conclusion for one in mixed.variants] == [one.conclusion for one in found.variants]


def shuffled(measured: MeasuredRound, chance: random.Random) -> MeasuredRound:
    """Return the round with its runs in another order; what was measured in one run stays together."""
    repeats = [*range(3)]
    chance.shuffle(repeats)
    return changed(
        measured,
        {
            quantity: {new: series[old] for new, old in enumerate(repeats)}
            for quantity, series in measured.values.items()
        },
    )


@given(SUITES, SEEDS, st.floats(min_value=0.0, max_value=0.9))
def test_a_round_below_its_own_noise_never_alarms(suite: Rounds, seed: int, loss: float) -> None:
    """The runs of a round scatter by more than its loss: one that is bad, and two that are as before."""
    accepted = rounds_of(suite, seed, 6)
    bad = math.log1p(-loss)
    last: dict[Quantity, Series] = {}
    for quantity in accepted[0].values:
        usual = math.fsum(math.fsum(one.values[quantity].values()) for one in accepted) / 18
        last[quantity] = {0: usual, 1: usual + worsening(quantity.metric, -bad), 2: usual}
    assert judged(accepted, changed(accepted[0], last), suite.variants).conclusion is not Conclusion.REGRESSION


@given(SUITES, SEEDS, st.integers(min_value=0, max_value=4))
def test_an_invalid_point_is_never_no_regression(suite: Rounds, seed: int, point: int) -> None:
    accepted = rounds_of(suite, seed, 6)
    last = suite.round(drawn(seed + 1), 6)
    name = f"w-{point % suite.points:03d}"
    without = {one: series for one, series in last.values.items() if (one.variant, one.point) != ("v0", name)}
    found = judged(accepted, replace(last, values=without), suite.variants)
    assert found.variants[0].conclusion is not Conclusion.NO_REGRESSION
    assert found.conclusion is not Conclusion.NO_REGRESSION


def test_a_gap_does_not_hide_the_regression_of_another_point() -> None:
    suite = Rounds(points=2, noise=0.005)
    lost = suite.round(drawn(2), 6, everywhere(0.2, 2))
    values = {one: series for one, series in lost.values.items() if one.point == "w-001"}
    found = judged(rounds_of(suite, 1, 5), replace(lost, values=values, gaps={"v0": ["Invalid: w-000"]}))
    assert found.conclusion is Conclusion.REGRESSION


def test_a_point_that_few_accepted_rounds_have_leaves_the_round_open() -> None:
    suite = Rounds(points=2, noise=0.005)
    accepted = rounds_of(suite, 1, 5)
    gone = {quantity_of(point=1, metric=metric) for metric in Metric}
    for index in range(3):
        values = {one: series for one, series in accepted[index].values.items() if one not in gone}
        accepted[index] = changed(accepted[index], values)
    found = judged(accepted, suite.round(drawn(2), 6))
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert [*found.variants[0].reasons] == ["fewer than 3 accepted rounds have numbers of w-001"]


def test_numbers_that_three_accepted_rounds_have_are_missed() -> None:
    suite = Rounds(points=2, noise=0.005)
    accepted = rounds_of(suite, 1, 6)
    without = [without_point(one, 1) for one in accepted]
    reason = "numbers that accepted rounds have are missing at w-001"
    last = without_point(suite.round(drawn(2), 6), 1)
    found = judged([*accepted[:3], *without[3:]], last)
    assert (found.conclusion, [*found.variants[0].reasons]) == (Conclusion.INCONCLUSIVE, [reason])
    found = judged([*accepted[:2], *without[2:]], last)
    assert (found.conclusion, [*found.variants[0].reasons]) == (Conclusion.NO_REGRESSION, [])
    assert reason in judged(accepted[:2], last).variants[0].reasons
    assert reason not in judged([accepted[0], without[1]], last).variants[0].reasons


def without_point(measured: MeasuredRound, point: int) -> MeasuredRound:
    gone = f"w-{point:03d}"
    return changed(measured, {one: series for one, series in measured.values.items() if one.point != gone})


def test_a_doubt_about_the_round_is_given_with_any_other_reason() -> None:
    suite = Rounds(points=1, noise=0.005)
    accepted = [under(one) for one in rounds_of(suite, 1, 5)]
    last = replace(suite.round(drawn(2), 6, {0: 0.5}), doubts={"v0": ["Ceph had several versions"]})
    found = judged(accepted, under(last))
    assert (found.conclusion, [*found.variants[0].reasons]) == (Conclusion.INCONCLUSIVE, ["Ceph had several versions"])
    assert "Ceph had several versions" in judged(accepted, under(last, fio="3.41")).variants[0].reasons


def test_a_new_version_of_ceph_is_named_and_no_obstacle() -> None:
    suite = Rounds(points=1, noise=0.005)
    accepted = [under(one) for one in rounds_of(suite, 1, 5)]
    found = judged(accepted, under(suite.round(drawn(2), 6, {0: 0.1}), context="20.1.0"))
    assert found.conclusion is Conclusion.REGRESSION
    assert [(one.key, one.candidate) for one in found.changes] == [("ceph.version", "20.1.0")]


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("volumeFileSystem", "ext4", "xfs"),
        ("volumeSource", "/dev/sda1", "/dev/sdb1"),
        ("volumeDevice", "sda", "sdb"),
        ("volumeDiscards", True, False),
        ("cpuModel", "Xeon", "EPYC"),
        ("cpuGovernor", "performance", "powersave"),
        ("processors", 8, 16),
        ("memoryBytes", 2**34, 2**35),
    ],
)
def test_another_device_or_machine_is_named_and_no_obstacle(key: str, before: JsonValue, after: JsonValue) -> None:
    suite = Rounds(points=1, noise=0.005)
    accepted = [under(one, facts={key: before}) for one in rounds_of(suite, 1, 5)]
    last = under(suite.round(drawn(2), 6), facts={key: after})
    found = judged(accepted, last)
    assert found.conclusion is Conclusion.NO_REGRESSION
    assert [(one.key, one.baseline, one.candidate) for one in found.changes] == [(key, before, after)]
    varying = [replace(one, varying=frozenset({key})) for one in last.conditions]
    assert judged(accepted, replace(last, conditions=varying)).changes == []


def test_conditions_are_those_of_the_last_round_that_has_the_point() -> None:
    suite = Rounds(points=1, noise=0.005)
    accepted = [under(one) for one in rounds_of(suite, 1, 5)]
    accepted[-1] = replace(accepted[-1], values={}, conditions=())
    found = judged(accepted, under(suite.round(drawn(2), 6), fio="3.41"))
    assert not found.comparable


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fio": "3.41"}, "changed since the accepted rounds: toolVersions.fio: 3.40 -> 3.41"),
        ({"nodes": "ab"}, "changed since the accepted rounds: nodes: a -> a, b"),
    ],
)
def test_other_conditions_are_no_basis_for_a_conclusion(changes: Mapping[str, Any], reason: str) -> None:
    suite = Rounds(points=1, noise=0.005)
    accepted = [under(one) for one in rounds_of(suite, 1, 5)]
    found = judged(accepted, under(suite.round(drawn(2), 6, {0: 0.5}), **changes))
    assert (found.conclusion, found.comparable) == (Conclusion.INCONCLUSIVE, False)
    assert found.variants[0].reasons[0].startswith(reason)


def test_another_digest_is_inconclusive() -> None:
    suite = Rounds(points=1, noise=0.005)
    other = replace(suite.round(drawn(2), 6, {0: 0.5}), digest="other")
    found = judged(rounds_of(suite, 1, 5), other)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.comparable
    assert "starts a new baseline" in found.variants[0].reasons[0]
