import math
import random
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.names import Metric
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.significance import REGRESSION_LEVEL, Judgement, assess, conclude, point_members
from support.simulated_comparisons import RULE, sample_of

SIMULATED = 300
"""Of each cell; its standard error is at most 2.9 %, so that 9 % is more than three of them."""


def judged(baseline: list[float], candidate: list[float], metric: Metric = Metric.IOPS, **changes: Any) -> Judgement:
    """Judge one point with one gate; `changes` are of the assessment."""
    (assessment,) = assess(point_members([sample_of(baseline, candidate, metric)]))
    return conclude(metric, replace(assessment, **changes), RULE)


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
        (3, 0.02, (0.000, 0.34, 0.85, 0.97, 1.00)),
        (3, 0.03, (0.004, 0.20, 0.54, 0.73, 0.97)),
        (3, 0.05, (0.011, 0.09, 0.22, 0.35, 0.68)),
        (5, 0.02, (0.000, 0.49, 0.995, 1.00, 1.00)),
        (5, 0.03, (0.002, 0.45, 0.92, 0.994, 1.00)),
        (5, 0.05, (0.013, 0.23, 0.55, 0.77, 0.98)),
        (8, 0.05, (0.012, 0.39, 0.82, 0.96, 1.00)),
    ],
)
def test_regressions_are_found_as_often_as_documented(
    trials: int, variation: float, expected: tuple[float, ...]
) -> None:
    chance = random.Random(f"{trials} {variation}")  # noqa: S311 - numbers, not secrets
    found = [regressions(chance, trials, variation, change) for change in (0, -0.05, -0.08, -0.10, -0.15)]
    assert found == pytest.approx(expected, abs=0.09)
    assert found[0] <= 0.03


def test_five_trials_find_ten_percent_without_false_alarms() -> None:
    """With a variation of 3 %: the figures that the documentation promises."""
    chance = random.Random(5)  # noqa: S311 - numbers, not secrets
    assert regressions(chance, 5, 0.03, -0.1) >= 0.98
    assert regressions(chance, 5, 0.03, 0) <= 0.02


def test_a_regression_is_seldom_called_none() -> None:
    """Exactly at the threshold it may be 5 %, with a standard error of 1.3 %."""
    chance = random.Random(6)  # noqa: S311 - numbers, not secrets
    missed = 0
    for _ in range(SIMULATED):
        baseline = [chance.gauss(1, 0.02) for _ in range(5)]
        candidate = [0.95 * chance.gauss(1, 0.02) for _ in range(5)]
        missed += judged(baseline, candidate).conclusion is Conclusion.NO_REGRESSION
    assert missed / SIMULATED <= 0.09


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


def test_no_regression_needs_one_bound_and_a_confirmed_regression_the_whole_interval() -> None:
    """Of 5 and 5 trials t is 1.86 on one side and 2.31 on both; here the error is 1 %."""
    noise = [math.exp(0.01 * math.sqrt(5 / 2) * one / math.sqrt(2.5)) for one in (-2, -1, 0, 1, 2)]
    for distance, clear in ((0.0195, True), (0.0175, False)):
        candidate = [math.exp(-RULE.log_threshold(Metric.IOPS) + distance) * one for one in noise]
        assert (judged(noise, candidate).conclusion is Conclusion.NO_REGRESSION) == clear
    for distance, clear in ((0.024, True), (0.022, False)):
        candidate = [math.exp(-RULE.log_threshold(Metric.IOPS) - distance) * one for one in noise]
        assert judged(noise, candidate) == Judgement(conclusion=Conclusion.REGRESSION, confirmed=clear)


def test_an_inconclusive_change_has_the_number_of_trials_needed() -> None:
    noisy = [800.0, 1000, 1200]
    found = judged(noisy, [0.85 * value for value in noisy])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.trials_needed is not None
    assert found.trials_needed > 10


def test_in_a_larger_family_more_trials_are_needed() -> None:
    noisy = [900.0, 1000, 1100]
    alone, among = (
        judged(noisy, [0.85 * one for one in noisy], level=REGRESSION_LEVEL / tests).trials_needed for tests in (1, 40)
    )
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


def test_a_change_that_is_not_significant_is_inconclusive() -> None:
    found = judged(steady(1000), steady(900), worse=False, suspicious=False)
    assert (found.conclusion, found.suspected) == (Conclusion.INCONCLUSIVE, False)


def test_a_suspicious_change_beyond_the_threshold_is_suspected() -> None:
    assert judged(steady(1000), steady(900), worse=False, suspicious=True).suspected
    assert not judged(steady(1000), steady(950.001), worse=False, suspicious=True).suspected
