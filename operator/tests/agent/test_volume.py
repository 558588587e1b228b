"""Which directory is a volume, and which is merely there."""

from pathlib import Path

import pytest

from plimsoll.agent.volume import FileVolume, VolumeError

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


def test_a_directory_of_the_container_s_own_is_no_volume(directory: Path) -> None:
    with pytest.raises(VolumeError, match=r"no volume is mounted at .*/data: it is a directory of / \(overlay\)"):
        volume(directory, ROOT).target(100)


def test_a_directory_within_a_volume_is_not_the_volume(directory: Path) -> None:
    table = f"{ROOT}23 22 252:0 / {directory} rw - ext4 /dev/rbd0 rw\n"
    with pytest.raises(VolumeError, match=rf"a directory of {directory} \(ext4\); nothing was written"):
        volume(directory, table).target(100)


def test_a_directory_that_is_linked_to_is_looked_for_under_its_real_name(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "data").rmdir()
    (directory / "data").symlink_to(directory / "real")
    assert volume(directory, f"{ROOT}23 22 252:0 / {directory}/real rw - ext4 /dev/rbd0 rw\n").target(100).size


def test_without_a_mount_at_all_nothing_is_a_volume(directory: Path) -> None:
    with pytest.raises(VolumeError, match="on nothing that is mounted"):
        volume(directory, "").target(100)


def test_a_table_that_cannot_be_read_is_no_permission_to_write(directory: Path) -> None:
    checked = FileVolume(path=directory / "data" / "plimsoll.data", mount_table=directory / "missing")
    with pytest.raises(OSError, match="missing"):
        checked.target(100)


def test_locally_a_directory_need_not_be_a_mount_point(directory: Path) -> None:
    assert FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20).target(100).size == 2**20
