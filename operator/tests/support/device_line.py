"""Searches for the line of a throttled device with `plimsoll run`, and where theory puts it."""

from pathlib import Path
from typing import Any

from plimsoll.api.line import Line
from plimsoll.api.result import BenchmarkResult
from support.local_run import LocalRun, make_spec
from support.throttled import throttled_device
from support.throttling import Throttle

START, LIMIT = 400, 6400
"""The shortest trial has 1200 operations at the first load, of which more than 10 are beyond the percentile."""

THROTTLE = Throttle(permits_per_second=500, depth=64, percent=99, latency=0.05, ramp=1, runtime=3)
"""99 % of operations within half a slice: near the limit, but by theory not exactly at it."""

_SECONDS = 270


def found_line(directory: Path, fio: str, precision_percent: int, seed: int = 1) -> BenchmarkResult:
    """Return the result of the search on a new device with the limit of `THROTTLE`; arrivals follow the seed."""
    spec = make_spec(
        storage={"storageClass": {"name": "any"}, "volume": {"size": "64Mi", "mode": "Block"}},
        clients={"count": 1},
        workloads=[_workload(precision_percent)],
        repetitions=1,
    )
    with throttled_device(directory, THROTTLE.permits_per_second) as disk:
        options = ("--device", str(disk.device), "--destroy-data", "--seed", str(seed))
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


def _workload(precision_percent: int) -> dict[str, Any]:
    objective = {"percentile": f"{THROTTLE.percent:g}", "latencyMicroseconds": round(THROTTLE.latency * 1e6)}
    return {
        "name": "line",
        "fio": {"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [THROTTLE.depth]},
        "runtimeSeconds": round(THROTTLE.runtime),
        "rampSeconds": round(THROTTLE.ramp),
        "line": {
            "vary": "Rate",
            "start": START,
            "limit": LIMIT,
            "precisionPercent": precision_percent,
            "objectives": [objective],
        },
    }
