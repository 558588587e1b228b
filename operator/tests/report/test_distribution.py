"""Latency distributions."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.histogram import OPEN_BIN, Histogram, bin_bounds
from plimsoll.report.figure import sweeps_of
from plimsoll.report.sweeps import ccdf, distribution_section
from support.repeated import measured, result, steady, trial, trials_of
from support.reports import SWEEP, charts_of, golden, run_of, tables_of, texts

HISTOGRAMS = st.dictionaries(
    st.integers(min_value=0, max_value=OPEN_BIN), st.integers(min_value=1, max_value=10**9), min_size=1, max_size=300
)


@given(HISTOGRAMS)
@example({0: 1, 1: 1})
def test_every_point_of_the_curve_is_the_share_that_took_at_least_so_long(counts: dict[int, int]) -> None:
    histogram = Histogram(counts=counts)
    for nanoseconds, share in ccdf(histogram):
        slower = sum(count for index, count in counts.items() if max(1, bin_bounds(index)[0]) >= nanoseconds)
        assert share == slower / histogram.total


@given(HISTOGRAMS)
@example({0: 1, 1: 1})
def test_the_curve_falls_from_all_to_the_last_bin(counts: dict[int, int]) -> None:
    points = ccdf(Histogram(counts=counts))
    assert points[0][1] == 1
    assert points[-1][0] == max(1, bin_bounds(max(counts))[0])
    assert all(before[1] > after[1] for before, after in itertools.pairwise(points))


def test_a_full_histogram_is_thinned() -> None:
    assert len(ccdf(Histogram(counts=dict.fromkeys(range(OPEN_BIN), 1000)))) < 700


def test_marks_are_the_published_percentiles() -> None:
    (reads, _) = sweeps_of([run_of(golden(SWEEP))])
    chart = charts_of(distribution_section([reads]))[0]
    latency = reads.measured[0].operation.latency
    marks = chart.data[1]
    assert marks["x"] == [value / 1000 for value in latency.percentiles.values()]
    assert marks["y"] == pytest.approx([1 - float(p) / 100 for p in latency.percentiles])


def test_the_table_beside_it_has_the_same_percentiles_and_the_maximum() -> None:
    (reads, _) = sweeps_of([run_of(golden(SWEEP))])
    chart = charts_of(distribution_section([reads]))[0]
    latency = reads.measured[0].operation.latency
    assert chart.table is not None
    row = chart.table.rows[0]
    assert row[4].sort == latency.percentiles["99"]
    assert row[-2].sort == latency.max_nanoseconds
    assert tables_of(distribution_section([reads])) == []


def test_what_keeps_no_histogram_or_a_damaged_one_has_no_curve() -> None:
    none = result(trials_of(steady(100)))
    damaged = result([trial(0, measured(100, histogram="fio-plat-6-29:?"))], point="w-001")
    assert distribution_section(sweeps_of([run_of([none, damaged])])) is None


IOPING = {"tool": "ioping", "label": "ioping read 4Ki", "workload": "pings"}


def of_tool(point: BenchmarkResult, **spec: Any) -> BenchmarkResult:
    return point.model_copy(update={"spec": point.spec.model_copy(update=spec)})


def latencies(point: str, p99: int, **parameters: Any) -> BenchmarkResult:
    text = Histogram(counts={1000: 10_000}).encode()
    trials = [trial(number, measured(1000, p99=p99, histogram=text)) for number in range(3)]
    return result(trials, point=point, parameters=parameters)


def compared(*results: BenchmarkResult) -> list[list[str]]:
    (table,) = tables_of(distribution_section(sweeps_of([run_of(results)])))
    return texts(table)


def test_tools_that_did_the_same_stand_side_by_side() -> None:
    fio = latencies("w-000", 0, pattern="randread", blockSize="4Ki")
    ioping = of_tool(latencies("pings-000", 0), **IOPING, parameters={"size": "4Ki"})
    ((work, one, p50, p99, other, *numbers),) = compared(fio, ioping)
    assert (work, one, other) == ("read 4Ki, 2 clients", "randread 4Ki qd1", "ioping read 4Ki")
    assert [p50, p99] == numbers[:2]
    assert numbers[2:] == ["1.00", "1.00"]


@pytest.mark.parametrize(
    "fields",
    [
        {"ioDepth": 2},
        {"jobs": 2},
        {"pattern": "read"},
        {"directIo": False},
        {"blockSize": "8Ki"},
        {"pattern": "randwrite", "fsyncEvery": 1},
    ],
)
def test_other_work_is_not_compared(fields: dict[str, Any]) -> None:
    fio = latencies("w-000", 0, **({"pattern": "randread", "blockSize": "4Ki"} | fields))
    ioping = of_tool(latencies("pings-000", 0), **IOPING, parameters={"size": "4Ki"})
    assert tables_of(distribution_section(sweeps_of([run_of([fio, ioping])]))) == []


def test_points_of_one_tool_are_not_compared() -> None:
    both = [latencies(f"w-00{number}", 0, pattern="randread", blockSize="4Ki") for number in range(2)]
    assert tables_of(distribution_section(sweeps_of([run_of(both)]))) == []
