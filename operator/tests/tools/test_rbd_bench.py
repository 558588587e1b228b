import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Output, StepContext, StepKind
from plimsoll.tools.rbd_bench import RbdBench, RbdBenchParameters
from plimsoll.tools.target import ImageTarget

from .conftest import IMAGE, replaced, step_context, text_golden

RBD_BENCH = RbdBench()

SECOND = 10**9
WRITE = RbdBenchParameters(concurrency=4)


def context(target: ImageTarget = IMAGE, ramp: int = 1, runtime: int = 4) -> StepContext:
    return step_context(target, ramp, runtime)


def parameters_of(operation: str, order: str) -> RbdBenchParameters:
    return RbdBenchParameters.model_validate({"operation": operation, "order": order, "concurrency": 4})


def printed(*lines: str, stderr: str = "", exit_code: int = 0, finished_at: int = 0) -> Output:
    header = "bench  type write io_size 4096 io_threads 4 bytes 1024 pattern random"
    columns = "  SEC       OPS   OPS/SEC   BYTES/SEC"
    return Output(
        exit_code=exit_code,
        stdout="\n".join([header, columns, *lines, ""]),
        stderr=stderr,
        files={},
        finished_at=finished_at,
    )


def total(operations: int, seconds: float) -> str:
    return f"elapsed: {int(seconds)}   ops: {operations}   ops/sec: {operations / seconds:.6g}   bytes/sec: 6.6 MiB/s"


def row(second: int, operations: int) -> str:
    return f"{second:5}  {operations:8}   1514.06   5.9 MiB/s"


def written(edit: Callable[[str], str]) -> Measurement:
    output = text_golden("rbd-bench-timed-write-rand")
    return RBD_BENCH.parse(WRITE, context(), replace(output, stdout=edit(output.stdout)))


def test_it_runs_until_a_signal_ends_it() -> None:
    argv = RBD_BENCH.command(WRITE, context()).argv
    assert argv[:5] == ("timeout", "--foreground", "--preserve-status", "--signal=TERM", "7")
    assert argv[5:10] == ("setpriv", "--pdeathsig", "KILL", "--", "rbd"), "it does not outlive the agent"
    expected = {
        "--id=agent", "--rbd-cache=false", "--io-type=write", "--io-pattern=rand", "--io-size=4096", "--io-threads=4",
        "--pool=bench", "--image=image-0",
    }  # fmt: skip
    assert expected <= set(argv)


def test_cache_follows_the_volume() -> None:
    cached = context(replace(IMAGE, cache=True))
    assert "--rbd-cache=true" in RBD_BENCH.command(WRITE, cached).argv
    assert not RBD_BENCH.parse(WRITE, cached, printed(row(1, 100), total(600, 6.0))).bypasses_cache
    assert RBD_BENCH.parse(WRITE, context(), printed(row(1, 100), total(600, 6.0))).bypasses_cache


def test_image_must_hold_a_block() -> None:
    with pytest.raises(ValueError, match="has 63Mi, less than one block"):
        RBD_BENCH.command(RbdBenchParameters(block_size=64 * 2**20), context(replace(IMAGE, size=63 * 2**20)))


def test_declarations() -> None:
    assert RBD_BENCH.steps(WRITE) == (StepKind.MEASURE,)
    assert RBD_BENCH.windowed
    assert (WRITE.reads_data, parameters_of("read", "seq").reads_data) == (False, True)
    assert RbdBenchParameters().label() == "rbd rand write 4Ki t16"


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize("order", ["rand", "seq"])
def test_whole_seconds_after_the_ramp_are_measured(operation: str, order: str, ceph_version: str) -> None:
    output = text_golden(f"rbd-bench-timed-{operation}-{order}", ceph_version)
    measurement = RBD_BENCH.parse(parameters_of(operation, order), context(), output)
    rows = {int(second): int(done) for second, done in re.findall(r"^ +(\d+) +(\d+) ", output.stdout, re.MULTILINE)}
    (sample,) = measurement.operations
    assert sample.operation is Operation(operation)
    assert (sample.ios, measurement.runtime) == (rows[5] - rows[1], 4 * SECOND)
    assert sample.bytes == 4096 * sample.ios
    assert sample.cells is not None
    assert list(sample.cells.ios) == [rows[second + 1] - rows[second] for second in range(1, 5)]
    assert (measurement.errors, measurement.warnings, measurement.start_is_estimated) == ((), (), False)


def test_start_follows_from_the_printed_end(ceph_version: str) -> None:
    output = text_golden("rbd-bench-timed-write-rand", ceph_version)
    measurement = RBD_BENCH.parse(WRITE, context(), output)
    ended = datetime.fromisoformat(output.stderr.split()[0])
    totals = re.search(r"ops: (\d+) +ops/sec: ([\d.]+)", output.stdout)
    assert totals is not None
    began = datetime.fromtimestamp(measurement.started_at / SECOND, tz=UTC)
    # The first second was the ramp.
    assert (ended - began).total_seconds() == pytest.approx(int(totals[1]) / float(totals[2]) - 1, abs=0.001)


def test_end_is_found_after_any_number_of_warnings() -> None:
    output = text_golden("rbd-bench-timed-write-rand")
    truth = RBD_BENCH.parse(WRITE, context(), output)
    noisy = replace(output, stderr="".join(f"warning {number}\n" for number in range(100)) + output.stderr)
    measurement = RBD_BENCH.parse(WRITE, context(), noisy)
    assert (measurement.start_is_estimated, measurement.started_at) == (False, truth.started_at)
    assert measurement.operations == truth.operations
    assert measurement.warnings[:2] == ("warning 0", "warning 1")


def test_start_is_estimated_without_a_printed_end() -> None:
    output = printed(row(1, 100), total(600, 6.0), finished_at=100 * SECOND)
    measurement = RBD_BENCH.parse(WRITE, context(), output)
    assert (measurement.start_is_estimated, measurement.started_at) == (True, 95 * SECOND)
    launched = RBD_BENCH.parse(WRITE, context(), replace(output, launched_at=95 * SECOND))
    assert launched.started_at == 96 * SECOND


def test_second_without_a_line_had_no_operation() -> None:
    output = printed(row(1, 100), row(2, 200), row(5, 300), row(6, 400), total(500, 6.9))
    measurement = RBD_BENCH.parse(WRITE, context(ramp=1, runtime=5), output)
    (sample,) = measurement.operations
    assert sample.cells is not None
    assert list(sample.cells.ios) == [100, 100, 0, 0, 100]
    assert "no line from second 3 to 4: no operation was submitted" in measurement.warnings


def test_run_that_ended_early_has_its_actual_length() -> None:
    measurement = RBD_BENCH.parse(WRITE, context(ramp=1, runtime=4), printed(row(1, 100), row(2, 200), total(250, 2.5)))
    (sample,) = measurement.operations
    assert (measurement.runtime, sample.ios) == (1_500_000_000, 150)
    assert sample.cells is not None
    assert list(sample.cells.ios) == [100, 50]
    with pytest.raises(OutputError, match="before the end of its warm-up of 3 s"):
        RBD_BENCH.parse(WRITE, context(ramp=3), printed(row(1, 100), row(2, 200), total(250, 2.5)))


def test_no_operations_are_an_error() -> None:
    nothing = "elapsed: 0   ops: 0   ops/sec: -nan   bytes/sec: 8 EiB/s"
    with pytest.raises(OutputError, match="is the image locked by another client"):
        RBD_BENCH.parse(WRITE, context(), printed(nothing))


def test_failure_quotes_the_tools_messages(ceph_version: str) -> None:
    with pytest.raises(OutputError, match=r"exit code 2: .*error opening image absent"):
        RBD_BENCH.parse(WRITE, context(), text_golden("rbd-bench-no-image", ceph_version))


def test_failure_while_measuring_quotes_the_tools_messages() -> None:
    with pytest.raises(OutputError, match=r"write error: .28. No space left on device"):
        RBD_BENCH.parse(WRITE, context(), printed("write error: (28) No space left on device", exit_code=28))
    measurement = RBD_BENCH.parse(
        WRITE, context(), printed(row(1, 100), total(600, 6.0), stderr="Error flushing\n", exit_code=5)
    )
    assert measurement.errors == ("Error flushing",)


def test_unknown_line_is_a_warning() -> None:
    assert written(lambda text: f"{text}something else\n").warnings == ("unknown line: something else",)


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        ("type write", "type read", "type is read instead of write"),
        ("io_size 4096", "io_size 8192", "size is 8192"),
        ("io_threads 4", "io_threads 16", "threads is 16"),
        ("pattern random", "pattern sequential", "pattern is sequential"),
        (r"elapsed.*\n", "", "no header or no totals"),
        (r"bench .*\n", "", "no header or no totals"),
        (r"ops/sec: [\d.]+", "ops/sec: 1", "contradict each other"),
        (r"ops: \d+", "ops: 9", "contradict each other|exceeds the totals"),
        (r"\n    3 ( +)\d+", r"\n    3 \g<1>1", "second 3 goes back"),
        (r"(\n    2 [^\n]*)", r"\1\1", "second 2 goes back"),
    ],
)
def test_damage_is_noticed(pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        written(replaced(pattern, by))


def test_broken_time_is_refused() -> None:
    output = text_golden("rbd-bench-timed-write-rand")
    with pytest.raises(OutputError, match="is not a time"):
        RBD_BENCH.parse(WRITE, context(), replace(output, stderr=output.stderr.replace("2026-11", "2026-99")))
