import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.measure.sample import Cells
from plimsoll.measure.timeline import Interval, length_of, without
from plimsoll.tools.fio.logs import SeriesError, Totals, cells_of, finest_log

READ = Operation.READ


def totals(ios: int, milliseconds: int, *, in_flight: int = 1) -> Totals:
    return Totals(ios=ios, milliseconds=milliseconds, in_flight=in_flight)


def log_of(*rows: tuple[int, int], direction: int = 0) -> str:
    return "".join(f"{time}, {rate}, {direction}, 0, 0\n" for time, rate in rows)


def cells(log: str, expected: Totals, *, operation: Operation = READ, unit: float = 1.0) -> Cells:
    return cells_of([(log, expected)], operation, unit=unit, size=4096)


def rounded(log: str, expected: Totals) -> list[float]:
    return [round(count) for count in cells(log, expected).ios]


@pytest.mark.parametrize(
    ("rows", "ios", "milliseconds", "expected"),
    [
        pytest.param([(999, 600), (2999, 600), (5999, 600)], 1800, 6001, [600, 0, 600, 0, 0, 600, 0], id="no line"),
        pytest.param([(1000, 100), (2000, 100)], 290, 3000, [100, 100, 90], id="unlogged interval"),
        pytest.param([(1000, 100), (2000, 100)], 250, 2500, [100, 100, 50], id="unlogged part of an interval"),
        pytest.param([(1000, 100), (2000, 100)], 305, 3050, [100, 100, 100, 5], id="two unlogged intervals"),
        # A freeze from 2 s to 5.2 s ends in the one operation that was in flight.
        pytest.param([(1000, 500), (2000, 500)], 1001, 5200, [500, 500, 0, 0, 0, 1], id="stall at the end"),
        pytest.param([], 0, 2001, [0, 0, 0], id="no operations"),
        pytest.param([], 70, 700, [70], id="less than an interval"),
    ],
)
def test_each_line_is_for_its_interval_and_only_the_last_ones_get_what_is_unlogged(
    rows: list[tuple[int, int]], ios: int, milliseconds: int, expected: list[int]
) -> None:
    assert rounded(log_of(*rows), totals(ios, milliseconds)) == expected


def test_distance_between_neighbouring_lines_counts() -> None:
    """The second line came 40 ms late, and holds 1.04 s."""
    late = log_of((1000, 1000), (2040, 1000), (3000, 1000))
    assert rounded(late, totals(3000, 3000)) == pytest.approx([1000, 1040, 960], abs=2)


def test_only_lines_of_the_operation_count() -> None:
    mixed = log_of((1000, 100), (2000, 100)) + log_of((1000, 7), (2000, 7), direction=1)
    assert rounded(mixed, totals(200, 2001)) == [100, 100, 0]
    assert [round(count) for count in cells(mixed, totals(14, 2001), operation=Operation.WRITE).ios] == [7, 7, 0]


def test_jobs_are_added() -> None:
    jobs = [(log_of((1000, 100), (2001, 100)), totals(200, 2001)), (log_of((999, 50), (1999, 50)), totals(100, 2001))]
    found = cells_of(jobs, READ, unit=1.0, size=512)
    assert [round(count) for count in found.ios] == [150, 150, 0]
    assert math.fsum(found.bytes) == pytest.approx(300 * 512)


def test_totals_are_reconciled_per_job() -> None:
    whole, cut = log_of((1000, 100), (2000, 100), (3000, 100), (4000, 100)), log_of((1000, 100), (2000, 100))
    with pytest.raises(SeriesError, match="of 400 operations"):
        cells_of([(whole, totals(400, 4001)), (cut, totals(400, 4001))], READ, unit=1.0, size=512)


def test_what_completed_at_the_end_of_the_ramp_is_not_in_the_first_cell() -> None:
    """A device with a limit of operations per second completed all that waited at once (fio 3.39, depth 64)."""
    log = log_of((1000, 2064), (1999, 1921), (2999, 1889))
    found = cells(log, totals(1442, 3002, in_flight=64), unit=0.25).ios
    assert list(found) == pytest.approx([516 - 26, 480, 472, 0], abs=1)


def test_no_more_completed_at_the_end_of_the_ramp_than_was_in_flight() -> None:
    with pytest.raises(SeriesError, match="of 1442 operations"):
        cells(log_of((1000, 2064), (1999, 1921), (2999, 1889)), totals(1442, 3002, in_flight=16), unit=0.25)


def test_slow_operations_are_exact_in_the_finer_log() -> None:
    kind, unit = finest_log([2**20])
    assert kind == "bw"
    # Three operations of 1 MiB in 1.001 s, in KiB/s.
    log = log_of((1001, 3 * 1024 * 1000 // 1001), (2001, 3 * 1024), (3001, 3 * 1024))
    assert list(cells(log, totals(9, 3001), unit=unit).ios) == [3, 3, 3, 0]


def test_smallest_blocks_use_the_log_of_operations() -> None:
    assert finest_log([512]) == ("iops", 1.0)


def test_low_rate_survives_rounding_of_every_line() -> None:
    """Ten operations in 1.001 s are logged as 9 per second."""
    rows = [(second * 1000, 9 if second % 2 else 10) for second in range(1, 61)]
    ios = cells(log_of(*rows), totals(600, 60001)).ios
    assert math.fsum(ios) == pytest.approx(600)
    assert all(count == pytest.approx(10, abs=1.1) for count in ios[:60])


def test_increasingly_late_lines_are_corrected() -> None:
    """Each 70 ms later than the one before; nothing was done in the sixth second."""
    late = [(1070 * n, 1000) for n in range(1, 10)]
    found = rounded(log_of(*late), totals(9630, 9640))
    assert found[:9] == pytest.approx([1000] * 9, abs=2)
    assert sum(found) == pytest.approx(9630, abs=2)


def test_a_late_last_line_may_come_after_the_end() -> None:
    """The thread was 345 ms late once; its last line still has all of its interval."""
    found = rounded(log_of((1000, 1000), (2345, 1000), (3345, 656)), totals(3001, 3001))
    assert found == pytest.approx([1000, 1000, 1000, 1], abs=4)


@pytest.mark.parametrize("end", [3999, 4000, 4600, 5300, 9300])
def test_a_last_line_may_come_long_after_the_end(end: int) -> None:
    """It holds what was done before a stop of fio that outlasts its runtime."""
    late = log_of((1000, 1000), (2000, 1000), (end, 1000 * 1000 // (end - 2000)))
    found = cells_of([(late, totals(3000, 3000))], READ, unit=1.0, size=4096, idle=[])
    assert math.fsum(found.ios) == pytest.approx(3000)


def test_a_line_after_a_stop_of_fio_covers_both_sides() -> None:
    log = log_of((1000, 1000), (2000, 1000), (5400, 265), (6400, 1000))
    found = cells_of([(log, totals(3900, 6401))], READ, unit=1.0, size=512, idle=[Interval(start=2500, end=5000)])
    assert [round(count) for count in found.ios[:5]] == pytest.approx([1000, 1000, 500, 0, 0], abs=6)


def logged(rate: int, seconds: int, *, idle: Sequence[Interval], late: Mapping[int, int]) -> tuple[str, int]:
    """Return what fio logs of a constant rate, except in the gaps `idle`, and the operations that it counts.

    Its helper thread is late by some milliseconds at some of its samples. It divides what was done since the previous
    sample by the time since then, writes no line if that is nothing, and is due again a second later: `__add_samples`
    in stat.c of fio 3.39.
    """
    busy = without([Interval(start=0, end=1000 * seconds)], idle)

    def done(until: int) -> int:
        return sum(rate * part.clipped(Interval(start=0, end=until)) // 1000 for part in busy)

    rows, before, number = [], 0, 0
    while (now := before + 1000 + late.get(number := number + 1, 0)) <= 1000 * seconds:
        if count := done(now) - done(before):
            rows.append((now, count * 1000 // (now - before)))
        before = now
    return log_of(*rows), done(1000 * seconds)


@pytest.mark.parametrize("rate", [50, 1000, 20_000])
@pytest.mark.parametrize("late", [{}, {4: 300}, {4: 300, 9: 600}, {5: 400}, {2: 990, 15: 990}])
@pytest.mark.parametrize(
    "idle",
    [
        [],
        [Interval(start=5500, end=8700)],
        [Interval(start=5000, end=7000), Interval(start=12_400, end=18_100)],
        [Interval(start=6300, end=7300)],
    ],
    ids=str,
)
def test_series_has_what_storage_did_although_it_froze_and_lines_are_late(
    rate: int, late: Mapping[int, int], idle: Sequence[Interval]
) -> None:
    log, ios = logged(rate, 20, idle=idle, late=late)
    found = cells_of([(log, totals(ios, 20_000, in_flight=rate // 10))], READ, unit=1.0, size=4096, idle=idle).ios
    assert math.fsum(found) == pytest.approx(ios)
    # The last interval also gets what was rounded in the others.
    for second, count in enumerate(found[:-1]):
        busy = length_of(without([Interval(start=1000 * second, end=1000 * second + 1000)], idle))
        assert count == pytest.approx(rate * busy / 1000, abs=0.05 * rate + 2)


def test_a_late_sample_without_a_line_leaves_no_series() -> None:
    """Nothing tells how late it was, and so of what time the next line is."""
    idle = [Interval(start=5500, end=8700)]
    log, ios = logged(1000, 20, idle=idle, late={8: 300, 15: 700})
    with pytest.raises(SeriesError, match="does not lie on"):
        cells_of([(log, totals(ios, 20_000))], READ, unit=1.0, size=4096, idle=idle)


@pytest.mark.parametrize(
    ("log", "expected", "words"),
    [
        (log_of((1000, 100), (2000, 100)), totals(190, 2001), "accounts for (199|20[0-2]) of 190"),
        (log_of((1000, 100), (2000, 100)), totals(900, 3001), "of 900 operations"),
        ("", totals(900, 3001), "of 900 operations"),
        (log_of((1000, 100), (1400, 100)), totals(200, 2001), "at 1400 ms does not lie on"),
        (log_of((1000, 100), (1010, 100)), totals(200, 2001), "two lines"),
        (log_of((1000, 100), (4000, 100)), totals(200, 2001), "after the end of the measurement"),
        (log_of((0, 100), (1000, 100)), totals(200, 2001), "two lines"),
        ("1000, 100, 0, 0, 0\n2000, 1", totals(200, 2001), "line 2 of the log is damaged"),
        ("nonsense", totals(200, 2001), "line 1 of the log is damaged"),
        (log_of((1000, 100)), totals(1, 10**12), "too long"),
    ],
)
def test_implausible_log_is_refused(log: str, expected: Totals, words: str) -> None:
    with pytest.raises(SeriesError, match=words):
        cells(log, expected)


@given(
    counts=st.lists(st.just(0) | st.integers(200, 100_000), min_size=2, max_size=60),
    jitters=st.lists(st.integers(-2, 2), min_size=60, max_size=60),
    rest=st.integers(0, 99),
)
def test_what_a_log_says_is_found_again(counts: list[int], jitters: list[int], rest: int) -> None:
    """Any series, stalled or not, logged with jitter and cut off within its last interval."""
    rows = []
    before = 0
    for second, (count, jitter) in enumerate(zip(counts, jitters, strict=False), start=1):
        time = second * 1000 + jitter
        if count:
            rows.append((time, count * 1000 // (time - before)))
        before = time
    after = rest * min(counts) // 1000
    try:
        found = cells(log_of(*rows), totals(sum(counts) + after, 1000 * len(counts) + rest + 1)).ios
    except SeriesError:
        # Of so few operations, jitter at both ends and rounded rates can exceed half a percent: no series, never a
        # wrong one.
        assert sum(counts) < 800
        return
    assert math.fsum(found) == pytest.approx(sum(counts) + after)
    *closed, last = zip(found, counts, strict=False)
    for cell, count in closed:
        assert cell == pytest.approx(count, rel=0.02, abs=2)
        assert (cell == 0) == (count == 0)
    # The last interval may also get what jitter took from the others.
    assert last[0] == pytest.approx(last[1], rel=0.02, abs=2 + 0.005 * sum(counts))
