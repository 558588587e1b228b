"""A measurement's logs -> what happened over time, if they agree with the totals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.sample import Cells, Gaps, LatencySlices, OperationSample
from plimsoll.tools.fio.command import LOG_MILLISECONDS, log_name
from plimsoll.tools.fio.gaps import JobCompletions, gaps_of
from plimsoll.tools.fio.latency import read_histogram
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.series import DIRECTIONS, SeriesError, Totals, cells_of, finest_log
from plimsoll.tools.fio.slices import JobLog, slices_of
from plimsoll.tools.reading import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Widths of the intervals of the logs that differ from run to run."""

    slice_seconds: int
    gap_milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """Adds to samples what the logs say.

    Attributes:
        files: name -> text.
        jobs: the document's, in the order of their logs.
        milliseconds: time that all jobs measured.
        offsets: milliseconds by which each job began before that; not above 0.

    """

    parameters: FioParameters
    files: Mapping[str, str]
    jobs: Sequence[Node]
    milliseconds: int
    offsets: Sequence[int]
    widths: Widths

    def add(self, sample: OperationSample) -> tuple[OperationSample, list[str]]:
        """Return the sample with what happened over time, and why any of it is missing. fio does not log syncs.

        Raises:
            OutputError: naming the document's field that is missing or broken.

        """
        if sample.operation is Operation.SYNC:
            return sample, []
        try:
            cells = self._cells(sample)
        except SeriesError as error:
            return sample, [f"no series, and so no latency over time, of {sample.operation} operations: {error}"]
        try:
            slices = self._slices(sample.operation, cells)
        except SeriesError as error:
            reason = f"no latency over time of {sample.operation} operations: {error}"
            return sample.model_copy(update={"cells": cells}), [reason]
        return sample.model_copy(update={"cells": cells, "slices": slices}), []

    def gaps(self, samples: Sequence[OperationSample]) -> tuple[Gaps | None, list[str]]:
        """Return when nothing completed, None if the log is not there or cannot be used, and why not.

        Output from before this log was asked for has none; that is no damage.
        """
        if any(log_name("lat", job) not in self.files for job in range(1, self.parameters.jobs + 1)):
            return None, []
        done = [sample for sample in samples if sample.operation is not Operation.SYNC]
        try:
            return gaps_of(self._job_completions(), done, self.milliseconds, self.widths.gap_milliseconds), []
        except SeriesError as error:
            return None, [f"no gaps between operations: {error}"]

    def _job_completions(self) -> Iterator[JobCompletions]:
        for job, text, offset in zip(self.jobs, self._logs("lat"), self.offsets, strict=True):
            ios = {operation: job.child(operation).child("lat_ns").count("N") for operation in DIRECTIONS}
            yield JobCompletions(text=text, offset=offset, ios=ios)

    def _cells(self, sample: OperationSample) -> Cells:
        if (spread := -min(self.offsets)) > LOG_MILLISECONDS // 4:
            raise SeriesError(f"the jobs began to measure {spread} ms apart")
        kind, unit = finest_log(self.parameters.block_size)
        totals = [self._totals(job.child(sample.operation).child("lat_ns").count("N")) for job in self.jobs]
        size = sample.bytes / sample.ios if sample.ios else 0.0
        return cells_of(zip(self._logs(kind), totals, strict=True), sample.operation, unit=unit, size=size)

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
