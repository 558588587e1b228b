"""A measurement's logs -> series, slices and gaps, if they agree with the totals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.sample import Cells, Gaps, LatencySlices, OperationSample
from plimsoll.measure.timeline import Interval
from plimsoll.tools.fio.command import LOG_MILLISECONDS, log_name
from plimsoll.tools.fio.gaps import JobCompletions, check_gaps, gaps_of, stretches_of
from plimsoll.tools.fio.latency import read_histogram
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.series import DIRECTIONS, SeriesError, Totals, cells_of, finest_log
from plimsoll.tools.fio.slices import JobLog, slices_of
from plimsoll.tools.reading import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Intervals of the logs that depend on the run."""

    slice_seconds: int
    gap_milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """Adds the content of the logs to samples.

    Attributes:
        files: name -> text.
        jobs: the document's jobs, in the order of their logs.
        milliseconds: length of the time in which all jobs measured.
        offsets: start of each job in milliseconds after the common start; never positive.

    """

    parameters: FioParameters
    files: Mapping[str, str]
    jobs: Sequence[JsonObject]
    milliseconds: int
    offsets: Sequence[int]
    widths: Widths

    def read(self, samples: Sequence[OperationSample]) -> tuple[list[OperationSample], Gaps | None, list[str]]:
        """Return the samples with series and slices, the gaps, and warnings about what is missing.

        fio does not log syncs.

        Raises:
            OutputError: a field of the document is missing or malformed.

        """
        gaps, warnings = self._gaps()
        idle = stretches_of(gaps) if gaps else []
        logged = list[OperationSample]()
        for sample in samples:
            with_series, more = self._with_series(sample, idle)
            logged.append(with_series)
            warnings += more
        try:
            if gaps:
                check_gaps(gaps, logged)
        except SeriesError as error:
            return logged, None, [*warnings, _without_gaps(error)]
        return logged, gaps, warnings

    def _with_series(self, sample: OperationSample, idle: Sequence[Interval]) -> tuple[OperationSample, list[str]]:
        if sample.operation is Operation.SYNC:
            return sample, []
        try:
            cells = self._cells(sample, idle)
        except SeriesError as error:
            return sample, [f"no series, and so no latency over time, of {sample.operation} operations: {error}"]
        try:
            slices = self._slices(sample.operation, cells)
        except SeriesError as error:
            reason = f"no latency over time of {sample.operation} operations: {error}"
            return sample.model_copy(update={"cells": cells}), [reason]
        return sample.model_copy(update={"cells": cells, "slices": slices}), []

    def _gaps(self) -> tuple[Gaps | None, list[str]]:
        """Return the gaps, or None and a warning; without one if the output is older than this log."""
        if any(log_name("lat", job) not in self.files for job in range(1, self.parameters.jobs + 1)):
            return None, []
        try:
            return gaps_of(self._job_completions(), self.milliseconds, self.widths.gap_milliseconds), []
        except SeriesError as error:
            return None, [_without_gaps(error)]

    def _job_completions(self) -> Iterator[JobCompletions]:
        for job, text, offset in zip(self.jobs, self._logs("lat"), self.offsets, strict=True):
            ios = {operation: job.child(operation).child("lat_ns").count("N") for operation in DIRECTIONS}
            yield JobCompletions(text=text, offset=offset, ios=ios)

    def _cells(self, sample: OperationSample, idle: Sequence[Interval]) -> Cells:
        if (spread := -min(self.offsets)) > LOG_MILLISECONDS // 4:
            raise SeriesError(f"the jobs began to measure {spread} ms apart")
        kind, unit = finest_log(self.parameters.block_size)
        totals = [self._totals(job.child(sample.operation).child("lat_ns").count("N")) for job in self.jobs]
        size = sample.bytes / sample.ios if sample.ios else 0.0
        logs = zip(self._logs(kind), totals, strict=True)
        return cells_of(logs, sample.operation, unit=unit, size=size, idle=idle)

    def _totals(self, ios: int) -> Totals:
        return Totals(ios=ios, milliseconds=self.milliseconds, in_flight=self.parameters.io_depth)

    def _slices(self, operation: Operation, cells: Cells) -> LatencySlices:
        totals = [read_histogram(job.child(operation).child("clat_ns")) for job in self.jobs]
        logs = [JobLog(text=text, total=total) for text, total in zip(self._logs("clat_hist"), totals, strict=True)]
        return slices_of(
            logs,
            operation,
            self.widths.slice_seconds,
            milliseconds=self.milliseconds,
            cells=cells,
            in_flight=self.parameters.io_depth * self.parameters.jobs,
        )

    def _logs(self, kind: str) -> list[str]:
        return [self._log(log_name(kind, job)) for job in range(1, self.parameters.jobs + 1)]

    def _log(self, name: str) -> str:
        if name not in self.files:
            raise SeriesError(f"{name} is missing")
        return self.files[name]


def _without_gaps(error: SeriesError) -> str:
    return f"no gaps between operations: {error}"
