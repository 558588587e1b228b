"""Preparation of an image through librbd, with programs that work and programs that fail.

The messages of `rbd` and fio are those of Ceph 18.2 and fio 3.39.
"""

from pathlib import Path

import pytest

from plimsoll.agent import preparation, process
from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import ImageVolume, VolumeError
from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.api.storage import Precondition
from plimsoll.protocol.messages import ArmOrder, PrepareOrder
from plimsoll.tools.target import ImageTarget
from support.agents import RecordedProgress

MEBIBYTE = 2**20
SIZE = 8 * MEBIBYTE
VOLUME = ImageVolume(pool="pool", image="image", user="bench", size=SIZE + 5)
PREPARE = PrepareOrder(discard=True, prefill=True, fill_percent=80, seed=1)
ARM = ArmOrder(
    trial=TrialKey(point="w-000", pass_number=0, attempt=0),
    tool="fio",
    parameters={"pattern": "randread", "blockSize": 4096},
    ramp_seconds=0,
    runtime_seconds=1,
    seed=1,
)
FOUND = f'echo \'{{"name":"image","size":{SIZE}}}\''
FIO = """
    case "$*" in *--output=*) : ;; *) exit 9 ;; esac
    for word; do case $word in --output=*) output=${word#*=} ;; --name=*) name=${word#*=} ;; esac; done
    case $name in discard) direction=trim ;; *) direction=write ;; esac
    echo "$name $CEPH_ARGS" >> ../asked
    echo "$*" >> ../arguments
    printf '{"fio version": "fio-3.39", "jobs": [{"jobname": "%s", "error": 0, "%s": {"io_bytes": 8388608,
        "total_ios": 8, "short_ios": 0, "drop_ios": 0}}]}' "$name" "$direction" > "$output"
"""


def make_worker(directory: Path, *, rbd: str = FOUND, fio: str = FIO) -> Worker:
    binaries = {}
    for name, text in (("rbd", rbd), ("fio", fio)):
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        binaries[name] = str(path)
    return Worker(
        client=0, node="here", volume=VOLUME, directory=directory / "work", binaries=binaries, host=Host(), tools=()
    )


async def test_an_image_is_found_discarded_filled_and_overwritten(tmp_path: Path) -> None:
    worker, recorded = make_worker(tmp_path), RecordedProgress()
    order = PREPARE.model_copy(update={"precondition": Precondition(seconds=5)})
    assert await worker.prepare(order, recorded) == SIZE
    asked = [line.split() for line in (tmp_path / "work/asked").read_text().splitlines()]
    assert [line[0] for line in asked] == ["discard", "prefill", "precondition"]
    assert {
        (0, SIZE, "discarding through librbd, 0 s"),
        (0, SIZE, "prefilling through librbd, 0 s"),
        (SIZE, SIZE, "overwriting at random, 0 of 5 s"),
    } <= set(recorded.reports)
    armed = await worker.arm(ARM)
    assert armed.context.target == ImageTarget(pool="pool", image="image", user="bench", size=SIZE)
    assert armed.prefilled


async def test_an_image_is_discarded_and_filled_again(tmp_path: Path) -> None:
    worker = make_worker(tmp_path)
    for _ in range(2):
        assert await worker.prepare(PREPARE, RecordedProgress()) == SIZE
    asked = [line.split()[0] for line in (tmp_path / "work/asked").read_text().splitlines()]
    assert asked == ["discard", "prefill"] * 2


async def test_an_image_that_was_not_filled_is_known_as_such(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, fio="exit 3")
    order = PrepareOrder(discard=False, prefill=False, fill_percent=80, seed=1)
    assert await worker.prepare(order, RecordedProgress()) == SIZE
    assert not (await worker.arm(ARM)).prefilled


@pytest.mark.parametrize(
    ("rbd", "expected"),
    [
        (
            "echo 'rbd: error opening image image: (2) No such file or directory' >&2; exit 2",
            "pool/image does not exist",
        ),
        (
            "echo \"rbd: error opening pool 'pool': (2) No such file or directory\" >&2; exit 2",
            "client.bench does not see pool pool",
        ),
        (
            "echo 'rbd: error opening image image: (1) Operation not permitted' >&2; exit 1",
            "client.bench may not use image pool/image.* osd 'profile rbd pool=pool'.* exit code 1: rbd: error opening",
        ),
        (
            'echo "rbd: couldn\'t connect to the cluster!" >&2; exit 13',
            "cannot reach image pool/image as client.bench.*monitors",
        ),
        ("exit 5", "image pool/image cannot be opened as client.bench"),
        ("echo '{\"size\": 5}'", "pool/image has 5 bytes, but 8388613 were planned"),
        ("echo what", "image pool/image: rbd info is not JSON"),
        ("echo '[]'", "rbd info is not an object"),
    ],
)
async def test_an_unusable_image_is_reported_before_anything_is_written(
    tmp_path: Path, rbd: str, expected: str
) -> None:
    worker = make_worker(tmp_path, rbd=rbd)
    with pytest.raises(PreparationError, match=expected):
        await worker.prepare(PREPARE, RecordedProgress())
    assert not (tmp_path / "work/asked").exists()


async def test_a_cluster_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "LOOK_UP_SECONDS", 0.1)
    monkeypatch.setenv("CEPH_CONF", "/c/ceph.conf")
    worker = make_worker(tmp_path, rbd="exec sleep 60")
    expected = (
        r"cannot reach image pool/image as client\.bench\. Check that /c/ceph\.conf names monitors .*"
        r"placement groups of pool pool are active \(rbd info did not end within 0\.1 s"
    )
    with pytest.raises(PreparationError, match=expected):
        await worker.prepare(PREPARE, RecordedProgress())


async def test_a_discard_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageVolume, "discard_seconds", 0.1)
    worker = make_worker(tmp_path, fio="exec sleep 60")
    with pytest.raises(PreparationError, match=r"discard of pool/image did not end within 0\.1 s.*ceph status"):
        await worker.prepare(PREPARE, RecordedProgress())


async def test_a_prefill_that_sends_nothing_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STALL_SECONDS", 0.0)
    monkeypatch.setattr(process, "_STALL_BYTES", 2**62)
    worker = make_worker(tmp_path, fio="exec sleep 60")
    order = PREPARE.model_copy(update={"discard": False})
    with pytest.raises(PreparationError, match=r"prefill of pool/image has sent nothing .*as client\.bench.*data pool"):
        await worker.prepare(order, RecordedProgress())


async def test_a_failed_prefill_ends_with_the_tool_s_output_and_a_remedy(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, fio="echo rbd_open failed. >&2; exit 1")
    order = PREPARE.model_copy(update={"discard": False})
    expected = r"prefill of pool/image ended with exit code 1: rbd_open failed\.; it ran as client\.bench\. Check"
    with pytest.raises(PreparationError, match=expected):
        await worker.prepare(order, RecordedProgress())


async def test_a_prefill_that_wrote_less_than_the_image_is_none(tmp_path: Path) -> None:
    worker = make_worker(tmp_path, fio=FIO.replace("8388608", "4194304"))
    order = PREPARE.model_copy(update={"discard": False})
    with pytest.raises(PreparationError, match="wrote 4194304 of 8388608 bytes"):
        await worker.prepare(order, RecordedProgress())


def test_an_image_smaller_than_a_data_set_is_refused() -> None:
    with pytest.raises(VolumeError, match="5 bytes; a data set needs"):
        ImageVolume(pool="p", image="i", user="u", size=5).target()
