"""The start of a thousand agents: real agents, TLS and conductor, pretended work."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from subprocess import Popen

from figures import heading, mebibytes, median_and_range, milliseconds, quantile, table, whole_seconds
from place import BENCH, fresh, running
from plimsoll.cli.launch import free_port
from runs import Shape, attempts, fresh_secret, usable, why_not, write_plan

CLIENTS = 1000
PROCESSES = 2
PASSES = 3
_LIMIT_SECONDS = 300.0
_POLL_SECONDS = 0.2
_SECOND = 10**9
_SHAPE = Shape(
    name="simulated", clients=CLIENTS, size="1Gi", fio={}, ramp_seconds=1, runtime_seconds=20, repetitions=PASSES
)

Times = dict[str, list[int]]
"""Attempt -> Unix nanoseconds, one for each agent that saw the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process cost."""

    cpu_seconds: float
    resident_bytes: int


def measure() -> None:
    heading(
        f"spread, {CLIENTS} simulated agents in {PROCESSES} processes",
        "Real agents over real TLS connections to a real conductor; only their work is pretended. On a small machine\n"
        "   they compete with the conductor for the processors, which the nodes of a cluster do not.",
    )
    directory = fresh("simulated")
    usage = _run(directory)
    parts = [json.loads((directory / f"agents-{number}.json").read_text()) for number in range(PROCESSES)]
    agents = [agent for part in parts for agent in part["agents"]]
    trials = attempts(directory / "out")
    begun = {
        f"w-000 pass {trial.pass_number} attempt {trial.attempt}": _nanoseconds(trial.started_at) for trial in trials
    }
    _show(begun, {event: _times(agents, event) for event in ("t0", "ordered", "armed", "released", "woke")})
    dismissed = sum(code == 0 for part in parts for code in part["codes"])
    print(
        f"   {len(usable(trials))} of {PASSES} trials measured in {len(trials)} attempts; {dismissed} agents dismissed"
    )
    print(f"   conductor: {usage.cpu_seconds:.1f} s of processor time, {mebibytes(usage.resident_bytes)} at most")
    for words in why_not(trials):
        print(f"   {words}")


def _run(directory: Path) -> Usage:
    """Let conductor and agents work until the run is over."""
    results, secret, port = directory / "out", fresh_secret(directory, clients=CLIENTS), free_port()
    write_plan(_SHAPE, results)
    url = f"https://127.0.0.1:{port}"
    with ExitStack() as stack:
        options = ("--results", str(results), "--secret", str(secret), "--port", str(port))
        conductor = stack.enter_context(running(["-m", "plimsoll", "conductor", *options], directory / "conductor.log"))
        share = CLIENTS // PROCESSES
        agents = [
            stack.enter_context(
                running(
                    [
                        *(str(BENCH / "simulated_agents.py"), url, str(secret)),
                        *(
                            str(number * share),
                            str(share),
                            str(_SHAPE.runtime_seconds),
                            str(directory / f"agents-{number}.json"),
                        ),
                    ],
                    directory / f"agents-{number}.log",
                )
            )
            for number in range(PROCESSES)
        ]
        usage = _await_end(conductor)
        for process in agents:
            process.wait(90)
    return usage


def _await_end(conductor: Popen[str]) -> Usage:
    deadline = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < deadline:
        pid, status, used = os.wait4(conductor.pid, os.WNOHANG)
        if pid:
            conductor.returncode = os.waitstatus_to_exitcode(status)
            assert conductor.returncode == 0, f"the conductor ended with exit code {conductor.returncode}"
            return Usage(cpu_seconds=used.ru_utime + used.ru_stime, resident_bytes=used.ru_maxrss * 1024)
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"the simulated run took longer than {_LIMIT_SECONDS:g} s")


def _times(agents: list[dict[str, dict[str, int]]], event: str) -> Times:
    times: Times = {}
    for agent in agents:
        for attempt, when in agent[event].items():
            times.setdefault(attempt, []).append(when)
    return times


def _nanoseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * _SECOND)


def _show(begun: Mapping[str, int], times: Mapping[str, Times]) -> None:
    """Print what every attempt whose clients all woke up looked like."""
    whole = [attempt for attempt in begun if len(times["woke"].get(attempt, ())) == CLIENTS]
    rows = [
        ("attempt begun -> the last agent has its order", [_since(begun[key], times["ordered"][key]) for key in whole]),
        ("attempt begun -> every agent has said `armed`", [_since(begun[key], times["armed"][key]) for key in whole]),
        ("`armed` of the last agent -> T0", [_left(times["armed"][key], times["t0"][key]) for key in whole]),
        ("release of the last agent -> T0", [_left(times["released"][key], times["t0"][key]) for key in whole]),
    ]
    table(
        ("phase of a trial", "median", "range over trials"),
        [(name, *median_and_range(values, whole_seconds)) for name, values in rows],
    )
    late = [[(when - times["t0"][key][0]) / _SECOND for when in times["woke"][key]] for key in whole]
    wakings = [
        ("p50", [quantile(values, 0.5) for values in late]),
        ("p99", [quantile(values, 0.99) for values in late]),
        ("last agent", [max(values) for values in late]),
        ("first to last agent", [max(values) - min(values) for values in late]),
    ]
    table(
        ("start after T0", "median", "range over trials"),
        [(name, *median_and_range(values, milliseconds)) for name, values in wakings],
    )


def _since(begin: int, times: list[int]) -> float:
    return (max(times) - begin) / _SECOND


def _left(times: list[int], t0: list[int]) -> float:
    return (t0[0] - max(times)) / _SECOND
