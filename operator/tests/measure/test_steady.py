from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.measure.checks.load import not_steady
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint
from plimsoll.measure.rates import MAX_RANGE, MAX_SLOPE, ROUNDS, rough_steadiness_of, steadiness, steady_state_of
from plimsoll.measure.sample import Cells, LatencySlices, OperationSample
from plimsoll.measure.timeline import Interval, Share
from support.client_documents import (
    BLOCK,
    RUNTIME,
    SECOND,
    T0,
    document,
    latency,
    measure,
    measurement,
    only,
    operation,
)

MINUTE = 60
WINDOW = Interval(start=T0, end=T0 + MINUTE * SECOND)
MILLISECOND = 10**6


def changing(rates: Sequence[float], slices: LatencySlices | None = None) -> OperationSample:
    """Make an operation of a minute with the given rates in equal parts of it."""
    cells = tuple(float(rates[second * len(rates) // MINUTE]) for second in range(MINUTE))
    ios = round(sum(cells))
    series = Cells(width_nanoseconds=SECOND, ios=cells, bytes=tuple(cell * BLOCK for cell in cells))
    return operation(ios=ios, bytes=ios * BLOCK, cells=series, latency=latency(ios), slices=slices)


def sliced(values: Sequence[int], count: int = 6000, width: int = 3) -> LatencySlices:
    """Make slices that hold one latency each, given in ms."""
    texts = [Histogram(counts={bin_index(value * MILLISECOND): count}).encode() for value in values]
    return LatencySlices(width_nanoseconds=width * SECOND, histograms=tuple(texts))


def share(sample: OperationSample, late: float = 0.0) -> Share:
    start = T0 + round(late * SECOND)
    return Share(sample=sample, interval=Interval(start=start, end=start + MINUTE * SECOND))


positive = st.lists(st.floats(1, 1e7), min_size=ROUNDS, max_size=ROUNDS)


@pytest.mark.parametrize(
    ("rounds", "range_ratio", "slope_ratio", "attained"),
    [
        ([100, 100, 100, 100, 100], 0, 0, True),
        # Range exactly at its limit, without a drift.
        ([110, 90, 100, 90, 110], 0.2, 0, True),
        ([111, 90, 100, 90, 109], 0.21, 0.016, False),
        # A line that rises by exactly 10 % of the mean.
        ([95, 97.5, 100, 102.5, 105], 0.1, 0.1, True),
        ([94.5, 97.25, 100, 102.75, 105.5], 0.11, 0.11, False),
        ([105.5, 102.75, 100, 97.25, 94.5], 0.11, 0.11, False),
    ],
)
def test_criterion(rounds: list[float], range_ratio: float, slope_ratio: float, *, attained: bool) -> None:
    result = steadiness(rounds)
    assert (result.attained, result.rounds) == (attained, tuple(rounds))
    assert result.range_ratio == pytest.approx(range_ratio)
    assert result.slope_ratio == pytest.approx(slope_ratio)


@given(positive, st.floats(0.01, 100))
def test_criterion_knows_no_unit_and_no_direction_of_time(rounds: list[float], factor: float) -> None:
    result = steadiness(rounds)
    scaled = steadiness([factor * value for value in rounds])
    assert scaled.range_ratio == pytest.approx(result.range_ratio, rel=1e-6, abs=1e-5)
    assert scaled.slope_ratio == pytest.approx(result.slope_ratio, rel=1e-6, abs=1e-5)
    backwards = steadiness(rounds[::-1])
    assert backwards.range_ratio == result.range_ratio
    assert backwards.slope_ratio == pytest.approx(result.slope_ratio, abs=1e-5)


@given(positive)
def test_what_is_attained_lies_within_a_fifth_of_the_mean(rounds: list[float]) -> None:
    result = steadiness(rounds)
    mean = sum(rounds) / ROUNDS
    if result.attained:
        assert max(rounds) - min(rounds) <= MAX_RANGE * mean * (1 + 1e-9)
        assert result.slope_ratio <= MAX_SLOPE + 1e-6


def test_rounds_are_of_the_sum_of_all_clients() -> None:
    falling, rising = changing([120, 110, 100, 90, 80]), changing([80, 90, 100, 110, 120])
    state = steady_state_of([share(falling), share(rising)], WINDOW)
    assert state is not None
    assert state.round_seconds == 12
    assert list(state.rate.rounds) == [200] * 5
    assert state.rate.attained
    alone = steady_state_of([share(falling)], WINDOW)
    assert alone is not None
    assert alone.rate.slope_ratio == pytest.approx(0.4)


def test_percentile_of_a_round_is_of_all_clients_slices_with_their_midpoint_in_it() -> None:
    slow = sliced([1] * 8 + [5] * 4 + [1] * 8)
    fast = sliced([1] * 20)
    state = steady_state_of([share(changing([200], slow)), share(changing([200], fast), late=1)], WINDOW)
    assert state is not None
    assert state.p99 is not None
    one, five = (bin_midpoint(bin_index(value * MILLISECOND)) for value in (1, 5))
    assert list(state.p99.rounds) == [one, one, five, one, one]
    assert not state.p99.attained
    assert state.rate.attained


def test_percentile_may_lack_the_last_partial_slice() -> None:
    state = steady_state_of([share(changing([200], sliced([1] * 19)))], WINDOW)
    assert state is not None
    assert state.p99 is not None
    assert state.p99.attained


@pytest.mark.parametrize(
    "slices",
    [
        None,
        sliced([1] * 20, count=1499),
        sliced([1] * 18, count=50_000),
        LatencySlices(width_nanoseconds=3 * SECOND, histograms=("damaged",)),
        LatencySlices(width_nanoseconds=0, histograms=()),
    ],
    ids=["absent", "too few operations", "the last two missing", "damaged", "no width"],
)
def test_an_unknown_percentile_is_absent(slices: LatencySlices | None) -> None:
    good = share(changing([200], sliced([1] * 20, count=1000)))
    state = steady_state_of([good, share(changing([200], slices))], WINDOW)
    assert state is not None
    assert state.p99 is None
    assert state.rate.attained


def test_short_windows_and_clients_without_series_are_not_judged() -> None:
    short = Interval(start=T0, end=T0 + 50 * SECOND - 1)
    assert steady_state_of([share(changing([9]))], short) is None
    assert steady_state_of([share(changing([9]))], Interval(start=T0, end=T0 + 50 * SECOND)) is not None
    lacking = share(changing([9]).model_copy(update={"cells": None}))
    assert steady_state_of([share(changing([9])), lacking], WINDOW) is None
    assert steady_state_of([share(changing([0]))], WINDOW) is None


@pytest.mark.parametrize(("rates", "is_plain"), [([100, 200], True), ([200, 100], True), ([100, 120], False)])
def test_a_short_window_is_judged_by_what_is_plain_and_nothing_is_published(
    rates: list[float], *, is_plain: bool
) -> None:
    cells = tuple(float(rates[second * 2 // RUNTIME]) for second in range(RUNTIME))
    ios = round(sum(cells))
    series = Cells(width_nanoseconds=SECOND, ios=cells, bytes=tuple(cell * BLOCK for cell in cells))
    numbers = measure(
        document(0, measurement(operation(ios=ios, bytes=ios * BLOCK, cells=series, latency=latency(ios))))
    )
    assert [finding.reason for finding in numbers.findings] == (["NotSteady"] if is_plain else [])
    assert numbers.operations[0].steady_state is None


def test_few_operations_and_seconds_are_not_even_judged_roughly() -> None:
    few, many = share(changing([1, 3])), share(changing([1000, 3000]))
    short = Interval(start=T0, end=T0 + 40 * SECOND)
    assert rough_steadiness_of([few], short) is None
    assert rough_steadiness_of([many], short) is not None
    assert rough_steadiness_of([many], Interval(start=T0, end=T0 + 10 * SECOND - 1)) is None
    assert rough_steadiness_of([many], WINDOW) is None, "the criterion itself judges it"
    lacking = share(changing([1000]).model_copy(update={"cells": None}))
    assert rough_steadiness_of([many, lacking], short) is None


def test_drift_makes_a_trial_suspect_with_its_size() -> None:
    falling = changing([140, 120, 100, 80, 60])
    rising = changing([160, 180, 200, 220, 240]).model_copy(update={"operation": Operation.READ})
    minute = {"runtime_seconds": MINUTE}
    numbers = measure(document(0, measurement(rising, falling, runtime=MINUTE * SECOND)), **minute)
    finding = only(numbers, not_steady.reason)
    assert finding.message.startswith(
        "write operations/s over five rounds: range 80 % of the mean (SNIA permits 20 %), drift 80 % (10 %); lengthen"
    )
    steady = changing([100]).model_copy(update={"operation": Operation.READ})
    numbers = measure(document(0, measurement(steady, changing([100]), runtime=MINUTE * SECOND)), **minute)
    assert numbers.findings == ()
    assert numbers.operations[0].steady_state is not None


def test_the_table_of_checks_names_the_limits_of_the_criterion() -> None:
    assert f"range {MAX_RANGE:.0%}, drift {MAX_SLOPE:.0%}".replace("%", " %") in not_steady.what
