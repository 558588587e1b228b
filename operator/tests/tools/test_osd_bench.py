import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Operation
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import StepKind
from plimsoll.tools.osd_bench import OsdBench, OsdBenchParameters
from plimsoll.tools.target import OsdsTarget
from support.goldens import NEW_ROOK, rook

from .conftest import step_context, text_golden

OSD_BENCH = OsdBench()

CONTEXT = step_context(OsdsTarget(keyring="/etc/keyring"), 0, 0)


def parameters(**fields: object) -> OsdBenchParameters:
    return OsdBenchParameters.model_validate({"keyringSecret": {"name": "osd-bench"}, **fields})


LARGE = parameters(totalSize="64Mi")
SMALL = parameters(blockSize="4Ki")


def measured(edit: Callable[[str], str] = str) -> Measurement:
    output = text_golden("osds-bench")
    return OSD_BENCH.parse(LARGE, CONTEXT, replace(output, stdout=edit(output.stdout)))


def test_an_osd_of_ceph_20_is_read() -> None:
    output = replace(text_golden("osds-bench"), stdout=f"osd.0: {rook('osd-bench-4k', NEW_ROOK).strip()}\n")
    measurement = OSD_BENCH.parse(SMALL, CONTEXT, output)
    assert (measurement.errors, [sample.bytes for sample in measurement.operations]) == ((), [12288000])


def test_all_osds_are_benchmarked_with_the_administrators_key() -> None:
    argv = OSD_BENCH.command(LARGE, CONTEXT).argv
    assert argv[:3] == ("ceph", "--id=admin", "--keyring=/etc/keyring")
    assert argv[-5:] == ("tell", "osd.*", "bench", "67108864", "4194304")
    assert "--id=bench" in OSD_BENCH.command(parameters(user="bench"), CONTEXT).argv


def test_small_blocks_go_to_objects_written_before() -> None:
    assert OSD_BENCH.command(SMALL, CONTEXT).argv[-5:] == ("bench", "12288000", "4096", "4194304", "100")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 2**30),
        ({"blockSize": "4Ki"}, 12288000),
        ({"blockSize": "64Ki"}, 3000 * 64 * 2**10),
        ({"blockSize": "512Ki"}, 2**30),
        ({"blockSize": "1Mi"}, 2**30),
        ({"totalSize": "9Mi"}, 8 * 2**20),
        ({"totalSize": 5000, "blockSize": "4Ki"}, 4096),
    ],
)
def test_total_is_the_requested_one_or_cephs_limit(fields: dict[str, object], expected: int) -> None:
    assert parameters(**fields).total_bytes == expected


@given(st.integers(8, 2**17))
def test_total_is_whole_blocks_within_the_limit_of_small_ones(blocks: int) -> None:
    made = parameters(blockSize=512 * blocks)
    assert made.total_bytes > 0
    assert made.total_bytes % made.block_size == 0
    assert not made.is_small or made.total_bytes <= 3000 * made.block_size


def test_declarations() -> None:
    assert OSD_BENCH.steps(LARGE) == (StepKind.MEASURE,)
    assert (OSD_BENCH.runs_alone, OSD_BENCH.windowed) == (True, False)
    assert LARGE.label() == "osd write 4Mi, 64Mi each"
    assert not LARGE.reads_data


@pytest.mark.parametrize(("made", "case", "ios"), [(LARGE, "osds-bench", 16), (SMALL, "osds-bench-4k", 3000)])
def test_every_osd_and_their_sum(made: OsdBenchParameters, case: str, ios: int, ceph_version: str) -> None:
    output = replace(text_golden(case, ceph_version), launched_at=7)
    measurement = OSD_BENCH.parse(made, CONTEXT, output)
    assert [(rate.osd, rate.ios, rate.bytes) for rate in measurement.osds] == [
        (osd, ios, made.total_bytes) for osd in range(3)
    ]
    (sample,) = measurement.operations
    assert (sample.operation, sample.ios, sample.bytes) == (Operation.WRITE, 3 * ios, 3 * made.total_bytes)
    assert measurement.runtime == pytest.approx(1e9 * sum(rate.seconds for rate in measurement.osds), abs=1)
    assert (measurement.started_at, measurement.errors, measurement.warnings) == (7, (), ())


def test_refusal_is_an_error_in_cephs_words(ceph_version: str) -> None:
    with pytest.raises(OutputError, match=r"exit code 22.*greater than 12288000 for a block size of 4 KiB") as refused:
        OSD_BENCH.parse(SMALL, CONTEXT, text_golden("osds-bench-refused", ceph_version))
    assert str(refused.value).count("EINVAL") == 1


def test_osd_that_fails_is_an_error_beside_the_others() -> None:
    output = text_golden("osds-bench")
    output = replace(
        output,
        exit_code=6,
        stdout=re.sub(r"osd\.1: .*", "", output.stdout),
        stderr="Error ENXIO: problem getting command descriptions from osd.1\n",
    )
    measurement = OSD_BENCH.parse(LARGE, CONTEXT, output)
    assert [rate.osd for rate in measurement.osds] == [0, 2]
    assert measurement.errors == ("Error ENXIO: problem getting command descriptions from osd.1",)
    assert OSD_BENCH.parse(LARGE, CONTEXT, replace(output, stderr="")).errors == ("ceph tell ended with exit code 6",)


def test_messages_beside_results_are_warnings() -> None:
    output = replace(text_golden("osds-bench"), stderr="a remark\n")
    assert OSD_BENCH.parse(LARGE, CONTEXT, output).warnings == ("a remark",)


def test_other_amount_than_requested_is_an_error() -> None:
    measurement = OSD_BENCH.parse(parameters(totalSize="32Mi"), CONTEXT, text_golden("osds-bench"))
    assert "osd.0 wrote 67108864 of 33554432 bytes" in measurement.errors


def test_unknown_lines_are_warnings_and_unknown_fields_are_ignored() -> None:
    measurement = measured(lambda text: text.replace('{"bytes', '{"new":1,"bytes', 1) + "something\n")
    assert measurement.warnings == ("unknown line: something",)


@pytest.mark.parametrize("field", ["bytes_written", "blocksize", "elapsed_sec"])
def test_missing_field_is_named(field: str) -> None:
    with pytest.raises(OutputError, match=rf"^osd\.0\.{field} is missing"):
        measured(lambda text: text.replace(f'"{field}"', '"other"', 1))


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"osd\.1", "osd.0", r"osd\.0 occurs twice"),
        (r'"blocksize":4194304', '"blocksize":4096', "blocks of 4096 bytes instead of 4194304"),
        (r'"bytes_written":\d+', '"bytes_written":7', "contradicts"),
        (r'"elapsed_sec":[\d.]+', '"elapsed_sec":0', "elapsed_sec is 0"),
        (r'"elapsed_sec":[\d.]+', '"elapsed_sec":"1"', "is not a number"),
        (r'"iops":', '"blocksize":', "blocksize occurs twice"),
        (r'"iops":[\d.]+', '"iops":', "is not JSON"),
        (r'"iops":[\d.]+', '"iops":' + "[" * 100_000, "is not JSON"),
    ],
)
def test_damage_is_noticed(pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        measured(lambda text: re.sub(pattern, by, text, count=1))


@pytest.mark.parametrize("name", ["osd_bench_results", "anything"])
def test_fields_in_an_object_of_their_own_are_read(name: str) -> None:
    """Crimson's OSDs print them so."""
    assert measured(lambda text: re.sub(r"(osd\.\d+: )(\{.*\})", rf'\1{{"{name}":\2}}', text)) == measured()


@pytest.mark.parametrize("number", ["nan", "-inf", '"x"', "null"])
@pytest.mark.parametrize("field", ["bytes_per_sec", "iops"])
def test_a_rate_that_is_no_number_leaves_bytes_and_seconds(field: str, number: str) -> None:
    assert measured(lambda text: re.sub(rf'"{field}":[\d.e+]+', f'"{field}":{number}', text)) == measured()
