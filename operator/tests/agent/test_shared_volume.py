"""A client's part of a volume that all clients mount."""

import asyncio
import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.agent import volume as shared_volume
from plimsoll.agent.observation import identify
from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import SharedFileVolume, SharedVolume, VolumeError
from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import Clock
from plimsoll.protocol.messages import ArmOrder, PrepareOrder
from plimsoll.tools.target import VolumeTarget
from support.agents import RecordedProgress

MEBIBYTE = 2**20
CLIENTS = 3
KINDS = [False, True]


def volume(directory: Path, client: int, *, one_file: bool, part: int = 4 * MEBIBYTE) -> SharedVolume:
    kind = SharedFileVolume if one_file else SharedVolume
    return kind(directory=directory, client=client, clients=CLIENTS, part=part)


def write(target: VolumeTarget, letter: bytes) -> None:
    """Write a data set as a tool does: into an existing file, or a new one."""
    descriptor = os.open(target.path, os.O_CREAT | os.O_WRONLY)
    os.pwrite(descriptor, letter * target.size, target.offset)
    os.fsync(descriptor)
    os.close(descriptor)


def content(target: VolumeTarget) -> bytes:
    with Path(target.path).open("rb") as file:
        file.seek(target.offset)
        return file.read(target.size)


@given(client=st.integers(0, CLIENTS - 1), part=st.integers(MEBIBYTE, 2**24), fill=st.integers(1, 100))
@pytest.mark.parametrize("one_file", KINDS)
def test_all_clients_agree_on_places_which_do_not_overlap(client: int, part: int, fill: int, *, one_file: bool) -> None:
    if part * fill // 100 < MEBIBYTE:
        return
    directory = Path("/")
    own = volume(directory, client, one_file=one_file, part=part).target(fill)
    seen = [
        volume(directory, client, one_file=one_file, part=part).place_of(other, own.size) for other in range(CLIENTS)
    ]
    theirs = [volume(directory, other, one_file=one_file, part=part).target(fill) for other in range(CLIENTS)]
    assert seen == theirs
    assert len({(one.path, one.offset) for one in seen}) == CLIENTS
    assert len({one.path for one in seen}) == (1 if one_file else CLIENTS)
    assert [one.offset for one in seen] == [other * own.size * one_file for other in range(CLIENTS)]
    assert own.shared


@pytest.mark.parametrize("one_file", KINDS)
def test_clients_prepare_in_any_order_without_harm_to_each_other(tmp_path: Path, *, one_file: bool) -> None:
    for client in (2, 0, 1, 2):
        mine = volume(tmp_path, client, one_file=one_file)
        target = mine.target(100)
        mine.create(target)
        mine.clear(target)
        write(target, b"%d" % client)
        mine.check_written(target)
    for client in range(CLIENTS):
        target = volume(tmp_path, client, one_file=one_file).target(100)
        assert content(target) == b"%d" % client * target.size


def test_the_shared_file_has_its_full_size_before_anybody_writes(tmp_path: Path) -> None:
    last = volume(tmp_path, 2, one_file=True)
    target = last.target(100)
    last.create(target)
    assert Path(target.path).stat().st_size == CLIENTS * target.size
    last.lay_out(target)
    assert content(target) == bytes(target.size)


def test_a_quota_that_another_client_just_used_for_the_same_file_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truncate = os.truncate

    def extend_by_another_client(descriptor: int, size: int) -> None:
        truncate(descriptor, size)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "truncate", extend_by_another_client)
    first = volume(tmp_path, 0, one_file=True)
    first.create(first.target(100))
    assert (tmp_path / "shared.data").stat().st_size == CLIENTS * first.target(100).size


@pytest.mark.fault(
    "Storage",
    "The quota of a shared volume is full",
    "while a client prepares its file",
    ends="the preparation fails and names the quota",
    within="at once",
)
def test_a_full_quota_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "truncate", refuse)
    monkeypatch.setattr(shared_volume, "_OTHERS_SECONDS", 0.1)
    first = volume(tmp_path, 0, one_file=True)
    with pytest.raises(OSError, match="Disk quota exceeded"):
        first.create(first.target(100))


def test_a_region_with_a_hole_is_not_written(tmp_path: Path) -> None:
    first, second = (volume(tmp_path, client, one_file=True) for client in (0, 1))
    first.create(first.target(100))
    write(first.target(100), b"a")
    first.check_written(first.target(100))
    with pytest.raises(VolumeError, match=rf"has a hole at byte {4 * MEBIBYTE}, but the bytes from {4 * MEBIBYTE} to"):
        second.check_written(second.target(100))


def test_a_file_that_is_too_short_is_not_written(tmp_path: Path) -> None:
    last = volume(tmp_path, 2, one_file=True)
    (tmp_path / "shared.data").write_bytes(b"a" * MEBIBYTE)
    with pytest.raises(VolumeError, match="does another program truncate the file"):
        last.check_written(last.target(100))


def test_only_the_own_region_is_discarded(tmp_path: Path) -> None:
    second = volume(tmp_path, 1, one_file=True)
    assert second.discard_command(second.target(50)) == (
        *("fallocate", "--punch-hole", "--offset", str(2 * MEBIBYTE), "--length", str(2 * MEBIBYTE)),
        str(tmp_path / "shared.data"),
    )
    assert volume(tmp_path, 1, one_file=False).discard_command(second.target(50)) is None


def test_too_little_space_is_refused_and_not_used_partly(tmp_path: Path) -> None:
    huge = volume(tmp_path, 0, one_file=False, part=2**60)
    with pytest.raises(VolumeError, match=r"bytes free, but a data set of 1Ei was planned.*lower prepare.fillPercent"):
        huge.target(100)


def test_less_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VolumeError, match="a data set needs at least 1 MiB"):
        volume(tmp_path, 0, one_file=True, part=MEBIBYTE).target(50)


def test_a_directory_that_is_not_the_volume_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text("22 1 0:30 / / rw - overlay overlay rw\n")
    part = SharedVolume(directory=tmp_path, client=0, clients=1, part=MEBIBYTE, mount_table=table)
    with pytest.raises(VolumeError, match="no volume is mounted at"):
        part.target(100)


# What a trial reads


PREPARE = PrepareOrder(discard=True, prefill=False, fill_percent=100, seed=1)


def worker(directory: Path, client: int, *, one_file: bool, binaries: Mapping[str, str] | None = None) -> Worker:
    return Worker(
        client=client,
        node="here",
        volume=volume(directory, client, one_file=one_file),
        directory=directory / f"work-{client}",
        binaries=binaries or {},
        host=Host(),
    )


def order(data_of: int | None) -> ArmOrder:
    return ArmOrder(
        trial=TrialKey(point="w-000", pass_number=0, attempt=0),
        tool="fio",
        parameters={"pattern": "read", "readBack": None if data_of is None else "NextClient"},
        ramp_seconds=0,
        runtime_seconds=3,
        seed=1,
        data_of=data_of,
    )


@pytest.mark.parametrize("one_file", KINDS)
async def test_a_client_reads_what_it_is_ordered_to(tmp_path: Path, *, one_file: bool) -> None:
    workers = [worker(tmp_path, client, one_file=one_file) for client in range(CLIENTS)]
    for one in workers:
        await one.prepare(PREPARE, RecordedProgress())
    for data_of, client in ((None, 0), (1, 1), (2, 2)):
        armed = await workers[0].arm(order(data_of))
        wanted = volume(tmp_path, client, one_file=one_file).target(100)
        assert armed.context.target == wanted
        assert f"--filename={wanted.path}" in armed.argv
        assert f"--offset={wanted.offset}" in armed.argv
        assert identify(wanted).path == wanted.path


async def test_data_of_another_client_that_does_not_exist_is_named(tmp_path: Path) -> None:
    alone = worker(tmp_path, 0, one_file=False)
    await alone.prepare(PREPARE, RecordedProgress())
    with pytest.raises(PreparationError, match=r"client-1.data: .*check that all clients mount the same volume"):
        await alone.arm(order(1))


@pytest.mark.fio
@pytest.mark.parametrize("one_file", KINDS)
async def test_clients_prefill_at_the_same_time_and_measure_only_what_they_are_ordered_to(
    tmp_path: Path, fio: str, *, one_file: bool
) -> None:
    workers = [worker(tmp_path, client, one_file=one_file, binaries={"fio": fio}) for client in range(CLIENTS)]
    prefill = PREPARE.model_copy(update={"prefill": True})
    orders = [prefill.model_copy(update={"seed": 1 + client}) for client in range(CLIENTS)]
    sizes = await asyncio.gather(
        *(one.prepare(own, RecordedProgress()) for one, own in zip(workers, orders, strict=True))
    )
    assert sizes == [4 * MEBIBYTE] * CLIENTS
    targets = [volume(tmp_path, client, one_file=one_file).target(100) for client in range(CLIENTS)]
    before = [content(target) for target in targets]
    assert len(set(before)) == CLIENTS
    assert all(any(data[at : at + 4096]) for data in before for at in range(0, len(data), 4096)), "all is written"
    # A client that was replaced prefills again.
    await workers[1].prepare(orders[1], RecordedProgress())
    assert [content(target) for target in targets] == before
    document = await workers[0].measure(await workers[0].arm(order(1)), Clock(offset=0, error=0))
    assert (document.exit_code, document.parse_error, document.foreign_target) == (0, None, "")
    assert (document.prefilled, document.data_set_bytes) == (True, 4 * MEBIBYTE)
    writing = order(None).model_copy(update={"parameters": {"pattern": "randwrite", "rateIops": 200}})
    document = await workers[0].measure(await workers[0].arm(writing), Clock(offset=0, error=0))
    assert (document.exit_code, document.parse_error, document.foreign_target) == (0, None, "")
    after = [content(target) for target in targets]
    assert [changed for changed in range(CLIENTS) if before[changed] != after[changed]] == [0]
