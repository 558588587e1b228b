"""Measures on a real device what theory says of it: `line_device.py [LINES]`; tables of docs/line.md.

The device is a loop device that Linux limits to a number of reads per second (`support/throttling.py`). It measures
latencies at fixed loads, then so many lines with `plimsoll run`. It needs root, and fio in PLIMSOLL_FIO.
"""

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from plimsoll.api.line import Vary
from plimsoll.measure.histogram import Histogram
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import FIO
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.device_line import THROTTLE, found_line, line_of
from support.queueing import Queue
from support.throttled import IMAGE_BYTES, Throttled, throttled_device
from support.throttling import Throttle

_LINES = 2
_PRECISION_PERCENT = 10
_PERCENTS = ("50", "90", "99")
_LOADS = (60, 80, 90, 95)
_SMALL = Throttle(permits_per_second=100, depth=64, percent=99, latency=0.05, ramp=2, runtime=30)
"""Few permits in a slice, so that operations wait at loads well below the limit."""

_ENTER = 'echo $$ > "$0" && exec "$@"'


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else _LINES
    fio = os.environ["PLIMSOLL_FIO"]
    _print_latencies(fio)
    expected, queued = THROTTLE.line(), _queue_line(THROTTLE)
    print(
        f"\nline of {THROTTLE.permits_per_second} reads per second: expected {expected:.0f}; of M/D/1: {queued:.0f}\n"
    )
    print("| search | ending | probes | line | 95 % interval | contains what is expected |\n|---|---|---|---|---|---|")
    for number in range(lines):
        print(f"| {number + 1} | {' | '.join(_searched(fio, expected, seed=number + 1))} |", flush=True)


def _print_latencies(fio: str) -> None:
    print(f"latency in ms, limit {_SMALL.permits_per_second} reads per second, {_SMALL.runtime:g} s each\n")
    print("| load | percentile | M/D/1 | expected (90 % of trials) | measured |\n|---|---|---|---|---|")
    with TemporaryDirectory() as directory, throttled_device(Path(directory), _SMALL.permits_per_second) as disk:
        for load in _LOADS:
            measured = _measured(fio, disk, load)
            queue = Queue(load, _SMALL.permits_per_second)
            for percent in _PERCENTS:
                low, middle, high = (1000 * value for value in _SMALL.percentiles(load, float(percent)))
                of_queue = f"{1000 * queue.percentile(float(percent)):.0f}"
                expected = f"{middle:.0f} ({low:.0f} to {high:.0f})"
                print(f"| {load} | p{percent} | {of_queue} | {expected} | {measured[percent]:.1f} |", flush=True)


def _measured(fio: str, disk: Throttled, load: int) -> Mapping[str, float]:
    """Return percentiles of latency, in ms, that the product's command measures and its parser reads."""
    template = FioParameters.model_validate({"pattern": "randread", "blockSize": "4Ki", "ioDepth": _SMALL.depth})
    parameters = template.at_load(Vary.RATE, load)
    with TemporaryDirectory() as directory:
        work = Path(directory) / StepKind.MEASURE
        work.mkdir()
        context = StepContext(
            step=StepKind.MEASURE,
            target=VolumeTarget(kind=VolumeKind.DEVICE, path=str(disk.device), size=IMAGE_BYTES),
            timing=Timing(ramp_seconds=round(_SMALL.ramp), runtime_seconds=round(_SMALL.runtime)),
            seed=load,
            work_directory=str(work),
        )
        _prepare(parameters, replace(context, step=StepKind.PREPARE))
        arguments = FIO.command(parameters, context).argv[1:]
        command = ["sh", "-c", _ENTER, str(disk.cgroup / "cgroup.procs"), fio, *arguments]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
        files = {path.name: path.read_text() for path in work.iterdir()}
        output = Output(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, files=files)
        (operation,) = FIO.parse(parameters, context, output).operations
    histogram = Histogram.decode(operation.latency.histogram or "")
    return {percent: (histogram.percentile(float(percent)) or math.inf) / 1e6 for percent in _PERCENTS}


def _prepare(parameters: FioParameters, context: StepContext) -> None:
    """Write what the step before the measurement writes: the trace of arrivals."""
    directory = Path(context.prepared_directory)
    directory.mkdir()
    for name, lines in FIO.command(parameters, context).inputs.items():
        with (directory / name).open("w") as file:
            file.writelines(lines)


def _queue_line(throttle: Throttle) -> float:
    """Return the load at which the percentile of a queue M/D/1 is the objective."""
    low, high = 1.0, float(throttle.permits_per_second)
    while high - low > 1:
        middle = (low + high) / 2
        is_late = Queue(middle, throttle.permits_per_second).percentile(throttle.percent) > throttle.latency
        low, high = (low, middle) if is_late else (middle, high)
    return low


def _searched(fio: str, expected: float, *, seed: int) -> Iterator[str]:
    with TemporaryDirectory() as directory:
        line = line_of(found_line(Path(directory), fio, _PRECISION_PERCENT, seed))
    yield str(line.ending)
    yield str(line.probes)
    yield "none" if line.estimate is None else f"{line.estimate:.0f}"
    yield f"{line.low or 0:.0f} to {line.high or math.inf:.0f}"
    yield "yes" if (line.low or 0) <= expected <= (line.high or math.inf) else "no"


if __name__ == "__main__":
    main()
