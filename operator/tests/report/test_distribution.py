"""Latency distributions."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.measure.histogram import OPEN_BIN, Histogram, bin_bounds
from plimsoll.report.figure import sweeps_of
from plimsoll.report.sweeps import ccdf, distribution_section
from support.goldens import SWEEP, charts_of, golden, run_of, tables_of
from support.results import measured, result, steady, trial, trials_of

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
    latency = reads.measured[0].measured.latency
    marks = chart.data[1]
    assert marks["x"] == [value / 1000 for value in latency.percentiles.values()]
    assert marks["y"] == pytest.approx([1 - float(p) / 100 for p in latency.percentiles])


def test_the_table_beside_it_has_the_same_percentiles_and_the_maximum() -> None:
    (reads, _) = sweeps_of([run_of(golden(SWEEP))])
    chart = charts_of(distribution_section([reads]))[0]
    latency = reads.measured[0].measured.latency
    assert chart.table is not None
    row = chart.table.rows[0]
    assert row[4].sort == latency.percentiles["99"]
    assert row[-2].sort == latency.max_nanoseconds
    assert tables_of(distribution_section([reads])) == []


def test_what_keeps_no_histogram_or_a_damaged_one_has_no_curve() -> None:
    none = result(trials_of(steady(100)))
    damaged = result([trial(0, measured(100, histogram="fio-plat-6-29:?"))], point="w-001")
    assert distribution_section(sweeps_of([run_of([none, damaged])])) is None
