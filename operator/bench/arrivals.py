"""The arrivals that a replay makes of a trace: `arrivals.py [PLACE]`; a table of docs/explanation/line.md.

It only reads from that device or file of 96 MiB; without one, from a disk in memory, which needs root. fio, from
PLIMSOLL_FIO, gets the arguments that the agent gives it, and also logs when it submits each operation. Two replays of
each rate: of a trace whose gaps allow for nothing, and of the trace that the agent writes.
"""

import json
import math
import statistics
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import heading_rows, percent
from place import fio
from plimsoll.tools.base import StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters, Trace
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.disks import DISK_BYTES, throttled_device

FIO = Fio()

_RATES = (5_000, 10_000, 20_000, 50_000)
_RUNTIME_SECONDS = 5
_UNLIMITED = 10**7
_PAUSE_MICROSECONDS = 100
"""Beyond its gap: an operation that is later did not wait for a submission, but for a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    due: Sequence[float]  # microseconds after the first arrival
    submitted: Sequence[float]  # the same of what fio did, without pauses
    paused: float  # share of the time
    submission: float  # mean, in microseconds
    completed: Sequence[float]  # when they completed, in order

    def rate(self, of: Sequence[float]) -> float:
        """Return arrivals per second."""
        return (len(of) - 1) / of[-1] * 1e6

    @property
    def in_flight(self) -> float:
        """Mean number of operations in flight over time (Little's law)."""
        return (sum(self.completed) - sum(self.submitted)) / self.submitted[-1]

    @property
    def found_in_flight(self) -> float:
        """Mean number that arrivals found: the same if they do not depend on it (Wolff 1982)."""
        return statistics.fmean(
            number - bisect_right(self.completed, time) for number, time in enumerate(self.submitted)
        )


def main() -> None:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        given = sys.argv[1:]
        device = Path(given[0]) if given else stack.enter_context(throttled_device(directory, _UNLIMITED))[0]
        for row in _rows(device, directory):
            print(f"| {' | '.join(row)} |", flush=True)


def _rows(device: Path, directory: Path) -> Iterator[Sequence[str]]:
    yield from heading_rows(
        *("offered", "gaps allow for", "rate that arrived", "submission", "variation of gaps", "dispersion per ms"),
        *("per 10 ms", "in flight", "found in flight", "without a processor"),
    )
    for rate in _RATES:
        for allows in (False, True):
            found = _replayed(device, directory, rate, allows=allows)
            gaps = [after - before for before, after in pairwise(found.submitted)]
            yield (
                f"{rate}",
                "submissions" if allows else "nothing",
                f"{100 * (found.rate(found.submitted) / found.rate(found.due) - 1):+.1f} %",
                f"{found.submission:.1f} µs",
                f"{statistics.stdev(gaps) / statistics.fmean(gaps):.2f}",
                *(f"{_dispersion(found.submitted, width):.2f}" for width in (1_000, 10_000)),
                *(f"{number:.2f}" for number in (found.in_flight, found.found_in_flight)),
                percent(found.paused),
            )


def _replayed(device: Path, directory: Path, rate: int, *, allows: bool) -> _Replay:
    target = VolumeTarget(
        kind=VolumeKind.DEVICE if device.is_block_device() else VolumeKind.FILE,
        path=str(device),
        size=DISK_BYTES,
        offset=0,
    )
    prepared, work = directory / "prepare", directory / "work"
    for place in (prepared, work):
        place.mkdir(exist_ok=True)
    timing = Timing(ramp_seconds=0, runtime_seconds=_RUNTIME_SECONDS)
    step = StepContext(step=StepKind.PREPARE, target=target, timing=timing, seed=rate, work_directory=str(prepared))
    parameters = FioParameters.model_validate({"rateIops": rate, "arrivals": "Poisson", "ioDepth": 64})
    ((name, lines),) = FIO.command(parameters, step).inputs.items()
    assert isinstance(lines, Trace)
    (prepared / name).write_text("".join(lines if allows else replace(lines, delay=0.0)))
    command = FIO.command(parameters, replace(step, step=StepKind.MEASURE, work_directory=str(work)))
    # Each operation on its own, with the time of its submission. The last of equal options counts.
    logged = ("--log_avg_msec=0", "--log_offset=1", "--log_issue_time=1")
    subprocess.run([fio(), *command.argv[1:], *logged], check=True, stdout=subprocess.DEVNULL)
    (job,) = json.loads((work / "fio.json").read_text())["jobs"]
    log = (work / "fio_clat.1.log").read_text().splitlines()
    operations = sorted((int(fields[-1]) / 1000, int(fields[1]) / 1000) for fields in (line.split(",") for line in log))
    issued, latencies = zip(*operations, strict=True)
    due = [float(line.split()[0]) for line in replace(lines, delay=0.0) if len(line.split()) == 5][: len(issued)]
    submitted, completed, paused = _without_pauses(due, issued, latencies)
    return _Replay(
        due=[time - due[0] for time in due],
        submitted=submitted,
        completed=completed,
        paused=paused,
        submission=job["read"]["slat_ns"]["mean"] / 1000,
    )


def _without_pauses(
    due: Sequence[float], issued: Sequence[float], latencies: Sequence[float]
) -> tuple[Sequence[float], Sequence[float], float]:
    """Return when operations were submitted and completed, without the pauses, and the share of these."""
    submitted, paused = [0.0], 0.0
    for (due_before, due_after), (before, after) in zip(pairwise(due), pairwise(issued), strict=True):
        pause = after - before - (due_after - due_before)
        is_pause = pause > _PAUSE_MICROSECONDS
        paused += is_pause * pause
        submitted.append(submitted[-1] + after - before - is_pause * pause)
    completed = []
    for time in (time + latency for time, latency in zip(issued, latencies, strict=True)):
        last = bisect_right(issued, time) - 1
        following = submitted[last + 1] if last + 1 < len(submitted) else math.inf
        # What completed in a pause was noticed at its end.
        completed.append(min(submitted[last] + time - issued[last], following))
    return submitted, sorted(completed), paused / (issued[-1] - issued[0])


def _dispersion(times: Sequence[float], width: int) -> float:
    """Return variance by mean of the numbers of arrivals in intervals of that many microseconds: 1 if Poisson."""
    counts = Counter(int(time // width) for time in times)
    numbers = [counts[index] for index in range(math.floor(times[-1] / width))]
    return statistics.variance(numbers) / statistics.fmean(numbers)


if __name__ == "__main__":
    main()
