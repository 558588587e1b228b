"""What agents meet: a host of files, progress, and peers that serve."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from plimsoll.agent.readings import Host
from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import ArmOrder, ServeOrder
from plimsoll.tools.base import Command

AGENT = 7


def together(commands: Iterable[Command]) -> Command:
    """Return the first command, which starts the others with it."""
    first, *others = commands
    return replace(first, parallel=tuple(others))


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
        link = self.directory / f"proc/{pid}/fd/{descriptor}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path)

    def in_unified_pod(self, *, cpu: str = "150000 100000", memory: str = "1073741824") -> None:
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

    def device(self, number: str, text: str = DEVICE_STAT) -> None:
        self.write(f"sys/dev/block/{number}/stat", text)


class RecordedProgress:
    """Records bytes and messages; `first` is set with the first report."""

    def __init__(self) -> None:
        self.reports: list[tuple[int, int, str]] = []
        self.first = asyncio.Event()

    def __call__(self, done: int, total: int, message: str = "") -> None:
        self.reports.append((done, total, message))
        self.first.set()

    @property
    def bytes(self) -> list[tuple[int, int]]:
        return [(done, total) for done, total, _ in self.reports]

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message in self.reports if message]


SOURCE = Path(__file__).parents[3] / "runner" / "accept.c"


def compiled_library(directory: Path) -> Path:
    """Compile the library into a directory; fails if there is no compiler."""
    compiler = shutil.which("gcc")
    assert compiler, "gcc is missing; run `make setup`"
    library = directory / "accept.so"
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([compiler, *options, "-o", library, SOURCE], check=True)
    return library


TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)


@asynccontextmanager
async def served(server: Worker, order: ServeOrder) -> AsyncIterator[None]:
    """Let a worker serve, from when clients may connect until the end of the block."""
    is_ready = asyncio.Event()

    async def ready() -> None:
        is_ready.set()

    serving = asyncio.create_task(server.serve(order, ready))
    try:
        async with asyncio.timeout(30):
            while not is_ready.is_set():
                assert not serving.done(), serving.result()
                await asyncio.sleep(0.01)
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def load(worker: Worker, order: ServeOrder, *peers: tuple[int, str]) -> ClientDocument:
    """Let a worker load servers at once, each with its address."""
    fields = order.model_dump(exclude={"kind", "peers"})
    armed = ArmOrder(**fields, peers=dict(peers))
    return await worker.measure(await worker.arm(armed), Clock(offset=0, error=0))


def measured(document: ClientDocument) -> Measurement:
    """Return the numbers of a document without errors."""
    assert document.parse_error is None, document.stderr_tail
    assert document.exit_code == 0
    assert document.measurement is not None
    return document.measurement
