from pathlib import Path, PurePosixPath

import pytest

from plimsoll.agent.volume import OWN_TABLE, mount_of, read_mounts

TABLE = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw - proc proc rw
40 22 252:16 / /data rw,relatime shared:1 master:2 - xfs /dev/rbd0 rw,attr2
41 22 0:50 /volumes/a /with\040blank rw - ceph 10.0.0.1:6789:/volumes/a rw
42 22 0:51 / /nameless rw - tmpfs  rw
43 22 8:1 / /hidden rw - ext4 /dev/sda1 rw
44 43 8:2 / /hidden rw - xfs /dev/sda2 rw
not a line of the table
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("path", "point", "file_system", "source"),
    [
        ("/data/plimsoll.data", "/data", "xfs", "/dev/rbd0"),
        ("/data", "/data", "xfs", "/dev/rbd0"),
        ("/database", "/", "ext4", "/dev/vda"),
        ("/with blank/x", "/with blank", "ceph", "10.0.0.1:6789:/volumes/a"),
        ("/nameless", "/nameless", "tmpfs", ""),
        ("/hidden/x", "/hidden", "xfs", "/dev/sda2"),
    ],
)
def test_the_deepest_and_latest_mount_contains_a_path(
    table: Path, path: str, point: str, file_system: str, source: str
) -> None:
    mount = mount_of(PurePosixPath(path), read_mounts(table))
    assert mount is not None
    assert (str(mount.point), mount.file_system, mount.source) == (point, file_system, source)


def test_the_mounted_directory_differs_from_the_mount_point(table: Path) -> None:
    roots = {str(mount.point): str(mount.root) for mount in read_mounts(table)}
    assert roots["/with blank"] == "/volumes/a"
    assert len(roots) == 6


def test_without_mounts_no_path_has_a_mount() -> None:
    assert mount_of(PurePosixPath("/data"), ()) is None


def test_this_machine_mounts_proc() -> None:
    mount = mount_of(PurePosixPath("/proc/self"), read_mounts(OWN_TABLE))
    assert mount is not None
    assert mount.file_system == "proc"
