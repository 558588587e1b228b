import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.histogram import merge_latencies
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Output, StepContext, StepKind
from plimsoll.tools.rados_bench import Progress, RadosBench, RadosBenchParameters, cells_between
from plimsoll.tools.target import PoolTarget

from .conftest import replaced, step_context, text_golden

RADOS_BENCH = RadosBench()

SECOND = 10**9
POOL = PoolTarget(pool="bench", namespace="run-0", user="agent")
WRITE = RadosBenchParameters(object_size=65536, concurrency=2)
SEQ = RadosBenchParameters.model_validate({"operation": "seq", "objectSize": "64Ki", "concurrency": 4})
RAND = RadosBenchParameters.model_validate({"operation": "rand", "objectSize": "64Ki", "concurrency": 4})


def context(step: StepKind = StepKind.MEASURE, ramp: int = 5, runtime: int = 16) -> StepContext:
    return step_context(POOL, ramp, runtime, step=step)


def argv(parameters: RadosBenchParameters, step: StepKind = StepKind.MEASURE) -> tuple[str, ...]:
    return RADOS_BENCH.command(parameters, context(step)).argv


def written(
    edit: Callable[[str], str] = str, ramp: int = 5, runtime: int = 16, ceph_version: str = "18.2"
) -> Measurement:
    output = text_golden("rados-bench-timed-write", ceph_version)
    return RADOS_BENCH.parse(WRITE, context(ramp=ramp, runtime=runtime), replace(output, stdout=edit(output.stdout)))


def test_it_runs_in_the_clients_own_namespace() -> None:
    for step in RADOS_BENCH.steps(RAND):
        found = argv(RAND, step)
        assert found[:4] == ("rados", "--id=agent", "--pool=bench", "--namespace=run-0")
        assert "--run-name=run-0" in found


def test_writing_keeps_its_objects_until_they_are_cleaned_up() -> None:
    assert {"22", "write", "--block-size=65536", "--concurrent-ios=2", "--no-cleanup", "--show-time"} <= set(
        argv(WRITE)
    )
    assert argv(WRITE, StepKind.CLEAN_UP)[4:] == ("cleanup", "--run-name=run-0")


@pytest.mark.parametrize(("parameters", "seconds"), [(SEQ, "63"), (RAND, "21")])
def test_reads_are_prepared_by_writes(parameters: RadosBenchParameters, seconds: str) -> None:
    assert argv(parameters, StepKind.PREPARE)[4:7] == ("bench", seconds, "write")
    measuring = argv(parameters)
    assert measuring[4:7] == ("bench", "22", parameters.operation)
    assert not any(argument.startswith(("--block-size", "--no-cleanup")) for argument in measuring)


def test_writing_time_can_be_specified() -> None:
    parameters = RadosBenchParameters.model_validate({"operation": "seq", "writeSeconds": 100})
    assert "100" in argv(parameters, StepKind.PREPARE)


def test_steps_depend_on_the_operation() -> None:
    assert RADOS_BENCH.steps(WRITE) == (StepKind.MEASURE, StepKind.CLEAN_UP)
    assert RADOS_BENCH.steps(SEQ) == (StepKind.PREPARE, StepKind.MEASURE, StepKind.CLEAN_UP)
    assert (WRITE.reads_data, SEQ.reads_data) == (False, True)


def test_label() -> None:
    assert RadosBenchParameters().label() == "rados write 4Mi t16"


def test_part_after_the_ramp_is_measured(ceph_version: str) -> None:
    measurement = written(ceph_version=ceph_version)
    (sample,) = measurement.operations
    text = text_golden("rados-bench-timed-write", ceph_version).stdout
    rows = re.findall(r"^\S+ +(\d+) +\d+ +\d+ +(\d+) ", text, re.MULTILINE)
    finished = {int(second): int(count) for second, count in rows}
    assert sample.operation is Operation.WRITE
    assert sample.ios == finished[21] - finished[5]
    assert sample.bytes == sample.ios * 65536
    assert measurement.runtime == pytest.approx(16 * SECOND, rel=0.005)
    assert (measurement.start_is_estimated, measurement.errors, measurement.warnings) == (False, (), ())


def test_mean_and_extremes_are_published_without_a_standard_deviation(ceph_version: str) -> None:
    samples = [written(runtime=runtime, ceph_version=ceph_version).operations[0].latency for runtime in (10, 16)]
    for latency in (merge_latencies(samples[:1]), merge_latencies(samples)):
        assert latency.kind is LatencyKind.MEAN_ONLY
        assert 0 < (latency.min_nanoseconds or 0) < (latency.mean_nanoseconds or 0) < (latency.max_nanoseconds or 0)
        assert "standardDeviationNanoseconds" not in latency.model_dump(by_alias=True, exclude_none=True)


def test_measuring_starts_when_the_line_was_printed(ceph_version: str) -> None:
    moments = [written(ramp=ramp, runtime=5, ceph_version=ceph_version).started_at for ramp in range(10)]
    assert all(SECOND <= after - before < 1.1 * SECOND for before, after in pairwise(moments))


def test_rate_and_mean_latency_agree_with_the_operations_in_flight(ceph_version: str) -> None:
    for ramp, runtime in [(0, 21), (5, 16), (10, 5)]:
        measurement = written(ramp=ramp, runtime=runtime, ceph_version=ceph_version)
        (sample,) = measurement.operations
        spent = sample.ios * sample.latency.mean_nanoseconds / measurement.runtime
        assert spent == pytest.approx(2, rel=0.02)
        assert sample.latency.kind is LatencyKind.MEAN_ONLY
        assert sample.latency.min_nanoseconds < sample.latency.mean_nanoseconds < sample.latency.max_nanoseconds


def test_series_adds_up_to_the_total(ceph_version: str) -> None:
    (sample,) = written(ceph_version=ceph_version).operations
    assert sample.cells is not None
    assert sum(sample.cells.ios) == pytest.approx(sample.ios)
    assert len(sample.cells.ios) == 17


def test_random_reads(ceph_version: str) -> None:
    output = text_golden("rados-bench-timed-rand", ceph_version)
    measurement = RADOS_BENCH.parse(RAND, context(ramp=1, runtime=3), output)
    (sample,) = measurement.operations
    assert (sample.operation, measurement.in_flight, measurement.errors) == (Operation.READ, 4, ())


@pytest.mark.parametrize(("ceph_version", "objects"), [("18.2", 438), ("20.2", 850)])
def test_reading_that_ran_out_of_objects_is_an_error(ceph_version: str, objects: int) -> None:
    output = text_golden("rados-bench-timed-seq", ceph_version)
    measurement = RADOS_BENCH.parse(SEQ, context(ramp=0, runtime=9), output)
    assert [error.split(" were")[0] for error in measurement.errors] == [f"all {objects} objects"]
    assert "raise writeSeconds" in measurement.errors[0]
    with pytest.raises(OutputError, match="before the end of its warm-up of 1 s: raise writeSeconds"):
        RADOS_BENCH.parse(SEQ, context(ramp=1, runtime=9), output)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("rados-bench-timed-absent", "Must write data before running a read benchmark!"),
        ("rados-bench-no-pool", "error opening pool absent"),
        ("rados-bench-no-permission", "Operation not permitted"),
    ],
)
def test_failure_quotes_the_tools_messages(case: str, words: str, ceph_version: str) -> None:
    with pytest.raises(OutputError, match=f"exit code 1: .*{words}"):
        RADOS_BENCH.parse(SEQ, context(), text_golden(case, ceph_version))


def test_messages_beside_a_complete_report() -> None:
    output = replace(text_golden("rados-bench-timed-write"), stderr="benchmark_data_1 is not correct!\n")
    assert RADOS_BENCH.parse(WRITE, context(), output).warnings == ("benchmark_data_1 is not correct!",)
    assert RADOS_BENCH.parse(WRITE, context(), replace(output, exit_code=5)).errors == (
        "benchmark_data_1 is not correct!",
    )


@pytest.mark.parametrize("name", ["Total time run", "Total writes made", "Write size", "Object size", "Min latency(s)"])
def test_missing_field_is_named(name: str) -> None:
    with pytest.raises(OutputError, match=f"^{re.escape(name)} is missing"):
        written(replaced(rf"\n[^\n]*{re.escape(name)}:[^\n]*", ""))


def test_unknown_lines_are_warnings() -> None:
    measurement = written(lambda text: f"{text}Color: blue\nsomething else\n")
    assert measurement.warnings == ("unknown line: something else",)
    assert measurement.operations == written().operations


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"\n\S+ +7 [^\n]*", "", "the line of second 7 is missing"),
        (r"\n(\S+ +7 [^\n]*)", r"\n\1\n\1", "the line of second 8 is missing"),
        (r"\n\S+ +0 [^\n]*", "", "the line of second 0 is missing"),
        (r"(\n\S+ +7 +\d+ +\d+) +\d+", r"\1 1", "second 7 goes back"),
        (r"(\n\S+ +21 +\d+ +\d+) +\d+", r"\1 999999999", "more operations than the total"),
        (r"Object size: +\d+", "Object size: 4096", "4096 instead of 65536"),
        (r"(Total writes made): +\d+", r"\1: 7", "operations than the total|contradicts"),
        (r"(Bandwidth \(MB/sec\)): +[\d.]+", r"\1: 1", "contradicts"),
        (r"(Total time run): +[\d.]+", r"\1: soon", "is not a number from 0 to .*: soon"),
        (r"(Total writes made): +\d+", r"\1: 1.5", "is not a whole number"),
        (r"\n(Object size: +\d+)", r"\n\1\n\1", "occurs twice"),
        (r"\n\d{4}(\S+ +0 )", r"\n2025\1", "was the clock set|goes back"),
        (r"T17(\S+ +21 )", r"T18\1", "comes after the end: was the clock set"),
        (r"\n\d{4}-\d\d(\S+ +0 )", r"\n2026-99\1", "is not a time"),
    ],
)
def test_damage_is_noticed(pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        written(replaced(pattern, by))


def test_output_without_seconds_is_refused() -> None:
    with pytest.raises(OutputError, match="no line of a second"):
        RADOS_BENCH.parse(WRITE, context(), Output(exit_code=0, stdout="hints = 1\n", stderr="", files={}))


@given(st.lists(st.tuples(st.integers(1, 3 * SECOND), st.integers(0, 10**6)), min_size=1, max_size=30), st.data())
def test_cells_hold_what_finished_between_two_points(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    points = [Progress(moment=0, done=0, mean=0.0)]
    for nanoseconds, finished in steps:
        last = points[-1]
        points.append(Progress(moment=last.moment + nanoseconds, done=last.done + finished, mean=0.0))
    start = data.draw(st.integers(0, len(points) - 2))
    end = data.draw(st.integers(start + 1, len(points) - 1))
    cells = cells_between(points, points[start], points[end], size=4096)
    assert all(count >= 0 for count in cells.ios)
    assert sum(cells.ios) == pytest.approx(points[end].done - points[start].done)
    assert len(cells.ios) == -(-(points[end].moment - points[start].moment) // SECOND)
