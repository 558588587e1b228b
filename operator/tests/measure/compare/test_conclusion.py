import random

import pytest

from plimsoll.measure.compare.conclusion import Change, Conclusion, Judgement, conclude
from plimsoll.measure.compare.inference import log_change
from plimsoll.measure.compare.metrics import Metric, RegressionRule

RULE = RegressionRule()
SIMULATED = 1000
"""Of each cell; its standard error is at most 1.6 %, so that 5 % is more than three of them."""


def judged(baseline: list[float], candidate: list[float], metric: Metric = Metric.IOPS, **changes: int) -> Judgement:
    log = log_change(baseline, candidate)
    change = Change(metric=metric, baseline=baseline, candidate=candidate, log=log, p_value=log.p_value(), **changes)
    return conclude(change, RULE)


def steady(mean: float, trials: int = 5) -> list[float]:
    """Return trials that scatter by about 1 %."""
    return [mean * (1 + 0.01 * ((number % 3) - 1)) for number in range(trials)]


# Rates of error, for a rate of which less than 95 % is a regression


def regressions(chance: random.Random, trials: int, variation: float, change: float) -> float:
    found = 0
    for _ in range(SIMULATED):
        baseline = [chance.gauss(1, variation) for _ in range(trials)]
        candidate = [(1 + change) * chance.gauss(1, variation) for _ in range(trials)]
        found += judged(baseline, candidate).conclusion is Conclusion.REGRESSION
    return found / SIMULATED


@pytest.mark.parametrize(
    ("trials", "variation", "expected"),
    [
        (3, 0.02, (0.001, 0.39, 0.89, 0.98, 1.00)),
        (3, 0.03, (0.008, 0.24, 0.60, 0.79, 0.98)),
        (3, 0.05, (0.018, 0.11, 0.26, 0.40, 0.74)),
        (5, 0.02, (0.000, 0.51, 0.99, 1.00, 1.00)),
        (5, 0.03, (0.004, 0.47, 0.94, 0.995, 1.00)),
        (5, 0.05, (0.016, 0.27, 0.61, 0.80, 0.99)),
        (8, 0.05, (0.013, 0.39, 0.82, 0.96, 1.00)),
    ],
)
def test_regressions_are_found_as_often_as_documented(
    trials: int, variation: float, expected: tuple[float, ...]
) -> None:
    chance = random.Random(f"{trials} {variation}")  # noqa: S311 - numbers, not secrets
    found = [regressions(chance, trials, variation, change) for change in (0, -0.05, -0.08, -0.10, -0.15)]
    assert found == pytest.approx(expected, abs=0.05)
    assert found[0] <= 0.03


def test_five_trials_find_ten_percent_without_false_alarms() -> None:
    """With a variation of 3 %: the figures that the documentation promises."""
    chance = random.Random(5)  # noqa: S311 - numbers, not secrets
    assert regressions(chance, 5, 0.03, -0.1) >= 0.98
    assert regressions(chance, 5, 0.03, 0) <= 0.02


def test_a_regression_is_seldom_called_none() -> None:
    chance = random.Random(6)  # noqa: S311 - numbers, not secrets
    missed = 0
    for _ in range(1000):
        baseline = [chance.gauss(1, 0.02) for _ in range(5)]
        candidate = [0.95 * chance.gauss(1, 0.02) for _ in range(5)]
        missed += judged(baseline, candidate).conclusion is Conclusion.NO_REGRESSION
    # Exactly at the threshold it may be 2.5 %.
    assert missed / 1000 <= 0.045


# Single judgements


@pytest.mark.parametrize(
    ("metric", "factor", "conclusion"),
    [
        (Metric.IOPS, 0.8, Conclusion.REGRESSION),
        (Metric.IOPS, 1.0, Conclusion.NO_REGRESSION),
        (Metric.IOPS, 1.2, Conclusion.NO_REGRESSION),
        (Metric.BYTES, 0.8, Conclusion.REGRESSION),
        (Metric.P99, 1.3, Conclusion.REGRESSION),
        (Metric.P99, 1.07, Conclusion.NO_REGRESSION),
        (Metric.IOPS, 1 / 1.07, Conclusion.REGRESSION),
        (Metric.P99, 0.8, Conclusion.NO_REGRESSION),
        (Metric.MEAN, 1.3, Conclusion.REGRESSION),
    ],
)
def test_direction_and_threshold_are_those_of_the_metric(metric: Metric, factor: float, conclusion: Conclusion) -> None:
    assert judged(steady(1000), steady(1000 * factor), metric).conclusion is conclusion


def test_a_large_regression_is_confirmed_and_a_large_improvement_reported() -> None:
    assert judged(steady(1000), steady(800)) == Judgement(conclusion=Conclusion.REGRESSION, confirmed=True)
    assert judged(steady(1000), steady(1200)) == Judgement(conclusion=Conclusion.NO_REGRESSION, improved=True)
    assert judged(steady(1000), steady(1030)) == Judgement(conclusion=Conclusion.NO_REGRESSION)


def test_a_regression_near_the_threshold_is_not_confirmed() -> None:
    assert judged(steady(1000), steady(942)) == Judgement(conclusion=Conclusion.REGRESSION, confirmed=False)


def test_an_inconclusive_change_has_the_number_of_trials_needed() -> None:
    noisy = [800.0, 1000, 1200]
    found = judged(noisy, [0.85 * value for value in noisy])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.trials_needed is not None
    assert found.trials_needed > 10


def test_in_a_larger_family_more_trials_are_needed() -> None:
    noisy = [900.0, 1000, 1100]
    alone, among = (judged(noisy, [0.85 * one for one in noisy], family=family).trials_needed for family in (1, 40))
    assert alone is not None
    assert among is not None
    assert among > alone


def test_a_change_as_large_as_the_threshold_is_never_decided() -> None:
    found = judged(steady(1000), steady(950.001))
    assert (found.conclusion, found.trials_needed) == (Conclusion.INCONCLUSIVE, None)
    assert "change the threshold" in found.note


def test_hopeless_noise_is_reported() -> None:
    noisy = [1.0, 100, 10_000]
    assert "too noisy" in judged(noisy, [value * 0.9 for value in noisy]).note


def test_adjusted_p_value_decides() -> None:
    log = log_change(steady(1000), steady(900))
    change = Change(metric=Metric.IOPS, baseline=steady(1000), candidate=steady(900), log=log, p_value=0.06)
    assert conclude(change, RULE).conclusion is Conclusion.INCONCLUSIVE


def test_ranks_that_see_nothing_keep_a_regression_from_being_one() -> None:
    """An outlier on each side: Welch's p is below 5 %, that of ranks is not."""
    baseline, candidate = [917.0, 1004, 954, 944, 965, 963], [856.0, 854, 973, 870, 944, 837]
    found = judged(baseline, candidate)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert "(Mann-Whitney p 0.074)" in found.note


def test_of_fewer_than_six_trials_ranks_are_not_asked() -> None:
    assert judged([1000.0, 1001, 1002], [900.0, 901, 902]).conclusion is Conclusion.REGRESSION
