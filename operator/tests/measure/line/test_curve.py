import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.measure.line.curve import LUCK, Trial, posterior, shift_to_line

LINE = math.log(1000)


def trials(spread: float, number: int, seed: int = 0) -> list[Trial]:
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    positions = [LINE + chance.uniform(-2, 2) * spread for _ in range(number)]
    return [Trial(position, met=position < LINE + spread * chance.gauss(0, 1)) for position in positions]


def test_two_trials_leave_the_line_between_them() -> None:
    median, low, high = posterior([Trial(6.0, met=True), Trial(6.7, met=False)]).interval(0.95)
    assert 6.2 < median < 6.5
    assert low < 6.05
    assert high > 6.65


def test_the_line_is_where_half_of_the_trials_meet_the_objectives() -> None:
    # Many trials at two loads: 70 % at the lower one, 30 % at the higher one.
    sample = [Trial(x, met=index < share) for x, share in ((6.9, 14), (7.1, 6)) for index in range(20)]
    median, low, high = posterior(sample).interval(0.95)
    assert median == pytest.approx(7.0, abs=0.02)
    assert 6.8 < low < 6.97
    assert 7.03 < high < 7.2


def test_the_line_is_where_the_curve_with_lapses_has_one_half() -> None:
    for lapse in (0.01, 0.3):
        z = -shift_to_line(0.1, lapse) / 0.1
        assert LUCK + (1 - lapse - LUCK) * (1 + math.erf(z / math.sqrt(2))) / 2 == pytest.approx(0.5)


def test_a_lapse_far_below_the_line_hardly_moves_it() -> None:
    sample = trials(0.05, 30)
    without, lapsed = posterior(sample), posterior([*sample, Trial(LINE - 3, met=False)])
    assert lapsed.interval(0.95)[0] == pytest.approx(without.interval(0.95)[0], abs=0.01)


@settings(max_examples=20)
@given(st.sampled_from([0.02, 0.05, 0.2]), st.integers(2, 20), st.integers(0, 10**6))
def test_weights_are_a_distribution_and_the_interval_contains_the_estimate(
    spread: float, number: int, seed: int
) -> None:
    found = posterior(trials(spread, number, seed))
    assert math.fsum(weight for family in found.families for weight in family.weights) == pytest.approx(1)
    median, low, high = found.interval(0.95)
    assert low < median < high


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(5, 8), st.booleans()), min_size=1, max_size=12), st.permutations(range(12)))
def test_the_order_of_trials_does_not_matter(values: list[tuple[float, bool]], order: list[int]) -> None:
    sample = [Trial(position, met=met) for position, met in values]
    shuffled = [sample[index] for index in order if index < len(sample)]
    assert posterior(sample).interval(0.9) == pytest.approx(posterior(shuffled).interval(0.9))


@settings(max_examples=20)
@given(st.floats(-5, 5), st.integers(0, 10**6))
def test_the_unit_of_the_load_does_not_matter(shift: float, seed: int) -> None:
    sample = trials(0.05, 10, seed)
    moved = [Trial(trial.position + shift, met=trial.met) for trial in sample]
    expected = [end + shift for end in posterior(sample).interval(0.95)]
    assert posterior(moved).interval(0.95) == pytest.approx(expected, abs=1e-6)


def test_a_trial_never_leaves_more_variance_than_there_is_and_most_helps_at_the_line() -> None:
    found = posterior(trials(0.05, 12))
    far, median = found.expected_variance(LINE + 3), found.interval(0.95)[0]
    for position in (LINE - 1, LINE - 0.05, LINE, LINE + 0.05):
        assert found.expected_variance(position) <= far * 1.001
    assert found.expected_variance(median) < 0.98 * far


def test_the_expected_variance_is_that_of_the_two_outcomes() -> None:
    sample, position = trials(0.05, 12), LINE + 0.02
    whole = posterior(sample).evidence
    outcomes = [posterior([*sample, Trial(position, met=met)]) for met in (True, False)]
    assert sum(one.evidence for one in outcomes) == pytest.approx(whole, rel=0.01)
    # Without news, what is expected after a trial is what there is now.
    variances = [one.evidence / whole * one.expected_variance(LINE + 9) for one in outcomes]
    assert posterior(sample).expected_variance(position) == pytest.approx(sum(variances), rel=0.05)
