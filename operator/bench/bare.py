"""fio without Plimsoll: the same arguments, the same file, and nobody around it."""

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from place import fio, fresh
from plimsoll.api.result import Trial
from plimsoll.measure.histogram import Histogram, bin_bounds
from plimsoll.measure.sample import Measurement
from plimsoll.plan.document import Point
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget

FIO = Fio()

_SLACK_SECONDS = 60
_NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one measurement gave; both kinds are calculated in the same way from the same quantities."""

    iops: float
    p99_nanoseconds: float


def figures_of(trial: Trial) -> Figures:
    """Return what a trial gave."""
    (operation,) = trial.operations
    assert trial.window is not None, "the trial has no window"
    return _figures(operation.ios / trial.window.seconds, [operation.latency.histogram])


def run_bare(point: Point, files: Sequence[Path], seeds: Sequence[int]) -> Figures:
    """Run the point's fio against files that are there, all at once."""
    numbers = range(len(files))
    with ThreadPoolExecutor(len(files)) as pool:
        measured = list(pool.map(partial(_run_one, point), numbers, files, seeds))
    rates = [measurement.operations[0].ios / measurement.runtime * _NANOSECONDS for measurement in measured]
    return _figures(sum(rates), [measurement.operations[0].latency.histogram for measurement in measured])


def _run_one(point: Point, number: int, file: Path, seed: int) -> Measurement:
    parameters = FioParameters.model_validate(point.parameters)
    directory = fresh(f"bare-{number}")
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
    return FIO.read(parameters, context, output)


def _files(directory: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def _figures(iops: float, histograms: Sequence[str | None]) -> Figures:
    texts = [histogram for histogram in histograms if histogram is not None]
    assert len(texts) == len(histograms), "fio gave no histogram"
    return Figures(iops=iops, p99_nanoseconds=_p99(Histogram.merge_texts(texts)))


def _p99(histogram: Histogram) -> float:
    """Return the percentile to less than a bin's width: what is compared here may differ by less than that."""
    below, wanted = 0, 0.99 * histogram.total
    for index, count in histogram.counts.items():
        if below + count >= wanted:
            lower, upper = bin_bounds(index)
            return lower + (upper - lower) * (wanted - below) / count
        below += count
    raise AssertionError("nothing was done")
