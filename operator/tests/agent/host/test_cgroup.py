"""Control groups of a pod, a session and a plain machine, in both versions."""

import pytest

from plimsoll.agent.readings import CgroupCounters
from support.agents import AGENT, UNIFIED, HostTree

USED = CgroupCounters(cpu=2_500_000_000, throttled_periods=4, throttled=70_000_000, memory=4_096_000)


LEGACY = """\
31 30 0:31 {root} /sys/fs/cgroup/cpu,cpuacct ro master:11 - cgroup cgroup rw,cpu,cpuacct
32 30 0:32 {root} /sys/fs/cgroup/memory ro master:12 - cgroup cgroup rw,memory
"""


def put_in_legacy_pod(tree: HostTree, *, quota: int = 150000, memory: int = 2**30) -> None:
    """Simulate a container with cgroup version 1, which shows the path outside the container."""
    path = "/kubepods/burstable/pod1/abc"
    tree.write("proc/self/cgroup", f"9:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::{path}\n")
    tree.write("proc/self/mountinfo", LEGACY.format(root=path))
    cpu, bytes_ = "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory"
    for group in (cpu, bytes_):
        tree.write(f"{group}/cgroup.procs", f"1\n{AGENT}\n")
    tree.write(f"{cpu}/cpu.cfs_quota_us", f"{quota}\n")
    tree.write(f"{cpu}/cpu.cfs_period_us", "100000\n")
    tree.write(f"{cpu}/cpuacct.usage", "2500000000\n")
    tree.write(f"{cpu}/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 70000000\n")
    tree.write(f"{bytes_}/memory.limit_in_bytes", f"{memory}\n")
    tree.write(f"{bytes_}/memory.usage_in_bytes", "4096000\n")


@pytest.fixture(params=["unified", "legacy"])
def pod(request: pytest.FixtureRequest, tree: HostTree) -> HostTree:
    if request.param == "unified":
        tree.in_unified_pod()
    else:
        put_in_legacy_pod(tree)
    return tree


def test_a_pod_sees_its_limits_and_usage(pod: HostTree) -> None:
    cgroup = pod.host.cgroup()
    assert cgroup is not None
    assert (cgroup.processors(), cgroup.memory_limit()) == (1.5, 2**30)
    assert cgroup.own(pod.host.proc).read() == USED


def test_max_is_no_limit(tree: HostTree) -> None:
    tree.in_unified_pod(cpu="max 100000", memory="max")
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert (cgroup.processors(), cgroup.memory_limit()) == (None, None)


def test_the_old_version_s_largest_number_is_no_limit(tree: HostTree) -> None:
    put_in_legacy_pod(tree, quota=-1, memory=9223372036854771712)
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert (cgroup.processors(), cgroup.memory_limit()) == (None, None)


def test_a_tool_and_its_children_belong_to_the_agent(pod: HostTree) -> None:
    pod.process(20, parent=AGENT)
    pod.process(21, parent=20)
    for procs in (pod.directory / "sys").rglob("cgroup.procs"):
        procs.write_text(f"1\n{AGENT}\n20\n21\n")
    cgroup = pod.host.cgroup()
    assert cgroup is not None
    assert cgroup.own(pod.host.proc).read() == USED


@pytest.mark.parametrize("stranger", [0, 9])
def test_a_shared_group_shows_its_limits_and_not_the_client_s_usage(pod: HostTree, stranger: int) -> None:
    pod.process(9, parent=1)
    for procs in (pod.directory / "sys").rglob("cgroup.procs"):
        procs.write_text(f"1\n{AGENT}\n{stranger}\n")
    cgroup = pod.host.cgroup()
    assert cgroup is not None
    own = cgroup.own(pod.host.proc)
    assert own.read() == CgroupCounters(throttled_periods=4, throttled=70_000_000), "a quota throttles the whole group"
    assert cgroup.processors() == 1.5


def test_a_group_without_a_list_of_its_processes_counts_as_shared(pod: HostTree) -> None:
    for procs in (pod.directory / "sys").rglob("cgroup.procs"):
        procs.unlink()
    cgroup = pod.host.cgroup()
    assert cgroup is not None
    assert cgroup.own(pod.host.proc).read() == CgroupCounters(throttled_periods=4, throttled=70_000_000)


def test_ancestor_groups_limit_it_too(tree: HostTree) -> None:
    tree.write("proc/self/cgroup", "0::/user.slice/session-1.scope\n")
    tree.write("proc/self/mountinfo", UNIFIED)
    tree.write("sys/fs/cgroup/user.slice/session-1.scope/cpu.max", "400000 100000\n")
    tree.write("sys/fs/cgroup/user.slice/session-1.scope/memory.max", "max\n")
    tree.write("sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n")
    tree.write("sys/fs/cgroup/user.slice/memory.max", "4096\n")
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert (cgroup.processors(), cgroup.memory_limit()) == (0.5, 4096)


def test_the_quota_of_an_ancestor_throttles_it_too(tree: HostTree) -> None:
    tree.write("proc/self/cgroup", "0::/user.slice/session-1.scope\n")
    tree.write("proc/self/mountinfo", UNIFIED)
    tree.write("sys/fs/cgroup/cpu.stat", "usage_usec 9\n")
    tree.write("sys/fs/cgroup/user.slice/cpu.stat", "usage_usec 9\nnr_throttled 7\nthrottled_usec 30\n")
    tree.write("sys/fs/cgroup/user.slice/session-1.scope/cpu.stat", "nr_throttled 2\nthrottled_usec 5\n")
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert cgroup.own(tree.host.proc).read() == CgroupCounters(throttled_periods=9, throttled=35_000)


def test_a_group_outside_the_mount_is_the_mounted_directory(tree: HostTree) -> None:
    tree.in_unified_pod()
    tree.write("proc/self/cgroup", "0::/../../elsewhere\n")
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert cgroup.processors() == 1.5


def test_with_both_versions_the_old_one_takes_precedence(tree: HostTree) -> None:
    put_in_legacy_pod(tree)
    tree.write("proc/self/mountinfo", f"{LEGACY.format(root='/kubepods/burstable/pod1/abc')}{UNIFIED}/unified\n")
    cgroup = tree.host.cgroup()
    assert cgroup is not None
    assert not cgroup.unified
    assert cgroup.read() == USED


@pytest.mark.parametrize("lines", [("", UNIFIED), ("0::/\n", ""), ("garbage", "garbage")])
def test_without_a_group_there_is_none(tree: HostTree, lines: tuple[str, str]) -> None:
    tree.write("proc/self/cgroup", lines[0])
    tree.write("proc/self/mountinfo", lines[1])
    assert tree.host.cgroup() is None


def test_without_files_there_is_no_group(tree: HostTree) -> None:
    assert tree.host.cgroup() is None


@pytest.mark.parametrize("text", ["", "garbage", "nr_throttled x\n", "one two three\n"])
def test_counters_that_cannot_be_read_are_absent(pod: HostTree, text: str) -> None:
    for name in ("cpu.stat", "cpuacct.usage", "memory.current", "memory.usage_in_bytes", "cpu.max"):
        for file in (pod.directory / "sys").rglob(name):
            file.write_text(text)
    for file in (pod.directory / "sys").rglob("cpu.cfs_period_us"):
        file.write_text("0\n")
    cgroup = pod.host.cgroup()
    assert cgroup is not None
    assert cgroup.read() == CgroupCounters()
    assert cgroup.processors() is None
