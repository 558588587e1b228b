import platform
from pathlib import Path

import pytest

from plimsoll.agent.host.facts import host_facts, volume_facts
from plimsoll.agent.host.readings import Host
from plimsoll.agent.volume import DeviceVolume, FileVolume, Volume
from support.host_tree import HostTree


def test_facts_name_the_processor_and_how_it_is_run(tree: HostTree) -> None:
    tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9454\n\nprocessor\t: 1\nmodel name\t: other\n")
    tree.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    facts = host_facts(tree.host)
    assert (facts["cpuModel"], facts["cpuGovernor"], facts["clockSource"]) == ("AMD EPYC 9454", "powersave", "tsc")
    assert facts["kernel"] == platform.release()


def test_what_cannot_be_read_is_left_out(tree: HostTree) -> None:
    assert host_facts(tree.host).keys() == {"kernel", "architecture", "processors", "memoryBytes"}


def test_facts_are_short(tree: HostTree) -> None:
    tree.write("proc/cpuinfo", f"model name\t: {'x' * 1000}\n")
    assert host_facts(tree.host)["cpuModel"] == "x" * 128


def test_a_file_lies_on_what_is_mounted_there(tree: HostTree, tmp_path: Path) -> None:
    table = f"22 1 0:30 / / rw - overlay overlay rw\n23 22 0:50 / {tmp_path} rw - nfs4 filer:/export rw\n"
    tree.write("proc/self/mountinfo", table)
    facts = volume_facts(FileVolume(path=tmp_path / "plimsoll.data"), tree.host)
    assert facts == {"volumeFileSystem": "nfs4", "volumeSource": "filer:/export"}


@pytest.mark.parametrize(
    "volume",
    [None, FileVolume(path=Path("/data/x")), DeviceVolume(path=Path("/nowhere")), DeviceVolume(path=Path("/"))],
)
def test_a_volume_that_cannot_be_looked_at_has_no_facts(tree: HostTree, volume: Volume | None) -> None:
    assert volume_facts(volume, tree.host) == {}


def test_this_machine_has_a_file_system_below_its_files(tmp_path: Path) -> None:
    assert volume_facts(FileVolume(path=tmp_path / "x"), Host()).keys() >= {"volumeFileSystem"}
