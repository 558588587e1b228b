import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.timeline import (
    NANOSECONDS,
    Coverage,
    Interval,
    common_interval,
    covering,
    joined,
    window_of,
)

intervals = st.builds(
    lambda start, length: Interval(start=start, end=start + length), st.integers(0, 2**62), st.integers(0, 10**14)
)


def seconds(start: float, end: float) -> Interval:
    return Interval(start=int(start * NANOSECONDS), end=int(end * NANOSECONDS))


def test_common_window_spread_and_overlap() -> None:
    window = window_of([seconds(0, 60), seconds(1, 61), seconds(3, 63)])
    assert window is not None
    assert (window.start_nanoseconds, window.end_nanoseconds) == (3 * NANOSECONDS, 60 * NANOSECONDS)
    assert window.seconds == 57
    assert window.spread_seconds == 3
    assert (window.last_end_nanoseconds, window.whole_seconds) == (63 * NANOSECONDS, 63)
    assert window.overlap == 0.95


def test_one_client_overlaps_with_itself() -> None:
    window = window_of([seconds(5, 65)])
    assert window is not None
    assert (window.overlap, window.spread_seconds, window.seconds) == (1, 0, 60)


def test_clients_that_never_ran_together_show_the_gap() -> None:
    window = window_of([seconds(0, 10), seconds(30, 40)])
    assert window is not None
    assert (window.seconds, window.overlap, window.spread_seconds) == (0, 0, 30)
    assert window.end_nanoseconds < window.start_nanoseconds


def test_no_clients_have_no_window() -> None:
    assert (window_of([]), common_interval([])) == (None, None)


def test_intervals_without_length_overlap_nowhere() -> None:
    window = window_of([seconds(1, 1), seconds(1, 1)])
    assert window is not None
    assert window.overlap == 0


@given(st.lists(intervals, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_window_does_not_depend_on_the_order_of_clients(items: list[Interval], random: object) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    assert window_of(items) == window_of(shuffled)


@given(st.lists(intervals, min_size=1, max_size=12))
def test_overlap_is_a_ratio_and_the_common_window_lies_within_every_interval(items: list[Interval]) -> None:
    window, common, union = window_of(items), common_interval(items), covering(items)
    assert window is not None
    assert common is not None
    assert union is not None
    assert 0 <= window.overlap <= 1
    assert window.spread_seconds >= 0
    assert all(item.clipped(common) == common.length for item in items if common.length)
    assert all(union.start <= item.start <= item.end <= union.end for item in items)


@given(intervals, intervals)
def test_clipping_is_symmetric(one: Interval, other: Interval) -> None:
    assert one.clipped(other) == other.clipped(one) <= min(one.length, other.length)


@pytest.mark.parametrize(("start", "end", "expected"), [(0, 5, 5), (3, 20, 7), (10, 20, 0), (-5, 2, 2)])
def test_clipping(start: int, end: int, expected: int) -> None:
    assert Interval(start=0, end=10).clipped(Interval(start=start, end=end)) == expected


@given(st.lists(intervals, max_size=8), intervals)
def test_coverage_is_the_sum_of_what_each_stretch_covers(stretches: list[Interval], interval: Interval) -> None:
    union = joined(stretches)
    assert Coverage(union).within(interval) == sum(interval.clipped(stretch) for stretch in union)
