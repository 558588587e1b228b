"""Places of I/O: data that must not be overwritten is refused. Loop devices need root."""

import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll.api.run import load_run
from plimsoll.cli.local_storage import (
    PlaceError,
    check_devices,
    client_volume,
    make_directory,
    make_raw_directory,
)
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.assignment import BlockDevice, DataFile

QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"
MEBIBYTE = 2**20


@pytest.fixture
def plan() -> Plan:
    return make_plan(load_run(QUICKSTART.read_text()), seed=1)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """Yield an empty loop device of 33 MiB."""
    file = tmp_path / "device.img"
    with file.open("wb") as image:
        image.truncate(33 * MEBIBYTE)
    device = subprocess.check_output(["losetup", "--find", "--show", str(file)], text=True).strip()
    yield Path(device)
    subprocess.run(["losetup", "--detach", device], check=True)


def with_volumes(plan: Plan, clients: int, size: int = MEBIBYTE) -> Plan:
    assert plan.volume is not None
    return plan.model_copy(update={"clients": clients, "volume": plan.volume.model_copy(update={"size": size})})


def data_file(plan: Plan, client: int, directory: Path) -> DataFile:
    volume = client_volume(plan, client, data=directory, devices=())
    assert isinstance(volume, DataFile)
    return volume


def part(plan: Plan, client: int, *devices: Path) -> BlockDevice:
    volume = client_volume(plan, client, data=None, devices=devices)
    assert isinstance(volume, BlockDevice)
    return volume


def refusal(device: Path) -> str:
    with pytest.raises(PlaceError) as caught:
        check_devices([device])
    return str(caught.value)


# Directories


def test_data_goes_into_a_new_directory_of_the_runs_own(plan: Plan, tmp_path: Path) -> None:
    one, other = make_directory(tmp_path, plan), make_directory(tmp_path, plan)
    assert one != other
    assert one.parent == tmp_path
    assert one.name.startswith("plimsoll-quickstart-")
    assert one.stat().st_mode & 0o077 == 0


def test_missing_directory_is_refused(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="No such file or directory"):
        make_directory(tmp_path / "nothing", plan)


def test_clients_share_a_file_system_evenly(plan: Plan, tmp_path: Path) -> None:
    assert [data_file(with_volumes(plan, clients=2), client, tmp_path) for client in (0, 1)] == [
        DataFile(path=str(tmp_path / f"client-{client}.data"), capacity=MEBIBYTE) for client in (0, 1)
    ]
    endless = data_file(with_volumes(plan, clients=4, size=2**62), 0, tmp_path)
    assert endless.capacity is not None
    assert 0 < endless.capacity < 2**62


def test_a_client_that_is_started_again_keeps_its_share(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 4 * MEBIBYTE

    def measured_statvfs(_: Path) -> SimpleNamespace:
        used = sum(file.stat().st_blocks * 512 for file in tmp_path.rglob("*") if file.is_file())
        return SimpleNamespace(f_bavail=total - used, f_frsize=1)

    monkeypatch.setattr(os, "statvfs", measured_statvfs)
    endless = with_volumes(plan, clients=2, size=2**40)
    first = data_file(endless, 0, tmp_path)
    assert first.capacity == total // 2
    for client in (0, 1):
        (tmp_path / f"client-{client}.data").write_bytes(b"x" * (total // 2))
    assert data_file(endless, 0, tmp_path) == first


# Devices


def test_file_is_no_device(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert refusal(file) == f"--device {file} is not a block device; use --directory for files"


@pytest.mark.parametrize("path", ["/dev/null", "/dev"])
def test_other_files_are_no_devices(path: str) -> None:
    assert refusal(Path(path)) == f"--device {path} is not a block device; use --directory for files"


def test_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "sdz") == f"--device {tmp_path / 'sdz'}: No such file or directory"


@pytest.mark.system
def test_empty_device_may_be_used(loop: Path) -> None:
    check_devices([loop])


@pytest.mark.system
def test_every_device_is_checked(loop: Path, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="No such file"):
        check_devices([loop, tmp_path / "nothing"])


@pytest.mark.system
def test_device_with_a_file_system_is_refused(loop: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-F", str(loop)], check=True)
    message = refusal(loop)
    assert message.startswith(f"--device {loop} contains data (")
    assert 'TYPE="ext4"' in message
    assert message.endswith(f"run `wipefs --all {loop}` if it is not needed")
    subprocess.run(["wipefs", "--quiet", "--all", str(loop)], check=True)
    check_devices([loop])


@pytest.mark.system
def test_device_with_a_partition_table_is_refused(loop: Path) -> None:
    entry = struct.pack("<8B2I", 0, 0, 0, 0, 0x83, 0, 0, 0, 2048, 4096)  # Linux, 2 MiB from 1 MiB
    loop.write_bytes(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    assert 'PTTYPE="dos"' in refusal(loop)


@pytest.mark.system
def test_mounted_device_is_refused(loop: Path, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", str(loop)], check=True)
    subprocess.run(["mount", str(loop), str(mount)], check=True)
    try:
        message = refusal(loop)
    finally:
        subprocess.run(["umount", str(mount)], check=True)
    assert message == (
        f"--device {loop} is in use or cannot be written: Device or resource busy; unmount or release it first"
    )


@pytest.mark.system
def test_clients_of_one_device_have_parts_of_their_own(plan: Plan, loop: Path) -> None:
    assert [part(with_volumes(plan, clients=4), client, loop) for client in range(4)] == [
        BlockDevice(path=str(loop), offset=number * 8 * MEBIBYTE, size=8 * MEBIBYTE) for number in range(4)
    ]


@pytest.mark.system
def test_client_without_others_on_its_device_has_all_of_it(plan: Plan, loop: Path) -> None:
    assert part(with_volumes(plan, clients=1), 0, loop).size == 33 * MEBIBYTE


def test_clients_are_spread_over_the_devices(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.cli.local_storage.device_size", lambda _: 33 * MEBIBYTE)
    parts = [part(with_volumes(plan, clients=5), client, Path("/dev/x"), Path("/dev/y")) for client in range(5)]
    assert [(volume.path, volume.offset, volume.size) for volume in parts] == [
        ("/dev/x", 0, 11 * MEBIBYTE),
        ("/dev/y", 0, 16 * MEBIBYTE),
        ("/dev/x", 11 * MEBIBYTE, 11 * MEBIBYTE),
        ("/dev/y", 16 * MEBIBYTE, 16 * MEBIBYTE),
        ("/dev/x", 22 * MEBIBYTE, 11 * MEBIBYTE),
    ]


def test_raw_output_goes_to_a_directory_of_its_own(tmp_path: Path) -> None:
    raw = make_raw_directory(tmp_path / "new" / "raw", resume=False)
    assert raw.is_dir()
    assert make_raw_directory(raw, resume=False) == raw
    (raw / "w-000").mkdir()
    with pytest.raises(PlaceError, match="raw is not empty; choose another directory, or add --resume"):
        make_raw_directory(raw, resume=False)
    assert make_raw_directory(raw, resume=True) == raw


def test_raw_output_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceError, match=r"--raw-output .*: Not a directory; choose a writable directory"):
        make_raw_directory(tmp_path / "file" / "raw", resume=False)
