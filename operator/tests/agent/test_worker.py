"""An agent's work with a volume, with tools that work and tools that fail."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plimsoll.agent import process
from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host, with_descendants
from plimsoll.agent.volume import DeviceVolume, FileVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.api.storage import Precondition
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import ArmOrder, PrepareOrder, ServeOrder, StageOrder
from plimsoll.tools.base import Command, StepContext
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind, VolumeTarget
from support.agents import RecordedProgress
from support.specs import KEY, Pairs, Parameters

MEBIBYTE = 2**20
TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)
PREPARE = PrepareOrder(discard=True, prefill=True, fill_percent=100, seed=1)
ARM = ArmOrder(
    trial=TRIAL,
    tool="fio",
    parameters={"pattern": "randread", "blockSize": 4096, "rateIops": 500},
    ramp_seconds=0,
    runtime_seconds=1,
    seed=1,
)


def make_worker(directory: Path, fio: str, *, mount_table: Path | None = None) -> Worker:
    volume = FileVolume(path=directory / "plimsoll.data", capacity=8 * MEBIBYTE, mount_table=mount_table)
    work = directory / "work"
    return Worker(client=0, node="here", volume=volume, directory=work, binaries={"fio": fio}, host=Host())


def script(directory: Path, text: str) -> str:
    path = directory / "fio"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def staging(order: ArmOrder) -> StageOrder:
    return StageOrder.model_validate(order.model_dump(exclude={"kind"}))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


async def measured(worker: Worker) -> ClientDocument:
    return await worker.measure(await worker.arm(ARM), Clock(offset=0, error=0))


@pytest.mark.fio
async def test_an_armed_tool_waits_and_ends_when_it_is_disarmed(tmp_path: Path, fio: str) -> None:
    worker = make_worker(tmp_path, fio)
    await worker.prepare(PREPARE, RecordedProgress())
    data, writing = tmp_path / "plimsoll.data", {"pattern": "randwrite", "blockSize": 4096}
    before = data.stat().st_mtime_ns
    armed = await worker.arm(ARM.model_copy(update={"parameters": writing}))
    await worker.launch(armed)
    (pid,) = [pid for pid in with_descendants(Path("/proc"), os.getpid()) if command_of(pid) == Path(fio).name]
    await asyncio.sleep(1.5)
    assert command_of(pid), "it measures for 1 s, and would have ended"
    assert data.name not in open_files_of(pid)
    await worker.disarm(armed)
    assert not command_of(pid)
    assert data.stat().st_mtime_ns == before, "it has written nothing"


def open_files_of(pid: int) -> set[str]:
    return {file.readlink().name for file in Path(f"/proc/{pid}/fd").iterdir()}


def command_of(pid: int) -> str:
    """Return the name of a process's program; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class HangingStorage:
    """A file operation that does not return before the storage answers, and then fails."""

    def __init__(self) -> None:
        self.is_waiting, self.answers = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> Any:
        self.is_waiting.set()
        self.answers.wait(20)
        raise OSError("the storage has failed")


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingStorage]:
    monkeypatch.setattr(process, "_KILL_SECONDS", 0.05)
    hanging = HangingStorage()
    yield hanging
    hanging.answers.set()


@pytest.mark.fault(
    "Storage",
    "The storage hangs",
    "while a client opens or prepares its volume",
    ends="the run shows which operation of which client hangs, and ends at its deadline",
    within="`timeouts.totalSeconds`",
)
@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("volume.FileVolume.target", "the check of the volume"),
        ("volume.FileVolume.create", "the creation of "),
        ("volume.FileVolume.clear", "the removal of "),
        ("volume.FileVolume.lay_out", "the creation of "),
        ("preparation.identify", "the check of "),
        ("worker.volume_facts", "the check of the volume"),
        ("worker._identity", "the check of the data set"),
    ],
)
async def test_a_file_operation_that_hangs_delays_nothing_else_and_is_named(
    operation: str, name: str, storage: HangingStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"plimsoll.agent.{operation}", storage)
    worker = make_worker(tmp_path, script(tmp_path, "echo fio-3.39"))

    async def work() -> None:
        await worker.facts()
        order = PrepareOrder(discard=True, prefill=False, fill_percent=100, seed=1)
        await worker.prepare(order, RecordedProgress())
        await worker.arm(ARM)

    working = asyncio.create_task(work())
    async with asyncio.timeout(15):
        while not storage.is_waiting.is_set():
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert worker.unended.startswith(name)
        assert "cannot be ended" in worker.unended
        storage.answers.set()
        while worker.unended:
            await asyncio.sleep(0.01)


async def test_a_file_operation_beyond_its_time_limit_is_an_error_and_still_under_way(
    storage: HangingStorage, tmp_path: Path
) -> None:
    programs = process.Programs(tmp_path, {})
    with pytest.raises(PreparationError, match=r"the check of it has not ended within 0.05 s; check the storage"):
        await programs.in_thread("the check of it", storage, limit_seconds=0.05)
    assert "cannot be ended" in programs.unended
    storage.answers.set()
    while programs.unended:
        await asyncio.sleep(0.01)


async def test_a_file_operation_that_fails_ends_the_preparation(
    storage: HangingStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileVolume, "clear", storage)
    storage.answers.set()
    with pytest.raises(PreparationError, match="the storage has failed"):
        await make_worker(tmp_path, "fio").prepare(PREPARE, RecordedProgress())


async def test_a_failed_prefill_ends_with_the_tool_s_output(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, script(tmp_path, "echo fio: no space left >&2; exit 28"))
    with pytest.raises(
        PreparationError, match=r"prefill of .*plimsoll.data ended with exit code 28: fio: no space left"
    ):
        await worker.prepare(PREPARE, RecordedProgress())


class Device(FileVolume):
    """A file that is discarded like a device."""

    def discard_command(self, target: VolumeTarget) -> tuple[str, ...]:
        return DeviceVolume(path=Path(target.path)).discard_command(target) or ()


def discarding(directory: Path, text: str) -> Worker:
    fio, blkdiscard = script(directory, "echo fio: not reached >&2; exit 3"), directory / "discard.sh"
    blkdiscard.write_text(f"#!/bin/sh\n{text}\n")
    blkdiscard.chmod(0o755)
    volume = Device(path=directory / "plimsoll.data", capacity=8 * MEBIBYTE)
    binaries = {"fio": fio, "blkdiscard": str(blkdiscard)}
    return Worker(client=0, node="here", volume=volume, directory=directory / "work", binaries=binaries, host=Host())


async def test_a_failed_discard_ends_with_the_tool_s_output(tmp_path: Path) -> None:
    worker = discarding(tmp_path, "echo blkdiscard: BLKDISCARD ioctl failed: Remote I/O error >&2; exit 1")
    with pytest.raises(
        PreparationError,
        match=r"discard of .*plimsoll.data ended with exit code 1: .*Remote I/O error; prepare.discard: false",
    ):
        await worker.prepare(PREPARE, RecordedProgress())


@pytest.mark.parametrize("text", ["exit 2", "echo blkdiscard: x: Operation not supported >&2; exit 1"])
async def test_storage_without_discard_is_reported_and_prepared(tmp_path: Path, text: str) -> None:
    worker, recorded = discarding(tmp_path, text), RecordedProgress()
    with pytest.raises(PreparationError, match="not reached"):
        await worker.prepare(PREPARE, recorded)
    assert recorded.messages == [f"{tmp_path}/plimsoll.data does not support discard; overwriting it as it is"]


async def test_storage_without_discard_cannot_give_a_new_data_set_without_prefill(tmp_path: Path) -> None:
    worker = discarding(tmp_path, "exit 2")
    order = PREPARE.model_copy(update={"must_discard": True, "prefill": False})
    with pytest.raises(
        PreparationError,
        match=r"plimsoll.data does not support discard, so without prefill .*set prepare.prefill: true",
    ):
        await worker.prepare(order, RecordedProgress())
    with pytest.raises(PreparationError, match="not prepared"):
        await worker.arm(ARM)


async def test_a_file_that_is_prepared_again_is_new_and_keeps_its_size(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, script(tmp_path, "exit 3"))
    order = PrepareOrder(discard=True, prefill=False, must_discard=True, fill_percent=100, seed=1)
    data = tmp_path / "plimsoll.data"
    assert await worker.prepare(order, RecordedProgress()) == 8 * MEBIBYTE
    data.write_bytes(b"old" * MEBIBYTE)
    again = order.model_copy(update={"fill_percent": 50})
    assert await worker.prepare(again, RecordedProgress()) == 8 * MEBIBYTE
    assert (data.stat().st_size, data.stat().st_blocks) == (8 * MEBIBYTE, 0)


async def test_a_successful_discard_is_not_reported(tmp_path: Path) -> None:
    worker, recorded = discarding(tmp_path, '[ "$LC_ALL" = C ]'), RecordedProgress()
    with pytest.raises(PreparationError, match="not reached"):
        await worker.prepare(PREPARE, recorded)
    assert recorded.messages == []


async def test_a_failed_overwrite_ends_with_the_tool_s_output(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, script(tmp_path, "echo fio: medium error >&2; exit 1"))
    order = PrepareOrder(discard=False, prefill=False, precondition=Precondition(seconds=5), fill_percent=100, seed=1)
    recorded = RecordedProgress()
    with pytest.raises(PreparationError, match=r"precondition of .* ended with exit code 1: fio: medium error"):
        await worker.prepare(order, recorded)
    assert recorded.messages[0] == "overwriting at random, 0 of 5 s"


async def test_a_tool_without_output_has_not_prepared_anything(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, script(tmp_path, "exit 0"))
    with pytest.raises(PreparationError):
        await worker.prepare(PREPARE, RecordedProgress())
    with pytest.raises(PreparationError, match="not prepared"):
        await worker.arm(ARM)


async def test_a_directory_that_no_volume_is_mounted_at_is_not_written_to(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text("22 1 0:30 / / rw - overlay overlay rw\n")
    worker = make_worker(tmp_path, script(tmp_path, "exit 0"), mount_table=table)
    with pytest.raises(PreparationError, match="no volume is mounted at"):
        await worker.prepare(PREPARE, RecordedProgress())
    assert not (tmp_path / "plimsoll.data").exists()


async def test_a_volume_that_cannot_hold_a_block_of_the_overwrite_is_refused_with_the_remedy(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, script(tmp_path, "exit 0"))
    order = PrepareOrder(
        discard=False,
        prefill=False,
        precondition=Precondition(block_size=64 * MEBIBYTE, seconds=5),
        fill_percent=100,
        seed=1,
    )
    with pytest.raises(PreparationError, match="use a larger volume or smaller blocks"):
        await worker.prepare(order, RecordedProgress())


async def test_a_volume_must_be_prepared_before_a_tool_that_uses_it(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="the volume is not prepared"):
        await make_worker(tmp_path, "fio").arm(ARM)


async def test_a_tool_that_uses_no_volume_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Network(Fio):
        target = TargetKind.PEER

        def command(self, parameters: Any, context: Any) -> Command:
            return Command(argv=("iperf3",))

    monkeypatch.setattr("plimsoll.agent.worker.TOOLS", {"fio": Network()})
    worker = Worker(client=0, node="here", volume=None, directory=tmp_path, binaries={}, host=Host())
    armed = await worker.arm(ARM)
    assert armed.context.target.name == ""


async def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="tool unheardOf is unknown"):
        await make_worker(tmp_path, "fio").arm(ARM.model_copy(update={"tool": "unheardOf"}))


async def test_parameters_of_another_tool_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="operation"):
        await make_worker(tmp_path, "fio").arm(ARM.model_copy(update={"parameters": {"operation": "seq"}}))


POISSON = {"blockSize": 4096, "ioDepth": 64, "rateIops": 500, "arrivals": "Poisson"}


async def test_arrivals_are_written_when_a_trial_is_staged(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, "fio")
    await worker.prepare(PrepareOrder(discard=False, prefill=False, fill_percent=100, seed=1), RecordedProgress())
    order = ARM.model_copy(update={"parameters": POISSON})
    with pytest.raises(PreparationError, match="has not staged"):
        await worker.arm(order)
    await worker.stage(staging(order), RecordedProgress())
    armed = await worker.arm(order)
    (option,) = [argument for argument in armed.argv if argument.startswith("--read_iolog=")]
    header, *rest = await asyncio.to_thread(lines_of, Path(option.partition("=")[2]))
    assert header == "fio version 3 iolog"
    # 11 s at 500 operations per second.
    assert len(rest) == pytest.approx(5500, abs=400)


async def test_arrivals_that_cannot_be_written_fail_the_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_worker(tmp_path, "fio")
    await worker.prepare(PrepareOrder(discard=False, prefill=False, fill_percent=100, seed=1), RecordedProgress())
    unwritable = Command(argv=(), inputs={"absent/arrivals": ["0 data add\n"]})
    monkeypatch.setattr(Fio, "command", lambda *_: unwritable)
    order = ARM.model_copy(update={"parameters": POISSON})
    with pytest.raises(PreparationError, match="absent/arrivals: No such file or directory"):
        await worker.stage(staging(order), RecordedProgress())


@pytest.mark.fio
async def test_random_arrivals_are_staged_and_measured(tmp_path: Path, fio: str) -> None:
    worker = make_worker(tmp_path, fio)
    await worker.prepare(PREPARE, RecordedProgress())
    order = ARM.model_copy(update={"parameters": POISSON})
    await worker.stage(staging(order), RecordedProgress())
    document = await worker.measure(await worker.arm(order), Clock(offset=0, error=0))
    assert (document.exit_code, document.parse_error, document.foreign_target) == (0, None, "")
    assert document.measurement is not None
    assert document.measurement.errors == ()
    (reads,) = document.measurement.operations
    assert 0 < reads.ios < 500 + 6 * 500**0.5
    assert document.measurement.depth_full_share is not None


@pytest.mark.fio
async def test_a_volume_is_filled_overwritten_measured_and_seen(tmp_path: Path, fio: str) -> None:
    worker = make_worker(tmp_path, fio)
    recorded = RecordedProgress()
    order = PREPARE.model_copy(update={"precondition": Precondition(seconds=1)})
    assert await worker.prepare(order, recorded) == 8 * MEBIBYTE
    assert recorded.bytes[-1] == (8 * MEBIBYTE, 8 * MEBIBYTE)
    assert recorded.messages[0] == "overwriting at random, 0 of 1 s"
    document = await measured(worker)
    assert (document.exit_code, document.parse_error, document.foreign_target) == (0, None, "")
    assert document.prefilled
    assert document.measurement is not None
    assert document.host is not None
    assert document.host.seconds >= document.measurement.runtime / 10**9
    assert document.host.tool is not None
    read = sum(sample.bytes for sample in document.measurement.operations)
    on_storage = document.host.tool.read * document.host.seconds
    # On a tmpfs nothing is; anywhere else the program itself may be read from storage as well.
    assert round(on_storage) >= read or document.host.unseen == "tmpfs"


@pytest.mark.fio
async def test_a_tool_that_measures_another_file_is_found_out(
    tmp_path: Path, fio: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_POLL_SECONDS", 0.1)
    other = tmp_path / "other.data"
    other.write_bytes(bytes(8 * MEBIBYTE))
    astray = script(tmp_path, f'exec bash -c \'exec {fio} "${{@/plimsoll.data/other.data}}"\' fio "$@"')
    worker = make_worker(tmp_path, astray)
    await worker.prepare(PrepareOrder(discard=False, prefill=False, fill_percent=100, seed=1), RecordedProgress())
    document = await measured(worker)
    assert document.exit_code == 0, document.stderr_tail
    assert document.foreign_target == f"the tool had {other} open, and never {tmp_path / 'plimsoll.data'}"


class Announcing(Pairs):
    """A tool whose server prints when clients may connect, and accepts everyone."""

    def command(self, parameters: Parameters, context: StepContext) -> Command:
        return self.peer_command(parameters, context, "", 0)

    def is_serving(self, parameters: Parameters, printed: str) -> bool:
        return "ready\n" in printed


async def serve(directory: Path, monkeypatch: pytest.MonkeyPatch, program: str, is_ready: asyncio.Event) -> None:
    """Serve client 0 with a shell script until it is cancelled."""
    monkeypatch.setitem(TOOLS, KEY, Announcing())
    binaries = {KEY: script(directory, program)}
    worker = Worker(client=1, node="n", volume=None, directory=directory, binaries=binaries, host=Host())
    order = ServeOrder(
        trial=TRIAL, tool=KEY, parameters={}, ramp_seconds=0, runtime_seconds=1, seed=1, peers={0: "10.0.0.7"}
    )

    async def ready() -> None:
        is_ready.set()

    await worker.serve(order, ready)


async def test_a_server_serves_from_when_it_says_so_until_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ready, before = asyncio.Event(), time.monotonic()
    server = asyncio.create_task(serve(tmp_path, monkeypatch, "sleep 0.3; echo ready; exec sleep 600", is_ready))
    async with asyncio.timeout(10):
        await is_ready.wait()
        assert time.monotonic() - before >= 0.3
        server.cancel()
        await asyncio.wait({server})
    assert server.cancelled()


@pytest.mark.parametrize(
    ("program", "words"),
    [("echo no port >&2; exit 3", "ended with exit code 3: no port"), ("exit 0", "before any client could connect")],
)
async def test_a_server_that_does_not_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    is_ready = asyncio.Event()
    with pytest.raises(PreparationError, match=words):
        await serve(tmp_path, monkeypatch, program, is_ready)
    assert not is_ready.is_set()
