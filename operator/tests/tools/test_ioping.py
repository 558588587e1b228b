from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Output, StepContext
from plimsoll.tools.ioping import MAX_REQUESTS, Ioping, IopingParameters
from plimsoll.tools.target import Target, VolumeKind, VolumeTarget
from support.goldens import recorded

from .conftest import replaced, step_context

IOPING = Ioping()

MEBIBYTE = 2**20
SECOND = 10**9
MILLISECOND = 10**6
VOLUME = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=8 * MEBIBYTE, offset=MEBIBYTE)


def parameters_of(**fields: Any) -> IopingParameters:
    return IopingParameters.model_validate(fields)


def context(target: Target = VOLUME, ramp: int = 1, runtime: int = 3, seed: int = 6) -> StepContext:
    return step_context(target, ramp, runtime, seed=seed)


def golden(
    case: str, edit: Callable[[str], str] = lambda text: text, *, ramp: int = 1, runtime: int = 3, **fields: Any
) -> Measurement:
    output = recorded(f"ioping-1.3-{case}")
    return parsed(replace(output, stdout=edit(output.stdout)), ramp, runtime, **fields)


def parsed(output: Output, ramp: int, runtime: int, **fields: Any) -> Measurement:
    return IOPING.parse(parameters_of(**fields), context(ramp=ramp, runtime=runtime), output)


def printed(times: Sequence[int], since: Sequence[int], *, tail: int = 1000, total: int = 0) -> Output:
    """Return the output of requests with these times, each so long after the one before; the first is the warm-up."""
    lines = [
        f"1 {time} 1 1 {time} {time} {time} 0 {2 if not number else 1} {before + (since[0] if not number else 0)}"
        for number, (time, before) in enumerate(zip(times[1:], since[1:], strict=True))
    ]
    counted = times[1:]
    lines.append(
        f"{len(counted)} {sum(counted)} 1 1 {min(counted)} 1 {max(counted)} 1 {len(times)} {total or sum(since) + tail}"
    )
    return Output(exit_code=0, stdout="".join(f"{line}\n" for line in lines), stderr="", files={})


# -- command


def test_it_prints_every_request_and_ends_after_ramp_and_runtime() -> None:
    command = IOPING.command(parameters_of(), context())
    assert command.argv == (
        "ioping", "-q", "-B", "-p1", "-a1", "-w5s", "-c900001", "-i0ms", "-s4096", "-S8388608", "-o1048576", "-C", "-D",
        "-e7", "/dev/plimsoll",
    )  # fmt: skip
    assert command.environment == {"LC_ALL": "C"}


def test_writes_buffered_requests_and_intervals() -> None:
    argv = IOPING.command(parameters_of(operation="Write", intervalMilliseconds=10, direct=False), context()).argv
    assert {"-WWW", "-i10ms", "-C", "-w6s"} <= set(argv)
    assert "-D" not in argv


@given(st.integers(1, 64), st.integers(0, 64), st.integers(1, 2**15), st.integers(0, 2**64))
def test_nothing_outside_the_data_set_is_read_or_written(size: int, offset: int, block: int, seed: int) -> None:
    target = replace(VOLUME, size=size * MEBIBYTE, offset=offset * MEBIBYTE)
    parameters = parameters_of(operation="Write", size=512 * block)
    try:
        argv = IOPING.command(parameters, context(target, seed=seed)).argv
    except ValueError:
        assert 512 * block > target.size
        return
    options = {option[:2]: option[2:] for option in argv[1:-1]}
    assert int(options["-o"]) == target.offset
    assert target.size - 512 * block < int(options["-S"]) <= target.size
    assert int(options["-S"]) % (512 * block) == 0
    assert 0 < int(options["-e"]) < 2**31


@pytest.mark.parametrize(
    ("fields", "timing", "message"),
    [
        ({"size": "16Mi"}, (1, 3), "the data set has 8Mi, less than one request"),
        ({"intervalMilliseconds": 1}, (60, 3600), "more than 900000 requests in 3661 s: raise intervalMilliseconds"),
    ],
)
def test_what_cannot_be_measured_is_refused(fields: dict[str, Any], timing: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IOPING.command(parameters_of(**fields), context(ramp=timing[0], runtime=timing[1]))


# -- parameters


def test_declarations() -> None:
    assert IOPING.windowed
    assert [parameters_of(operation=name).reads_data for name in ("Read", "Write")] == [True, False]
    assert not IOPING.ends_when_done(parameters_of())


def test_labels() -> None:
    assert parameters_of().label() == "ioping read 4Ki"
    fields = {"operation": "Write", "size": "64Ki", "intervalMilliseconds": 10, "direct": False}
    assert parameters_of(**fields).label() == "ioping write 64Ki every 10 ms buffered"


# -- output


@pytest.mark.parametrize(("case", "operation"), [("read", "Read"), ("write", "Write")])
def test_a_recorded_run_is_read_request_by_request(case: str, operation: str) -> None:
    measurement = golden(case, operation=operation, intervalMilliseconds=2)
    (sample,) = measurement.operations
    rows = [[*map(int, line.split())] for line in recorded(f"ioping-1.3-{case}").stdout.splitlines()[:-1]]
    ends = accumulate(row[-1] for row in rows)
    times = [row[1] for row, end in zip(rows, ends, strict=True) if SECOND < end <= 4 * SECOND]
    assert sample.operation is Operation(operation.lower())
    assert (sample.ios, sample.bytes) == (len(times), 4096 * len(times))
    assert sample.latency.mean_nanoseconds == pytest.approx(sum(times) / len(times))
    assert (sample.latency.min_nanoseconds, sample.latency.max_nanoseconds) == (min(times), max(times))
    assert Histogram.decode(sample.latency.histogram or "").total == len(times)
    assert sample.cells is not None
    assert sum(sample.cells.ios) == len(times)
    assert sample.slices is not None
    assert sum(Histogram.decode(text).total for text in sample.slices.histograms) == len(times)
    assert measurement.runtime == 3 * SECOND
    assert (measurement.in_flight, measurement.errors, measurement.warnings) == (None, (), ())


def test_without_an_interval_one_request_is_always_in_flight() -> None:
    measurement = golden("back-to-back", ramp=0, runtime=1)
    assert measurement.in_flight == 1
    assert measurement.operations[0].ios == len(recorded("ioping-1.3-back-to-back").stdout.splitlines()) - 1


def test_a_stop_between_two_requests_is_a_gap() -> None:
    measurement = golden("stall", ramp=1, runtime=5, intervalMilliseconds=2)
    gaps = measurement.gaps
    assert gaps is not None
    longest = max(gaps.lengths)
    assert 1900 < longest < 2500
    assert 1000 < gaps.starts[gaps.lengths.index(longest)] < 2000


def test_requested_pauses_are_no_gaps() -> None:
    measurement = golden("interval", ramp=1, runtime=3, intervalMilliseconds=200)
    assert measurement.gaps is not None
    assert sum(measurement.gaps.lengths) < 500
    (sample,) = measurement.operations
    assert sample.cells is not None
    assert (sample.ios, len(sample.cells.ios)) == (15, 2)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("io-error", "exit code 3: ioping: request failed: Input/output error"),
        ("missing-file", "exit code 2: ioping: stat .*absent.* failed: No such file"),
        ("too-small", "exit code 2: ioping: target is too small for this"),
        ("sigterm", "no complete statistics, exit code 143: no message"),
        ("sigkill", "no complete statistics, exit code 137: no message"),
    ],
)
def test_an_ioping_that_fails_is_an_error(case: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden(case)


def test_measured_part_begins_with_the_ramp() -> None:
    output = printed([9, *[MILLISECOND] * 5], [SECOND, *[SECOND] * 5])
    measurement = parsed(replace(output, launched_at=100, finished_at=100 + 6 * SECOND + 2000), ramp=2, runtime=3)
    assert (measurement.runtime, measurement.operations[0].ios) == (3 * SECOND, 3)
    assert (measurement.started_at, measurement.start_is_estimated) == (600 + 2 * SECOND, False)


def test_without_a_ramp_it_begins_after_the_warm_up() -> None:
    measurement = parsed(printed([9, *[MILLISECOND] * 5], [SECOND, *[SECOND] * 5]), ramp=0, runtime=4)
    assert measurement.runtime == 4 * SECOND
    # A millisecond before the first counted request ended, which is one of four in 4 s.
    assert measurement.operations[0].ios == 4


def test_request_that_ends_after_the_runtime_is_not_counted() -> None:
    measurement = parsed(printed([9, 5, 5, 3 * SECOND], [1, SECOND, SECOND, 3 * SECOND]), ramp=1, runtime=3)
    assert measurement.operations[0].ios == 2
    gaps = measurement.gaps
    assert gaps is not None
    assert (gaps.starts[-1], gaps.lengths[-1]) == (1001, 1999)


def test_a_run_that_ended_early_has_its_actual_length() -> None:
    output = printed([9, 5, 5], [1, SECOND, SECOND], tail=0)
    assert parsed(output, ramp=1, runtime=60).runtime == SECOND + 1
    with pytest.raises(OutputError, match=r"ended after 2\.0 s, before the end of its warm-up of 3 s"):
        parsed(output, ramp=3, runtime=60)


def test_start_is_estimated_if_it_is_uncertain() -> None:
    output = printed([9, 5, 5], [1, SECOND, SECOND])
    for between, estimated in ((0, False), (250 * MILLISECOND, False), (251 * MILLISECOND, True), (-1, True)):
        ended = replace(output, launched_at=SECOND, finished_at=3 * SECOND + 1001 + between)
        assert parsed(ended, ramp=0, runtime=1).start_is_estimated is estimated


def test_too_many_requests_are_an_error() -> None:
    output = printed([1] * (MAX_REQUESTS + 1), [1000] * (MAX_REQUESTS + 1))
    (error,) = parsed(output, ramp=0, runtime=60).errors
    assert error.startswith("ioping made the 900000 requests that it may make in 0.9 s; shorten")


def test_output_of_the_most_requests_is_kept_whole() -> None:
    """The agent keeps 64 MiB; a request of an hour has the longest line."""
    time = 3600 * SECOND
    line = f"1 {time} 0 {64 * MEBIBYTE} {time} {time} {time} 0 1 {time}\n"
    usual = f"1 {SECOND} 1 4096 {SECOND} {SECOND} {SECOND} 0 1 {SECOND}\n"
    assert len(usual) * MAX_REQUESTS < 64 * MEBIBYTE
    assert len(line) < 100


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"\n1 [^\n]*\n", "\n", "the lines of the requests give"),
        (r"(\n1 [^\n]*\n)", r"\1\1", "line 3 does not describe one request|the lines of the requests give"),
        (r"^1 \d+", "1 5", "line 1 does not describe one request"),
        (r"\n\d+ (\d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+)\n$", r"\n7 \1\n", "as count, but the last line 7"),
        (r" \d+\n$", " 5\n", r"but the last line has 5 ns"),
        (r"\n[^\n]*\n$", "\n", "no complete statistics|does not describe|give"),
        (r"\n$", "", "no complete statistics"),
        (r"(?s).*", "", "no complete statistics"),
        (r"(?s).*", "0 0 1 1 0 1 0 1 1 5\n", "no request was timed"),
    ],
)
def test_damage_is_noticed(pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden("read", replaced(pattern, by), intervalMilliseconds=2)


Requests = st.lists(st.tuples(st.integers(0, 2 * SECOND), st.integers(0, 300 * MILLISECOND)), min_size=2, max_size=60)


@given(Requests, st.integers(0, 3), st.integers(1, 20), st.sampled_from([0, 1, 100, 1000]))
def test_every_request_of_the_measured_part_counts_once(
    requests: list[tuple[int, int]], ramp: int, runtime: int, interval: int
) -> None:
    times, since = [time for time, _ in requests], [time + before for time, before in requests]
    output = printed(times, since)
    try:
        measurement = parsed(output, ramp=ramp, runtime=runtime, intervalMilliseconds=interval)
    except OutputError:
        assert sum(since) + 1000 <= max(ramp * SECOND, sum(since[:2]) - times[1])
        return
    ends = [*accumulate(since)]
    start = max(ramp * SECOND, ends[1] - times[1])
    counted = [
        time for time, end in zip(times[1:], ends[1:], strict=True) if start < end <= start + measurement.runtime
    ]
    (sample,) = measurement.operations
    assert sample.ios == sample.latency.count == len(counted)
    assert sample.cells is not None
    assert sum(sample.cells.ios) == len(counted)
    width = sample.cells.width_nanoseconds
    assert (len(sample.cells.ios) - 1) * width < measurement.runtime <= len(sample.cells.ios) * width
    if counted:
        expected: dict[int, int] = {}
        for time in counted:
            expected[bin_index(time)] = expected.get(bin_index(time), 0) + 1
        assert Histogram.decode(sample.latency.histogram or "").counts == dict(sorted(expected.items()))


@given(Requests, st.integers(0, 3), st.integers(1, 20), st.sampled_from([0, 1, 100, 1000]))
def test_no_request_ends_within_a_gap(requests: list[tuple[int, int]], ramp: int, runtime: int, interval: int) -> None:
    times, since = [time for time, _ in requests], [time + before for time, before in requests]
    try:
        measurement = parsed(printed(times, since), ramp=ramp, runtime=runtime, intervalMilliseconds=interval)
    except OutputError:
        return
    assert measurement.gaps is not None
    ends = [*accumulate(since)][1:]
    begin = max(ramp * SECOND, ends[0] - times[1])
    for start, length in zip(measurement.gaps.starts, measurement.gaps.lengths, strict=True):
        first, last = begin + start * MILLISECOND, begin + (start + length) * MILLISECOND
        assert not any(first < end < last for end in ends)
        assert last <= begin + measurement.runtime
