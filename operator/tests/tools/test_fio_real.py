"""The commands, run by the fio that PLIMSOLL_FIO names."""

import math
import signal
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from plimsoll.api.storage import RANDOM_DATA, Precondition
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Command, Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.preparation import changed_bytes, precondition_command, prefill_command
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget

FIO = Fio()

MEBIBYTE = 2**20
_STOPS = 4
_STOP_SECONDS = 0.3
pytestmark = pytest.mark.fio


@pytest.fixture(scope="module")
def target(fio: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VolumeTarget]:
    """A file that is written from its second MiB on, with what separates names in its path."""
    path = tmp_path_factory.mktemp("fio") / "a:b c"
    volume = VolumeTarget(kind=VolumeKind.FILE, path=str(path), size=16 * MEBIBYTE, offset=MEBIBYTE)
    work = tmp_path_factory.mktemp("prefill")
    assert changed_bytes("prefill", run(fio, prefill_command(volume, 1, str(work)), work), volume) == volume.size
    content = path.read_bytes()
    assert not any(content[:MEBIBYTE])
    assert all(any(content[start : start + 4096]) for start in range(MEBIBYTE, len(content), 4096))
    yield volume
    path.unlink()


def run(fio: str, command: Command, directory: Path) -> Output:
    done = subprocess.run(
        [fio, *command.argv[1:]], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    files = {path.name: path.read_text() for path in directory.iterdir()}
    return Output(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, files=files)


def measuring(target: VolumeTarget, directory: Path, timing: Timing) -> StepContext:
    return StepContext(step=StepKind.MEASURE, target=target, timing=timing, seed=0, work_directory=str(directory))


def write_inputs(command: Command, context: StepContext) -> None:
    directory = Path(context.prepared_directory)
    directory.mkdir(exist_ok=True)
    for name, lines in command.inputs.items():
        (directory / name).write_text("".join(lines))


def measured_undisturbed(fio: str, parameters: FioParameters, target: VolumeTarget, directory: Path) -> Measurement:
    """Measure until there are no warnings, at most three times: on a busy machine, lines of fio's logs are late."""
    for attempt in range(3):
        work = directory / str(attempt)
        work.mkdir()
        context = measuring(target, work, Timing(ramp_seconds=1, runtime_seconds=3))
        if StepKind.PREPARE in FIO.steps(parameters):
            write_inputs(FIO.command(parameters, replace(context, step=StepKind.PREPARE)), context)
        measurement = FIO.parse(parameters, context, run(fio, FIO.command(parameters, context), work))
        if not measurement.warnings:
            break
    return measurement


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"pattern": "randrw", "readPercent": 70, "blockSize": "8Ki", "ioDepth": 4, "jobs": 2, "rateIops": 400},
            marks=pytest.mark.essential,
        ),
        {"pattern": "write", "blockSize": "64Ki", "jobs": 3, "fsyncEvery": 8, "rateIops": 30},
        {"pattern": "randread", "engine": "psync", "blockSize": 512, "rateIops": 50},
        {"pattern": "randrw", "readPercent": 70, "ioDepth": 64, "rateIops": 400, "arrivals": "Poisson"},
        {"pattern": "write", "blockSize": "64Ki", "ioDepth": 4, "rateIops": 50, "arrivals": "Poisson"},
    ],
)
def test_measurement_is_complete(fio: str, target: VolumeTarget, tmp_path: Path, fields: dict[str, JsonValue]) -> None:
    parameters = FioParameters.model_validate(fields)
    measurement = measured_undisturbed(fio, parameters, target, tmp_path)
    assert (measurement.errors, measurement.warnings) == ((), ())
    # On a busy machine, fio ends late.
    assert 2.7 <= measurement.runtime / 10**9 <= 9
    assert all(sample.ios > 0 for sample in measurement.operations)
    assert all(sample.slices is not None for sample in measurement.operations if sample.cells)
    assert measurement.gaps is not None
    rate = sum(sample.ios for sample in measurement.operations if sample.cells) / (measurement.runtime / 10**9)
    assert rate <= (parameters.rate_iops or 0) * 1.3


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": "randread", "blockSize": "64Ki", "ioDepth": 8},
        {"pattern": "write", "blockSize": "1Mi"},
        {"pattern": "randrw", "blockSize": "64Ki", "ioDepth": 4},
    ],
)
def test_a_load_that_ends_with_its_data_set_does_all_of_it_and_no_more(
    fio: str, target: VolumeTarget, tmp_path: Path, fields: dict[str, JsonValue]
) -> None:
    parameters = FioParameters.model_validate(fields | {"until": "DataSetDone"})
    context = measuring(target, tmp_path, Timing(ramp_seconds=0, runtime_seconds=60))
    measurement = FIO.parse(parameters, context, run(fio, FIO.command(parameters, context), tmp_path))
    assert measurement.errors == ()
    assert sum(sample.bytes for sample in measurement.operations) == measurement.work_bytes == target.size
    assert measurement.runtime < 60 * 10**9


@pytest.mark.parametrize("complete", [True, False], ids=["complete", "ended by the death of its agent"])
def test_it_opens_its_target_only_once_its_input_is_complete(fio: str, tmp_path: Path, *, complete: bool) -> None:
    path = tmp_path / "target"
    path.write_bytes(bytes(MEBIBYTE))
    target = VolumeTarget(kind=VolumeKind.FILE, path=str(path), size=MEBIBYTE)
    parameters = FioParameters.model_validate({"pattern": "write", "blockSize": "64Ki", "until": "DataSetDone"})
    command = FIO.command(parameters, measuring(target, tmp_path, Timing(ramp_seconds=0, runtime_seconds=60)))
    assert command.held is not None
    done = subprocess.run(
        [fio, *command.argv[1:], *command.held.arguments],
        cwd=tmp_path,
        input=command.held.unfinished + (command.held.rest if complete else ""),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode == 0, any(path.read_bytes())) == (complete, complete)


@pytest.mark.parametrize("limited", [{}, {"rateIops": 800, "arrivals": "Poisson"}], ids=["unlimited", "limited"])
@pytest.mark.parametrize("distribution", ["zipf:1.2", "pareto:0.2"])
def test_sizes_and_places_are_mixed_as_requested(
    fio: str, target: VolumeTarget, tmp_path: Path, distribution: str, limited: dict[str, JsonValue]
) -> None:
    mix = [{"size": "4Ki", "percent": 75}, {"size": "64Ki", "percent": 25}]
    parameters = FioParameters.model_validate(
        {"blockSizeMix": mix, "randomDistribution": distribution, "ioDepth": 8, **limited}
    )
    measurement = measured_undisturbed(fio, parameters, target, tmp_path)
    assert (measurement.errors, measurement.warnings) == ((), ())
    (reads,) = measurement.operations
    assert reads.cells is not None
    assert reads.bytes / reads.ios / 1024 == pytest.approx(0.75 * 4 + 0.25 * 64, rel=0.15)
    assert math.fsum(reads.cells.bytes) == pytest.approx(reads.bytes, rel=0.001)
    if limited:
        # On a busy machine, less arrives.
        assert reads.ios / (measurement.runtime / 10**9) < 800 * 1.3


def test_skewed_places_are_everywhere_in_a_data_set_of_any_size(fio: str, tmp_path: Path) -> None:
    """Of 18,608 blocks, fio's hash would reach 201."""
    path, work = tmp_path / "data", tmp_path / "work"
    work.mkdir()
    with path.open("wb") as file:
        file.truncate(18_608 * 4096)
    parameters = FioParameters.model_validate({"randomDistribution": "zipf:0.2", "ioDepth": 16})
    volume = VolumeTarget(kind=VolumeKind.FILE, path=str(path), size=18_608 * 4096)
    context = measuring(volume, work, Timing(ramp_seconds=0, runtime_seconds=2))
    command = FIO.command(parameters, context)
    output = run(fio, replace(command, argv=(*command.argv, f"--write_iolog={work}/visited")), work)
    visited = {line.split()[-2] for line in output.files["visited"].splitlines() if " read " in line}
    assert len(visited) > 1000


@pytest.mark.parametrize("pattern", ["prefill", "randwrite"])
def test_what_is_written_is_as_compressible_as_requested(
    fio: str, target: VolumeTarget, tmp_path: Path, pattern: str
) -> None:
    parameters = FioParameters.model_validate(
        {"pattern": "randwrite", "until": "DataSetDone", "ioDepth": 4, "compressPercent": 75}
    )
    volume = replace(target, path=str(tmp_path / "content"), offset=0)
    work = tmp_path / "work"
    work.mkdir()
    content = parameters.content if pattern == "prefill" else RANDOM_DATA
    changed_bytes("prefill", run(fio, prefill_command(volume, 1, str(work), content), work), volume)
    if pattern != "prefill":
        context = measuring(volume, work, Timing(ramp_seconds=0, runtime_seconds=60))
        assert FIO.parse(parameters, context, run(fio, FIO.command(parameters, context), work)).errors == ()
    written = Path(volume.path).read_bytes()
    assert len(zlib.compress(written, 1)) / len(written) == pytest.approx(0.25, abs=0.1)


@pytest.mark.essential
def test_a_load_that_its_limit_ends_reports_what_it_did(fio: str, target: VolumeTarget, tmp_path: Path) -> None:
    parameters = FioParameters.model_validate({"until": "DataSetDone", "rateIops": 20})
    context = measuring(target, tmp_path, Timing(ramp_seconds=0, runtime_seconds=2))
    measurement = FIO.parse(parameters, context, run(fio, FIO.command(parameters, context), tmp_path))
    assert measurement.work_bytes == target.size
    assert 0 < sum(sample.bytes for sample in measurement.operations) < target.size


@pytest.mark.essential
def test_every_stop_of_the_process_is_a_gap(fio: str, target: VolumeTarget, tmp_path: Path) -> None:
    """Stopping fio freezes all that is in flight, like a storage that does not answer."""
    parameters = FioParameters.model_validate({"ioDepth": 8, "rateIops": 1000})
    context = measuring(target, tmp_path, Timing(ramp_seconds=0, runtime_seconds=15))
    argv = FIO.command(parameters, context).argv[1:]
    status = Path(target.path).with_name("status")
    with status.open("w") as printed, subprocess.Popen([fio, *argv], cwd=tmp_path, stdout=printed) as process:
        # Before that, it may still read its own program.
        wait_until(lambda: FIO.live(parameters, status.read_text()))
        for _ in range(_STOPS):
            wait_until(_reads_more(process.pid))
            process.send_signal(signal.SIGSTOP)
            time.sleep(_STOP_SECONDS)
            process.send_signal(signal.SIGCONT)
        exit_code = process.wait(timeout=60)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    output = Output(exit_code=exit_code, stdout="", stderr="", files=files)
    measurement = FIO.parse(parameters, context, output)
    assert measurement.gaps is not None
    least = 1000 * _STOP_SECONDS - 2 * measurement.gaps.width_nanoseconds / 10**6
    assert sum(length >= least for length in measurement.gaps.lengths) >= _STOPS


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _reads_more(pid: int) -> Callable[[], bool]:
    """Return a predicate: whether a process has read a hundred more blocks than now."""
    goal = _read_bytes(pid) + 100 * 4096
    return lambda: _read_bytes(pid) >= goal


def _read_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/io").read_text().split()
    return int(fields[fields.index("read_bytes:") + 1])


@pytest.mark.essential
def test_precondition_overwrites_the_target_and_nothing_else(fio: str, target: VolumeTarget, tmp_path: Path) -> None:
    path, start = Path(target.path), target.offset
    before = path.read_bytes()
    command = precondition_command(target, Precondition(block_size=65536, seconds=1), 5, str(tmp_path))
    written = changed_bytes("precondition", run(fio, command, tmp_path), target)
    after = path.read_bytes()
    assert written > 0
    assert len(after) == len(before)
    assert after[:start] == before[:start]
    assert after[start:] != before[start:]
