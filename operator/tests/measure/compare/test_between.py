"""The noise between runs of the same: its size, and what it does to rates of error."""

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.significance import (
    BetweenVariance,
    LogChange,
    assess,
    between_variance_of_logarithms,
    between_variance_of_runs,
    conclude,
    pass_means,
    point_members,
)
from support.simulated_comparisons import RULE, sample_of

TRIALS = 5
WITHIN = 0.01
SIMULATED = 300
"""Of each cell; its standard error is at most 2.9 %, so that 9 % is more than three of them."""

QUIET = [0.99, 1.0, 1.01]


def test_the_part_between_runs_is_what_the_scatter_within_does_not_explain() -> None:
    found = between_variance_of_runs([QUIET, [1.1 * value for value in QUIET]])
    assert found is not None
    assert found.variance == pytest.approx(math.log(1.1) ** 2 / 2 - 0.01**2 / 3, rel=0.001)
    assert found.runs == 2


def test_runs_that_differ_less_than_their_trials_differ_by_nothing() -> None:
    assert between_variance_of_runs([QUIET, QUIET, QUIET]) == BetweenVariance(variance=0, runs=3)


@pytest.mark.parametrize("other", [[], [1.0, 1.0], [1.0, 1.0, None], [1.0, 1.0, 0.0]])
def test_a_run_without_usable_values_does_not_count(other: list[float | None]) -> None:
    assert between_variance_of_runs([QUIET, other]) is None
    assert between_variance_of_runs([QUIET]) is None


def test_more_trials_do_not_lessen_the_part_between_runs() -> None:
    change = LogChange(estimate=0.1, variances=(0, 0), trials=(5, 5), between=BetweenVariance(variance=0.01, runs=5))
    low, high = change.interval()
    assert (high - low) / 2 == pytest.approx(2.776 * math.sqrt(2) * 0.1, rel=0.001)
    assert change.trials_needed(0.1, 0.025) is None


def test_few_runs_are_few_degrees_of_freedom() -> None:
    halves = []
    for runs in (2, 3, 5, 100):
        change = LogChange(estimate=0, variances=(1, 1), trials=(5, 5), between=BetweenVariance(variance=0, runs=runs))
        halves.append(change.interval()[1])
    alone = LogChange(estimate=0, variances=(1, 1), trials=(5, 5)).interval()[1]
    assert halves == sorted(halves, reverse=True)
    assert halves[-1] == alone
    assert halves[0] == pytest.approx(12.706 * math.sqrt(2 / 5), rel=0.001)


def run_of(chance: random.Random, between: float, change: float = 0) -> list[float]:
    level = (1 + change) * math.exp(chance.gauss(0, between))
    return [level * math.exp(chance.gauss(0, WITHIN)) for _ in range(TRIALS)]


def regressions(between: float, runs: int, change: float) -> float:
    """Return how often a comparison finds a regression, with a floor of that many runs of the same."""
    chance = random.Random(f"{between} {runs} {change}")  # noqa: S311 - numbers, not secrets
    found = 0
    for _ in range(SIMULATED):
        noise = between_variance_of_runs([run_of(chance, between) for _ in range(runs)])
        sample = sample_of(run_of(chance, between), run_of(chance, between, change))
        (assessment,) = assess(point_members([replace(sample, between=noise)]))
        found += conclude(sample.group[2], assessment, RULE).conclusion is Conclusion.REGRESSION
    return found / SIMULATED


@pytest.mark.parametrize(
    ("between", "runs", "expected"),
    [
        (0.02, 0, (0.037, 0.97, 1.00)),
        (0.02, 2, (0.001, 0.13, 0.38)),
        (0.02, 3, (0.008, 0.42, 0.90)),
        (0.02, 5, (0.011, 0.72, 1.00)),
        (0.03, 0, (0.112, 0.90, 1.00)),
        (0.03, 2, (0.003, 0.09, 0.25)),
        (0.03, 3, (0.015, 0.23, 0.67)),
        (0.03, 5, (0.017, 0.41, 0.95)),
        (0.05, 0, (0.236, 0.78, 0.99)),
        (0.05, 2, (0.009, 0.06, 0.15)),
        (0.05, 3, (0.016, 0.12, 0.35)),
        (0.05, 5, (0.022, 0.18, 0.60)),
    ],
)
def test_with_a_floor_runs_that_differ_are_seldom_a_regression(
    between: float, runs: int, expected: tuple[float, ...]
) -> None:
    found = [regressions(between, runs, change) for change in (0, -0.10, -0.20)]
    assert found == pytest.approx(expected, abs=0.09)
    if runs:
        # One-sided 2 %, and nearly three standard errors of the simulation.
        assert found[0] <= 0.05


def means_of_passes(*runs: list[Mapping[int, float]]) -> list[Collection[float]]:
    return [pass_means(points).values() for points in runs]


def test_noise_in_the_mean_over_points_is_what_the_points_share() -> None:
    """One run's points are all 10 % higher; in another run one point is higher and one lower."""
    series = {number: math.log(value) for number, value in enumerate(QUIET)}
    higher, lower = (
        {one: value + change for one, value in series.items()} for change in (math.log(1.1), -math.log(1.1))
    )
    apart = between_variance_of_logarithms(means_of_passes([series, series], [higher, lower], [series, series]))
    assert apart is not None
    assert apart.variance == pytest.approx(0, abs=1e-9)
    together = between_variance_of_logarithms(means_of_passes([series, series], [higher, higher]))
    assert together is not None
    assert together.variance == pytest.approx(math.log(1.1) ** 2 / 2 - 0.01**2 / 3, rel=0.01)


def test_a_run_that_lacks_trials_of_a_point_shows_nothing_of_the_mean() -> None:
    series = dict.fromkeys(range(3), 0.0)
    assert between_variance_of_logarithms(means_of_passes([series, series], [series, {0: 0.0}])) is None
