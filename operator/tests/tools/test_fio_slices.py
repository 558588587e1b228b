from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.measure.histogram import BIN_COUNT, Histogram
from plimsoll.measure.sample import Cells, LatencySlices
from plimsoll.tools.fio.logs import SeriesError, slices_of

from .conftest import Golden

Goldens = Callable[..., Golden]
SLOW, FAST = 900, 500


def line(milliseconds: int, counts: Mapping[int, int], direction: int = 0) -> str:
    bins = ", ".join(str(counts.get(index, 0)) for index in range(BIN_COUNT))
    return f"{milliseconds}, {direction}, 4096, {bins}\n"


def histograms(slices: LatencySlices) -> list[Mapping[int, int]]:
    return [Histogram.decode(text).counts for text in slices.histograms]


def totals(slices: LatencySlices) -> list[int]:
    return [sum(counts.values()) for counts in histograms(slices)]


def series(ios: Sequence[float]) -> Cells:
    return Cells(width_nanoseconds=10**9, ios=tuple(ios), bytes=tuple(count * 4096 for count in ios))


def read_slices(
    log: str, total: Mapping[int, int], ios: Sequence[float], *, seconds: int = 1, milliseconds: int | None = None
) -> LatencySlices:
    return slices_of(
        [(log, Histogram(counts=total))],
        Operation.READ,
        seconds,
        milliseconds=1000 * len(ios) if milliseconds is None else milliseconds,
        cells=series(ios),
        in_flight=4,
    )


def test_each_line_is_a_slice_and_the_rest_is_the_last_one() -> None:
    log = line(1001, {FAST: 100}) + line(2001, {FAST: 60, SLOW: 40})
    found = read_slices(log, {FAST: 240, SLOW: 60}, [100, 100, 100], milliseconds=3001)
    assert found.width_nanoseconds == 10**9
    assert histograms(found) == [{FAST: 100}, {FAST: 60, SLOW: 40}, {FAST: 80, SLOW: 20}]


def test_lines_that_catch_up_after_a_stall_belong_to_its_slices() -> None:
    log = line(5000, {FAST: 90, SLOW: 1}) + "".join(line(5000 + late, {SLOW: 1}) for late in range(1, 5))
    found = read_slices(log, {FAST: 180, SLOW: 5}, [90, 0, 0, 0, 0, 95])
    assert totals(found) == [91, 1, 1, 1, 1, 90]


def test_freeze_until_the_end_leaves_empty_slices() -> None:
    found = read_slices(line(1001, {FAST: 90}), {FAST: 150}, [90, 60, 0, 0])
    assert totals(found) == [90, 60, 0, 0]


def test_slices_can_be_wider_than_cells() -> None:
    log = line(3001, {FAST: 300}) + line(6002, {FAST: 310})
    found = read_slices(log, {FAST: 910}, [100, 100, 100, 103, 103, 104, 100, 100, 100, 50], seconds=3)
    assert (found.width_nanoseconds, totals(found)) == (3 * 10**9, [300, 310, 300])


@pytest.mark.parametrize(("milliseconds", "number"), [(2940, 2), (2960, 3), (3001, 3), (3700, 3)])
def test_only_the_last_slice_may_be_short_and_only_a_little(milliseconds: int, number: int) -> None:
    log = line(1001, {FAST: 100}) + line(2001, {FAST: 100})
    assert len(read_slices(log, {FAST: 300}, [100, 100, 100], milliseconds=milliseconds).histograms) == number


def test_jobs_are_added_slice_by_slice() -> None:
    logs = [
        (line(1001, {FAST: 100}), Histogram(counts={FAST: 190})),
        (line(1002, {SLOW: 50}), Histogram(counts={SLOW: 95})),
    ]
    found = slices_of(logs, Operation.READ, 1, milliseconds=2000, cells=series([150, 135]), in_flight=2)
    assert histograms(found) == [{FAST: 100, SLOW: 50}, {FAST: 90, SLOW: 45}]


def test_no_operations_are_an_empty_slice() -> None:
    assert totals(read_slices("", {}, [0, 0])) == [0, 0]


@pytest.mark.parametrize(
    ("log", "total", "ios", "words"),
    [
        ("1001, 0, 4096, 1, 2\n", {FAST: 9}, [9], "line 1 of the log has 2 bins instead of 1856"),
        (line(1001, {FAST: 9}) + "junk", {FAST: 9}, [9], "line 2 of the log is damaged"),
        (line(1001, {FAST: 9}).replace(" 9,", " -9,"), {FAST: 9}, [9], "line 1 of the log is damaged"),
        (line(1001, {}), {FAST: 9}, [9], "line 1 of the log is empty"),
        (line(1001, {FAST: 9}), {FAST: 8}, [8], "has 9 operations of about .* ns, but only 8 completed"),
        (line(1001, {SLOW: 9}), {FAST: 9}, [9], "has 9 operations of about .* ns, but only 0 completed"),
        (line(900, {FAST: 9}), {FAST: 9}, [9], "1 lines at 900 ms, but one is for 1000 ms"),
        (line(2002, {FAST: 9}) + line(1001, {FAST: 9}), {FAST: 18}, [9, 9], "goes back from 2002 ms to 1001 ms"),
        (line(9001, {FAST: 1}) * 4, {FAST: 4}, [2, 2], "a line at 9001 ms, after the end of the measurement"),
        (
            line(1001, {FAST: 90}),
            {FAST: 390},
            [90, 100, 100, 100],
            "390 operations in the first 2 s, but the series has 190",
        ),
    ],
)
def test_implausible_log_is_refused(log: str, total: Mapping[int, int], ios: Sequence[float], words: str) -> None:
    with pytest.raises(SeriesError, match=words):
        read_slices(log, total, ios)


CASES = ["randread-4k-qd16", "randrw70-8k", "numjobs2", "randrw-jobs2-ramp", "read-128k-qd256", "noise", "trim", "ramp"]


@pytest.mark.parametrize("case", CASES)
def test_slices_of_a_steady_run_hold_what_the_series_holds(golden: Goldens, case: str) -> None:
    measurement = golden(case).parse()
    for sample in measurement.operations:
        assert sample.cells is not None
        assert sample.slices is not None
        found = totals(sample.slices)
        assert len(found) == round(measurement.runtime / 10**9)
        assert sum(found) == sample.ios
        assert found == pytest.approx(list(sample.cells.ios[: len(found)]), rel=0.08)


def test_slices_of_a_run_that_stalls_show_it(golden: Goldens) -> None:
    (sample,) = golden("stall").parse().operations
    assert sample.slices is not None
    assert [round(count, -2) for count in totals(sample.slices)[:8]] == [500, 0, 500, 0, 0, 500, 0, 500]


def test_run_that_was_ended_has_the_slices_until_then(golden: Goldens) -> None:
    (sample,) = golden("sigterm").parse().operations
    assert sample.slices is not None
    assert totals(sample.slices) == pytest.approx([1000, 1000, 1000], abs=5)


@pytest.mark.parametrize("name", ["fio_clat_hist.1.log", "fio_clat_hist.2.log"])
def test_missing_log_leaves_everything_but_the_slices(golden: Goldens, name: str) -> None:
    case = golden("numjobs2")
    (whole,) = case.parse().operations
    measurement = case.with_files({key: text for key, text in case.output.files.items() if key != name}).parse()
    assert measurement.operations == (whole.model_copy(update={"slices": None}),)
    assert measurement.warnings == (f"no latency over time of read operations: {name} is missing",)


@given(
    latencies=st.lists(st.tuples(st.integers(1, 900), st.integers(0, BIN_COUNT - 1)), min_size=1, max_size=150),
    seconds=st.integers(1, 3),
)
def test_what_fio_would_log_is_found_again(latencies: list[tuple[int, int]], seconds: int) -> None:
    """fio's own arithmetic over any completions, each some milliseconds after the one before."""
    now, began, width = 0, 0, seconds * 1000
    log, since, total = "", Histogram(counts={}), Histogram(counts={})
    per_second: dict[int, int] = {}
    for distance, index in latencies:
        now += distance
        since = Histogram.merge([since, Histogram(counts={index: 1})])
        total = Histogram.merge([total, Histogram(counts={index: 1})])
        per_second[now // 1000] = per_second.get(now // 1000, 0) + 1
        began = began or now
        if now - began >= width:
            log, since, began = log + line(now, since.counts), Histogram(counts={}), began + width
    ios = [per_second.get(second, 0) for second in range(now // 1000 + 1)]
    first = latencies[0][0]
    found = slices_of([(log, total)], Operation.READ, seconds, milliseconds=now, cells=series(ios), in_flight=999)
    expected = (now + width // 20) // width
    assert len(found.histograms) == expected
    # A slice's operations are those before its end, and the one that wrote it instead of the one that wrote the last.
    ends = [first + width * number for number in range(1, expected + 1)]
    completed = [sum(distance for distance, _ in latencies[: number + 1]) for number in range(len(latencies))]
    for number, end in enumerate(ends, start=1):
        before = sum(1 for time in completed if time < end)
        assert before <= sum(totals(found)[:number]) <= before + number
