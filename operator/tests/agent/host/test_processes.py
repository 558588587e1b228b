"""The kernel's I/O counters of a tool's processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.agent.readings import ToolAccount, ToolCounters
from support.agents import HostTree

IO = "rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n"

WRITES = """
import mmap, os, sys
page = mmap.mmap(-1, 1 << 20)
file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
for _ in range(4):
    os.pwrite(file, page, 0)
for _ in range(8):
    os.preadv(file, [page], 0)
print("done", flush=True)
sys.stdin.read()
"""


def did(tree: HostTree, pid: int, read: int, written: int, *children: int) -> None:
    tree.write(f"proc/{pid}/io", IO.format(read=read, written=written))
    tree.write(f"proc/{pid}/task/{pid}/children", " ".join(map(str, children)))


def test_the_tool_and_its_descendants_are_added_up(tree: HostTree) -> None:
    did(tree, 100, 1, 10, 101, 102)
    did(tree, 101, 2, 20, 103)
    did(tree, 102, 4, 40)
    did(tree, 103, 8, 80)
    assert ToolAccount(tree.host.proc).look(100) == ToolCounters(read=15, written=150)


@pytest.mark.parametrize("text", [None, "", "garbage", "read_bytes: x\nwrite_bytes: 1\n", "rchar: 1\n"])
def test_invisible_io_stays_unknown(tree: HostTree, text: str | None) -> None:
    if text is not None:
        tree.write("proc/100/io", text)
    account = ToolAccount(tree.host.proc)
    assert account.look(100) is None
    assert account.end() is None


def test_a_late_look_does_not_affect_the_others(tree: HostTree) -> None:
    did(tree, 100, 1, 10)
    account = ToolAccount(tree.host.proc)
    account.look(100)
    assert account.look(999) is None
    assert account.end() == ToolCounters()


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Path]:
    backing = tmp_path / "disk"
    backing.touch()
    os.truncate(backing, 16 * 2**20)
    device = subprocess.check_output(["losetup", "--find", "--show", str(backing)], text=True).strip()
    yield Path(device)
    subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.system
def test_direct_io_is_counted_during_and_after_the_process(loop_device: Path) -> None:
    account = ToolAccount(Path("/proc"))
    with subprocess.Popen(
        [sys.executable, "-c", WRITES, str(loop_device)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        meanwhile = account.look(process.pid)
    ended = account.end()
    assert meanwhile is not None
    assert ended is not None
    for found in (meanwhile, ended):
        assert found.written == 4 * 2**20
        # Whatever of the interpreter was not in memory is read too.
        assert 8 * 2**20 <= found.read < 128 * 2**20


@pytest.mark.system
def test_reads_from_memory_are_not_counted() -> None:
    shared = Path("/dev/shm") / f"plimsoll-test-{os.getpid()}"  # noqa: S108 - it must be on tmpfs
    shared.write_bytes(bytes(32 * 2**20))
    try:
        account = ToolAccount(Path("/proc"))
        with subprocess.Popen(["cat", str(shared)], stdout=subprocess.DEVNULL) as process:
            assert account.look(process.pid) is not None
        ended = account.end()
    finally:
        shared.unlink()
    assert ended is not None
    assert ended.read < 8 * 2**20
