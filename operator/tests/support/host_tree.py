"""A `/proc` and a `/sys` of files that a test writes, to simulate other hosts."""

from pathlib import Path

from plimsoll.agent.host.readings import Host

AGENT = 7

STAT = """\
cpu  1000 10 200 5000 300 5 15 40 100 0
cpu0 500 5 100 2500 150 3 7 20 50 0
cpu1 500 5 100 2500 150 2 8 20 50 0
intr 12345 0 0
ctxt 999
"""
MEMINFO = """\
MemTotal:        8000 kB
MemFree:         1000 kB
MemAvailable:    6000 kB
Buffers:          100 kB
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets ...
    lo: 7777 1 0 0 0 0 0 0 7777 1 0 0 0 0 0 0
  eth0: 1000 2 0 0 0 0 0 0 2000 3 0 0 0 0 0 0
"""
DEVICE_STAT = "  100  5  4096  30  200  6  8192  40  2  1500  2500  7 0 512 1 9 10\n"

UNIFIED = "30 25 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate"
LEGACY = """\
31 30 0:31 {root} /sys/fs/cgroup/cpu,cpuacct ro master:11 - cgroup cgroup rw,cpu,cpuacct
32 30 0:32 {root} /sys/fs/cgroup/memory ro master:12 - cgroup cgroup rw,memory
"""


class HostTree:
    """Files below a test's directory, and the `Host` that reads them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.host = Host(proc=directory / "proc", sys=directory / "sys")
        self.write("proc/stat", STAT)
        self.write("proc/meminfo", MEMINFO)
        self.write("proc/net/dev", NET_DEV)
        self.write("proc/self/status", "Name:\tpython3\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n")
        self.write("proc/self/stat", f"{AGENT} (python3) S 1 7 7 0 -1")
        self.process(1, parent=0)
        self.process(AGENT, parent=1)

    def write(self, path: str, text: str) -> Path:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def process(self, pid: int, *, parent: int, name: str = "a b) c") -> None:
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S {parent} {pid} {pid} 0 -1")

    def opened(self, pid: int, descriptor: int, path: Path | str) -> None:
        """Add an open file to a process."""
        link = self.directory / f"proc/{pid}/fd/{descriptor}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path)

    def in_unified_pod(self, *, cpu: str = "150000 100000", memory: str = "1073741824") -> None:
        """Simulate a container with its own namespace of cgroup version 2."""
        self.write("proc/self/cgroup", "0::/\n")
        self.write("proc/self/mountinfo", UNIFIED)
        group = "sys/fs/cgroup"
        self.write(f"{group}/cgroup.procs", f"1\n{AGENT}\n")
        self.write(f"{group}/cpu.max", f"{cpu}\n")
        self.write(f"{group}/memory.max", f"{memory}\n")
        self.write(f"{group}/memory.current", "4096000\n")
        self.write(
            f"{group}/cpu.stat",
            "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n"
            "nr_periods 10\nnr_throttled 4\nthrottled_usec 70000\n",
        )

    def in_legacy_pod(self, *, quota: int = 150000, memory: int = 2**30) -> None:
        """Simulate a container with cgroup version 1, which shows the path outside the container."""
        path = "/kubepods/burstable/pod1/abc"
        self.write("proc/self/cgroup", f"9:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::{path}\n")
        self.write("proc/self/mountinfo", LEGACY.format(root=path))
        cpu, bytes_ = "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/memory"
        for group in (cpu, bytes_):
            self.write(f"{group}/cgroup.procs", f"1\n{AGENT}\n")
        self.write(f"{cpu}/cpu.cfs_quota_us", f"{quota}\n")
        self.write(f"{cpu}/cpu.cfs_period_us", "100000\n")
        self.write(f"{cpu}/cpuacct.usage", "2500000000\n")
        self.write(f"{cpu}/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 70000000\n")
        self.write(f"{bytes_}/memory.limit_in_bytes", f"{memory}\n")
        self.write(f"{bytes_}/memory.usage_in_bytes", "4096000\n")

    def interface(self, name: str, *, speed: str | None, physical: bool) -> None:
        """Add a network interface to /sys; its counters are those of /proc/net/dev."""
        if speed is not None:
            self.write(f"sys/class/net/{name}/speed", f"{speed}\n")
        if physical:
            (self.directory / f"sys/class/net/{name}/device").mkdir(parents=True)

    def device(self, number: str, text: str = DEVICE_STAT) -> None:
        """Add a block device."""
        self.write(f"sys/dev/block/{number}/stat", text)
