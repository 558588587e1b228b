"""What a comparison could find, as calculated and as simulated; the figures are those of docs/comparing.md."""

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.compare.noise import Assumptions, PlannedWorkload, Power, power_of, quick_t_quantile
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.statistics import t_quantile
from support.sweeps import Sweep


def power(*sizes: int, repetitions: int = 5, has_latency: bool = True, **assumed: Any) -> Power:
    workloads = [PlannedWorkload(points=points, has_latency=has_latency) for points in sizes]
    return power_of(workloads, repetitions, Assumptions(**assumed))


@given(st.floats(1e-6, 0.4), st.floats(4, 1000))
def test_quick_quantile_is_the_quantile(tail: float, freedom: float) -> None:
    assert quick_t_quantile(tail, freedom) == pytest.approx(t_quantile(1 - tail, freedom), rel=0.01)


@pytest.mark.parametrize(
    ("points", "correlation", "everywhere", "somewhere", "nothing"),
    [
        (1, 0, 0.994, 0.994, 0.40),
        (4, 0, 1.00, 0.97, 0.94),
        (4, 0.5, 0.995, 0.98, 0.62),
        (20, 0, 1.00, 0.955, 0.98),
        (20, 0.5, 0.999, 0.97, 0.70),
        (100, 0, 1.00, 0.925, 0.98),
        (100, 0.5, 0.999, 0.95, 0.72),
    ],
)
def test_chances_are_those_of_the_documented_simulation(
    points: int, correlation: float, everywhere: float, somewhere: float, nothing: float
) -> None:
    found = power(points, correlation=correlation)
    assert found.everywhere.probability == pytest.approx(everywhere, abs=0.01)
    assert found.somewhere.probability == pytest.approx(somewhere, abs=0.025)
    assert found.nothing.probability == pytest.approx(nothing, abs=0.03)


@pytest.mark.parametrize(("trials", "correlation", "points"), [(3, 0, 4), (8, 0.5, 4), (8, 0, 1)])
def test_chances_are_those_of_simulated_comparisons(trials: int, correlation: float, points: int) -> None:
    """The standard error of 100 comparisons is at most 5 %."""
    chance = random.Random(f"{trials} {correlation}")  # noqa: S311 - numbers, not secrets
    sweep, found = (
        Sweep(points=points, trials=trials, correlation=correlation),
        power(points, repetitions=trials, correlation=correlation),
    )
    for changes, conclusion, expected in (
        ({}, Conclusion.NO_REGRESSION, found.nothing),
        ({0: -0.1}, Conclusion.REGRESSION, found.somewhere),
    ):
        share = sum(sweep.conclusion(chance, changes) is conclusion for _ in range(100)) / 100
        assert share == pytest.approx(expected.probability, abs=0.12)


def test_enough_repetitions_are_the_fewest_that_reach_90_percent() -> None:
    found = power(4)
    for name in ("everywhere", "somewhere", "nothing"):
        enough = getattr(found, name).enough
        assert getattr(power(4, repetitions=enough), name).probability >= 0.9
        assert enough == 3 or getattr(power(4, repetitions=enough - 1), name).probability < 0.9


def test_one_point_needs_about_13_repetitions_to_be_equivalent() -> None:
    assert power(1).nothing.enough in {13, 14}


def test_hopeless_scatter_has_no_number_of_repetitions() -> None:
    found = power(1, rate=0.5)
    assert (found.somewhere.enough, found.nothing.enough) == (None, None)


def test_two_repetitions_decide_nothing() -> None:
    found = power(4, repetitions=2)
    assert [one.probability for one in (found.everywhere, found.somewhere, found.nothing)] == [0, 0, 0]


def test_without_latency_equivalence_is_easier() -> None:
    assert power(1, has_latency=False).nothing.probability > power(1).nothing.probability + 0.2


def test_the_weakest_workload_counts_and_all_have_to_be_equivalent() -> None:
    mixed, alone = power(1, 20), power(20)
    assert mixed.everywhere.probability < alone.everywhere.probability
    assert mixed.somewhere.probability < alone.somewhere.probability
    assert mixed.nothing.probability < power(1).nothing.probability


def test_more_points_make_the_mean_more_certain_and_a_single_one_less() -> None:
    few, many = power(4), power(40)
    assert few.nothing.probability < many.nothing.probability
    assert few.somewhere.probability > many.somewhere.probability


def test_it_takes_no_time() -> None:
    """A hundred times as long as it should at most, on a busy machine."""
    begin = time.process_time()
    power(*[10] * 10)
    assert time.process_time() - begin < 2
