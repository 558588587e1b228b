"""Whether a tool works on its data set, judged by what its processes have open."""

import os
from pathlib import Path

import pytest

from plimsoll.agent.observation import DataSetIdentity, OpenFiles, identify
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.agents import HostTree

TOOL = 100


class Watched:
    """A tool with a data set, a work directory and another file."""

    def __init__(self, tree: HostTree, directory: Path) -> None:
        self.tree = tree
        self.target = directory / "volume.data"
        self.other = directory / "other.data"
        self.work = directory / "work"
        self.output = self.work / "output.json"
        self.work.mkdir(parents=True)
        for file in (self.target, self.other, self.output):
            file.write_text("data")
        target = VolumeTarget(kind=VolumeKind.FILE, path=str(self.target), size=4)
        self.files = OpenFiles(identify(target), work_directory=str(self.work), proc=tree.host.proc)
        tree.opened(TOOL, 0, "/dev/null")
        tree.opened(TOOL, 1, self.output)

    def look(self, times: int = 2) -> str:
        for _ in range(times):
            self.files.look(TOOL)
        return self.files.foreign_target

    def start_child(self, pid: int, *, parent: int = TOOL) -> None:
        self.tree.write(f"proc/{parent}/task/{parent}/children", f"{pid} ")


@pytest.fixture
def tool(tree: HostTree, tmp_path: Path) -> Watched:
    return Watched(tree, tmp_path / "client")


def test_a_tool_with_its_data_set_open_has_no_foreign_target(tool: Watched) -> None:
    tool.tree.opened(TOOL, 4, tool.target)
    tool.tree.opened(TOOL, 5, tool.other)
    assert tool.look() == ""


def test_a_tool_that_works_on_another_file_is_reported(tool: Watched) -> None:
    tool.tree.opened(TOOL, 4, tool.other)
    assert tool.look() == f"the tool had {tool.other} open, and never {tool.target}"


def test_the_data_set_may_come_late(tool: Watched) -> None:
    tool.tree.opened(TOOL, 4, tool.other)
    assert tool.look()
    tool.tree.opened(TOOL, 5, tool.target)
    assert tool.look(1) == ""


def test_descendants_count(tool: Watched) -> None:
    tool.start_child(101)
    tool.start_child(102, parent=101)
    tool.tree.opened(102, 4, tool.other)
    assert str(tool.other) in tool.look()
    tool.tree.opened(102, 5, tool.target)
    assert tool.look(1) == ""


@pytest.fixture
def library(tool: Watched) -> Path:
    path = tool.other.with_name("library.so")
    path.write_text("code")
    return path


def test_a_file_that_is_open_for_a_moment_is_no_target(tool: Watched, library: Path) -> None:
    tool.tree.opened(TOOL, 3, library)
    tool.look(1)
    tool.tree.opened(TOOL, 3, tool.other)
    assert tool.look(1) == ""


def test_a_library_that_loads_slowly_is_no_target(tool: Watched, library: Path) -> None:
    tool.tree.opened(TOOL, 4, library)
    assert str(library) in tool.look()
    tool.tree.opened(TOOL, 4, tool.other)
    assert tool.look() == f"the tool had {tool.other} open, and never {tool.target}"


@pytest.mark.parametrize("name", ["/dev/null", "/proc/cpuinfo", "/sys/devices", "pipe:[1]", "anon_inode:[eventfd]"])
def test_files_that_are_never_data_are_no_target(tool: Watched, name: str) -> None:
    tool.tree.opened(TOOL, 4, name)
    assert tool.look() == ""


def test_other_names_of_the_data_set_are_the_data_set(tool: Watched) -> None:
    hard_link = tool.other.with_name("hard-link")
    hard_link.hardlink_to(tool.target)
    tool.tree.opened(TOOL, 4, hard_link)
    tool.tree.opened(TOOL, 5, tool.other)
    assert tool.look() == ""


def test_a_new_file_with_the_name_of_a_removed_data_set_is_another(tool: Watched) -> None:
    moved = tool.target.with_name("volume.data (deleted)")
    moved.write_text("another")
    tool.tree.opened(TOOL, 4, moved)
    assert "(deleted)" in tool.look()


def test_a_symbolic_link_to_the_data_set_names_the_same(tree: HostTree, tmp_path: Path) -> None:
    real = tmp_path / "real.data"
    real.write_text("data")
    (tmp_path / "link.data").symlink_to(real)
    identity = identify(VolumeTarget(kind=VolumeKind.FILE, path=str(tmp_path / "link.data"), size=4))
    assert identity.path == str(real)


def test_a_process_that_has_exited_has_no_foreign_target(tool: Watched) -> None:
    tool.files.look(999)
    assert tool.files.foreign_target == ""


def test_a_strange_name_stays_readable_and_short(tool: Watched) -> None:
    strange = Path(os.fsdecode(bytes(tool.other) + b"\xff" + b"x" * 200))
    strange.write_text("data")
    tool.tree.opened(TOOL, 4, strange)
    message = tool.look()
    assert message.encode()
    assert "\N{REPLACEMENT CHARACTER}x" in message
    assert len(message) < 256 + 100 + len(str(tool.target))


@pytest.mark.parametrize(
    ("device", "number"), [(os.makedev(252, 16), "252:16"), (os.makedev(8, 1), "8:1"), (os.makedev(0, 44), None)]
)
def test_only_a_device_with_a_major_number_is_a_block_device(device: int, number: str | None) -> None:
    assert DataSetIdentity(path="/data/x", file=(device, 3), device=device).block_device == number


def test_a_block_device_is_known_by_its_number(tree: HostTree) -> None:
    identity = DataSetIdentity(path="/dev/plimsoll-volume", file=None, device=os.makedev(252, 16))
    files = OpenFiles(identity, work_directory="/nowhere", proc=tree.host.proc)
    tree.opened(TOOL, 4, "/dev/plimsoll-volume")
    files.look(TOOL)
    assert identity.block_device == "252:16"
    assert files.foreign_target == ""


def test_a_regular_file_is_never_a_block_device(tree: HostTree, tmp_path: Path) -> None:
    identity = DataSetIdentity(path="/dev/plimsoll-volume", file=None, device=os.makedev(252, 16))
    files = OpenFiles(identity, work_directory="/nowhere", proc=tree.host.proc)
    file = tmp_path / "not-a-device"
    file.write_text("data")
    tree.opened(TOOL, 4, file)
    files.look(TOOL)
    files.look(TOOL)
    assert files.foreign_target == f"the tool had {file} open, and never /dev/plimsoll-volume"
