"""The change from earlier rounds to a new one: its size, and how certain it is."""

import math

import pytest

from plimsoll.measure.statistics import f_p_value
from plimsoll.suite.judging import step_between
from support.simulated_comparisons import drawn


def test_the_tail_of_f_is_that_of_tables() -> None:
    assert f_p_value(4.0, 1, 10) == pytest.approx(0.0734, abs=1e-4)
    assert f_p_value(5.99, 4, 5) == pytest.approx(0.0378, abs=1e-3)
    assert f_p_value(0.0, 4, 12) == 1.0


def test_the_change_is_from_the_mean_of_rounds_however_many_runs_they_have() -> None:
    change = step_between([[0.0, 0.0, 0.0, 0.0], [0.2, 0.2]], [[0.3, 0.3]])
    assert change.estimate == pytest.approx(0.2)


def test_rounds_that_do_not_differ_count_their_runs() -> None:
    """Five rounds and a new one have twelve degrees of freedom within, and four between."""
    rounds = [[-0.03, 0.0, 0.03]] * 5
    change = step_between(rounds, [[-0.03, 0.0, 0.03]])
    assert change.freedom == pytest.approx(16)
    assert change.variances == pytest.approx([12 / 16 * 0.03**2] * 2)


def test_rounds_that_clearly_differ_count_as_one_value_each() -> None:
    rounds = [[level - 0.001, level, level + 0.001] for level in (-0.1, -0.05, 0.0, 0.05, 0.1)]
    change = step_between(rounds, [[0.0, 0.001, 0.002]])
    assert change.freedom == pytest.approx(4, abs=0.01)
    error = math.sqrt(0.00625 * (1 + 1 / 5))
    low, high = change.interval()
    assert (high - low) / 2 == pytest.approx(2.776 * error, rel=0.02)


def test_a_single_run_per_round_leaves_the_rounds_only() -> None:
    change = step_between([[0.0], [0.1], [0.2]], [[0.1]])
    assert change.freedom == 2
    assert change.variances == pytest.approx([0.01] * 2)


@pytest.mark.parametrize(("between", "least"), [(0.0, 0.94), (0.03, 0.88), (0.3, 0.94)])
def test_the_interval_covers_no_change_about_as_often_as_it_says(between: float, least: float) -> None:
    """Noise between rounds that five rounds cannot tell from that of their runs makes it a little too narrow."""
    chance = drawn(1)
    rounds = 2000
    covered = 0
    for _ in range(rounds):
        levels = [chance.gauss(0, between) for _ in range(6)]
        *earlier, judged = ([level + chance.gauss(0, 0.03) for _ in range(3)] for level in levels)
        low, high = step_between(earlier, [judged]).interval()
        covered += low <= 0 <= high
    assert least < covered / rounds < 0.98


def test_a_step_between_rounds_has_the_noise_of_both_sides() -> None:
    levels = (-0.02, 0.0, 0.02)
    before, after = ([[step + level] * 2 for level in levels] for step in (0.0, 0.3))
    change = step_between(before, after)
    assert change.estimate == pytest.approx(0.3)
    assert change.freedom == pytest.approx(4, abs=0.01)
    # Six means of rounds, with a standard deviation of 2 % around their level.
    assert change.interval()[1] - change.estimate == pytest.approx(2.776 * 0.02 * math.sqrt(2 / 3), rel=0.01)


@pytest.mark.parametrize(("before", "after"), [([[1.0]], [[1.0]]), ([], [[1.0]] * 3), ([[1.0], []], [[1.0]])])
def test_too_few_rounds_or_runs_show_no_noise(before: list[list[float]], after: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="at least two rounds on one side, each with a run"):
        step_between(before, after)
