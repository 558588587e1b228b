import os
import platform
import stat
from pathlib import Path, PosixPath

import pytest

from plimsoll.agent.observation import host_facts, volume_facts
from plimsoll.agent.preparation import Volume
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import DeviceVolume, FileVolume, ImageVolume
from support.agents import HostTree


def test_facts_name_the_processor_governor_and_clock_source(tree: HostTree) -> None:
    tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9454\n\nprocessor\t: 1\nmodel name\t: other\n")
    tree.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    facts = host_facts(tree.host)
    assert (facts["cpuModel"], facts["cpuGovernor"], facts["clockSource"]) == ("AMD EPYC 9454", "powersave", "tsc")
    assert facts["kernel"] == platform.release()


def test_unreadable_facts_are_left_out(tree: HostTree) -> None:
    assert host_facts(tree.host).keys() == {"kernel", "architecture", "processors", "memoryBytes"}


def test_facts_are_short(tree: HostTree) -> None:
    tree.write("proc/cpuinfo", f"model name\t: {'x' * 1000}\n")
    assert host_facts(tree.host)["cpuModel"] == "x" * 128


def test_a_file_has_the_facts_of_its_mount(tree: HostTree, tmp_path: Path) -> None:
    table = f"22 1 0:30 / / rw - overlay overlay rw\n23 22 0:50 / {tmp_path} rw - nfs4 filer:/export rw\n"
    tree.write("proc/self/mountinfo", table)
    facts = volume_facts(FileVolume(path=tmp_path / "plimsoll.data"), tree.host)
    assert facts == {"volumeFileSystem": "nfs4", "volumeSource": "filer:/export"}


@pytest.mark.parametrize(
    "volume",
    [None, FileVolume(path=Path("/data/x")), DeviceVolume(path=Path("/nowhere")), DeviceVolume(path=Path("/"))],
)
def test_an_unreadable_volume_has_no_facts(tree: HostTree, volume: Volume | None) -> None:
    assert volume_facts(volume, tree.host) == {}


class Device(PosixPath):
    """A block device 252:17, which only root could create."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        del follow_symlinks
        return os.stat_result((stat.S_IFBLK, *[0] * 16), {"st_rdev": os.makedev(252, 17)})


@pytest.mark.parametrize("place", ["vdb", "vdb/vdb1"])
@pytest.mark.parametrize(
    ("most", "expected"),
    [("0\n", {"volumeDiscards": False}), ("4096\n", {"volumeDiscards": True}), (None, {})],
)
def test_a_device_shows_whether_it_supports_discard(
    tree: HostTree, place: str, most: str | None, expected: dict[str, bool]
) -> None:
    device = tree.directory / "sys/block" / place
    device.mkdir(parents=True)
    if most is not None:
        tree.write("sys/block/vdb/queue/discard_max_bytes", most)
    link = tree.directory / "sys/dev/block/252:17"
    link.parent.mkdir(parents=True)
    link.symlink_to(device)
    assert volume_facts(DeviceVolume(path=Device("/dev/x")), tree.host) == {"volumeDevice": device.name} | expected


def test_this_machine_s_files_have_a_file_system(tmp_path: Path) -> None:
    assert volume_facts(FileVolume(path=tmp_path / "x"), Host()).keys() >= {"volumeFileSystem"}


def test_for_an_image_only_the_access_path_is_known(tree: HostTree) -> None:
    image = ImageVolume(pool="p", image="i", user="u", size=2**20)
    assert volume_facts(image, tree.host) == {"volumeAccess": "librbd"}
