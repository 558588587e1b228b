"""Rates of error of whole comparisons, roughly: `operator/bench/comparing.py` measures those that are documented."""

import random

import pytest

from plimsoll.api.suite_status import Conclusion
from support.simulated_comparisons import SCATTER, Sweep, UnsteadySweep


def share(sweep: Sweep, comparisons: int, conclusion: Conclusion, change: float = 0, losing: int = 0) -> float:
    """Return how often a comparison ends so if that many points change by this part."""
    chance = random.Random(f"{sweep} {change} {losing}")  # noqa: S311 - numbers, not secrets
    changes = dict.fromkeys(range(losing), change)
    return sum(sweep.conclusion(chance, changes) is conclusion for _ in range(comparisons)) / comparisons


@pytest.mark.parametrize(
    "sweep",
    [
        Sweep(points=4),
        Sweep(points=4, correlation=0.5),
        Sweep(points=4, quiet=2 / 3),
        Sweep(points=4, calm=2 / 3),
        Sweep(points=4, quiet=2 / 3, correlation=0.5),
    ],
)
def test_nothing_changed_is_seldom_a_regression(sweep: Sweep) -> None:
    """At most 1 %; of 100 comparisons more than 4 would happen in less than 0.4 % of cases."""
    assert share(sweep, 100, Conclusion.REGRESSION) <= 0.04


@pytest.mark.parametrize(("points", "comparisons"), [(4, 100), (20, 20)])
def test_nothing_changed_is_no_regression_of_a_sweep(points: int, comparisons: int) -> None:
    assert share(Sweep(points=points), comparisons, Conclusion.NO_REGRESSION) >= 0.85


@pytest.mark.parametrize("points", [1, 4])
def test_storage_that_seldom_leaves_a_state_makes_single_runs_differ_and_not_several(points: int) -> None:
    """The model of the test: no interval of one run covers its state, and runs at different times do."""
    course = "two states, seldom left"
    scatter = {metric: value / 5**0.5 for metric, value in SCATTER.items()}
    single = UnsteadySweep(points=points, course=course)
    several = UnsteadySweep(points=points, course=course, of_runs=True, scatter=scatter)
    assert share(single, 100, Conclusion.REGRESSION) >= 0.06
    assert share(several, 100, Conclusion.REGRESSION) <= 0.04
    assert share(several, 100, Conclusion.REGRESSION, -0.2, points) >= 0.8


@pytest.mark.parametrize("course", ["drifting", "two states, drawn for each pass"])
def test_what_happens_in_every_run_alike_is_no_regression(course: str) -> None:
    sweep = UnsteadySweep(points=4, course=course)
    assert share(sweep, 100, Conclusion.REGRESSION) <= 0.04
    assert share(sweep, 100, Conclusion.REGRESSION, -0.3, 4) >= 0.7


def test_noise_that_points_share_keeps_equivalence_from_being_certain() -> None:
    assert 0.5 < share(Sweep(points=4, correlation=0.5), 100, Conclusion.NO_REGRESSION) < 0.75


@pytest.mark.parametrize("correlation", [0, 0.5])
@pytest.mark.parametrize(("points", "comparisons"), [(1, 100), (4, 40), (20, 10)])
def test_a_loss_at_all_points_is_found(points: int, comparisons: int, correlation: float) -> None:
    if points == 1 and correlation:
        correlation = 0
    sweep = Sweep(points=points, correlation=correlation)
    assert share(sweep, comparisons, Conclusion.REGRESSION, -0.1, points) >= 0.95


@pytest.mark.parametrize("correlation", [0, 0.5])
def test_a_loss_at_one_point_of_twenty_is_found(correlation: float) -> None:
    assert share(Sweep(points=20, correlation=correlation), 20, Conclusion.REGRESSION, -0.2, 1) >= 0.85


def test_more_repetitions_make_a_single_point_equivalent() -> None:
    few, many = (share(Sweep(points=1, trials=trials), 100, Conclusion.NO_REGRESSION) for trials in (5, 13))
    assert few == pytest.approx(0.4, abs=0.12)
    assert many == pytest.approx(0.9, abs=0.09)
