"""fio through Plimsoll against fio alone, on disks in memory; needs root."""

import math
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from subprocess import Popen

from bare import Figures, figures_of, run_bare
from figures import heading, median_and_range, plain, table
from place import BENCH, cpu_seconds, fio, fresh, running
from plimsoll.api.result import Trial
from plimsoll.cli.launch import free_port
from plimsoll.conductor.secret import client_directory
from plimsoll.measure.statistics import describe
from plimsoll.plan.document import Plan
from plimsoll.plan.sweep import client_seed
from plimsoll.protocol.assignment import Assignment, DataFile
from runs import Shape, fresh_secret, usable, write_plan
from support.disks import DISK_BYTES, mounted, throttled_device

_RUNTIME_SECONDS = 8
_LEAST_PAIRS, _MOST_PAIRS = 6, 40
_PRECISION = 0.01
"""The width of both intervals at which there are enough pairs."""
_LIMIT_SECONDS = 180.0
_PAUSE_SECONDS = 1.0
"""A bare run waits as long as Plimsoll does between trials, so that the storage rests equally long before both."""
_UNLIMITED = 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One way of loading a disk in memory that Linux limits to a number of reads per second.

    Linux permits a tenth of them in each tenth of a second, at once; the rates are such that of each tenth far more
    than 1 % has to wait, and the p99 is a wait.
    """

    clients: int = 1
    depth: int
    reads_per_second: int

    @property
    def name(self) -> str:
        clients = "" if self.clients == 1 else f"{self.clients} clients, "
        limit = "no limit" if self.reads_per_second == _UNLIMITED else f"{self.reads_per_second} reads/s"
        return f"{clients}depth {self.depth}, {limit}"


_CASES = (
    _Case(depth=1, reads_per_second=200),
    _Case(depth=16, reads_per_second=2000),
    _Case(depth=64, reads_per_second=4000),
    _Case(clients=4, depth=16, reads_per_second=4000),
    _Case(depth=16, reads_per_second=_UNLIMITED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What both gave, pair by pair, and the CPU time of Plimsoll's processes per second of measuring."""

    through: Sequence[Figures]
    alone: Sequence[Figures]
    conductor: float
    agent: float


def measure() -> None:
    heading(
        "overhead: fio through Plimsoll / fio alone",
        f"randread 4Ki, O_DIRECT, {_RUNTIME_SECONDS} s, one file per client on ext4 on a disk in memory, in the order "
        "P F F P P F F P...,\n   with conductor and agents stopped during F. A pair is a P and the F beside it; p99 is "
        "interpolated within its bin.",
    )
    measured = {case: _alternate(case) for case in _CASES}
    rows = [row for case in _CASES for row in _rows(case, measured[case])]
    table(("case, quantity", "pairs", "mean P/F", "95 % interval", "median P/F", "same/same range", "median F"), rows)
    print("   mean P/F: geometric, with Student's interval over the pairs.")
    print("   same/same: the second of two equal runs in a row divided by the first, P/P and F/F: the noise here.\n")
    used = [(case.name, plain(4)(measured[case].conductor), plain(4)(measured[case].agent)) for case in _CASES]
    table(("CPU seconds per second of measuring", "conductor", "each agent"), used)


def _rows(case: _Case, measured: _Measured) -> Iterator[tuple[str, ...]]:
    for name, unit in (("IOPS", 1.0), ("p99 us", 1000.0)):
        through, alone = _values(name, measured.through), _values(name, measured.alone)
        ratios = [p / f for p, f in zip(through, alone, strict=True)]
        mean, low, high = _mean_ratio(ratios)
        median, _ = median_and_range(ratios, plain(4))
        _, extent = median_and_range([*_in_a_row(through, 1), *_in_a_row(alone, 0)], plain(4))
        usual, _ = median_and_range([value / unit for value in alone], plain(1))
        interval = f"{low:.4f} to {high:.4f}"
        yield f"{case.name}, {name}", str(len(ratios)), f"{mean:.4f}", interval, median, extent, usual


def _mean_ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean and its 95 % interval."""
    described = describe([math.log(ratio) for ratio in ratios])
    assert described.low is not None
    assert described.high is not None
    return math.exp(described.mean), math.exp(described.low), math.exp(described.high)


def _is_precise(through: Sequence[Figures], alone: Sequence[Figures]) -> bool:
    if len(through) < _LEAST_PAIRS or len(through) % 2:
        return False
    for name in ("IOPS", "p99 us"):
        pairs = zip(_values(name, through), _values(name, alone), strict=True)
        _, low, high = _mean_ratio([p / f for p, f in pairs])
        if high - low > _PRECISION:
            return False
    return True


def _values(name: str, figures: Sequence[Figures]) -> list[float]:
    return [item.iops if name == "IOPS" else item.p99_nanoseconds for item in figures]


def _in_a_row(values: Sequence[float], first: int) -> list[float]:
    """Return the ratios of those that ran one after the other: P 1 and 2, 3 and 4, ...; F 0 and 1, 2 and 3, ..."""
    return [later / earlier for earlier, later in list(pairwise(values))[first::2]]


@contextmanager
def _disk(directory: Path, reads_per_second: int) -> Iterator[Path]:
    """Yield a directory on a new disk in memory, whose reads are limited for this process and those that it starts."""
    with throttled_device(directory, reads_per_second) as (device, processes):
        before = processes.parents[1] / "cgroup.procs"
        with mounted(device, directory / "disk"):
            processes.write_text(str(os.getpid()))
            try:
                yield directory / "disk"
            finally:
                before.write_text(str(os.getpid()))


def _alternate(case: _Case) -> _Measured:
    """Measure in the order P F F P P F F P..., until the intervals are narrow enough."""
    directory = fresh("overhead")
    results, secret, port = directory / "out", fresh_secret(directory, clients=case.clients), free_port()
    size = DISK_BYTES // 2 // case.clients
    shape = Shape(
        name="overhead",
        clients=case.clients,
        size=str(size),
        fio={"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [case.depth]},
        ramp_seconds=2,
        runtime_seconds=_RUNTIME_SECONDS,
        repetitions=_MOST_PAIRS,
    )
    plan = write_plan(shape, results)
    with ExitStack() as stack:
        disk = stack.enter_context(_disk(directory, case.reads_per_second))
        argv = [str(BENCH / "pausing_conductor.py"), str(results), str(secret), str(port)]
        conductor = stack.enter_context(running(argv, directory / "conductor.log", pipes=True))
        files = [disk / f"client-{client}.data" for client in range(case.clients)]
        agents = []
        for client, file in enumerate(files):
            assignment = Assignment(
                conductor=f"https://127.0.0.1:{port}",
                client=client,
                work=str(directory / f"work-{client}"),
                tools=("fio",),
                volume=DataFile(path=str(file), capacity=size),
            )
            assigned = directory / f"assignment-{client}.json"
            assigned.write_text(assignment.model_dump_json())
            options = [f"--assignment={assigned}", f"--secret={client_directory(secret, client)}", f"--fio={fio()}"]
            argv = ["-m", "plimsoll", "agent", *options]
            agents.append(stack.enter_context(running(argv, directory / f"agent-{client}.log")))
        return _pairs(plan, files, conductor, agents)


def _pairs(plan: Plan, files: Sequence[Path], conductor: Popen[str], agents: Sequence[Popen[str]]) -> _Measured:
    through: list[Figures] = []
    alone: list[Figures] = []
    begin: list[float] = []
    trials = 0
    while not _is_precise(through, alone) and len(through) < plan.repetitions:
        trial = _next_trial(conductor)
        begin = begin or [cpu_seconds(conductor), sum(map(cpu_seconds, agents))]
        trials += 1
        if usable([trial]):
            through.append(figures_of(trial))
            if len(through) % 2:
                alone += _bare_runs(plan, files, (conductor, *agents), range(len(alone), len(alone) + 2))
        assert conductor.stdin is not None
        conductor.stdin.write("\n")
        conductor.stdin.flush()
    seconds = (trials - 1) * _RUNTIME_SECONDS
    return _Measured(
        through=through,
        alone=alone,
        conductor=(cpu_seconds(conductor) - begin[0]) / seconds,
        agent=(sum(map(cpu_seconds, agents)) - begin[1]) / seconds / len(agents),
    )


def _next_trial(conductor: Popen[str]) -> Trial:
    """Wait until the conductor pauses. It bounds the attempts itself, and ends when they are used up."""
    assert conductor.stdout is not None
    ready, _, _ = select.select([conductor.stdout], [], [], _LIMIT_SECONDS)
    line = conductor.stdout.readline() if ready else ""
    assert line, "the conductor recorded nothing; see its log"
    return Trial.model_validate_json(line)


def _bare_runs(plan: Plan, files: Sequence[Path], others: Sequence[Popen[str]], passes: range) -> Iterator[Figures]:
    """Run fio alone, with the seeds of those passes, while everybody else stands still."""
    point = plan.points[0]
    for process in others:
        os.kill(process.pid, signal.SIGSTOP)
    for number in passes:
        time.sleep(_PAUSE_SECONDS)
        seeds = [
            client_seed(plan.seed, point=point.name, pass_number=number, client=client) for client in range(len(files))
        ]
        yield run_bare(point, files, seeds)
    for process in others:
        os.kill(process.pid, signal.SIGCONT)
