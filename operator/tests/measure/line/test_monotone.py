import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.measure.line.curve import Trial
from plimsoll.measure.line.monotone import rise_evidence


def at(load: float, met: str) -> list[Trial]:
    return [Trial(math.log(load), met=one == "+") for one in met]


def test_a_rise_beyond_chance_is_evident() -> None:
    assert rise_evidence([*at(1000, "------"), *at(2000, "++++++")]) > 50


def test_a_fall_is_none() -> None:
    assert rise_evidence([*at(1000, "++++++"), *at(2000, "------")]) < 1


def test_a_single_lapse_is_none() -> None:
    assert rise_evidence([*at(500, "-"), *at(1000, "++++++++"), *at(2000, "--------")]) < 10


@settings(max_examples=50)
@given(st.text("+-", min_size=1, max_size=30))
def test_trials_at_one_load_show_no_rise(met: str) -> None:
    assert rise_evidence(at(1000, met)) <= 1 + 1e-9


def test_a_storage_that_breaks_by_chance_at_all_loads_seldom_seems_to_rise() -> None:
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    exceeded = 0
    for _ in range(300):
        sample: list[Trial] = []
        for _ in range(40):
            # Placed as badly as possible: where it last met the objectives, higher.
            load = 1000 if not sample or not sample[-1].met else 2000
            sample += at(load, chance.choice("+-"))
            if rise_evidence(sample) > 20:
                exceeded += 1
                break
    assert exceeded / 300 <= 0.05


def test_the_pooled_likelihood_is_that_of_isotonic_regression() -> None:
    # Pools of 2 of 4, and 0 of 1: 1/16, against beta distributions in a range of each load.
    sample = [*at(1000, "+-"), *at(2000, "-+"), *at(4000, "-")]
    pair = 0.25 * 0.25 / (0.5 * 1.5)
    assert rise_evidence(sample) == pytest.approx(pair * pair * 0.5 * 16)
