import random

from plimsoll.measure.line.curve import Trial, drift_bayes_factor


def course(drift: float, seed: int, number: int = 40, noise: float = 0.02) -> list[Trial]:
    """Return trials of a staircase whose line moves by `drift` from the first to the last."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    trials: list[Trial] = []
    position = 7.0
    for index in range(number):
        line = 7.0 + drift * index / (number - 1)
        trials.append(Trial(position, met=position < line + chance.gauss(0, noise)))
        position += 0.06 if trials[-1].met else -0.06
    return trials


def test_a_line_that_moves_is_evident_in_both_directions() -> None:
    for seed in range(5):
        assert drift_bayes_factor(course(-0.8, seed)) > 20
        assert drift_bayes_factor(course(0.8, seed)) > 20


def test_a_line_that_stays_seldom_seems_to_move() -> None:
    evidence = [drift_bayes_factor(course(0, seed)) for seed in range(20)]
    assert max(evidence) < 20
    assert sorted(evidence)[10] < 1


def test_one_trial_shows_no_drift() -> None:
    assert drift_bayes_factor([Trial(7.0, met=True)]) == 1
