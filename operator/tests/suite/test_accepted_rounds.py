"""Which rounds of a suite are the baseline of the next one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite_status import Conclusion
from plimsoll.suite.measured import MeasuredRound
from support.simulated_comparisons import Course, Rounds, drawn, everywhere

SUITE = Rounds(points=2, noise=0.005)


def course_of(*rounds: MeasuredRound) -> Course:
    course = Course()
    course.add(*rounds)
    return course


def rounds(seed: int, number: int, first: int = 0, loss: float = 0.0) -> list[MeasuredRound]:
    chance = drawn(seed)
    return [SUITE.round(chance, minute, everywhere(loss, 2)) for minute in range(first, first + number)]


def minutes(course: Course) -> tuple[list[int], list[int]]:
    return [measured.minute for measured in course.accepted], [measured.minute for measured in course.pinned]


def test_rounds_are_accepted_and_the_first_five_pinned() -> None:
    assert minutes(course_of(*rounds(1, 7))) == ([*range(7)], [*range(5)])


@given(st.integers(min_value=0, max_value=10**6), st.floats(min_value=0.12, max_value=0.9))
def test_after_a_regressed_round_is_accepted_the_same_numbers_pass(seed: int, loss: float) -> None:
    lost = rounds(seed + 1, 1, 5, loss)[0]
    course = course_of(*rounds(seed, 5), lost)
    assert minutes(course) == ([*range(5)], [*range(5)])
    assert course.judged(replace(lost, minute=6)).conclusion is Conclusion.REGRESSION
    course.accept(5)
    assert minutes(course) == ([5], [5])
    for minute in range(6, 10):
        assert course.add(replace(lost, minute=minute)).conclusion is not Conclusion.REGRESSION
    assert course.judged(replace(lost, minute=11)).conclusion is Conclusion.NO_REGRESSION
    assert minutes(course) == ([5, 6, 7, 8, 9], [5, 6, 7, 8, 9])


def test_a_former_round_is_accepted_with_those_after_it() -> None:
    course = course_of(*rounds(1, 8))
    course.accept(2)
    assert minutes(course) == ([2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    "change", [{"is_complete": False}, {"doubts": {"v0": ["4 of 5 trials were repeated"]}}], ids=["runs", "doubt"]
)
def test_a_round_that_is_no_basis_is_not_accepted(change: dict[str, object]) -> None:
    course = course_of(*rounds(1, 5), replace(rounds(2, 1, 5)[0], **change))  # type: ignore[arg-type]
    assert minutes(course)[0] == [*range(5)]


def test_a_round_of_another_digest_starts_a_new_baseline() -> None:
    other = [replace(measured, digest="other") for measured in rounds(2, 2, 5, 0.5)]
    assert minutes(course_of(*rounds(1, 5), *other)) == ([5, 6], [5, 6])
