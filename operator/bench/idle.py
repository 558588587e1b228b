"""How long the storage rests between the trials of a local run, and what for."""

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from figures import heading, median_and_range, milliseconds, table
from place import end
from plimsoll.api.result import Trial
from plimsoll.api.status import STATE_FILE
from plimsoll.conductor.sink import read_state
from runs import Shape, attempts, check_ended, start_locally, why_not

_CLIENTS = 2
_LIMIT_SECONDS = 180.0
_POLL_SECONDS = 0.1
_NANOSECONDS = 10**9
_LINE = re.compile(r"(\S+ \S+),(\d{3}) INFO (result of .* delivered|recorded .*)")
_STEPS = (
    "fio ends, is read and parsed, document posted",
    "merged, judged, recorded",
    "agents quiet, next attempt chosen",
    "attempt noted, clients armed, T0 reached",
    "fio starts and begins its I/O",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """When what happened to a trial; Unix seconds."""

    begun: float
    t0: float
    window_start: float
    window_end: float
    delivered: float
    recorded: float


def measure() -> None:
    heading(
        "idle: time without I/O between two trials of a local run",
        f"From the end of one trial's window to the start of the next one's I/O; {_CLIENTS} clients, no ramp.",
    )
    shape = Shape(
        name="idle",
        clients=_CLIENTS,
        size="16Mi",
        fio={"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [1], "rateIops": 100},
        ramp_seconds=0,
        runtime_seconds=3,
        repetitions=10,
    )
    process, results = start_locally(shape)
    try:
        starts = _follow(process, results)
    finally:
        end(process)
    check_ended(process, results)
    tried = attempts(results)
    marks = list(_marks(tried, results, starts))
    gaps = [_gaps(one, other) for one, other in pairwise(marks)]
    rows = [(name, *median_and_range([gap[n] for gap in gaps], milliseconds)) for n, name in enumerate(_STEPS)]
    whole = ("all together", *median_and_range([sum(gap) for gap in gaps], milliseconds))
    table(("step", "median", f"range over {len(gaps)} gaps"), [*rows, whole])
    print("   target: all together at most 1 s")
    for words in why_not(tried):
        print(f"   {words}")


def _follow(process: "subprocess.Popen[bytes]", results: Path) -> dict[str, float]:
    """Return T0 of every attempt, Unix seconds: only the state tells it."""
    starts: dict[str, float] = {}
    deadline = time.monotonic() + _LIMIT_SECONDS
    while process.poll() is None:
        assert time.monotonic() < deadline, "the run does not end"
        state = read_state(results) if (results / STATE_FILE).exists() else None
        if state is not None and state.current is not None:
            starts[str(state.current.key)] = state.current.starts_at
        time.sleep(_POLL_SECONDS)
    return starts


def _marks(tried: list[Trial], results: Path, starts: dict[str, float]) -> Iterator[Marks]:
    """Join what results and logs say of each trial."""
    recorded = [when for when, _ in _events(results / "logs" / "conductor.log")]
    delivered: dict[str, float] = {}
    for client in range(_CLIENTS):
        for when, words in _events(results / "logs" / f"client-{client}.log"):
            delivered[words] = max(when, delivered.get(words, 0.0))
    for trial, when in zip(tried, recorded, strict=True):
        key = f"w-000 pass {trial.pass_number} attempt {trial.attempt}"
        if trial.window is not None and key in starts:
            yield Marks(
                begun=_seconds(trial.started_at),
                t0=starts[key],
                window_start=trial.window.start_nanoseconds / _NANOSECONDS,
                window_end=trial.window.end_nanoseconds / _NANOSECONDS,
                delivered=delivered[f"result of {key} delivered"],
                recorded=when,
            )


def _gaps(one: Marks, other: Marks) -> tuple[float, ...]:
    """Return the steps between two trials, in seconds."""
    times = (one.window_end, one.delivered, one.recorded, other.begun, other.t0, other.window_start)
    return tuple(after - before for before, after in pairwise(times))


def _events(log: Path) -> Iterator[tuple[float, str]]:
    """Yield the lines of a log that tell of a trial's end. They carry local time, to the millisecond."""
    for line in log.read_text().splitlines():
        if found := _LINE.match(line):
            moment, thousandths, words = found.groups()
            yield datetime.fromisoformat(moment).astimezone().timestamp() + int(thousandths) / 1000, words


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
