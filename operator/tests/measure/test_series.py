import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import Cells, LatencySample, OperationSample
from plimsoll.measure.timeline import MAX_INTERVALS, NANOSECONDS, Interval, Share, amounts_between, divided, series_of

SECOND = NANOSECONDS
BLOCK = 4096


def share(start: float, cells: list[float], *, last: float = 1.0, width: int = SECOND) -> Share:
    """Make a client whose cells, but for a shorter last one, are `width` long."""
    runtime = (len(cells) - 1) * width + round(last * width)
    sample = OperationSample(
        operation=Operation.READ,
        ios=round(math.fsum(cells)),
        bytes=round(math.fsum(cells)) * BLOCK,
        latency=LatencySample(kind=LatencyKind.NONE),
        cells=Cells(width_nanoseconds=width, ios=tuple(cells), bytes=tuple(cell * BLOCK for cell in cells)),
    )
    begin = round(start * SECOND)
    return Share(sample=sample, interval=Interval(start=begin, end=begin + runtime))


def seconds(start: float, end: float) -> Interval:
    return Interval(start=round(start * SECOND), end=round(end * SECOND))


clients = st.lists(
    st.builds(
        share,
        start=st.floats(0, 5),
        cells=st.lists(st.integers(0, 10**6).map(float), min_size=1, max_size=200),
        last=st.floats(0.001, 1),
        width=st.sampled_from([SECOND // 2, SECOND, 3 * SECOND]),
    ),
    min_size=1,
    max_size=5,
)


@given(clients, st.floats(0, 100), st.floats(0.1, 300))
def test_a_series_holds_exactly_what_was_done_in_its_window(shares: list[Share], start: float, length: float) -> None:
    window = seconds(start, start + length)
    series = series_of(shares, window)
    assert series is not None
    assert len(series.iops) == len(series.bytes_per_second) <= MAX_INTERVALS
    number, width = len(series.iops), series.interval_seconds
    lengths = [width] * (number - 1) + [window.length / SECOND - width * (number - 1)]
    assert number == 1 or width / 2 <= lengths[-1] < 1.5 * width + 1e-6
    done = sum(item.within(window).ios for item in shares)
    again = sum(rate * part for rate, part in zip(series.iops, lengths, strict=True))
    assert again == pytest.approx(done, abs=0.5 * sum(lengths) + 1e-3, rel=1e-9)


@given(clients, st.lists(st.floats(0, 300), min_size=2, max_size=9))
def test_any_division_of_time_gives_the_same_whole(shares: list[Share], moments: list[float]) -> None:
    edges = sorted(round(moment * SECOND) for moment in moments)
    parts = amounts_between(shares, edges)
    whole = amounts_between(shares, [edges[0], edges[-1]])
    assert parts is not None
    assert whole is not None
    assert math.fsum(part.ios for part in parts) == pytest.approx(whole[0].ios, rel=1e-9, abs=1e-3)
    assert math.fsum(part.bytes for part in parts) == pytest.approx(whole[0].bytes, rel=1e-9, abs=1e-3)


def test_clients_add_up_on_the_wall_clock_and_cut_cells_count_pro_rata() -> None:
    early = share(0, [100.0, 200.0, 300.0, 400.0])
    late = share(0.5, [10.0, 20.0, 30.0, 40.0])
    series = series_of([early, late], seconds(0.5, 3.5))
    assert series is not None
    assert series.interval_seconds == 1
    assert series.iops == (160.0, 270.0, 380.0)
    assert series.bytes_per_second == (160 * BLOCK, 270 * BLOCK, 380 * BLOCK)


def test_slow_operations_keep_their_decimals() -> None:
    slow = share(0, [2.4, 0.5, 0.1])
    series = series_of([slow], slow.interval)
    assert series is not None
    assert series.iops == (2.4, 0.5, 0.1)


@pytest.mark.parametrize(("length", "width", "number"), [(120, 1, 120), (120.4, 2, 60), (121, 2, 61), (300, 3, 100)])
def test_long_windows_have_longer_intervals(length: float, width: int, number: int) -> None:
    series = series_of([share(0, [50.0] * 301)], seconds(0, length))
    assert series is not None
    assert (series.interval_seconds, len(series.iops)) == (width, number)
    assert set(series.iops) == {50}


def test_a_rest_of_milliseconds_is_no_interval_of_its_own() -> None:
    tail = share(0, [100.0, 100.0, 100.0, 3.0], last=0.001)
    series = series_of([tail], tail.interval)
    assert series is not None
    assert series.iops == (100.0, 100.0, 102.897)


def test_a_client_without_a_usable_series_leaves_none() -> None:
    good = share(0, [1.0, 2.0])
    broken = Share(sample=good.sample.model_copy(update={"ios": 17}), interval=good.interval)
    assert good.curve is not None
    assert broken.lacks_series
    assert series_of([good, broken], good.interval) is None
    idle = Share(sample=good.sample.model_copy(update={"ios": 0, "bytes": 0, "cells": None}), interval=good.interval)
    assert not idle.lacks_series
    assert series_of([good, idle], good.interval) == series_of([good], good.interval)


def test_no_window_has_no_series() -> None:
    assert series_of([share(0, [1.0])], seconds(1, 1)) is None


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(1, 9))
def test_parts_are_equal_to_the_nanosecond(start: int, length: int, parts: int) -> None:
    edges = divided(Interval(start=start, end=start + length), parts)
    lengths = [after - before for before, after in pairwise(edges)]
    assert (edges[0], edges[-1], len(lengths)) == (start, start + length, parts)
    assert max(lengths) - min(lengths) <= 1
