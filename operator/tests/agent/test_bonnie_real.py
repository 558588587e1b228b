"""An agent's work with the real bonnie++: it measures, and leaves nothing behind."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from plimsoll.agent.readings import Host
from plimsoll.agent.volume import FileVolume, SharedVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.names import LatencyKind
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import ArmOrder, PrepareOrder, StageOrder
from support.agents import RecordedProgress

pytestmark = pytest.mark.system

MEBIBYTE = 2**20
SMALL: dict[str, JsonValue] = {"size": "4Mi", "chunkSize": "4Ki", "characters": False, "seeks": 64, "files": 1}
LONG: dict[str, JsonValue] = {"size": "16Mi", "files": 1024}
TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)


@pytest.fixture(scope="module")
def bonnie() -> str:
    path = shutil.which("bonnie++", path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        pytest.fail("there is no bonnie++; run `make setup`")
    return path


def worker_on(volume: FileVolume | SharedVolume, directory: Path, bonnie: str, client: int = 0) -> Worker:
    return Worker(
        client=client,
        node="here",
        volume=volume,
        directory=directory / f"work-{client}",
        binaries={"bonnie++": bonnie},
        host=Host(),
        tools=("bonnie",),
    )


async def prepare(worker: Worker) -> None:
    order = PrepareOrder(discard=True, prefill=False, fill_percent=80, seed=1)
    await worker.prepare(order, RecordedProgress())


async def stage(worker: Worker, parameters: dict[str, JsonValue]) -> None:
    order = StageOrder(
        trial=TRIAL, tool="bonnie", parameters=parameters, ramp_seconds=0, runtime_seconds=10, seed=2**40 + 9
    )
    await worker.stage(order, RecordedProgress())


async def measure(worker: Worker, parameters: dict[str, JsonValue]) -> ClientDocument:
    order = ArmOrder(
        trial=TRIAL,
        tool="bonnie",
        parameters=parameters,
        ramp_seconds=0,
        runtime_seconds=10,
        seed=2**40 + 9,
    )
    return await worker.measure(await worker.arm(order), Clock(offset=0, error=0))


def files_in(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@pytest.mark.essential
async def test_two_clients_on_a_shared_volume_measure_and_leave_nothing(tmp_path: Path, bonnie: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    workers = [
        worker_on(SharedVolume(directory=data, client=client, clients=2, part=16 * MEBIBYTE), tmp_path, bonnie, client)
        for client in range(2)
    ]
    for worker in workers:
        await prepare(worker)
        assert (await worker.facts())["tools"] == {"bonnie": "bonnie++ 2.00a"}
    await asyncio.gather(*(stage(worker, SMALL) for worker in workers))
    # CephFS counts the size of sparse data sets against the quota of the volume.
    assert sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) == 0
    documents = await asyncio.gather(*(measure(worker, SMALL) for worker in workers))
    assert files_in(data) == set()
    for document in documents:
        assert (document.exit_code, document.parse_error) == (0, None)
        assert document.foreign_target == ""
        assert document.prefilled
        measurement = document.measurement
        assert measurement is not None
        assert (measurement.tool_version, measurement.errors) == ("2.00a", ())
        assert measurement.data_bytes == 4 * MEBIBYTE
        assert len(measurement.operations) + len(measurement.untimed) == 10
        assert {sample.latency.kind for sample in measurement.operations} <= {LatencyKind.MAX_ONLY}


async def test_a_killed_trial_leaves_nothing_for_the_next(tmp_path: Path, bonnie: str) -> None:
    worker = worker_on(FileVolume(path=tmp_path / "plimsoll.data", capacity=64 * MEBIBYTE), tmp_path, bonnie)
    await prepare(worker)
    await stage(worker, LONG)
    directory = tmp_path / "plimsoll.data.0.files"
    measuring = asyncio.create_task(measure(worker, LONG))
    async with asyncio.timeout(60):
        while not any(directory.iterdir()):
            await asyncio.sleep(0.02)
        measuring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await measuring
    assert any(directory.iterdir())
    await stage(worker, SMALL)
    assert files_in(directory) == set()
    document = await measure(worker, SMALL)
    assert document.exit_code == 0
    assert not directory.exists()


async def test_a_failed_trial_leaves_nothing(tmp_path: Path, bonnie: str) -> None:
    """It fails because its directory has become a file, which is removed all the same."""
    worker = worker_on(FileVolume(path=tmp_path / "plimsoll.data", capacity=64 * MEBIBYTE), tmp_path, bonnie)
    await prepare(worker)
    await stage(worker, SMALL)
    directory = tmp_path / "plimsoll.data.0.files"
    directory.rmdir()
    directory.touch()
    document = await measure(worker, SMALL)
    assert document.exit_code == 1
    assert "Can't change to directory" in document.stderr_tail
    assert document.measurement is None
    assert files_in(tmp_path) & {"plimsoll.data.0.files"} == set()
