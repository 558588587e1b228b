"""fio on an RBD image: the command, and recorded output."""

from dataclasses import replace

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.storage import Precondition
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Command
from plimsoll.tools.fio.parameters import FioParameters, Pattern
from plimsoll.tools.fio.preparation import (
    changed_bytes,
    discard_command,
    precondition_command,
    prefill_command,
)
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import ImageTarget

from .conftest import FILE, IMAGE, Golden, load, parse, step_context

FIO = Fio()

MEBIBYTE = 2**20


def command(target: ImageTarget = IMAGE, /, **parameters: object) -> Command:
    return FIO.command(FioParameters.model_validate(parameters), step_context(target, 3, 60, seed=5))


@pytest.fixture(params=["3.39", "3.41"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def measured(version: str, case: str, target: ImageTarget = IMAGE) -> Measurement:
    golden = load(version, case)
    return parse(golden.parameters, golden.output, target)


def test_image_is_named_after_its_engine() -> None:
    argv = command().argv
    place = argv.index("--ioengine=rbd")
    assert argv[place + 1 : place + 4] == ("--pool=bench", "--rbdname=image-0", "--clientname=agent")
    assert "--offset=0" in argv
    assert f"--size={64 * MEBIBYTE}" in argv
    assert not any(argument.startswith("--filename") for argument in argv)


@pytest.mark.parametrize(("cache", "direct", "setting"), [(False, 1, "false"), (True, 0, "true")])
def test_cache_follows_the_volume(*, cache: bool, direct: int, setting: str, version: str) -> None:
    found = command(replace(IMAGE, cache=cache))
    assert f"--direct={direct}" in found.argv
    assert found.environment == {"CEPH_ARGS": f"--rbd_cache={setting}"}
    assert measured(version, "rbd-randwrite", replace(IMAGE, cache=cache)).bypasses_cache is not cache


def test_volume_has_no_settings_of_ceph() -> None:
    assert prefill_command(FILE, 1, "/work").environment == {}


@pytest.mark.parametrize("pattern", Pattern)
def test_an_image_supports_every_pattern(pattern: Pattern) -> None:
    assert f"--rw={pattern}" in command(pattern=pattern).argv


def test_an_image_must_hold_a_block_of_each_job() -> None:
    with pytest.raises(ValueError, match="needs 128Mi"):
        command(blockSize="64Mi", jobs=2, pattern="read")


def test_several_jobs_may_read_one_image(version: str) -> None:
    assert "--numjobs=2" in command(pattern="randread", jobs=2).argv
    assert measured(version, "rbd-numjobs2").in_flight == 8


def test_label_names_a_specified_engine() -> None:
    assert FioParameters().label() == "randread 4Ki qd1"
    assert FioParameters.model_validate({"engine": "rbd"}).label() == "randread 4Ki qd1 rbd"


@pytest.mark.parametrize("case", ["rbd-randwrite", "rbd-randread-ramp", "rbd-fsync", "rbd-numjobs2", "rbd-randtrim"])
def test_measurement_through_librbd_is_complete(case: str, version: str) -> None:
    measurement = measured(version, case)
    assert (measurement.errors, measurement.start_is_estimated) == ((), False)
    assert measurement.thread_percent is None, "librbd has threads of its own"
    for sample in measurement.operations:
        assert sample.ios > 0
        assert sample.latency.histogram
        assert sample.operation == "sync" or sample.cells is not None
    # Rate times latency is the queue depth.
    if measurement.in_flight:
        (sample,) = measurement.operations
        spent = sample.ios * sample.latency.mean_nanoseconds / measurement.runtime
        assert spent == pytest.approx(measurement.in_flight, rel=0.02)


def test_missing_image_is_an_error(version: str) -> None:
    output = replace(load(version, "rbd-no-image").output, stderr="rbd_open failed.\n")
    golden = Golden(parameters=FioParameters(), output=output)
    assert "rbd_open failed." in golden.parse().errors


def test_prefill_of_an_image(version: str) -> None:
    found = prefill_command(IMAGE, 7, "/work")
    assert {"--ioengine=rbd", "--rw=write", "--direct=1", "--allow_file_create=0"} <= set(found.argv)
    assert found.environment == {"CEPH_ARGS": "--rbd_cache=false"}
    assert changed_bytes("prefill", load(version, "rbd-prefill", job="prefill").output, IMAGE) == 64 * MEBIBYTE


def test_precondition_of_an_image(version: str) -> None:
    found = precondition_command(IMAGE, Precondition(seconds=2), 7, "/work")
    assert {"--ioengine=rbd", "--rw=randwrite", "--runtime=2s"} <= set(found.argv)
    assert changed_bytes("precondition", load(version, "rbd-precondition", job="precondition").output, IMAGE) > 0


def test_discard_trims_the_whole_image_in_objects(version: str) -> None:
    found = discard_command(IMAGE, "/work")
    assert {"--rw=trim", "--bs=4194304", f"--size={64 * MEBIBYTE}", "--ioengine=rbd"} <= set(found.argv)
    assert "--bs=1048576" in discard_command(replace(IMAGE, size=6 * MEBIBYTE), "/work").argv
    assert changed_bytes("discard", load(version, "rbd-discard", job="discard").output, IMAGE) == 64 * MEBIBYTE


def test_discard_of_a_part_is_an_error() -> None:
    output = load("3.39", "rbd-discard", job="discard").output
    with pytest.raises(OutputError, match="discard trimmed 67108864 of 134217728 bytes"):
        changed_bytes("discard", output, replace(IMAGE, size=128 * MEBIBYTE))
