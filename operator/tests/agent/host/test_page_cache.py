"""The sizes of a machine's caches, and the switch that drops them, in a tree of files."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from plimsoll.agent.caches import SWITCH, CacheDropper, cached_bytes, drop_caches, may_drop_caches
from plimsoll.agent.process import PreparationError, Programs
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import NodeCaches
from plimsoll.protocol.messages import DropCachesOrder

MEMINFO = """MemTotal:       24676864 kB
MemFree:        19000000 kB
Buffers:            1000 kB
Cached:             3000 kB
SwapCached:           70 kB
SReclaimable:        500 kB
SUnreclaim:           90 kB
"""


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    path = tmp_path / "drop_caches"
    path.write_text("0\n")
    return path


def test_page_cache_buffers_and_reclaimable_memory_count() -> None:
    assert cached_bytes(MEMINFO) == 4500 * 1024


@pytest.mark.parametrize("name", ["Buffers", "Cached", "SReclaimable"])
def test_a_missing_size_is_an_error_with_its_name(name: str) -> None:
    lines = [line for line in MEMINFO.splitlines() if not line.startswith(f"{name}:")]
    with pytest.raises(ValueError, match=f"/proc/meminfo has no {name}"):
        cached_bytes("\n".join(lines))


def test_dirty_data_is_written_before_the_caches_are_dropped(switch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = switch.with_name("meminfo")
    meminfo.write_text(MEMINFO)
    at_sync: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: at_sync.append(switch.read_text()))
    found = drop_caches("a", switch, meminfo)
    assert at_sync == ["0\n"]
    assert switch.read_text() == "3\n"
    assert (found.node, found.before_bytes, found.after_bytes) == ("a", 4500 * 1024, 4500 * 1024)


def test_a_process_may_drop_caches_if_the_switch_is_writable(switch: Path) -> None:
    assert may_drop_caches(switch)
    assert not may_drop_caches(switch.with_name("absent"))


@pytest.mark.system
def test_the_kernel_lets_root_drop_caches_without_any_capability() -> None:
    # It refuses 0, so nothing is dropped.
    program = f"""
import errno, os
with open("/proc/self/status") as status:
    assert "CapEff:\\t0000000000000000" in status.read()
switch = os.open({str(SWITCH)!r}, os.O_WRONLY | os.O_TRUNC)
try:
    os.write(switch, b"0\\n")
except OSError as error:
    assert error.errno == errno.EINVAL, error
"""
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    as_root = subprocess.run([*without, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert as_root.returncode == 0, as_root.stderr
    nobody = [*without, "--reuid=65532", "--regid=65532", "--clear-groups", "test", "-w", str(SWITCH)]
    assert subprocess.run(nobody, check=False).returncode == 1


async def test_an_agent_without_an_assignment_drops_nothing(tmp_path: Path) -> None:
    order = DropCachesOrder(trial=TrialKey(point="p", pass_number=0, attempt=0), limit_seconds=1.0)
    with pytest.raises(PreparationError, match="assignment has no caches"):
        await CacheDropper("a", allowed=False).drop(order, Programs(tmp_path, {}))


async def test_a_drop_that_hangs_is_named_after_its_time_and_keeps_nothing_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()

    def hang(node: str) -> NodeCaches:
        ended.wait(60)
        return NodeCaches(node=node, before_bytes=1, after_bytes=1, dropped_at="2026-11-27T00:00:00Z")

    monkeypatch.setattr("plimsoll.agent.caches.drop_caches", hang)
    programs = Programs(tmp_path, {})
    order = DropCachesOrder(trial=TrialKey(point="p", pass_number=0, attempt=0), limit_seconds=0.2)
    try:
        with pytest.raises(PreparationError, match=r"dropping of the caches has not ended within 0\.2 s"):
            await CacheDropper("a").drop(order, programs)
        assert await programs.in_thread("another operation", lambda: 1) == 1
    finally:
        ended.set()
