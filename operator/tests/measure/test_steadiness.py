"""Which changes of rate and tail latency are found, and which are taken for chance.

Storages are simulated with fixed seeds: operations of each second, and of their latencies the slowest percent.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.operation import Steadiness, SteadinessState
from plimsoll.measure.checks.load import not_steady
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint
from plimsoll.measure.intake import Offer
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Cells, LatencySlices, OperationSample
from plimsoll.measure.steadiness import (
    LEAST_DEVIATIONS,
    MAX_LATENCY_CHANGE,
    MAX_RATE_CHANGE,
    MAX_SHIFT,
    MAX_SHIFT_OF_FEW,
    deviations_of,
    doubts_about,
    latency_steadiness,
    rate_steadiness,
)
from plimsoll.measure.timeline import Interval, Share
from support.client_documents import BLOCK, SECOND, T0, document, latency, measure, measurement, only, operation

MINUTE = 60
MILLISECOND = 10**6
WINDOW = Interval(start=T0, end=T0 + MINUTE * SECOND)
STEADY, NOT_STEADY, UNKNOWN = SteadinessState.STEADY, SteadinessState.NOT_STEADY, SteadinessState.UNKNOWN


def of_cells(cells: Sequence[float], slices: LatencySlices | None = None) -> OperationSample:
    """Make an operation with this many completions in each second."""
    ios = round(math.fsum(cells))
    series = Cells(width_nanoseconds=SECOND, ios=tuple(cells), bytes=tuple(cell * BLOCK for cell in cells))
    return operation(ios=ios, bytes=ios * BLOCK, cells=series, latency=latency(ios), slices=slices)


def changing(rates: Sequence[float], seconds: int = MINUTE) -> OperationSample:
    """Make an operation with the given rates in equal parts of its time."""
    return of_cells([float(rates[second * len(rates) // seconds]) for second in range(seconds)])


def share(sample: OperationSample, late: float = 0.0) -> Share:
    start = T0 + round(late * SECOND)
    seconds = len(sample.cells.ios) if sample.cells else MINUTE
    return Share(sample=sample, interval=Interval(start=start, end=start + seconds * SECOND))


def judged(*samples: OperationSample, seconds: int = MINUTE) -> Steadiness:
    state = rate_steadiness([share(sample) for sample in samples], Interval(start=T0, end=T0 + seconds * SECOND))
    assert state is not None
    return state


# The rate


@pytest.mark.parametrize(
    ("rates", "part", "change", "state"),
    [
        ([1000], (0, 12), 0, STEADY),
        ([1000, 900], (0, 30), 100 / 950, NOT_STEADY),
        ([1000, 910], (0, 30), 90 / 955, STEADY),
        ([1600, 1000, 1000, 1000, 1000], (0, 12), 600 / 1120, NOT_STEADY),
        ([1000, 1000, 1000, 1000, 400], (48, 60), -600 / 880, NOT_STEADY),
        ([1000, 1000, 2000, 2000, 1000], (24, 48), 1000 / 1400, NOT_STEADY),
        ([10_000, 1000, 1000, 1000, 1000], (0, 12), 9000 / 2800, NOT_STEADY),
    ],
)
def test_the_part_that_differs_most_is_found(
    rates: list[float], part: tuple[float, float], change: float, state: SteadinessState
) -> None:
    found = judged(changing(rates))
    assert found.state is state
    assert found.change == pytest.approx(change, abs=0.001)
    if change:
        assert (found.start_seconds, found.end_seconds) == part
        assert found.inside - found.outside == pytest.approx(change * sum(rates) / len(rates), rel=0.001)


@pytest.mark.parametrize("seconds", [10, 15, 30, 45, 90, 600])
def test_one_test_for_every_length_of_the_window(seconds: int) -> None:
    assert judged(changing([1000], seconds), seconds=seconds).state is STEADY
    falling = of_cells([5000 * (1 - 0.4 * (second + 0.5) / seconds) for second in range(seconds)])
    assert judged(falling, seconds=seconds).state is NOT_STEADY
    assert judged(changing([1600, 1000, 1000, 1000, 1000], seconds), seconds=seconds).state is NOT_STEADY
    assert judged(changing([10_000, 1000, 1000], seconds), seconds=seconds).state is NOT_STEADY


@given(st.lists(st.integers(0, 10**6), min_size=10, max_size=80).filter(any))
def test_neither_the_direction_of_time_nor_more_storage_of_the_same_kind_matters(cells: list[int]) -> None:
    seconds = len(cells)
    found, backwards = judged(of_cells(cells), seconds=seconds), judged(of_cells(cells[::-1]), seconds=seconds)
    assert abs(backwards.change) == pytest.approx(abs(found.change), rel=1e-3, abs=1e-5)
    # Twice the operations scatter less by counting, and never more.
    twice = judged(of_cells([2 * cell for cell in cells]), seconds=seconds)
    assert twice.change == pytest.approx(found.change, rel=1e-3, abs=1e-5)
    assert twice.deviation <= found.deviation + 1e-5


def test_what_counting_scatters_hides_a_change_of_few_operations() -> None:
    """The change of 18 % of 750 operations is two standard deviations of counting; of 150,000 it is thirty."""
    few, many = judged(changing([13.75, 11.25])), judged(changing([2750, 2250]))
    assert few.change == pytest.approx(many.change, abs=1e-4)
    assert (few.state, many.state) == (UNKNOWN, NOT_STEADY)
    assert few.deviation == pytest.approx(2 / math.sqrt(750), rel=0.01)


def test_bytes_are_not_counted() -> None:
    """A tool that counts only bytes has no operations to scatter; its rounds show what chance is."""
    sample = changing([13.75, 11.25])
    assert sample.cells is not None
    bytes_only = sample.model_copy(update={"ios": 0, "cells": sample.cells.model_copy(update={"ios": (0.0,) * MINUTE})})
    found = rate_steadiness([share(bytes_only)], WINDOW, Quantities(operations=False))
    assert found is not None
    assert (found.state, found.deviation) == (NOT_STEADY, 0)
    assert found.inside == pytest.approx(13.75 * BLOCK)
    assert deviations_of(found) == 1000


def test_all_operations_and_all_clients_count_together() -> None:
    falling, rising = changing([120, 110, 100, 90, 80]), changing([80, 90, 100, 110, 120])
    assert judged(falling).state is not STEADY
    assert judged(falling, rising).change == 0
    reads = rising.model_copy(update={"operation": Operation.READ})
    assert judged(falling, reads).state is STEADY
    syncs = falling.model_copy(update={"operation": Operation.SYNC, "cells": None})
    assert judged(falling, reads, syncs).state is STEADY, "no tool keeps a series of its syncs"


def test_a_window_that_is_too_short_and_clients_without_series_are_not_judged() -> None:
    good = share(changing([9]))
    assert rate_steadiness([good], Interval(start=T0, end=T0 + 5 * SECOND - 1)) is None
    assert rate_steadiness([good], Interval(start=T0, end=T0 + 5 * SECOND)) is not None
    lacking = share(changing([9]).model_copy(update={"cells": None}))
    assert rate_steadiness([good, lacking], WINDOW) is None
    assert rate_steadiness([share(changing([0]))], WINDOW) is None
    assert rate_steadiness([], WINDOW) is None


# Short bursts, and short windows


def burst(seconds: int, start: float, end: float, factor: float, rate: float = 1000) -> OperationSample:
    """Make an operation with another rate from one part of its time to another, to the tenth of a second."""
    tenths = [rate / 10 * (factor if start <= tenth / 10 / seconds < end else 1) for tenth in range(10 * seconds)]
    return of_cells([math.fsum(tenths[10 * second : 10 * second + 10]) for second in range(seconds)])


@pytest.mark.parametrize("seconds", [20, 30, 60, 600])
@pytest.mark.parametrize(
    ("start", "end", "factor"),
    [(0, 0.1, 10), (0.37, 0.47, 10), (0.9, 1, 10), (0.4, 0.6, 10), (0.33, 0.38, 10), (0, 0.15, 4)],
)
def test_a_mean_that_is_not_the_rate_of_most_of_the_window_is_found(
    seconds: int, start: float, end: float, factor: float
) -> None:
    found = judged(burst(seconds, start, end, factor), seconds=seconds)
    assert found.state is NOT_STEADY
    assert found.outside == pytest.approx(1000, rel=0.2)
    assert found.start_seconds == pytest.approx(start * seconds, abs=seconds / 20)
    assert found.end_seconds == pytest.approx(end * seconds, abs=seconds / 20)


def test_a_short_burst_that_hardly_moves_the_mean_or_lowers_it_is_scatter() -> None:
    for start, end, factor in ((0.5, 0.55, 3), (0.4, 0.5, 0), (0.3, 0.45, 0.2), (0.4, 0.6, 0.05)):
        found = judged(burst(60, start, end, factor))
        assert found.state is UNKNOWN
        assert deviations_of(found) == 0


def test_storage_that_completes_nothing_in_most_seconds_has_no_rate_of_most_of_the_window() -> None:
    """Ten batches of 300 operations in a minute."""
    cells = [300.0 if second in {3, 9, 14, 15, 26, 31, 32, 40, 51, 57} else 0.0 for second in range(MINUTE)]
    assert judged(of_cells(cells)).state is UNKNOWN


@pytest.mark.parametrize("seconds", [5, 6, 7, 8, 9])
def test_a_window_under_ten_seconds_is_not_steady_or_unknown(seconds: int) -> None:
    assert judged(changing([1000], seconds), seconds=seconds).state is UNKNOWN
    assert judged(changing([1300, 1000], seconds), seconds=seconds).state is UNKNOWN
    first = of_cells([10_000.0, *[1000.0] * (seconds - 1)])
    assert judged(first, seconds=seconds).state is NOT_STEADY
    last = of_cells([*[1000.0] * (seconds - 1), 10_000.0])
    assert judged(last, seconds=seconds).state is NOT_STEADY


@pytest.mark.parametrize("seconds", [5, 7, 9])
@pytest.mark.parametrize("rate", [5, 300, 5000])
def test_stationary_storage_is_not_marked_in_windows_under_ten_seconds(rate: float, seconds: int) -> None:
    for course in (constant, partial(independent, 0.1), partial(independent, 0.3), partial(correlated, 0.1, 2.0)):
        assert states(course, rate, seconds)[NOT_STEADY] <= 1
    assert states(partial(pausing, 6.0, 1.0, 0.1), rate, seconds)[NOT_STEADY] <= 3


@pytest.mark.parametrize(("seconds", "is_short"), [(3, True), (9, True), (10, False)])
def test_a_trial_says_that_its_window_is_too_short(seconds: int, is_short: bool) -> None:  # noqa: FBT001 - a case
    numbers = measure(
        document(0, measurement(changing([1000], seconds), runtime=seconds * SECOND)), runtime_seconds=seconds
    )
    assert numbers.verdict is Verdict.VALID
    words = f"the window of {seconds} s is too short to show whether the rate was steady; measure for 10 s or longer"
    assert [warning for warning in numbers.warnings if "steady" in warning] == ([words] if is_short else [])


def test_a_clear_change_of_a_short_window_is_not_called_scatter() -> None:
    sample = of_cells([10_000.0] * 4 + [5_000.0] * 4)
    numbers = measure(document(0, measurement(sample, runtime=8 * SECOND)), runtime_seconds=8)
    assert numbers.steadiness is not None
    assert abs(numbers.steadiness.change) > 10 * numbers.steadiness.deviation
    assert [warning for warning in numbers.warnings if "steady" in warning] == [
        "the window of 8 s is too short to show whether the rate was steady; measure for 10 s or longer"
    ]


def in_turn(second: int) -> float:
    return 1.0 if second // 15 % 2 == 0 else 1 / 3


def falling_and_rising(second: int) -> float:
    return 1 - 1.4 * min(second + 0.5, MINUTE - second - 0.5) / MINUTE


WORDS = "it is unknown whether the rate was steady"


@pytest.mark.parametrize("pace", [in_turn, falling_and_rising])
@pytest.mark.parametrize("rate", [300, 20_000])
def test_changes_that_the_test_takes_for_scatter_are_named_although_it_is_unknown_what_they_are(
    pace: Callable[[int], float], rate: float
) -> None:
    chance = random.Random(f"{pace.__name__} {rate}")  # noqa: S311 - numbers, not secrets
    sample = of_cells([float(round(chance.gauss(rate * pace(s), math.sqrt(rate)))) for s in range(MINUTE)])
    numbers = measure(document(0, measurement(sample, runtime=MINUTE * SECOND)), runtime_seconds=MINUTE)
    assert numbers.steadiness is not None
    assert numbers.steadiness.state is UNKNOWN
    (line,) = [warning for warning in numbers.warnings if warning.startswith(WORDS)]
    assert "of the mean, but the scatter is too large to call that a change" in line
    assert numbers.verdict is Verdict.VALID


def test_a_short_window_that_is_not_steady_has_its_finding_instead() -> None:
    sample = of_cells([10_000.0, *[1000.0] * 5])
    numbers = measure(document(0, measurement(sample, runtime=6 * SECOND)), runtime_seconds=6)
    assert "10000 in the first 1 s of 6 s, 1000 in the rest" in only(numbers, not_steady.reason).message
    assert not [warning for warning in numbers.warnings if "too short" in warning]


# Chance: storages that are stationary, and others that are not

Course = Callable[[random.Random, int], Iterator[float]]
"""Yields what a storage can do in each second, as a part of its usual rate."""


def constant(_: random.Random, seconds: int) -> Iterator[float]:
    yield from [1.0] * seconds


def independent(deviation: float, chance: random.Random, seconds: int) -> Iterator[float]:
    for _ in range(seconds):
        yield math.exp(chance.gauss(0, deviation))


def correlated(deviation: float, lasts: float, chance: random.Random, seconds: int) -> Iterator[float]:
    """An autoregressive process (AR(1)) whose scatter decays within `lasts` seconds."""
    decay, value = math.exp(-1 / lasts), chance.gauss(0, 1)
    for _ in range(seconds):
        yield math.exp(deviation * value)
        value = decay * value + math.sqrt(1 - decay * decay) * chance.gauss(0, 1)


def pausing(per_minute: float, lasts: float, left: float, chance: random.Random, seconds: int) -> Iterator[float]:
    """Garbage collection: pauses at random times, of half to one and a half times their usual length."""
    tenths = [1.0] * (10 * seconds)
    moment = -MINUTE + chance.expovariate(per_minute / 60)
    while moment < seconds:
        end = moment + lasts * chance.uniform(0.5, 1.5)
        for tenth in range(max(0, int(10 * moment)), max(0, min(10 * seconds, int(10 * end)))):
            tenths[tenth] = left
        moment += chance.expovariate(per_minute / 60)
    yield from (sum(tenths[10 * second : 10 * second + 10]) / 10 for second in range(seconds))


def shaped(shape: Callable[[float], float], course: Course, chance: random.Random, seconds: int) -> Iterator[float]:
    for second, value in enumerate(course(chance, seconds)):
        yield value * sum(shape((second + (part + 0.5) / 20) / seconds) for part in range(20)) / 20


def poisson(chance: random.Random, mean: float) -> int:
    if mean > 20:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count


def states(
    course: Course, rate: float, seconds: int, *, batch: int = 1, trials: int = 60
) -> dict[SteadinessState, int]:
    """Return how many of a hundred trials are judged how; `batch` operations complete at once."""
    counts = dict.fromkeys(SteadinessState, 0)
    for number in range(trials):
        chance = random.Random(f"{rate} {seconds} {batch} {number}")  # noqa: S311 - numbers, not secrets
        cells = [float(batch * poisson(chance, rate / batch * value)) for value in course(chance, seconds)]
        if any(cells):
            counts[judged(of_cells(cells), seconds=seconds).state] += 1
    return counts


STATIONARY: dict[str, Course] = {
    "no scatter but counting": constant,
    "10 % from second to second": partial(independent, 0.10),
    "30 % from second to second": partial(independent, 0.30),
    "10 % that last 2 s": partial(correlated, 0.10, 2.0),
    "garbage collection of a second": partial(pausing, 6.0, 1.0, 0.1),
    "garbage collection of 3 s": partial(pausing, 1.0, 3.0, 0.3),
}


@pytest.mark.parametrize("rate", [5, 100, 300, 50_000])
@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_storage_is_not_marked(name: str, rate: float) -> None:
    for seconds in (60, 300):
        assert states(STATIONARY[name], rate, seconds)[NOT_STEADY] <= 1, seconds


@pytest.mark.parametrize("rate", [5, 300, 50_000])
@pytest.mark.parametrize("name", STATIONARY)
def test_scatter_of_stationary_storage_is_no_change_of_states(name: str, rate: float) -> None:
    for seconds in (20, 60):
        named = 0
        for number in range(60):
            chance = random.Random(f"{rate} {seconds} {number}")  # noqa: S311 - numbers, not secrets
            sample = of_cells([float(poisson(chance, rate * value)) for value in STATIONARY[name](chance, seconds)])
            window = Interval(start=T0, end=T0 + seconds * SECOND)
            named += bool(doubts_about(judged(sample, seconds=seconds), [share(sample)], window))
        assert named <= (7 if "3 s" in name else 2), seconds


@pytest.mark.parametrize("seconds", [10, 20, 60])
def test_bursts_of_completions_are_not_marked(seconds: int) -> None:
    assert states(constant, 300, seconds, batch=32)[NOT_STEADY] <= 3
    assert states(constant, 50_000, seconds, batch=32)[NOT_STEADY] == 0


@pytest.mark.parametrize("rate", [5, 30, 300, 5000, 50_000])
def test_in_short_windows_counting_is_not_taken_for_a_change(rate: float) -> None:
    for seconds in (10, 15, 30):
        assert states(constant, rate, seconds)[NOT_STEADY] == 0
        assert states(partial(independent, 0.05), rate, seconds)[NOT_STEADY] <= 1


CHANGING: dict[str, Callable[[float], float]] = {
    "the first third at ten times the rate": lambda time: 10.0 if time < 1 / 3 else 1.0,
    "a linear fall by 40 %": lambda time: 1 - 0.4 * time,
    "the first fifth at 1.6 times the rate": lambda time: 1.6 if time < 0.2 else 1.0,
    "the middle third at twice the rate": lambda time: 2.0 if 1 / 3 < time < 2 / 3 else 1.0,
}


@pytest.mark.parametrize("name", CHANGING)
@pytest.mark.parametrize("scatter", [0.0, 0.05])
def test_storage_that_changes_is_marked_or_unknown_and_never_steady(name: str, scatter: float) -> None:
    course = partial(shaped, CHANGING[name], partial(independent, scatter))
    for seconds in (10, 30, 60):
        for rate in (5, 300, 5000):
            assert states(course, rate, seconds, trials=30)[STEADY] == 0
        if not scatter or seconds > 10:
            assert states(course, 10_000, seconds, trials=30)[NOT_STEADY] >= (27 if scatter else 30)


# The 99th percentile


def sliced(values: Sequence[int], count: int = 6000, width: int = 3) -> LatencySlices:
    """Make slices that hold one latency each, given in ms."""
    texts = [Histogram(counts={bin_index(value * MILLISECOND): count}).encode() for value in values]
    return LatencySlices(width_nanoseconds=width * SECOND, histograms=tuple(texts))


def tailed(tails: Sequence[float], count: int = 6000, tail: float = 0.02) -> LatencySlices:
    """Make slices of which the slowest operations take that many ms, spread by a fifth."""
    texts = []
    for value in tails:
        slow = round(count * tail)
        counts = {bin_index(MILLISECOND // 2): count - slow}
        for place in range(slow):
            index = bin_index(round(value * MILLISECOND * (0.9 + 0.2 * place / slow)))
            counts[index] = counts.get(index, 0) + 1
        texts.append(Histogram(counts=dict(sorted(counts.items()))).encode())
    return LatencySlices(width_nanoseconds=3 * SECOND, histograms=tuple(texts))


def p99_of(*slices: LatencySlices | None) -> Steadiness | None:
    return latency_steadiness([share(of_cells([2000.0] * MINUTE, each)) for each in slices], WINDOW, 99)


def test_percentile_of_a_round_is_of_all_clients_slices_with_their_midpoint_in_it() -> None:
    slow, fast = share(of_cells([2000.0] * MINUTE, sliced([1] * 12 + [5] * 8))), sliced([1] * 20)
    found = latency_steadiness([slow, share(of_cells([2000.0] * MINUTE, fast), late=1)], WINDOW, 99)
    assert found is not None
    one, five = (bin_midpoint(bin_index(value * MILLISECOND)) for value in (1, 5))
    assert (found.start_seconds, found.end_seconds, found.inside, found.outside) == (36, 60, five, one)
    assert found.state is NOT_STEADY


@pytest.mark.parametrize(
    ("tails", "state"),
    [
        ([10.0] * 20, STEADY),
        ([10.0] * 10 + [11.0] * 10, STEADY),
        ([10.0] * 10 + [13.0] * 10, NOT_STEADY),
        ([30.0] * 4 + [10.0] * 16, NOT_STEADY),
        ([10.0, 30.0] * 10, UNKNOWN),
    ],
)
def test_tail_that_changes_is_found(tails: list[float], state: SteadinessState) -> None:
    found = p99_of(tailed(tails))
    assert found is not None
    assert found.state is state


def test_chance_moves_the_percentile_of_few_operations() -> None:
    """Where the tail begins at the percentile itself, single operations decide between half a millisecond and ten."""
    few, many = (p99_of(tailed([10.0] * 10 + [13.0] * 10, count=count, tail=0.0102)) for count in (1000, 100_000))
    assert few is not None
    assert many is not None
    assert few.state is UNKNOWN
    assert few.deviation > many.deviation


def test_percentile_may_lack_the_last_partial_slice() -> None:
    found = p99_of(sliced([1] * 19))
    assert found is not None
    assert found.state is STEADY


@pytest.mark.parametrize(
    "slices",
    [
        None,
        sliced([1] * 20, count=499),
        sliced([1] * 18),
        sliced([1] * 20, count=0),
        sliced([1] * 10 + [20_000] * 10),
        LatencySlices(width_nanoseconds=3 * SECOND, histograms=("damaged",)),
        LatencySlices(width_nanoseconds=0, histograms=()),
        sliced([1] * 9, width=7),
    ],
    ids=[
        "absent",
        "too few operations",
        "the last two missing",
        "empty",
        "beyond the histogram",
        "damaged",
        "no width",
        "too few slices",
    ],
)
def test_an_unknown_percentile_is_absent(slices: LatencySlices | None) -> None:
    assert p99_of(slices) is None


@pytest.mark.parametrize(
    ("tails", "part"),
    [
        ([10.0] * 20, None),
        ([10.0] * 10 + [11.0] * 10, None),
        ([10.0] * 10 + [30.0] * 10, (0, 30)),
        ([30.0] * 4 + [10.0] * 16, (0, 12)),
        ([10.0, 30.0] * 10, None),
        ([10.0] * 8 + [90.0] + [10.0] * 11, None),
    ],
)
def test_few_operations_show_a_change_of_their_tail_by_when_the_slowest_of_them_were(
    tails: list[float], part: tuple[float, float] | None
) -> None:
    """Of 300 operations in each slice, three exceed their 99th percentile."""
    sample = of_cells([100.0] * MINUTE, tailed(tails, count=300, tail=0.03))
    found = latency_steadiness([share(sample)], WINDOW, 99)
    assert (None if found is None else (found.start_seconds, found.end_seconds)) == part
    if found is not None:
        assert found.state is NOT_STEADY
        slow, fast = max(found.inside, found.outside), min(found.inside, found.outside)
        assert slow == pytest.approx(30 * MILLISECOND, rel=0.1)
        assert fast == pytest.approx(10 * MILLISECOND, rel=0.1)
        assert abs(found.change) > LEAST_DEVIATIONS * found.deviation


def hesitating(
    chance: random.Random, number: int, sigma: float, late: Callable[[float], float] = lambda _: 0.0
) -> LatencySlices:
    """Make slices of log-normal latencies, of which a part, by the part of the window, takes 20 times as long."""
    slices = [Counter[int]() for _ in range(MINUTE // 3)]
    for _ in range(number):
        time = chance.random()
        factor = 20 if chance.random() < late(time) else 1
        slices[int(time * len(slices))][bin_index(int(factor * 8e6 * math.exp(chance.gauss(0, sigma))))] += 1
    texts = tuple(Histogram(counts=dict(sorted(counts.items()))).encode() for counts in slices)
    return LatencySlices(width_nanoseconds=3 * SECOND, histograms=texts)


@pytest.mark.parametrize("number", [1500, 6000])
def test_the_tail_of_few_operations_is_marked_if_it_changes_and_not_if_it_comes_in_clusters(number: int) -> None:
    marked = Counter[str]()
    for trial in range(20):
        chance = random.Random(f"{number} {trial}")  # noqa: S311 - numbers, not secrets
        begins = [chance.random() for _ in range(6)]
        for name, late in (
            ("steady", lambda _: 0.01),
            ("hiccups of a second", lambda time: 0.3 * any(0 < time - begin < 1 / MINUTE for begin in begins)),  # noqa: B023
            ("last fifth", lambda time: 0.1 * (time > 0.8)),
        ):
            sample = of_cells([number / MINUTE] * MINUTE, hesitating(chance, number, 0.7, late))
            found = latency_steadiness([share(sample)], WINDOW, 99)
            marked[name] += found is not None and found.state is NOT_STEADY
    assert (marked["steady"], marked["hiccups of a second"]) == (0, 0)
    assert marked["last fifth"] >= (18 if number == 6000 else 12)


# The median, of workloads that set their rate


def answering(chance: random.Random, rate: float, shape: Callable[[float], float]) -> OperationSample:
    """Make an operation due at random times on one server: log-normal service times, of 20 % of the time on average."""
    moment, waiting, slices = 0.0, 0.0, [Counter[int]() for _ in range(MINUTE // 3)]
    while (moment := moment + (gap := chance.expovariate(rate))) < MINUTE:
        service = 0.2 / rate * math.exp(chance.gauss(-0.245, 0.7)) * shape(moment / MINUTE)
        waiting = max(0.0, waiting - gap) + service
        slices[int(moment / 3)][bin_index(int(waiting * SECOND))] += 1
    texts = tuple(Histogram(counts=dict(sorted(counts.items()))).encode() for counts in slices)
    return of_cells([rate] * MINUTE, LatencySlices(width_nanoseconds=3 * SECOND, histograms=texts))


@pytest.mark.parametrize("rate", [30, 100, 300])
def test_a_median_that_changes_is_found_where_operations_are_too_few_for_a_tail(rate: float) -> None:
    found = Counter[str]()
    for number in range(15):
        chance = random.Random(f"{rate} {number}")  # noqa: S311 - numbers, not secrets
        for name, shape in (
            ("steady", lambda _: 1.0),
            ("second half", lambda time: 2.0 if time > 0.5 else 1.0),
            ("last fifth", lambda time: 3.0 if time > 0.8 else 1.0),
        ):
            state = latency_steadiness([share(answering(chance, rate, shape))], WINDOW, 50)
            assert state is not None
            found[name] += state.state is NOT_STEADY
    assert found["steady"] == 0
    assert min(found["second half"], found["last fifth"]) >= (11 if rate == 30 else 15)


def test_only_where_the_workload_sets_the_rate_the_median_is_judged() -> None:
    sample = of_cells([100.0] * MINUTE, sliced([1] * 10 + [2] * 10, count=300))
    one = document(0, measurement(sample, runtime=MINUTE * SECOND))
    offered = measure(one, runtime_seconds=MINUTE, offer=Offer(load=100, at_random=False))
    message = only(offered, not_steady.reason).message
    assert message.startswith("write p50: ")
    assert "in the first 30 s of 60 s" in message
    (closed,) = measure(one, runtime_seconds=MINUTE).operations
    assert closed.p50_steadiness is None


# The check


def test_drift_makes_a_trial_suspect_with_its_size() -> None:
    numbers = measure(
        document(0, measurement(changing([140, 120, 100, 80, 60]), runtime=MINUTE * SECOND)), runtime_seconds=MINUTE
    )
    finding = only(numbers, not_steady.reason)
    assert finding.message.startswith(
        "operations/s: 130 in the first 24 s of 60 s, 80 in the rest, which differs by 50 % of the mean and "
    )
    assert "standard deviations of chance (limit 6); measure for longer" in finding.message


def test_the_last_part_and_the_middle_are_named_too() -> None:
    for rates, words in (
        ([1, 1, 3, 3, 1], "from 24 s to 48 s of 60 s"),
        ([1, 1, 1, 1, 9], "in the last 12 s of 60 s"),
    ):
        numbers = measure(
            document(0, measurement(changing([100 * rate for rate in rates]), runtime=MINUTE * SECOND)),
            runtime_seconds=MINUTE,
        )
        assert words in only(numbers, not_steady.reason).message


def test_tail_that_grows_makes_a_trial_suspect_once_the_rate_is_steady() -> None:
    sample = of_cells([2000.0] * MINUTE, tailed([10.0] * 10 + [30.0] * 10))
    numbers = measure(document(0, measurement(sample, runtime=MINUTE * SECOND)), runtime_seconds=MINUTE)
    message = only(numbers, not_steady.reason).message
    assert message.startswith("write p99: ")
    assert "ms in the first 30 s of 60 s" in message


def test_a_drift_within_chance_leaves_the_verdict_and_says_unknown() -> None:
    numbers = measure(document(0, measurement(changing([21, 19]), runtime=MINUTE * SECOND)), runtime_seconds=MINUTE)
    assert numbers.findings == ()
    assert numbers.steadiness is not None
    assert numbers.steadiness.state is UNKNOWN


def test_what_ends_when_its_work_is_done_is_not_judged() -> None:
    sample = changing([140, 120, 100, 80, 60])
    numbers = measure(
        document(0, measurement(sample, runtime=MINUTE * SECOND)), runtime_seconds=MINUTE, ends_when_done=True
    )
    assert numbers.steadiness is None
    assert not_steady.reason not in [finding.reason for finding in numbers.findings]


def test_the_table_of_checks_names_the_limits() -> None:
    assert not_steady.suspect == LEAST_DEVIATIONS
    for limit in (MAX_RATE_CHANGE, MAX_LATENCY_CHANGE, MAX_SHIFT, MAX_SHIFT_OF_FEW):
        assert f"{100 * limit:.0f} %" in not_steady.what
