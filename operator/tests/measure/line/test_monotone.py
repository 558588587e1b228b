import math
import random

import pytest

from plimsoll.measure.line.curve import Trial, exception_bayes_factor


def at(load: float, met: str) -> list[Trial]:
    return [Trial(math.log(load), met=one == "+") for one in met]


ONE_LINE = [*at(500, "+"), *at(2000, "+"), *at(4000, "++"), *at(7000, "+++-"), *at(9000, "-+--"), *at(16_000, "--")]


def test_a_range_that_breaks_below_loads_that_hold_is_an_exception() -> None:
    assert exception_bayes_factor([*ONE_LINE, *at(1000, "-----")]) > 20


def test_a_range_that_holds_above_loads_that_break_is_an_exception() -> None:
    assert exception_bayes_factor([*ONE_LINE, *at(32_000, "+++++")]) > 20


def test_one_line_has_no_exception() -> None:
    assert exception_bayes_factor(ONE_LINE) < 1


def test_a_lapse_that_does_not_repeat_is_no_exception() -> None:
    assert exception_bayes_factor([*ONE_LINE, *at(1000, "-+")]) < 1
    assert exception_bayes_factor([*ONE_LINE, *at(1000, "-+-")]) < 10


@pytest.mark.parametrize("line", [450, 900, 1100, 5000])
def test_outcomes_that_one_load_separates_have_no_exception(line: int) -> None:
    loads = [*[500] * 4, *[880] * 6, *[920] * 6, *[1000] * 9]
    assert exception_bayes_factor([one for load in loads for one in at(load, "+" if load <= line else "-")]) == 0


def test_trials_at_one_load_are_none() -> None:
    assert exception_bayes_factor(at(1000, "--++-")) == 0


def test_storage_that_breaks_in_one_of_three_trials_at_all_loads_seldom_seems_to_have_one() -> None:
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    exceeded = 0
    for _ in range(60):
        loads = [500, *[1000] * 5, 2000, *[4000] * 5, 8000, *[9000] * 5]
        sample = [Trial(math.log(load), met=chance.random() < 2 / 3) for load in loads]
        exceeded += exception_bayes_factor([*sample, *at(16_000, "----")]) > 20
    assert exceeded / 60 <= 0.05
