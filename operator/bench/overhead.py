"""fio through Plimsoll against fio alone."""

import math
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from pydantic import JsonValue

from bare import Figures, figures_of, run_bare
from figures import heading, median_and_range, plain, table
from place import BENCH, fio, fresh, running
from plimsoll.api.result import Trial
from plimsoll.cli.launch import free_port
from plimsoll.conductor.secret import client_directory
from plimsoll.measure.statistics import describe
from plimsoll.plan.document import Plan
from plimsoll.plan.sweep import client_seed
from plimsoll.protocol.assignment import Assignment, DataFile
from runs import Shape, fresh_secret, usable, write_plan

_VOLUME_BYTES = 512 * 2**20
_LIMIT_SECONDS = 180.0
_PAUSE_SECONDS = 1.0
"""A bare run waits as long as Plimsoll does between trials, so that the storage rests equally long before both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One way of loading the file, and how often; every round has its own prefill, and an even number of pairs."""

    name: str
    fio: dict[str, JsonValue]
    rounds: int
    pairs: int
    runtime_seconds: int


_CASES = (
    _Case(name="direct, depth 16", fio={"ioDepth": [16]}, rounds=1, pairs=8, runtime_seconds=8),
    _Case(name="direct, depth 1", fio={"ioDepth": [1]}, rounds=1, pairs=6, runtime_seconds=8),
    _Case(
        name="buffered, depth 1",
        fio={"ioDepth": [1], "engine": "psync", "directIo": False},
        rounds=2,
        pairs=10,
        runtime_seconds=5,
    ),
)


def measure() -> None:
    heading(
        "overhead: fio through Plimsoll / fio alone",
        "One client, randread 4Ki, no rate limit, one file, in the order P F F P P F F P..., with conductor and agent\n"
        "   stopped during F. A pair is a P and the F beside it; p99 is interpolated within its bin.",
    )
    rows = [row for case in _CASES for row in _rows(case)]
    table(("case, quantity", "pairs", "mean P/F", "95 % interval", "median P/F", "same/same range", "median F"), rows)
    print("   mean P/F: geometric, with Student's interval over the pairs.")
    print("   same/same: the second of two equal runs in a row divided by the first, P/P and F/F: the noise here.")


def _rows(case: _Case) -> Iterator[tuple[str, ...]]:
    rounds = [_alternate(case) for _ in range(case.rounds)]
    for name, unit in (("IOPS", 1.0), ("p99 us", 1000.0)):
        series = [(_values(name, through), _values(name, alone)) for through, alone in rounds]
        ratios = [p / f for through, alone in series for p, f in zip(through, alone, strict=True)]
        noise = [ratio for through, alone in series for ratio in (*_in_a_row(through, 1), *_in_a_row(alone, 0))]
        mean, interval = _mean_ratio(ratios)
        median, _ = median_and_range(ratios, plain(3))
        _, extent = median_and_range(noise, plain(3))
        usual, _ = median_and_range([value / unit for _, alone in series for value in alone], plain(1))
        yield f"{case.name}, {name}", str(len(ratios)), mean, interval, median, extent, usual


def _mean_ratio(ratios: Sequence[float]) -> tuple[str, str]:
    """Return the geometric mean and its interval."""
    described = describe([math.log(ratio) for ratio in ratios])
    assert described.low is not None
    assert described.high is not None
    return f"{math.exp(described.mean):.3f}", f"{math.exp(described.low):.3f} to {math.exp(described.high):.3f}"


def _values(name: str, figures: Sequence[Figures]) -> list[float]:
    return [item.iops if name == "IOPS" else item.p99_nanoseconds for item in figures]


def _in_a_row(values: Sequence[float], first: int) -> list[float]:
    """Return the ratios of those that ran one after the other: P 1 and 2, 3 and 4, ...; F 0 and 1, 2 and 3, ..."""
    return [values[number + 1] / values[number] for number in range(first, len(values) - 1, 2)]


def _alternate(case: _Case) -> tuple[list[Figures], list[Figures]]:
    """Return what both gave, pair by pair, in the order P F F P P F F P..."""
    directory = fresh("overhead")
    results, secret, port = directory / "out", fresh_secret(directory, clients=1), free_port()
    shape = Shape(
        name="overhead",
        clients=1,
        size=str(_VOLUME_BYTES),
        fio={"pattern": "randread", "blockSize": ["4Ki"], **case.fio},
        ramp_seconds=2,
        runtime_seconds=case.runtime_seconds,
        repetitions=case.pairs,
    )
    plan, data = write_plan(shape, results), directory / "client-0.data"
    assignment = Assignment(
        conductor=f"https://127.0.0.1:{port}",
        client=0,
        work=str(directory / "work"),
        tools=("fio",),
        volume=DataFile(path=str(data), capacity=_VOLUME_BYTES),
    )
    assigned = directory / "assignment.json"
    assigned.write_text(assignment.model_dump_json())
    with ExitStack() as stack:
        argv = [str(BENCH / "pausing_conductor.py"), str(results), str(secret), str(port)]
        conductor = stack.enter_context(running(argv, directory / "conductor.log", pipes=True))
        options = [f"--assignment={assigned}", f"--secret={client_directory(secret, 0)}", f"--fio={fio()}"]
        argv = ["-m", "plimsoll", "agent", *options]
        agent = stack.enter_context(running(argv, directory / "agent.log"))
        return _pairs(plan, data, conductor, agent)


def _pairs(plan: Plan, data: Path, conductor: Popen[str], agent: Popen[str]) -> tuple[list[Figures], list[Figures]]:
    through: list[Figures] = []
    alone: list[Figures] = []
    while len(through) < plan.repetitions:
        trial = _next_trial(conductor)
        if usable([trial]):
            through.append(figures_of(trial))
            if len(through) % 2:
                alone += _bare_runs(plan, data, (conductor, agent), range(len(alone), len(alone) + 2))
        assert conductor.stdin is not None
        conductor.stdin.write("\n")
        conductor.stdin.flush()
    return through, alone


def _next_trial(conductor: Popen[str]) -> Trial:
    """Wait until the conductor pauses. It bounds the attempts itself, and ends when they are used up."""
    assert conductor.stdout is not None
    ready, _, _ = select.select([conductor.stdout], [], [], _LIMIT_SECONDS)
    line = conductor.stdout.readline() if ready else ""
    assert line, "the conductor recorded nothing; see its log"
    return Trial.model_validate_json(line)


def _bare_runs(plan: Plan, data: Path, others: Sequence[Popen[str]], passes: range) -> Iterator[Figures]:
    """Run fio alone, with the seeds of those passes, while everybody else stands still."""
    point = plan.points[0]
    for process in others:
        os.kill(process.pid, signal.SIGSTOP)
    for number in passes:
        time.sleep(_PAUSE_SECONDS)
        yield run_bare(point, data, client_seed(plan.seed, point=point.name, pass_number=number, client=0))
    for process in others:
        os.kill(process.pid, signal.SIGCONT)
