"""Which directories are volumes."""

from pathlib import Path

import pytest

from plimsoll.agent.volume import DeviceVolume, FileVolume, VolumeError, discard_is_unsupported, occupied_bytes
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


def test_the_container_s_own_directory_is_no_volume(directory: Path) -> None:
    with pytest.raises(VolumeError, match=r"no volume is mounted at .*/data: it is a directory of / \(overlay\)"):
        volume(directory, ROOT).target(100)


def test_a_directory_within_a_volume_is_not_the_volume(directory: Path) -> None:
    table = f"{ROOT}23 22 252:0 / {directory} rw - ext4 /dev/rbd0 rw\n"
    with pytest.raises(VolumeError, match=rf"a directory of {directory} \(ext4\); nothing has been written"):
        volume(directory, table).target(100)


def test_a_symbolic_link_is_resolved(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "data").rmdir()
    (directory / "data").symlink_to(directory / "real")
    assert volume(directory, f"{ROOT}23 22 252:0 / {directory}/real rw - ext4 /dev/rbd0 rw\n").target(100).size


def test_without_mounts_there_is_no_volume(directory: Path) -> None:
    with pytest.raises(VolumeError, match="no mount contains it"):
        volume(directory, "").target(100)


def test_an_unreadable_mount_table_is_an_error(directory: Path) -> None:
    checked = FileVolume(path=directory / "data" / "plimsoll.data", mount_table=directory / "missing")
    with pytest.raises(OSError, match="missing"):
        checked.target(100)


def test_locally_a_directory_need_not_be_a_mount_point(directory: Path) -> None:
    assert FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20).target(100).size == 2**20


# Discarding


@pytest.mark.parametrize("shared", [False, True])
def test_what_a_killed_tool_has_left_is_not_missing_in_the_data_set(tmp_path: Path, *, shared: bool) -> None:
    name = "client-0.data" if shared else "volume"
    before = occupied_bytes(tmp_path / name)
    for owner in (f"{name}.0.files", "client-1.data.1.files"):
        left = tmp_path / owner / "Bonnie.1"
        left.mkdir(parents=True)
        (left / "large").write_bytes(bytes(2**20))
    found = occupied_bytes(tmp_path / name, *(["0"] if shared else []))
    assert (before, 2**20 <= found < 2 * 2**20) == (0, True)


def test_a_file_is_discarded_by_removing_it(directory: Path) -> None:
    file = FileVolume(path=directory / "data" / "plimsoll.data", capacity=2**20)
    assert file.discard_command(file.target(100)) is None


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
