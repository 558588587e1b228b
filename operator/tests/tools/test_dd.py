import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Command, Output, StepContext
from plimsoll.tools.dd import Dd, DdParameters
from plimsoll.tools.target import Target, VolumeKind, VolumeTarget
from support.goldens import VERSIONS
from support.goldens import recorded as recorded_output

from .conftest import replaced, step_context

DD = Dd()

MEBIBYTE = 2**20
SECOND = 10**9
VOLUME = VolumeTarget(kind=VolumeKind.FILE, path="/data/volume", size=8 * MEBIBYTE, offset=MEBIBYTE)
BLOCK = "64Ki"


def parameters_of(**fields: Any) -> DdParameters:
    return DdParameters.model_validate({"blockSize": BLOCK} | fields)


def context(target: Target = VOLUME, ramp: int = 5, runtime: int = 60) -> StepContext:
    return step_context(target, ramp, runtime)


def argv_of(target: Target = VOLUME, **fields: Any) -> tuple[str, ...]:
    """Return the options of dd itself."""
    return options_of(DD.command(parameters_of(**fields), context(target)))


def options_of(command: Command) -> tuple[str, ...]:
    return command.argv[command.argv.index("dd") + 1 :]


Recorded = Callable[[str], Output]
Parsed = Callable[..., Measurement]


@pytest.fixture(params=VERSIONS["dd"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """The recorded cases of each version."""
    return lambda case: recorded_output(f"dd-{request.param}-{case}")


@pytest.fixture
def golden(recorded: Recorded) -> Parsed:
    """Parse a recorded case of each version."""

    def parse(case: str, edit: Callable[[str], str] = lambda text: text, **fields: Any) -> Measurement:
        output = recorded(case)
        return DD.parse(parameters_of(**fields), context(), replace(output, stderr=edit(output.stderr)))

    return parse


def copied(output: Output) -> tuple[int, float]:
    """Return the bytes and seconds of the last line."""
    match = re.search(r"^(\d+) bytes .* copied, ([\d.]+) s, [^\n]+\n\Z", output.stderr, re.MULTILINE)
    assert match is not None
    return int(match[1]), float(match[2])


def printed(*lines: str, exit_code: int = 0) -> Output:
    return Output(exit_code=exit_code, stdout="", stderr="".join(f"{line}\n" for line in lines), files={})


# -- command


def test_a_signal_ends_it_after_ramp_and_runtime() -> None:
    command = DD.command(parameters_of(), context())
    assert command.argv[:5] == ("timeout", "--foreground", "--preserve-status", "--signal=INT", "65")
    assert command.argv[5:10] == ("setpriv", "--pdeathsig", "KILL", "--", "dd")
    assert command.environment == {"LC_ALL": "C"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "count=128 if=/data/volume skip=1048576 iflag=skip_bytes,direct of=/dev/null"),
        (
            {"operation": "Write"},
            "count=128 if=/dev/zero of=/data/volume seek=1048576 oflag=seek_bytes,direct conv=notrunc,nocreat",
        ),
        (
            {"operation": "Copy"},
            (
                "count=64 if=/data/volume skip=1048576 iflag=skip_bytes,direct "
                "of=/data/volume seek=5242880 oflag=seek_bytes,direct conv=notrunc,nocreat"
            ),
        ),
        (
            {"operation": "Write", "direct": False, "fdatasync": True, "count": 3},
            "count=3 if=/dev/zero of=/data/volume seek=1048576 oflag=seek_bytes conv=notrunc,nocreat,fdatasync",
        ),
        ({"direct": False}, "count=128 if=/data/volume skip=1048576 iflag=skip_bytes of=/dev/null"),
    ],
)
def test_only_the_data_set_is_used(fields: dict[str, Any], expected: str) -> None:
    assert " ".join(argv_of(**fields)) == f"bs=65536 {expected} status=progress"


@given(
    size=st.integers(1, 64).map(lambda count: count * MEBIBYTE),
    offset=st.integers(0, 64).map(lambda count: count * MEBIBYTE),
    block=st.integers(1, 2**15).map(lambda count: 512 * count),
    operation=st.sampled_from(["Read", "Write", "Copy"]),
)
def test_nothing_outside_the_data_set_is_read_or_written(size: int, offset: int, block: int, operation: str) -> None:
    target = replace(VOLUME, size=size, offset=offset)
    parameters = DdParameters.model_validate({"operation": operation, "blockSize": block})
    try:
        argv = options_of(DD.command(parameters, context(target)))
    except ValueError:
        assert block > (size // 2 if operation == "Copy" else size)
        return
    options = dict(option.split("=", 1) for option in argv)
    done = int(options["bs"]) * int(options["count"])
    starts = [int(options[name]) for name in ("skip", "seek") if name in options]
    assert all(start % 512 == 0 for start in starts), "direct I/O is aligned"
    assert all(offset <= start and start + done <= offset + size for start in starts)
    assert len(starts) < 2 or starts[0] + done <= starts[1], "what is read is not written"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"blockSize": "16Mi"}, "0 blocks of 16Mi fit into the 8Mi of the data set that can be used"),
        ({"count": 129}, "128 blocks of 64Ki fit into the 8Mi"),
        ({"operation": "Copy", "count": 65}, "64 blocks of 64Ki fit into the 4Mi"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        argv_of(**fields)


# -- parameters


def test_declarations() -> None:
    assert (DD.windowed, DD.least_runtime_seconds, DD.ends_when_done(parameters_of())) == (False, 1, True)
    assert [parameters_of(operation=name).reads_data for name in ("Read", "Write", "Copy")] == [True, False, True]


def test_labels() -> None:
    assert DdParameters().label() == "dd read 1Mi"
    assert (
        parameters_of(operation="Write", count=9, direct=False, fdatasync=True).label()
        == "dd write 64Ki x9 buffered fdatasync"
    )


# -- output


@pytest.mark.parametrize(
    ("case", "fields", "operations", "done"),
    [
        ("read", {}, [Operation.READ], 128),
        ("write", {"operation": "Write"}, [Operation.WRITE], 128),
        ("copy", {"operation": "Copy"}, [Operation.READ, Operation.WRITE], 64),
    ],
)
def test_all_blocks_of_a_recorded_run_are_counted(
    golden: Parsed, case: str, fields: dict[str, Any], operations: list[Operation], done: int
) -> None:
    measurement = golden(case, **fields)
    assert [sample.operation for sample in measurement.operations] == operations
    assert {(sample.ios, sample.bytes, sample.short_ios) for sample in measurement.operations} == {
        (done, done * 65536, 0)
    }
    assert measurement.work_bytes == 8 * MEBIBYTE
    assert (measurement.errors, measurement.warnings, measurement.bypasses_cache) == ((), (), True)


@pytest.mark.parametrize(("operation", "size"), [("Read", 3), ("Write", 3), ("Copy", 6)])
def test_memory_need_not_hold_more_than_the_blocks_that_it_uses(operation: str, size: int) -> None:
    text = "3+0 records in\n3+0 records out\n3145728 bytes (3.1 MB, 3.0 MiB) copied, 1 s, 3.1 MB/s"
    parameters = parameters_of(operation=operation, blockSize="1Mi", count=3)
    assert DD.parse(parameters, context(), printed(text)).data_bytes == size * MEBIBYTE


def test_runtime_is_that_of_the_tool(golden: Parsed, recorded: Recorded) -> None:
    measurement = golden("slow-read", blockSize=512)
    assert measurement.runtime == round(copied(recorded("slow-read"))[1] * SECOND) > 10 * SECOND
    assert measurement.operations[0].ios == 262144


def test_it_measured_until_its_end_and_not_before_its_launch(recorded: Recorded) -> None:
    output = recorded("slow-read")
    finished = round(copied(output)[1] * SECOND) + 2 * SECOND
    for launched, started in ((0, 2 * SECOND), (3 * SECOND, 3 * SECOND)):
        timed = replace(output, launched_at=launched, finished_at=finished)
        assert DD.parse(parameters_of(blockSize=512), context(), timed).started_at == started


def test_waiting_for_durable_data_is_an_operation(golden: Parsed) -> None:
    write, sync = golden("write-fdatasync", operation="Write", direct=False, fdatasync=True).operations
    assert (write.operation, sync.operation, sync.ios, sync.bytes) == (Operation.WRITE, Operation.SYNC, 1, 0)


def gaps_of(*seconds: int, total: float, **fields: Any) -> list[tuple[int, int]]:
    """Return the gaps in milliseconds, of a dd with lines of progress at these seconds."""
    progress = "".join(f"\r8388608 bytes (8 MB) copied, {second} s, 1 MB/s" for second in seconds)
    rate = 8.388608 / total
    summary = f"128+0 records in\n128+0 records out\n8388608 bytes (8 MB) copied, {total:g} s, {rate:.1f} MB/s"
    gaps = DD.parse(parameters_of(**fields), context(), printed(f"{progress}\n{summary}")).gaps
    assert gaps is not None
    return [*zip(gaps.starts, gaps.lengths, strict=True)]


@pytest.mark.parametrize(
    ("seconds", "total", "expected"),
    [
        ((1, 2, 3), 3.9, []),
        ((1, 2, 4, 4, 5), 5.2, []),
        ((1, 2, 7, 7, 7, 7, 7, 8), 8.5, [(3000, 3500)]),
        ((1, 5, 5, 5, 9, 9, 9, 9, 9), 9.1, [(2000, 2500), (5000, 3500)]),
        ((1, 2), 8, [(3000, 5000)]),
        ((), 6, [(1000, 5000)]),
    ],
)
def test_lines_of_progress_that_come_late_show_pauses(
    seconds: tuple[int, ...], total: float, expected: list[tuple[int, int]]
) -> None:
    assert gaps_of(*seconds, total=total) == expected


@pytest.mark.parametrize("fields", [{"direct": False}, {"operation": "Write", "fdatasync": True}])
def test_waiting_for_durable_data_at_the_end_is_no_pause(fields: dict[str, Any]) -> None:
    assert gaps_of(1, 2, total=8, **fields) == []


def test_a_recorded_dd_that_was_stopped_shows_its_pause(golden: Parsed) -> None:
    gaps = golden("stall", blockSize=512).gaps
    assert gaps is not None
    assert (gaps.starts, gaps.lengths) == ((3000,), (2500,))
    assert golden("slow-read", blockSize=512).gaps == gaps.model_copy(update={"starts": (), "lengths": ()})


def test_partial_records_are_short(golden: Parsed) -> None:
    (sample,) = golden("partial").operations
    assert (sample.ios, sample.short_ios, sample.bytes) == (10, 1, 600_000)


def test_a_dd_that_was_interrupted_has_an_error_and_what_it_did(golden: Parsed, recorded: Recorded) -> None:
    measurement = golden("interrupted", blockSize=512)
    assert measurement.errors == ("dd was not done after rampSeconds and runtimeSeconds, 65 s; raise them",)
    assert 0 < measurement.operations[0].bytes == copied(recorded("interrupted"))[0] < 8 * MEBIBYTE


@pytest.mark.parametrize(
    ("case", "message", "size"),
    [("io-error", "Input/output error", 3 * MEBIBYTE), ("no-space", "No space left on device", 23 * MEBIBYTE)],
)
def test_a_dd_that_failed_has_an_error_and_what_it_did(golden: Parsed, case: str, message: str, size: int) -> None:
    measurement = golden(case, blockSize="1Mi" if case == "no-space" else BLOCK)
    assert message in measurement.errors[0]
    assert measurement.operations[0].bytes == size


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("missing-file", r"exit code 1: dd: failed to open .*absent': No such file"),
        ("sigkill", r"breaks off in the line: \d+ bytes"),
        ("sigterm", r"breaks off in the line: \d+ bytes"),
    ],
)
def test_a_dd_without_a_summary_is_an_error(golden: Parsed, case: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden(case)


def test_a_dd_that_is_interrupted_in_its_first_block_is_not_called_silent() -> None:
    with pytest.raises(OutputError, match=r"a signal ended dd before it printed a summary \(exit code 130\)"):
        DD.parse(parameters_of(), context(), replace(printed(), exit_code=130, stderr=""))


def test_a_summary_on_request_is_not_the_last_one() -> None:
    first = ("100+0 records in", "100+0 records out", "6553600 bytes (6.6 MB, 6.2 MiB) copied, 0.5 s, 13.1 MB/s")
    last = ("128+0 records in", "128+0 records out", "8388608 bytes (8.4 MB, 8.0 MiB) copied, 1 s, 8.4 MB/s")
    measurement = DD.parse(parameters_of(), context(), printed(*first, *last))
    assert (measurement.runtime, measurement.operations[0].ios) == (SECOND, 128)
    with pytest.raises(OutputError, match="no complete summary"):
        DD.parse(parameters_of(), context(), printed(*first, last[0], last[1]))


def test_unknown_line_is_a_warning(golden: Parsed) -> None:
    assert golden("read", lambda text: f"dd: odd\n{text}").warnings == ("dd: odd",)


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"128\+0 records out\n", "", "no complete summary"),
        (r"128\+0 records out", "127+0 records out", "are not 127 blocks"),
        (r"8388608 bytes", "8388607 bytes", "are not 128 blocks"),
        (r"copied, [\d.]+ s", "copied, 99 s", "contradicts bytes and seconds"),
        (r"copied, [\d.]+ s", "copied, 0 s", "contradicts bytes and seconds"),
        (r"copied, [\d.]+ s", "copied, 1e-99 s", "contradicts bytes and seconds"),
        (r"(?s).*", "0+0 records in\n0+0 records out\n0 bytes copied, 3.3e-05 s, 0.0 kB/s\n", "copied nothing"),
        (r"(?s).*", "", "no complete summary"),
    ],
)
def test_damage_is_noticed(golden: Parsed, pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden("read", replaced(pattern, by))


@given(blocks=st.integers(1, 10**9), microseconds=st.integers(1, 10**12))
def test_any_summary_is_read_exactly(blocks: int, microseconds: int) -> None:
    size, seconds = blocks * 65536, microseconds / 10**6
    # dd prints no rate in a smaller unit than kB/s.
    power = next(power for power in (6, 5, 4, 3, 2, 1) if size / seconds >= 1000.0**power or power == 1)
    rate = size / seconds / 1000.0**power
    shown = f"{rate:.1f}" if rate < 10 else f"{rate:.0f}"
    line = f"{size} bytes (x MB, y MiB) copied, {seconds:.6g} s, {shown} {' kMGTPE'[power]}B/s"
    output = printed(f"{blocks}+0 records in", f"{blocks}+0 records out", line)
    measurement = DD.parse(parameters_of(), context(), output)
    assert measurement.runtime == pytest.approx(seconds * SECOND, rel=1e-5, abs=1)
    assert measurement.operations[0].bytes == size
