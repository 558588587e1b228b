"""Searches for the line of a throttled device with `plimsoll run`, and where theory puts it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll.api.line import Line
from plimsoll.api.result import BenchmarkResult, Trial
from support.local_run import LocalRun, make_spec
from support.throttled import throttled_device
from support.throttling import Throttle

READS_PER_SECOND = 500

RATE = Throttle(permits_per_second=READS_PER_SECOND, depth=64, percent=99, latency=0.05, ramp=1, runtime=3)
"""99 % of operations within half a slice: near the limit, and by queueing theory not exactly at it."""

DEPTH_LATENCY = 0.15
"""Between one slice and two. In a closed loop nothing is left of a slice, so that all operations wait for the next one
while at most as many are in flight as a slice has permits. With one more, more than 1 % wait for two."""

DEPTH_LINE = RATE.permits + 0.5
"""So the line lies between these two depths."""

_SECONDS = 400


def rate_search(throttle: Throttle = RATE) -> Mapping[str, Any]:
    """Return the workload that searches for the line of a rate."""
    return _workload("Rate", throttle.latency, 125, 4000, throttle)


def depth_search() -> Mapping[str, Any]:
    """Return the workload that searches for the line of a depth."""
    return _workload("Depth", DEPTH_LATENCY, 8, 1024, RATE)


def found_line(directory: Path, fio: str, workload: Mapping[str, Any], reads: int = READS_PER_SECOND) -> BenchmarkResult:
    """Return the result of the search on a new device that permits so many reads per second."""
    spec = make_spec(
        storage={"storageClass": {"name": "any"}, "volume": {"size": "64Mi", "mode": "Block"}},
        clients={"count": 1},
        workloads=[dict(workload)],
        repetitions=1,
    )
    with throttled_device(directory, reads) as disk:
        options = ("--device", str(disk.device), "--destroy-data")
        with LocalRun(directory, fio, spec, *options) as run:
            disk.admit(run.process.pid)
            code, _, err = run.finish(seconds=_SECONDS)
        if code:
            raise RuntimeError(err)
        (result,) = run.found()
        return result


def line_of(result: BenchmarkResult) -> Line:
    """Return the line that a search found."""
    assert result.status.line is not None
    return result.status.line


def probes_of(result: BenchmarkResult) -> Sequence[Trial]:
    """Return the trials of a search."""
    return [trial for trial in result.status.trials if trial.probe is not None]


def _workload(vary: str, latency: float, start: int, limit: int, throttle: Throttle) -> Mapping[str, Any]:
    objective = {"percentile": f"{throttle.percent:g}", "latencyMicroseconds": round(latency * 1e6)}
    return {
        "name": "line",
        "fio": {"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [throttle.depth]},
        "runtimeSeconds": round(throttle.runtime),
        "rampSeconds": round(throttle.ramp),
        "line": {"vary": vary, "start": start, "limit": limit, "objectives": [objective]},
    }
