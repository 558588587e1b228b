"""Which rounds of a suite are the baseline of the next one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.values import RegressionRule
from plimsoll.suite.history.judging import History, RoundJudgement, judge
from plimsoll.suite.history.rounds import MeasuredRound
from support.simulated_comparisons import Rounds, drawn, everywhere

SUITE = Rounds(points=2, noise=0.005)


def judged(history: History, measured: MeasuredRound) -> RoundJudgement:
    return judge(history.accepted, history.pinned, measured, ["v0"], RegressionRule())


def extended(history: History, *rounds: MeasuredRound) -> History:
    for measured in rounds:
        history = history.extended(measured, [judged(history, measured)])
    return history


def rounds(seed: int, number: int, first: int = 0, loss: float = 0.0) -> list[MeasuredRound]:
    chance = drawn(seed)
    return [SUITE.round(chance, minute, everywhere(loss, 2)) for minute in range(first, first + number)]


def minutes(history: History) -> tuple[list[int], list[int]]:
    return [one.minute for one in history.accepted], [one.minute for one in history.pinned]


def test_rounds_are_accepted_and_the_first_five_pinned() -> None:
    assert minutes(extended(History(), *rounds(1, 7))) == ([*range(7)], [*range(5)])


def test_a_regressed_round_is_not_accepted() -> None:
    history = extended(History(), *rounds(1, 5), *rounds(2, 1, 5, 0.2))
    assert history.rounds[-1].regressed
    assert minutes(history) == ([*range(5)], [*range(5)])


@given(st.integers(min_value=0, max_value=10**6), st.floats(min_value=0.12, max_value=0.9))
def test_after_a_regressed_round_is_accepted_the_same_numbers_pass(seed: int, loss: float) -> None:
    lost = rounds(seed + 1, 1, 5, loss)[0]
    history = extended(History(), *rounds(seed, 5), lost)
    assert history.rounds[-1].regressed
    assert judged(history, replace(lost, minute=6)).conclusion is Conclusion.REGRESSION
    history = history.accept(5)
    assert minutes(history) == ([5], [5])
    for minute in range(6, 10):
        again = replace(lost, minute=minute)
        assert judged(history, again).conclusion is not Conclusion.REGRESSION
        history = extended(history, again)
    assert judged(history, replace(lost, minute=11)).conclusion is Conclusion.NO_REGRESSION
    assert minutes(history) == ([5, 6, 7, 8, 9], [5, 6, 7, 8, 9])


def test_a_former_round_is_accepted_with_those_after_it() -> None:
    history = extended(History(), *rounds(1, 8)).accept(2)
    assert minutes(history) == ([2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    "change", [{"is_complete": False}, {"doubts": {"v0": ["4 of 5 trials were repeated"]}}], ids=["runs", "doubt"]
)
def test_a_round_that_is_no_basis_is_not_accepted(change: dict[str, object]) -> None:
    history = extended(History(), *rounds(1, 5), replace(rounds(2, 1, 5)[0], **change))  # type: ignore[arg-type]
    assert minutes(history)[0] == [*range(5)]


def test_a_round_of_another_digest_starts_a_new_baseline() -> None:
    other = [replace(one, digest="other") for one in rounds(2, 2, 5, 0.5)]
    assert minutes(extended(History(), *rounds(1, 5), *other)) == ([5, 6], [5, 6])


def test_only_a_complete_round_of_the_history_can_be_accepted() -> None:
    history = extended(History(), *rounds(1, 2), replace(rounds(2, 1, 2)[0], is_complete=False))
    with pytest.raises(ValueError, match="there is no round 7; the rounds are 0, 1, 2"):
        history.accept(7)
    with pytest.raises(ValueError, match="round 2 lacks runs; complete it first"):
        history.accept(2)
