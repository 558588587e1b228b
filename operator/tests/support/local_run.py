"""`plimsoll run` as a real process with real agents, conductor and fio, for tests to observe and disturb."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml

from plimsoll.api.line import Line
from plimsoll.api.names import RUN_KIND, Outcome, Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.status import RunState
from plimsoll.cli import Exit
from plimsoll.conductor.sink import read_results, read_state
from plimsoll.measure.attempts import counted
from support.disks import throttled_device
from support.simulated_storage import Throttle
from support.specs import manifest

T = TypeVar("T")

LOAD_REASONS = {"LateClient", "LowOverlap", "ShortRun", "Stalled", "ClientStalled"}
"""Why a trial can be Invalid only because the machine does too much else."""


def make_spec(**changes: Any) -> dict[str, Any]:
    """Return a small rate-limited run: two clients, one point, two repetitions."""
    fio = {"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [4], "rateIops": 200}
    spec: dict[str, Any] = {
        "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi", "mode": "Filesystem"}},
        "clients": {"count": 2},
        "workloads": [{"name": "read", "fio": fio, "runtimeSeconds": 3, "rampSeconds": 1}],
        "repetitions": 2,
        "prepare": {"settleSeconds": 0},
    }
    return manifest(RUN_KIND, spec | changes, name="local")


class LocalRun:
    """One `plimsoll run`, from its start to the end of all its processes."""

    def __init__(self, directory: Path, fio: str, spec: Mapping[str, Any] | None = None, *options: str) -> None:
        self.results = directory / "results"
        self.data = directory / "data"
        self.data.mkdir(exist_ok=True)
        self.file = directory / "run.yaml"
        if not self.file.exists():
            self.file.write_text(yaml.safe_dump(dict(spec or make_spec())))
        place = () if "--device" in options else ("--directory", str(self.data))
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "plimsoll", "run", str(self.file)),
                *("--results", str(self.results), "--fio", fio, "--seed", "1", *place, *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    @property
    def state(self) -> RunState | None:
        return read_state(self.results)

    def wait_for(self, what: Callable[[], T | None], *, seconds: float = 60) -> T:
        """Return the first true value of `what`, or fail."""
        return wait_for(self.process, what, seconds=seconds, shown=lambda: self.state)

    def wait_for_trial(self, *, seconds_in: float) -> RunState:
        """Return `seconds_in` seconds after the T0 of a trial, or before it if negative."""

        def running() -> RunState | None:
            state = self.state
            current = state.current if state is not None else None
            # The state shows a trial slightly longer than it takes.
            due = current is not None and current.starts_at + seconds_in <= time.time() < current.ends_at
            return state if due else None

        return self.wait_for(running)

    def pids(self, pattern: str) -> list[int]:
        return [pid for pid in descendants(self.process.pid) if re.search(pattern, command_line(pid))]

    def agent(self, client: int) -> int:
        return self.wait_for(lambda: next(iter(self.pids(rf"plimsoll agent .*/client-{client}-\d+\.json ")), None))

    def conductor(self) -> int:
        return self.wait_for(lambda: next(iter(self.pids("plimsoll conductor ")), None))

    def finish(self, *, seconds: float = 90) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=seconds)
        sys.stdout.write(out)  # the verdicts and their reasons, which pytest shows if the test fails
        return self.process.returncode, out, err

    def complete(self) -> str:
        """Wait for the end of a run that measures all of its trials, and return its standard output.

        Where all attempts at a point were Invalid only because the machine is busy, its exit code shows that.
        """
        code, out, err = self.finish()
        invalid = [result.status.trials for result in self.found() if result.status.verdict is Verdict.INVALID]
        assert all(map(invalid_for_load, invalid)), err
        assert code == (Exit.NOT_VALID if invalid else Exit.DONE), err
        return out

    def found(self) -> list[BenchmarkResult]:
        return read_results(self.results)

    def trials(self) -> list[Trial]:
        return [trial for result in self.found() for trial in result.status.trials]

    def counted(self) -> list[Trial]:
        """Return the attempts that count; on a busy machine an attempt may be Invalid and is retried."""
        return [trial for result in self.found() for trial in counted(result.status.trials)]

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)


def wait_for(
    process: "subprocess.Popen[str]",
    what: Callable[[], T | None],
    *,
    seconds: float = 60,
    shown: Callable[[], object] = lambda: None,
) -> T:
    """Return the first true value of `what`; fail, with what is to be shown, after a time, or if the process ends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = what()
        if value:
            return value
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    message = f"not within {seconds} s; state: {shown()}"
    raise AssertionError(message)


def invalid_for_load(trials: Sequence[Trial]) -> bool:
    """Whether a busy machine alone explains why none of the attempts counts: at least one measured something."""
    reasons = [
        {finding.reason for finding in trial.findings if finding.verdict is Verdict.INVALID}
        for trial in trials
        if trial.outcome is Outcome.MEASURED
    ]
    return bool(reasons) and all(found and found <= LOAD_REASONS for found in reasons)


def descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for number in child.read_text().split():
                found += [int(number), *descendants(int(number))]
        except OSError:
            continue
    return found


def command_line(pid: int) -> str:
    """Return a process's command line; empty if it has exited."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


START, LIMIT = 400, 6400
"""The shortest trial has 1200 operations at the first load, of which more than 10 are beyond the percentile."""

THROTTLE = Throttle(permits_per_second=500, depth=64, percent=99, latency=0.05, ramp=1, runtime=3)
"""99 % of operations within half a slice: near the limit, but by theory not exactly at it."""

_SECONDS = 270


def found_line(directory: Path, fio: str, precision_percent: int, seed: int = 1) -> BenchmarkResult:
    """Return the result of the search on a new device with the limit of `THROTTLE`; arrivals follow the seed."""
    objective = {"percentile": f"{THROTTLE.percent:g}", "latency": f"{THROTTLE.latency * 1e6:.0f}us"}
    line = {"vary": "Rate", "start": START, "limit": LIMIT, "precisionPercent": precision_percent}
    workload = {
        "name": "line",
        "fio": {"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [THROTTLE.depth]},
        "runtimeSeconds": round(THROTTLE.runtime),
        "rampSeconds": round(THROTTLE.ramp),
        "line": {**line, "objectives": [objective]},
    }
    spec = make_spec(
        storage={"storageClass": {"name": "any"}, "volume": {"size": "64Mi", "mode": "Block"}},
        clients={"count": 1},
        workloads=[workload],
        repetitions=1,
    )
    with throttled_device(directory, THROTTLE.permits_per_second) as (device, processes):
        options = ("--device", str(device), "--destroy-data", "--seed", str(seed))
        with LocalRun(directory, fio, spec, *options) as run:
            processes.write_text(str(run.process.pid))
            code, _, err = run.finish(seconds=_SECONDS)
        if code:
            raise RuntimeError(err)
        (result,) = run.found()
        return result


def line_of(result: BenchmarkResult) -> Line:
    assert result.status.line is not None
    return result.status.line
