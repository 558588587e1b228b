"""Gaps between completions, from fio's log of latency."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation
from plimsoll.measure.sample import MAX_GAPS, Cells, Measurement, OperationSample
from plimsoll.measure.timeline import Interval
from plimsoll.tools.fio.logs import JobCompletions, SeriesError, check_gaps, gaps_of
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from support.client_documents import SECOND, latency

from .conftest import FILE, load, step_context

FIO = Fio()

WIDTH = 10


def job(*times: int, offset: int = 0, writes: tuple[int, ...] = ()) -> JobCompletions:
    lines = sorted([*((time, 0) for time in times), *((time, 1) for time in writes)])
    text = "".join(f"{time}, 123456, {direction}, 0, 0\n" for time, direction in lines)
    ios = {Operation.READ: len(times), Operation.WRITE: len(writes), Operation.TRIM: 0}
    return JobCompletions(text=text, offset=offset, ios=ios)


def found(*jobs: JobCompletions, milliseconds: int = 1000) -> dict[int, int]:
    gaps = gaps_of(jobs, milliseconds, WIDTH)
    return dict(zip(gaps.starts, gaps.lengths, strict=True))


def steady(start: int, end: int) -> tuple[int, ...]:
    return tuple(range(start, end, WIDTH))


def measured(case: str) -> Measurement:
    """Parse a golden file whose log has intervals of 10 ms."""
    return FIO.parse(FioParameters(io_depth=8), step_context(FILE, 2, 10), load("3.39", case).output)


@pytest.mark.parametrize(
    ("times", "gaps"),
    [
        pytest.param((*steady(11, 305), *steady(523, 1000)), {310: 213}, id="between a line's interval and the next"),
        pytest.param(steady(301, 500), {10: 291, 500: 500}, id="before the first line and after the last"),
        # The line that fio writes at its end is no completion.
        pytest.param((*steady(11, 505), 990), {510: 480}, id="until the line before the end"),
        pytest.param((*steady(11, 505), 1003), {510: 490}, id="until the line after the end"),
    ],
)
def test_gaps_of_one_job(times: tuple[int, ...], gaps: dict[int, int]) -> None:
    assert found(job(*times)) == gaps


def test_a_client_is_idle_while_all_its_jobs_and_directions_are() -> None:
    reads = (*steady(11, 305), *steady(705, 1000))
    assert found(job(*reads, writes=(*steady(11, 405), *steady(605, 1000)))) == {410: 195}
    assert found(job(*reads), job(*steady(11, 500), *steady(600, 1000))) == {500: 100}


def test_a_job_that_began_earlier_is_on_the_same_clock() -> None:
    assert found(job(*steady(11, 305), *steady(505, 1000)), job(*steady(61, 355), *steady(555, 1050), offset=-50)) == {
        310: 195
    }


def test_of_very_many_the_longest_are_kept() -> None:
    times = [time for second in range(5000) for time in (second * 100 + 1, second * 100 + (50 if second else 31))]
    gaps = gaps_of([job(*times)], 500_000, WIDTH)
    assert len(gaps.starts) == len(gaps.lengths) == MAX_GAPS
    assert list(gaps.starts) == sorted(gaps.starts)
    assert gaps.omitted == 2 * 5000 - 1 - MAX_GAPS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("11, 5, 0, 0, 0\n21, 5,", "line 2 of the log is damaged"),
        ("11, 5, 9, 0, 0\n", "line 1 of the log is damaged"),
        ("", "the log is empty, but 5 operations completed"),
        ("21, 5, 0, 0, 0\n11, 5, 0, 0, 0\n", "goes back in time"),
        ("11, 5, 0, 0, 0\n9000, 5, 0, 0, 0\n", "a line at 9000 ms, after the end of the measurement"),
    ],
)
def test_an_impossible_log_is_not_used(text: str, words: str) -> None:
    damaged = JobCompletions(text=text, offset=0, ios={Operation.READ: 5, Operation.WRITE: 0, Operation.TRIM: 0})
    with pytest.raises(SeriesError, match=words):
        gaps_of([damaged], 1000, WIDTH)


def test_a_log_that_breaks_off_between_two_lines_is_not_taken_for_a_stall() -> None:
    sample = OperationSample(
        operation=Operation.READ,
        ios=400,
        bytes=400 * 4096,
        latency=latency(400),
        cells=Cells(width_nanoseconds=SECOND, ios=(100.0,) * 4, bytes=(409600.0,) * 4),
    )
    gaps = gaps_of([job(*steady(11, 1000))], 4000, WIDTH)
    pairs = zip(gaps.starts, gaps.lengths, strict=True)
    idle = [Interval(start=start, end=start + length) for start, length in pairs]
    with pytest.raises(
        SeriesError, match="nothing from 1000 to 4000 ms, but the series has 100 read operations in second"
    ):
        check_gaps(idle, [sample])


@given(st.lists(st.integers(0, 999), min_size=1, max_size=60))
def test_a_gap_never_holds_a_completion_and_none_that_is_long_is_missed(completions: list[int]) -> None:
    """Write the log as fio does, for completions at any moments."""
    moments, due, lines = sorted(completions), WIDTH, list[int]()
    for moment in moments:
        if moment >= due:
            lines.append(moment)
            due = (moment // WIDTH + 1) * WIDTH
    gaps = found(job(*lines, 1000))
    assert not any(start <= moment < start + length for moment in moments for start, length in gaps.items())
    edges = [0, *moments, 1000]
    for before, after in pairwise(edges):
        if after - before >= 40 + 2 * WIDTH:
            assert any(start <= before + 2 * WIDTH and start + length >= after for start, length in gaps.items())


def test_recorded_stop_of_two_seconds() -> None:
    gaps = measured("stopped").gaps
    assert gaps is not None
    assert [length for length in gaps.lengths if length > 500] == [2128]


def test_recorded_freezes() -> None:
    gaps = measured("freezes").gaps
    assert gaps is not None
    assert sum(length >= 290 for length in gaps.lengths) == 5


def test_output_older_than_the_log_has_no_gaps() -> None:
    assert load("3.39", "randread-4k-qd16").parse().gaps is None
