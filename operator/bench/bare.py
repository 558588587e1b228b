"""fio without Plimsoll: the same arguments, the same file, and nobody around it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from place import fio, fresh
from plimsoll.api.result import Trial
from plimsoll.measure.histogram import Histogram, bin_bounds
from plimsoll.plan.document import Point
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import FIO
from plimsoll.tools.target import VolumeKind, VolumeTarget

_SLACK_SECONDS = 60
_NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one measurement gave; both kinds are calculated in the same way from the same quantities."""

    iops: float
    p99_nanoseconds: float


def figures_of(trial: Trial) -> Figures:
    """Return what a trial with one client gave."""
    (operation,) = trial.operations
    assert trial.window is not None, "the trial has no window"
    return _figures(operation.ios, trial.window.seconds, operation.latency.histogram)


def run_bare(point: Point, file: Path, seed: int) -> Figures:
    """Run the point's fio against a file that is there."""
    parameters = FioParameters.model_validate(point.parameters)
    directory = fresh("bare")
    context = StepContext(
        step=StepKind.MEASURE,
        target=VolumeTarget(kind=VolumeKind.FILE, path=str(file), size=file.stat().st_size),
        timing=Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds),
        seed=seed,
        work_directory=str(directory),
    )
    argv = FIO.command(parameters, context).argv
    limit = point.ramp_seconds + point.runtime_seconds + _SLACK_SECONDS
    done = subprocess.run([fio(), *argv[1:]], capture_output=True, text=True, check=True, timeout=limit, cwd=directory)
    output = Output(exit_code=0, stdout=done.stdout, stderr=done.stderr, files=_files(directory))
    measurement = FIO.read(parameters, context, output)
    (sample,) = measurement.operations
    return _figures(sample.ios, measurement.runtime / _NANOSECONDS, sample.latency.histogram)


def _files(directory: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def _figures(ios: int, seconds: float, histogram: str | None) -> Figures:
    assert histogram is not None, "fio gave no histogram"
    return Figures(iops=ios / seconds, p99_nanoseconds=_p99(Histogram.decode(histogram)))


def _p99(histogram: Histogram) -> float:
    """Return the percentile to less than a bin's width: what is compared here may differ by less than that."""
    below, wanted = 0, 0.99 * histogram.total
    for index, count in histogram.counts.items():
        if below + count >= wanted:
            lower, upper = bin_bounds(index)
            return lower + (upper - lower) * (wanted - below) / count
        below += count
    raise AssertionError("nothing was done")
