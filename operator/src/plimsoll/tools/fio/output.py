"""What fio left behind -> a measurement.

Taken from the document are totals, moments and histograms. fio's own minimum, mean and deviation of rates leave out
intervals without I/O, and its percentiles cannot be merged; they are never read.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from errno import errorcode

from plimsoll.api.names import Operation
from plimsoll.measure.latency import merge_samples
from plimsoll.measure.sample import MAX_NAME, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import DataSet, Output, OutputError
from plimsoll.tools.fio.command import DOCUMENT, JOB
from plimsoll.tools.fio.document import MAX_MILLISECONDS, Found, read_document
from plimsoll.tools.fio.fields import DIRECTION_FIELDS, JOB_FIELDS, LATENCY_FIELDS, ROOT_FIELDS, SYNC_FIELDS
from plimsoll.tools.fio.latency import read_latency
from plimsoll.tools.fio.logs import LogReader, Widths
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.target import bypasses_cache
from plimsoll.tools.reading import Node, bounded, lines

DIRECTIONS = (Operation.READ, Operation.WRITE, Operation.TRIM)
LATENCY_KINDS = ("lat_ns", "clat_ns", "slat_ns")
_NANOSECONDS = 10**6  # in a millisecond
_MAX_DIFFERENCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """When one job measured, in Unix milliseconds."""

    start: int
    end: int
    is_estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """What the jobs' spans have in common."""

    start: int
    milliseconds: int
    is_estimated: bool


def parse_measurement(parameters: FioParameters, target: DataSet, output: Output, widths: Widths) -> Measurement:
    """Read the output of a measurement whose logs had intervals of those widths.

    Raises:
        OutputError: there is no document, or a field is missing, not what it should be, or of an unknown layout.

    """
    found = read_output(output)
    jobs = jobs_named(found.root, JOB, count=parameters.jobs)
    spans = [_span(job, found.root.count("timestamp_ms", at_most=MAX_MILLISECONDS)) for job in jobs]
    window = _window(spans)
    samples = [_sample(jobs, operation, parameters) for operation in _operations(parameters, jobs)]
    reader = LogReader(
        parameters=parameters,
        files=output.files,
        jobs=jobs,
        milliseconds=window.milliseconds,
        offsets=[span.start - window.start for span in spans],
        widths=widths,
    )
    logged, gaps, remarks = reader.read(samples)
    has_series = any(sample.cells for sample in logged)
    warnings = (*found.warnings, *_other_jobs(found.root), *_unknown_fields(found.root), *_incomplete(jobs))
    return Measurement(
        tool="fio",
        tool_version=found.root.text("fio version").removeprefix("fio-")[:MAX_NAME],
        started_at=window.start * _NANOSECONDS,
        start_is_estimated=window.is_estimated,
        runtime=window.milliseconds * _NANOSECONDS if has_series else _own_nanoseconds(jobs, window),
        operations=tuple(logged),
        submitters=parameters.jobs,
        in_flight=parameters.in_flight,
        bypasses_cache=bypasses_cache(parameters, target),
        gaps=gaps,
        errors=bounded([*complaints(jobs, output, found.noise), *_untimed(jobs)]),
        warnings=bounded([*warnings, *_remarks(output, found.noise), *remarks]),
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
    """Yield operations that were begun and not completed: they failed, or were in flight at the end."""
    for operation in DIRECTIONS:
        issued, timed = _issued(jobs, operation), _timed(jobs, operation)
        if timed < issued:
            yield f"{issued - timed} of {issued} {operation} operations did not complete"


def _issued(jobs: Sequence[Node], operation: Operation) -> int:
    return sum(job.child(operation).count("total_ios") for job in jobs)


def _timed(jobs: Sequence[Node], operation: Operation) -> int:
    return sum(job.child(operation).child("lat_ns").count("N") for job in jobs)


def _lost(job: Node, operation: Operation, depth: int) -> int:
    """Return how many operations of a job are sure to be lost; of a job that timed none, another message says why.

    As many as the job keeps in flight may be left of those that were begun. Those that were in flight when the ramp
    ended are timed and do not count as begun; they can hide as many more.
    """
    issued, timed = _issued([job], operation), _timed([job], operation)
    return max(0, issued - timed - depth) if timed else 0


def _span(job: Node, printed_at: int) -> _Span:
    """Return when a job measured.

    `job_start` (fio 3.36) is the end of the ramp, and 0 if the job never ran. Without it, the start is that of a job
    which ended when the document was printed; fio 3.39 prints it a quarter of a second later.
    """
    runtime = _runtime(job)
    start = job.count("job_start", at_most=MAX_MILLISECONDS) if "job_start" in job.fields else 0
    estimate = max(0, printed_at - runtime)
    return _Span(start=start or estimate, end=(start or estimate) + runtime, is_estimated=not start)


def _runtime(job: Node) -> int:
    """Return for how many milliseconds a job measured, 0 if it never ran.

    Raises:
        OutputError: the directions' time is not that of the job, which 3.33 and 3.39 print a millisecond shorter.

    """
    whole = job.count("job_runtime", at_most=MAX_MILLISECONDS)
    longest = max(job.child(operation).count("runtime", at_most=MAX_MILLISECONDS) for operation in DIRECTIONS)
    if longest and abs(longest - whole) > _MAX_DIFFERENCE:
        raise OutputError(f"{job.path}.job_runtime is {whole} ms, but the longest runtime of a direction {longest} ms")
    return longest or whole


def _window(spans: Sequence[_Span]) -> _Window:
    start = max(span.start for span in spans)
    return _Window(
        start=start,
        milliseconds=max(0, min(span.end for span in spans) - start),
        is_estimated=any(span.is_estimated for span in spans),
    )


def _own_nanoseconds(jobs: Sequence[Node], window: _Window) -> int:
    """Return the runtime by which the I/O of all jobs has to be divided for their rates to add up.

    A job measures until its last operation completes, and the time that all jobs have in common ends with the first of
    them. Where nothing tells when the I/O was done, none of it can be left out: of slow operations every job would
    count one too many. A series is reconciled with that time.
    """
    done = [(sum(_timed([job], operation) for operation in DIRECTIONS), _runtime(job)) for job in jobs]
    rate = math.fsum(ios / runtime for ios, runtime in done if runtime)
    if not rate or not window.milliseconds:
        return window.milliseconds * _NANOSECONDS
    return round(sum(ios for ios, runtime in done if runtime) / rate * _NANOSECONDS)


def _operations(parameters: FioParameters, jobs: Sequence[Node]) -> Iterator[Operation]:
    """Yield what was asked for, and whatever else was done."""
    asked = {*parameters.pattern.operations, *((Operation.SYNC,) if parameters.fsync_every else ())}
    return (operation for operation in (*DIRECTIONS, Operation.SYNC) if operation in asked or _timed(jobs, operation))


def _sample(jobs: Sequence[Node], operation: Operation, parameters: FioParameters) -> OperationSample:
    """Add up what all jobs did.

    The number of operations is that of the timed ones: those that completed while measuring. `total_ios` counts those
    that were begun, so it lacks what was in flight when the ramp ended. `io_bytes` may have one block too many for each
    job: that of the operation whose completion ended the ramp.
    """
    directions = [job.child(operation) for job in jobs]
    for job in jobs:
        _check_bytes(job, operation, parameters.block_size)
    latency = _merged([read_latency(direction.child("lat_ns")) for direction in directions])
    if operation is Operation.SYNC:
        return OperationSample(operation=operation, ios=latency.count, bytes=0, latency=latency)
    return OperationSample(
        operation=operation,
        ios=latency.count,
        bytes=min(sum(direction.count("io_bytes") for direction in directions), latency.count * parameters.block_size),
        short_ios=sum(direction.count("short_ios") for direction in directions),
        dropped_ios=sum(direction.count("drop_ios") for direction in directions),
        lost_ios=sum(_lost(job, operation, parameters.io_depth) for job in jobs),
        latency=latency,
        submission_nanoseconds=None if parameters.is_synchronous else _submission(directions),
    )


def _check_bytes(job: Node, operation: Operation, block_size: int) -> None:
    """Refuse fewer bytes than a job's operations have, unless it says that one failed, was short or was dropped."""
    direction = job.child(operation)
    if operation is Operation.SYNC or job.count("error") or direction.count("short_ios") + direction.count("drop_ios"):
        return
    found, ios = direction.count("io_bytes"), direction.child("lat_ns").count("N")
    if found < ios * block_size:
        raise OutputError(f"{direction.path}.io_bytes is {found}, but {ios} operations of {block_size} bytes completed")


def _submission(directions: Sequence[Node]) -> float | None:
    """Return the mean time that submitting an operation took over all jobs, None if none was timed."""
    timed = [read_latency(direction.child("slat_ns")) for direction in directions]
    count = sum(latency.count for latency in timed)
    return math.fsum(latency.mean_nanoseconds * latency.count for latency in timed) / count if count else None


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
            for kind in LATENCY_KINDS:
                yield from direction.child(kind).unknown(LATENCY_FIELDS)
        yield from job.child(Operation.SYNC).unknown(SYNC_FIELDS)
