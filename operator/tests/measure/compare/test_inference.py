import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.compare.significance import (
    MOST_TRIALS,
    RECOMMENDED_TRIALS,
    LogChange,
    holm,
    log_change,
)

positive = st.floats(1e-3, 1e12)
samples = st.lists(positive, min_size=2, max_size=10)
p_values = st.lists(st.floats(0, 1), max_size=30)


def change(estimate: float, deviation: float, trials: int) -> LogChange:
    return LogChange(estimate=estimate, variances=(deviation**2, deviation**2), trials=(trials, trials))


# Welch's test


def test_change_of_known_samples() -> None:
    # By hand: ln of powers of e are 1, 2, 3 and 2, 4, 6, so that d = 2, s^2 = 1 and 4, se^2 = 5/3.
    found = log_change([math.e, math.e**2, math.e**3], [math.e**2, math.e**4, math.e**6])
    assert found.estimate == pytest.approx(2)
    assert found.variances == pytest.approx((1, 4))
    degrees = (5 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2)
    assert degrees == pytest.approx(50 / 17)
    # t = 1.549 with 2.94 degrees of freedom, between the closed forms for 2 and 3.
    assert 0.2197 < found.p_value() < 0.2613


def test_with_equal_variances_and_sizes_it_is_students_test() -> None:
    found = change(0.1, 0.05, 5)
    t = 0.1 / math.sqrt(2 * 0.05**2 / 5)
    low, high = found.interval()
    assert (low, high) == pytest.approx((0.1 - 2.306004135 * 0.1 / t, 0.1 + 2.306004135 * 0.1 / t))


@given(samples, samples, st.floats(-3, 3))
def test_p_value_is_below_five_percent_exactly_outside_the_interval(
    baseline: list[float], candidate: list[float], truth: float
) -> None:
    found = log_change(baseline, candidate)
    low, high = found.interval()
    if not math.isclose(truth, low, rel_tol=1e-6) and not math.isclose(truth, high, rel_tol=1e-6):
        assert (found.p_value(truth) < 0.05) == (not low <= truth <= high)


@given(samples, samples, st.floats(0.1, 10))
def test_units_do_not_matter_and_the_sides_mirror(baseline: list[float], candidate: list[float], unit: float) -> None:
    found = log_change(baseline, candidate)
    scaled = log_change([unit * value for value in baseline], [unit * value for value in candidate])
    mirrored = log_change(candidate, baseline)
    assert scaled.estimate == pytest.approx(found.estimate, abs=1e-9)
    assert scaled.variances == pytest.approx(found.variances, abs=1e-9)
    assert mirrored.estimate == pytest.approx(-found.estimate, abs=1e-12)
    assert mirrored.p_value() == pytest.approx(found.p_value())


def test_equal_trials_are_certain() -> None:
    assert log_change([5, 5], [5, 5, 5]).p_value() == 1
    assert log_change([5, 5], [4, 4]).p_value() == 0
    assert log_change([5, 5], [4, 4]).interval() == (math.log(0.8), math.log(0.8))


@pytest.mark.parametrize("value", [0, -1])
def test_what_has_no_logarithm_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"math domain error|positive"):
        log_change([1, 2], [1, value])


def test_one_trial_has_no_deviation() -> None:
    with pytest.raises(ZeroDivisionError):
        log_change([1], [1, 2])


@given(st.lists(st.floats(0.99, 1.01), min_size=3, max_size=10))
def test_deviation_of_logarithms_is_the_coefficient_of_variation_of_what_scatters_little(values: list[float]) -> None:
    assert math.sqrt(log_change(values, values).variances[0]) == pytest.approx(
        statistics.stdev(values) / statistics.fmean(values), abs=2e-4
    )


def test_intervals_cover_the_truth_in_95_percent() -> None:
    """Unequal sizes, unequal scatter, as Welch allows; 2000 samples have a standard error of 0.5 %."""
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    truth = math.log(0.9)
    covered = 0
    for _ in range(2000):
        baseline = [chance.lognormvariate(0, 0.02) for _ in range(4)]
        candidate = [chance.lognormvariate(truth, 0.05) for _ in range(6)]
        covered += log_change(baseline, candidate).p_value(truth) >= 0.05
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_known_degrees_of_freedom_replace_welchs() -> None:
    """With 8 degrees of freedom t is 2.3060."""
    found = LogChange(estimate=0.1, variances=(0.01, 0), trials=(5, 5), freedom=8)
    assert found.interval()[1] - 0.1 == pytest.approx(2.3060 * math.sqrt(0.01 / 5), rel=1e-4)
    assert found.p_value() < LogChange(estimate=0.1, variances=(0.01, 0), trials=(5, 5)).p_value()


@given(samples, samples, st.floats(-3, 3))
def test_one_sided_p_values_are_halves_of_the_two_sided_one(
    baseline: list[float], candidate: list[float], truth: float
) -> None:
    found = log_change(baseline, candidate)
    if found.estimate != truth and any(found.variances):
        assert found.p_lower(truth) + found.p_higher(truth) == pytest.approx(1)
    assert found.p_value(truth) == pytest.approx(min(1, 2 * min(found.p_lower(truth), found.p_higher(truth))))


def test_a_bound_is_evidence_on_one_side_only() -> None:
    known = LogChange(estimate=-0.3, variances=(0.01, 0.01), trials=(5, 5))
    upper, lower = replace(known, may_be_lower=True), replace(known, may_be_higher=True)
    assert (upper.p_lower(), upper.p_higher()) == (known.p_lower(), 1)
    assert (lower.p_lower(), lower.p_higher()) == (1, known.p_higher())
    assert upper.interval() == (-math.inf, known.interval()[1])
    assert lower.interval() == (known.interval()[0], math.inf)


# How many trials


def trials_by_trying(found: LogChange, margin: float) -> int | None:
    for trials in range(RECOMMENDED_TRIALS, MOST_TRIALS + 1):
        _, high = LogChange(estimate=0, variances=found.variances, trials=(trials, trials)).interval()
        if high < margin:
            return trials
    return None


@pytest.mark.parametrize("deviation", [0.001, 0.02, 0.05, 0.08, 0.3])
def test_needed_trials_are_the_fewest_that_make_the_interval_narrow_enough(deviation: float) -> None:
    found = LogChange(estimate=0.1, variances=(deviation**2, 4 * deviation**2), trials=(3, 3))
    assert found.trials_needed(0.05, 0.025) == trials_by_trying(found, 0.05)


def test_needed_trials_follow_the_rule_of_thumb_where_they_are_many() -> None:
    """n = 2 (t CV / threshold)^2, where t is that of many degrees of freedom."""
    assert change(0, 0.05, 3).trials_needed(0.025, 0.025) == pytest.approx(2 * (1.99 * 0.05 / 0.025) ** 2, abs=1)


def test_no_trials_are_enough_without_a_margin() -> None:
    assert change(0.1, 0.05, 5).trials_needed(0, 0.025) is None
    assert change(0.1, 0, 5).trials_needed(0.01, 0.025) == RECOMMENDED_TRIALS


def draw(chance: random.Random, trials: int, shift: float) -> Sequence[float]:
    return [chance.lognormvariate(shift, 0.03) for _ in range(trials)]


# Holm


def test_a_test_has_the_part_of_the_level_that_its_weight_is_of_those_left() -> None:
    """By hand: p / weight is 0.02, 0.06 and 0.08; 0.02 / 1 * 2 = 0.04, 0.03 / 0.5 * 1 = 0.06, 0.04 / 0.5 * 0.5."""
    assert holm([0.02, 0.03, 0.04], [1, 0.5, 0.5]) == pytest.approx([0.04, 0.06, 0.06])


def test_holm_of_a_known_family() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], [1, 1, 1, 1]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(p_values)
def test_adjusted_values_keep_order_and_lie_between_the_raw_and_bonferroni(values: list[float]) -> None:
    adjusted = holm(values, [1] * len(values))
    assert all(raw <= one <= min(1, len(values) * raw) for raw, one in zip(values, adjusted, strict=True))
    ordered = [one for _, one in sorted(zip(values, adjusted, strict=True))]
    assert ordered == sorted(ordered)


def test_a_test_alone_is_not_adjusted() -> None:
    assert holm([0.04], [0.5]) == [0.04]
    assert holm([], []) == []


def test_holm_keeps_the_family_wise_error_of_six_metrics() -> None:
    """Unadjusted, 26 % of these families would have an error; 1500 have a standard error of 0.6 %."""
    chance = random.Random(2)  # noqa: S311 - numbers, not secrets
    wrong = unadjusted = 0
    for _ in range(1500):
        values = [log_change(draw(chance, 5, 0.0), draw(chance, 5, 0.0)).p_value() for _ in range(6)]
        wrong += min(holm(values, [1] * 6)) < 0.05
        unadjusted += min(values) < 0.05
    assert wrong / 1500 <= 0.05 + 2 * 0.006
    assert unadjusted / 1500 > 0.15
