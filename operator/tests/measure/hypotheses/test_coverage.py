"""How often the 95 % intervals contain the truth, in as many simulations as give a standard error of 1 %."""

import math
import random
from collections.abc import Callable, Sequence

import pytest

from plimsoll.measure.hypotheses.decide import Interval, exponent, log_ratio, log_ratio_of_pairs

SIMULATIONS = 475
TOLERATED = 3 * math.sqrt(0.95 * 0.05 / SIMULATIONS)


def coverage(simulate: Callable[[random.Random], tuple[Interval, float]]) -> float:
    chance = random.Random(12)  # noqa: S311 - numbers, not secrets
    found = [simulate(chance) for _ in range(SIMULATIONS)]
    return sum(interval.low <= truth <= interval.high for interval, truth in found) / SIMULATIONS


def scattered(chance: random.Random, mean: float, deviation: float, trials: int) -> list[float]:
    return [mean * math.exp(chance.gauss(0, deviation)) for _ in range(trials)]


@pytest.mark.parametrize(("trials", "deviations"), [((3, 3), (0.05, 0.05)), ((5, 3), (0.2, 0.02))])
def test_coverage_of_a_ratio(trials: tuple[int, int], deviations: tuple[float, float]) -> None:
    def simulate(chance: random.Random) -> tuple[Interval, float]:
        left, of = (scattered(chance, mean, s, n) for mean, s, n in zip((85, 100), deviations, trials, strict=True))
        return log_ratio(left, of), math.log(0.85)

    assert coverage(simulate) == pytest.approx(0.95, abs=TOLERATED)


def shared_noise(chance: random.Random, means: Sequence[float], runs: int = 3) -> list[list[float]]:
    """Return the values of each run: what a run shares scatters by 20 %, what it does not by 2 %."""
    return [
        [level * scattered(chance, mean, 0.02, 1)[0] for mean in means] for level in scattered(chance, 1, 0.2, runs)
    ]


def test_coverage_of_pairs_with_noise_between_runs() -> None:
    def simulate(chance: random.Random) -> tuple[Interval, float]:
        left, of = zip(*shared_noise(chance, (85, 100)), strict=True)
        return log_ratio_of_pairs(left, of), math.log(0.85)

    assert coverage(simulate) == pytest.approx(0.95, abs=TOLERATED)


def test_coverage_of_an_exponent() -> None:
    def simulate(chance: random.Random) -> tuple[Interval, float]:
        points = [(x, y) for x in (1, 2, 4) for y in scattered(chance, 100 * x**0.8, 0.05, 3)]
        return exponent([points]), 0.8

    assert coverage(simulate) == pytest.approx(0.95, abs=TOLERATED)


def test_coverage_of_an_exponent_with_noise_between_runs() -> None:
    def simulate(chance: random.Random) -> tuple[Interval, float]:
        axis = (1, 2, 4)
        runs = shared_noise(chance, [100 * x**0.8 for x in axis])
        return exponent([[*zip(axis, run, strict=True)] for run in runs]), 0.8

    assert coverage(simulate) == pytest.approx(0.95, abs=TOLERATED)
