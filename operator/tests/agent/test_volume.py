"""Which directories are volumes, and how much of them a data set may use."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll.agent.volume import (
    DeviceVolume,
    FileVolume,
    SharedFileVolume,
    SharedVolume,
    VolumeError,
    discard_is_unsupported,
)
from plimsoll.tools.target import VolumeKind, VolumeTarget

ROOT = "22 1 0:30 / / rw - overlay overlay rw\n"


def volume(directory: Path, table: str) -> FileVolume:
    path = directory / "mountinfo"
    path.write_text(table)
    return FileVolume(path=directory / "data" / "plimsoll.data", mount_table=path, capacity=2**20)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize("source", ["252:0 / {} rw - ext4 /dev/rbd0 rw", "0:30 /volumes/a {} rw - overlay overlay rw"])
def test_a_mount_point_is_a_volume_even_on_the_device_of_the_root(directory: Path, source: str) -> None:
    table = f"{ROOT}23 22 {source.format(directory / 'data')}\n"
    assert volume(directory, table).target(100).size == 2**20


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (ROOT, r"no volume is mounted at .*/data: it is a directory of / \(overlay\)"),
        (f"{ROOT}23 22 252:0 / {{}} rw - ext4 /dev/rbd0 rw\n", r"directory of {} \(ext4\); nothing has been written"),
        ("", "no mount contains it"),
    ],
)
def test_a_directory_that_is_no_mount_point_is_no_volume(directory: Path, table: str, expected: str) -> None:
    with pytest.raises(VolumeError, match=expected.format(directory)):
        volume(directory, table.format(directory)).target(100)


def test_a_symbolic_link_is_resolved(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "data").rmdir()
    (directory / "data").symlink_to(directory / "real")
    assert volume(directory, f"{ROOT}23 22 252:0 / {directory}/real rw - ext4 /dev/rbd0 rw\n").target(100).size


def test_an_unreadable_mount_table_is_an_error(directory: Path) -> None:
    checked = FileVolume(path=directory / "data" / "plimsoll.data", mount_table=directory / "missing")
    with pytest.raises(OSError, match="missing"):
        checked.target(100)


def test_locally_a_directory_need_not_be_a_mount_point(directory: Path) -> None:
    assert FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20).target(100).size == 2**20


@pytest.mark.parametrize("one_file", [None, False, True])
def test_a_directory_that_is_not_writable_is_named_with_its_owner(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *, one_file: bool | None
) -> None:
    data = directory / "data"
    data.chmod(0o750)
    # Tests may be run by root, who may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (data, os.W_OK | os.X_OK))
    table = directory / "mountinfo"
    table.write_text(f"23 22 252:0 / {data} rw - ext4 /dev/rbd0 rw\n")
    volume = FileVolume(path=data / "x") if one_file is None else shared(data, 0, one_file=one_file)
    owner = f"user {os.getuid()} and group {os.getgid()} with mode 750"
    with pytest.raises(VolumeError, match=f"user {os.getuid()} cannot write to {data}, which belongs to {owner}") as e:
        replace(volume, mount_table=table).target(80)
    for remedy in ("csi.storage.k8s.io/fstype in the StorageClass", "fsGroupPolicy: File", "volume.mode Block"):
        assert remedy in str(e.value)
    with pytest.raises(VolumeError, match=r"nothing has been written\. Choose another directory, or make it"):
        volume.target(80)


# How large a data set is


@pytest.mark.parametrize(
    ("free_mebibytes", "fill_percent", "size_mebibytes"),
    [
        # What an empty ext4 of 100 MiB leaves, with and without the blocks that are reserved for root.
        (94, 80, 80),
        (89, 80, 80),
        (85, 80, 80),
        # Less than 5 % would remain.
        (84, 80, 67),
        (50, 80, 40),
        # A directory of a large disk.
        (9999, 80, 80),
        (94, 100, 94),
        (94, 90, 84),
    ],
)
def test_a_data_set_has_the_planned_size_on_every_file_system_with_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mebibytes: int, fill_percent: int, size_mebibytes: int
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free_mebibytes, f_frsize=2**20))
    volume = FileVolume(path=tmp_path / "x", capacity=100 * 2**20)
    assert volume.target(fill_percent).size == size_mebibytes * 2**20


@pytest.mark.parametrize(("fill_percent", "size_mebibytes"), [(50, 20), (95, 38), (100, 40)])
def test_without_a_capacity_it_is_a_share_of_the_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_percent: int, size_mebibytes: int
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=40, f_frsize=2**20))
    assert FileVolume(path=tmp_path / "x").target(fill_percent).size == size_mebibytes * 2**20


# Discarding


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory in a file system without free space."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096))
    return tmp_path


def shared(directory: Path, client: int, *, one_file: bool) -> SharedVolume:
    kind = SharedFileVolume if one_file else SharedVolume
    return kind(directory=directory, client=client, clients=2, part=2**20)


def write_data_set(target: VolumeTarget) -> None:
    with Path(target.path).open("wb") as file:
        file.seek(target.offset)
        file.write(b"x" * target.size)
        os.fsync(file.fileno())


@pytest.mark.parametrize("kind", ["file", "file of a shared directory", "region of a shared file"])
def test_a_replaced_client_has_the_space_of_its_own_data_set_and_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def volume_of(client: int) -> FileVolume | SharedVolume:
        if kind == "file":
            return FileVolume(path=tmp_path / f"client-{client}.data", capacity=2**20)
        return shared(tmp_path, client, one_file=kind == "region of a shared file")

    target = volume_of(1).target(100)
    write_data_set(target)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096))
    assert volume_of(1).target(100) == target
    with pytest.raises(VolumeError, match="0 bytes free"):
        volume_of(0).target(100)


@pytest.mark.parametrize("one_file", [None, False, True])
def test_a_replaced_client_has_the_space_of_what_a_killed_tool_left(full: Path, *, one_file: bool | None) -> None:
    name = "shared.data" if one_file else "client-0.data"
    volume = FileVolume(path=full / name) if one_file is None else shared(full, 0, one_file=one_file)
    for owner in (f"{name}.0.files", "client-1.data.1.files", "shared.data.1.files"):
        left = full / owner / "Bonnie.1"
        left.mkdir(parents=True)
        (left / "large").write_bytes(b"x" * 2**20)
    assert volume.target(100).size == 2**20


def test_a_file_is_discarded_by_removing_it(directory: Path) -> None:
    file = FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20)
    assert file.discard_command(file.target(100)) is None


def test_a_file_gets_its_size_before_it_is_written_and_keeps_what_was(directory: Path) -> None:
    file = FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20)
    target = file.target(100)
    file.lay_out(target)
    assert file.path.stat().st_size == target.size
    with pytest.raises(VolumeError, match="has 1048576 bytes and blocks for 0, but 1048576 were written"):
        file.check_written(target)
    write_data_set(target)
    file.check_written(target)
    file.lay_out(target)
    assert file.path.read_bytes() == b"x" * target.size


@pytest.mark.parametrize(("size", "force"), [(None, ()), (2**20, ("--force",))])
def test_only_a_part_of_a_device_is_discarded_while_others_have_it_open(size: int | None, force: tuple[str]) -> None:
    device = Path("/dev/x")
    target = VolumeTarget(kind=VolumeKind.DEVICE, path=str(device), size=2**20, offset=4096)
    assert DeviceVolume(path=device, offset=4096, size=size).discard_command(target) == (
        *("blkdiscard", *force),
        *("--offset", "4096", "--length", "1048576", "/dev/x"),
    )


@pytest.mark.parametrize(
    ("exit_code", "stderr", "unsupported"),
    [
        (2, "", True),
        (1, "blkdiscard: /dev/x: BLKDISCARD ioctl failed: Operation not supported\n", True),
        (1, "blkdiscard: /dev/x: BLKDISCARD ioctl failed: Remote I/O error\n", False),
        (1, "blkdiscard: cannot open /dev/x: Device or resource busy\n", False),
        (127, "setpriv: failed to execute blkdiscard: No such file or directory\n", False),
        (-9, "", False),
        (0, "", False),
    ],
)
def test_only_storage_without_discard_support_is_excused(exit_code: int, stderr: str, *, unsupported: bool) -> None:
    assert discard_is_unsupported(exit_code, stderr) is unsupported
