"""What fio left behind -> a measurement.

Taken from the document are totals, moments and histograms. fio's own minimum, mean and deviation of rates leave out
intervals without I/O, and its percentiles cannot be merged; they are never read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import errorcode

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.histogram import Histogram, UnknownBinError, index_of_midpoint
from plimsoll.measure.latency import merge_samples
from plimsoll.measure.sample import Cells, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Output, OutputError
from plimsoll.tools.fio.command import DOCUMENT, JOB, LOG_MILLISECONDS, log_name
from plimsoll.tools.fio.document import MAX_MILLISECONDS, Found, Node, lines, read_document, shown
from plimsoll.tools.fio.fields import DIRECTION_FIELDS, JOB_FIELDS, LATENCY_FIELDS, ROOT_FIELDS, SYNC_FIELDS
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.series import SeriesError, Totals, cells_of, finest_log

DIRECTIONS = (Operation.READ, Operation.WRITE, Operation.TRIM)
MAX_MESSAGES = 50
"""Of errors and of warnings; a broken device says the same thing very often."""

_NANOSECONDS = 10**6  # in a millisecond
_BIN = re.compile(r"\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """When one job measured, in Unix milliseconds."""

    start: int
    end: int
    is_estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """What the jobs' spans have in common.

    Attributes:
        spread: milliseconds from the first to the last start.

    """

    start: int
    milliseconds: int
    spread: int
    is_estimated: bool


def parse_measurement(parameters: FioParameters, output: Output) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: there is no document, or a field is missing, not what it should be, or of an unknown layout.

    """
    found = read_output(output)
    jobs = jobs_named(found.root, JOB, count=parameters.jobs)
    window = _window([_span(job, found.root.count("timestamp_ms", at_most=MAX_MILLISECONDS)) for job in jobs])
    samples = [_sample(jobs, operation, parameters.block_size) for operation in _operations(parameters, jobs)]
    reader = _SeriesReader(parameters=parameters, files=output.files, window=window)
    with_series = [reader.add(sample) for sample in samples]
    warnings = (*found.warnings, *_other_jobs(found.root), *_unknown_fields(found.root), *_incomplete(jobs))
    return Measurement(
        tool="fio",
        tool_version=found.root.text("fio version").removeprefix("fio-"),
        started_at=window.start * _NANOSECONDS,
        start_is_estimated=window.is_estimated,
        runtime=window.milliseconds * _NANOSECONDS,
        operations=tuple(sample for sample, _ in with_series),
        errors=bounded([*complaints(jobs, output, found.noise), *_untimed(jobs)]),
        warnings=bounded([*warnings, *_remarks(output, found.noise), *(text for _, text in with_series if text)]),
    )


def read_output(output: Output) -> Found:
    """Find the document among the files.

    Raises:
        OutputError: fio left none, or none that is complete.

    """
    if DOCUMENT not in output.files:
        said = "; ".join(lines(output.stderr))
        raise OutputError(f"fio ended with exit code {output.exit_code} and left no {DOCUMENT}: {said or 'no message'}")
    return read_document(output.files[DOCUMENT])


def jobs_named(root: Node, name: str, *, count: int) -> list[Node]:
    """Return the jobs of that name.

    Raises:
        OutputError: there are more or fewer than were asked for.

    """
    jobs = [job for job in root.children("jobs") if job.text("jobname") == name]
    if len(jobs) != count:
        raise OutputError(f"jobs has {len(jobs)} jobs named {name}, but {count} were started")
    return jobs


def complaints(jobs: Sequence[Node], output: Output, noise: Sequence[str]) -> list[str]:
    """Return the tool's own words on what went wrong: each job's error, and what it said if it failed.

    fio can fail without an error in any job, for instance when the target is not there.
    """
    said = [*noise, *lines(output.stderr)] if output.exit_code else []
    return [*_job_errors(jobs), *dict.fromkeys(said)]


def bounded(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the messages, each once, and no more than a person would read."""
    different = list(dict.fromkeys(messages))
    more = len(different) - MAX_MESSAGES
    return (*different[:MAX_MESSAGES], f"and {more} more") if more > 0 else tuple(different)


def _job_errors(jobs: Sequence[Node]) -> Iterator[str]:
    for number, job in enumerate(jobs, start=1):
        if error := job.count("error"):
            yield f"job {number} of {len(jobs)} failed: {errorcode.get(error, 'unknown')} (error {error})"
        if "total_err" in job.fields and (errors := job.count("total_err")):
            yield f"job {number} of {len(jobs)} counted {errors} errors"


def _remarks(output: Output, noise: Sequence[str]) -> list[str]:
    return [] if output.exit_code else [*noise, *lines(output.stderr)]


def _untimed(jobs: Sequence[Node]) -> Iterator[str]:
    """Yield operations that fio counted and did not time: during a ramp that never ended."""
    for operation in DIRECTIONS:
        issued, timed = _issued(jobs, operation), _timed(jobs, operation)
        if issued and not timed:
            yield f"none of {issued} {operation} operations was timed: fio ended before its ramp did"


def _incomplete(jobs: Sequence[Node]) -> Iterator[str]:
    """Yield operations that were begun and never completed: they failed."""
    for operation in DIRECTIONS:
        issued, timed = _issued(jobs, operation), _timed(jobs, operation)
        if timed < issued:
            yield f"{issued - timed} of {issued} {operation} operations did not complete"


def _issued(jobs: Sequence[Node], operation: Operation) -> int:
    return sum(job.child(operation).count("total_ios") for job in jobs)


def _timed(jobs: Sequence[Node], operation: Operation) -> int:
    return sum(job.child(operation).child("lat_ns").count("N") for job in jobs)


def _span(job: Node, printed_at: int) -> _Span:
    """Return when a job measured.

    `job_start` (fio 3.36) is the end of the ramp, and 0 if the job never ran. Without it, the start is that of a job
    which ended when the document was printed; fio 3.39 prints it a quarter of a second later.
    """
    runtimes = [job.child(operation).count("runtime", at_most=MAX_MILLISECONDS) for operation in DIRECTIONS]
    runtime = max(runtimes) or job.count("job_runtime", at_most=MAX_MILLISECONDS)
    start = job.count("job_start", at_most=MAX_MILLISECONDS) if "job_start" in job.fields else 0
    estimate = max(0, printed_at - runtime)
    return _Span(start=start or estimate, end=(start or estimate) + runtime, is_estimated=not start)


def _window(spans: Sequence[_Span]) -> _Window:
    start = max(span.start for span in spans)
    return _Window(
        start=start,
        milliseconds=max(0, min(span.end for span in spans) - start),
        spread=start - min(span.start for span in spans),
        is_estimated=any(span.is_estimated for span in spans),
    )


def _operations(parameters: FioParameters, jobs: Sequence[Node]) -> Iterator[Operation]:
    """Yield what was asked for, and whatever else was done."""
    asked = {*parameters.pattern.operations, *((Operation.SYNC,) if parameters.fsync_every else ())}
    return (operation for operation in (*DIRECTIONS, Operation.SYNC) if operation in asked or _timed(jobs, operation))


def _sample(jobs: Sequence[Node], operation: Operation, block_size: int) -> OperationSample:
    """Add up what all jobs did.

    The number of operations is that of the timed ones: those that completed while measuring. `total_ios` counts those
    that were begun, so it lacks what was in flight when the ramp ended. `io_bytes` may have one block too many for each
    job: that of the operation whose completion ended the ramp.
    """
    directions = [job.child(operation) for job in jobs]
    latency = _merged([_latency(direction.child("lat_ns")) for direction in directions])
    if operation is Operation.SYNC:
        return OperationSample(operation=operation, ios=latency.count, bytes=0, latency=latency)
    return OperationSample(
        operation=operation,
        ios=latency.count,
        bytes=min(sum(direction.count("io_bytes") for direction in directions), latency.count * block_size),
        short_ios=sum(direction.count("short_ios") for direction in directions),
        dropped_ios=sum(direction.count("drop_ios") for direction in directions),
        latency=latency,
    )


def _latency(node: Node) -> LatencySample:
    """Return one job's latency.

    Raises:
        OutputError: naming the field; also if the histogram does not hold exactly the timed operations.

    """
    count = node.count("N")
    if not count:
        return LatencySample(kind=LatencyKind.FULL)
    histogram = _histogram(node.child("bins"))
    if histogram.total != count:
        raise OutputError(f"{node.path}.bins holds {histogram.total} operations, but N is {count}")
    return LatencySample(
        kind=LatencyKind.FULL,
        count=count,
        mean_nanoseconds=node.number("mean"),
        standard_deviation_nanoseconds=node.number("stddev"),
        min_nanoseconds=node.count("min"),
        max_nanoseconds=node.count("max"),
        histogram=histogram.encode(),
    )


def _histogram(bins: Node) -> Histogram:
    counts: dict[int, int] = {}
    for key in bins.fields:
        try:
            # Text that is no number is not a bin either.
            index = index_of_midpoint(int(key) if _BIN.fullmatch(key) else -1)
        except UnknownBinError:
            raise OutputError(f"{bins.path}.{shown(key)} is not a bin of the known histogram layout") from None
        counts[index] = counts.get(index, 0) + bins.count(key)
    return Histogram(counts=counts)


def _merged(samples: Sequence[LatencySample]) -> LatencySample:
    latency = merge_samples(samples)
    return LatencySample(
        kind=latency.kind,
        count=latency.count,
        mean_nanoseconds=latency.mean_nanoseconds or 0.0,
        standard_deviation_nanoseconds=latency.standard_deviation_nanoseconds or 0.0,
        min_nanoseconds=latency.min_nanoseconds or 0,
        max_nanoseconds=latency.max_nanoseconds or 0,
        histogram=latency.histogram,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeriesReader:
    """Adds series from the logs to samples."""

    parameters: FioParameters
    files: Mapping[str, str]
    window: _Window

    def add(self, sample: OperationSample) -> tuple[OperationSample, str]:
        """Return the sample with its series, or without and the reason why. Syncs are not logged by fio."""
        if sample.operation is Operation.SYNC:
            return sample, ""
        try:
            return sample.model_copy(update={"cells": self._cells(sample)}), ""
        except SeriesError as error:
            return sample, f"no series of {sample.operation} operations: {error}"

    def _cells(self, sample: OperationSample) -> Cells:
        if self.window.spread > LOG_MILLISECONDS // 4:
            raise SeriesError(f"the jobs began to measure {self.window.spread} ms apart")
        kind, unit = finest_log(self.parameters.block_size)
        logs = [self._log(log_name(kind, job)) for job in range(1, self.parameters.jobs + 1)]
        totals = Totals(
            ios=sample.ios,
            bytes=sample.bytes,
            milliseconds=self.window.milliseconds,
            in_flight=self.parameters.io_depth * self.parameters.jobs,
        )
        return cells_of(logs, sample.operation, unit, totals)

    def _log(self, name: str) -> str:
        if name not in self.files:
            raise SeriesError(f"{name} is missing")
        return self.files[name]


def _other_jobs(root: Node) -> Iterator[str]:
    for job in root.children("jobs"):
        if (name := job.text("jobname")) != JOB:
            yield f"{job.path} is named {name} and was left out"


def _unknown_fields(root: Node) -> Iterator[str]:
    for path in _unknown_paths(root):
        yield f"{path} is not a field that is known; it was not read"


def _unknown_paths(root: Node) -> Iterator[str]:
    yield from root.unknown(ROOT_FIELDS)
    for job in root.children("jobs"):
        yield from job.unknown(JOB_FIELDS)
        for operation in DIRECTIONS:
            direction = job.child(operation)
            yield from direction.unknown(DIRECTION_FIELDS)
            yield from direction.child("lat_ns").unknown(LATENCY_FIELDS)
        yield from job.child(Operation.SYNC).unknown(SYNC_FIELDS)
