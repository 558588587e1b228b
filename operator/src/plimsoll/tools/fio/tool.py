"""fio as a tool: its output -> a measurement, and its status lines -> live rates."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.api.json_reader import JsonNode, OutputError
from plimsoll.api.names import Layer, Operation
from plimsoll.api.status import LiveRate
from plimsoll.measure.histogram import merge_latencies
from plimsoll.measure.sample import MAX_NAME, LatencySample, Measurement, OperationSample
from plimsoll.tools.base import Command, Output, StepContext, StepKind, Tool
from plimsoll.tools.fio.command import JOB, data_set, measure_command, trace_command, work_bytes
from plimsoll.tools.fio.document import MAX_MILLISECONDS, complaints, jobs_named, read_latency, read_output
from plimsoll.tools.fio.logs import DIRECTIONS, LogReader, completed
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.rules import SEARCHED_DEPTHS
from plimsoll.tools.reading import MILLISECOND, bounded, excerpt
from plimsoll.tools.target import ImageTarget, TargetKind

EXACT_DEPTHS = (1, *SEARCHED_DEPTHS)  # depths of which fio reports how often they were full
_STATUS = re.compile(
    r"Jobs: \d+ \(f=\d+\)[^\[\]]*: \[(?P<jobs>[^\[\]]*)\]\[[^\[\]]*\]"
    r"(?:\[(?P<bytes>[^\[\]]*)\]\[(?P<iops>[^\[\]]*) IOPS\])?\[eta [^\[\]]*\] *",
    re.ASCII,
)
_VALUE = re.compile(
    r"(?P<letter>[rwt])=(?P<number>\d{1,9}(?:\.\d{1,9})?)(?P<prefix>[kKMGTP]?)(?P<binary>i?)(?:B/s)?", re.ASCII
)
# States of jobs that measure or have measured. Any other state precedes the measurement: `/` is the ramp.
_RUNNING, _OVER = frozenset("RrWwMmDd"), frozenset("FfE_X")
_RAMP_STEP_SINCE = (3, 42)  # since then, a helper thread ends the ramp, not the operation that completes after it
_RAMP_STEP = 1000 * MILLISECOND  # between two looks of that thread (`RAMP_PERIOD_CHECK_MSEC`), maybe just too early
_PREFIXES = ("", "k", "M", "G", "T", "P")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The time in which one job measured, in Unix milliseconds."""

    start: int
    end: int
    is_estimated: bool

    @property
    def milliseconds(self) -> int:
        return max(0, self.end - self.start)


class Fio(Tool[FioParameters]):
    """One fio process per client, on its own volume or image. The prefill writes the data for reads."""

    key: ClassVar[str] = "fio"
    program: ClassVar[str] = "fio"
    parameters = FioParameters
    layer: ClassVar[Layer] = Layer.RBD
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    opens_images: ClassVar[bool] = True
    least_runtime_seconds: ClassVar[int] = 3

    def steps(self, parameters: FioParameters) -> Sequence[StepKind]:
        """Return the steps: random arrivals are written before they are replayed."""
        return (StepKind.PREPARE, StepKind.MEASURE) if parameters.is_open_loop else (StepKind.MEASURE,)

    def command(self, parameters: FioParameters, context: StepContext) -> Command:
        return (trace_command if context.step is StepKind.PREPARE else measure_command)(parameters, context)

    def ends_when_done(self, parameters: FioParameters) -> bool:
        return parameters.until is not None

    def live(self, parameters: FioParameters, printed: str) -> tuple[LiveRate, ...]:
        """Return the rates in the last status line; empty if it or the one before, as of the ramp, is not measured."""
        *ended, _ = re.split(r"[\r\n]+", printed)
        matches = [match for match in map(_STATUS.fullmatch, ended[-2:]) if match]
        # The states of jobs, such as `m(2),f(1)`: all have begun to measure, and one still does.
        states = [set(re.sub(r"\(\d+\)|,", "", match["jobs"])) for match in matches]
        if len(states) < 2 or not all(jobs & _RUNNING and jobs <= _RUNNING | _OVER for jobs in states):  # noqa: PLR2004
            return ()
        # A line without rates means no I/O. Operations are named by their first letter.
        bytes_per_second, iops = (_values(matches[-1][name] or "") for name in ("bytes", "iops"))
        return tuple(
            LiveRate(
                operation=operation,
                iops=iops.get(operation[0], 0.0),
                bytes_per_second=round(bytes_per_second.get(operation[0], 0.0)),
            )
            for operation in parameters.pattern.operations
        )

    def parse(self, parameters: FioParameters, context: StepContext, output: Output) -> Measurement:
        (root, noise), target = read_output(output), data_set(context)
        jobs = jobs_named(root, JOB, count=parameters.jobs)
        spans = [_span(job, root["timestamp_ms"].count(at_most=MAX_MILLISECONDS)) for job in jobs]
        common = _Span(
            start=max(span.start for span in spans),
            end=min(span.end for span in spans),
            is_estimated=any(span.is_estimated for span in spans),
        )
        # The requested operations, and any others that completed.
        requested = {*parameters.pattern.operations, *((Operation.SYNC,) if parameters.fsync_every else ())}
        samples = [
            _sample(jobs, operation, parameters)
            for operation in (*DIRECTIONS, Operation.SYNC)
            if operation in requested or _timed(jobs, operation)
        ]
        reader = LogReader(
            parameters=parameters,
            timing=context.timing,
            files=output.files,
            jobs=jobs,
            milliseconds=common.milliseconds,
            offsets=[span.start - common.start for span in spans],
        )
        logged, gaps, log_warnings = reader.read(samples)
        version = root["fio version"].line().removeprefix("fio-")[:MAX_NAME]
        # A version such as `3.42` or `3.42-12-gabcdef` may end its ramp late; unknown ones do not.
        release = re.match(r"(\d{1,4})\.(\d{1,4})", version, re.ASCII)
        looks_seldom = release is not None and (int(release[1]), int(release[2])) >= _RAMP_STEP_SINCE
        has_series = any(sample.cells for sample in logged)
        # The CPU time of the busiest job's thread is not the most that it can do where librbd has threads of its own, a
        # synchronous engine submits one operation after the other, or no number of operations is kept in flight.
        cpu_times = ((job.number_or_none("usr_cpu"), job.number_or_none("sys_cpu")) for job in jobs)
        percents = [user + system for user, system in cpu_times if user is not None and system is not None]
        is_limiting = not (isinstance(target, ImageTarget) or parameters.is_synchronous or parameters.in_flight is None)
        counts = {operation: (_issued(jobs, operation), _timed(jobs, operation)) for operation in DIRECTIONS}
        untimed = [
            f"none of {issued} {operation} operations was timed: fio ended before its ramp did"
            for operation, (issued, timed) in counts.items()
            if issued and not timed
        ]
        # They failed, or were in flight at the end.
        unfinished = [
            f"{issued - timed} of {issued} {operation} operations did not complete"
            for operation, (issued, timed) in counts.items()
            if timed < issued
        ]
        noted = [] if output.exit_code else [*noise, *excerpt(output.stderr)]
        return Measurement(
            tool_version=version,
            started_at=common.start * MILLISECOND,
            start_is_estimated=common.is_estimated,
            ramp_step=_RAMP_STEP if context.timing.ramp_seconds and looks_seldom else 0,
            runtime=common.milliseconds * MILLISECOND if has_series else _effective_runtime(jobs, common),
            operations=tuple(logged),
            submitters=parameters.jobs,
            thread_percent=max(percents, default=None) if is_limiting else None,
            in_flight=parameters.in_flight,
            depth_full_share=depth_full_share(jobs, parameters.io_depth),
            work_bytes=work_bytes(parameters, target),
            bypasses_cache=not target.cache if isinstance(target, ImageTarget) else parameters.direct_io,
            gaps=gaps,
            errors=bounded([*complaints(jobs, output, noise), *untimed]),
            warnings=bounded([*unfinished, *noted, *log_warnings]),
        )


def depth_full_share(jobs: Sequence[JsonNode], depth: int) -> float | None:
    """Return the share of submissions that filled the depth, 0 to 1; None if fio does not report it for that depth."""
    if depth not in EXACT_DEPTHS:
        return None
    bucket = str(depth) if depth < EXACT_DEPTHS[-1] else f">={depth}"
    submitted = [sum(_issued([job], operation) for operation in DIRECTIONS) for job in jobs]
    if not any(submitted):
        return None
    filled = (ios * job["iodepth_level"][bucket].number() / 100 for job, ios in zip(jobs, submitted, strict=True))
    # Buckets are percentages of a total that lacks submissions at the end of the ramp.
    return min(1.0, math.fsum(filled) / sum(submitted))


def _issued(jobs: Sequence[JsonNode], operation: Operation) -> int:
    return sum(job[operation]["total_ios"].count() for job in jobs)


def _timed(jobs: Sequence[JsonNode], operation: Operation) -> int:
    return sum(completed(job, operation) for job in jobs)


def _span(job: JsonNode, printed_at: int) -> _Span:
    runtime = _runtime(job)
    start = job["job_start"].count(at_most=MAX_MILLISECONDS) if "job_start" in job else 0
    # Before fio 3.36, it is assumed to end when the document is printed.
    estimate = max(0, printed_at - runtime)
    return _Span(start=start or estimate, end=(start or estimate) + runtime, is_estimated=not start)


def _runtime(job: JsonNode) -> int:
    """Return the milliseconds that a job measured; OutputError if its directions differ from it by over a second."""
    whole = job["job_runtime"].count(at_most=MAX_MILLISECONDS)
    longest = max(job[operation]["runtime"].count(at_most=MAX_MILLISECONDS) for operation in DIRECTIONS)
    if longest and abs(longest - whole) > 1000:  # noqa: PLR2004 - a second
        raise OutputError(f"{job.path}.job_runtime is {whole} ms, but the longest runtime of a direction {longest} ms")
    return longest or whole


def _effective_runtime(jobs: Sequence[JsonNode], common: _Span) -> int:
    """Return the nanoseconds by which all I/O is divided without a series: some completed after the common time."""
    done = [(sum(_timed([job], operation) for operation in DIRECTIONS), _runtime(job)) for job in jobs]
    rate = math.fsum(ios / runtime for ios, runtime in done if runtime)
    if not rate or not common.milliseconds:
        return common.milliseconds * MILLISECOND
    return round(sum(ios for ios, runtime in done if runtime) / rate * MILLISECOND)


def _sample(jobs: Sequence[JsonNode], operation: Operation, parameters: FioParameters) -> OperationSample:
    """Add up one operation over all jobs: those that were timed, which completed during the measurement."""
    # `total_ios` counts issued operations, without the ones in flight at the end of the ramp. `io_bytes` may contain a
    # block of the ramp per job.
    directions = [job[operation] for job in jobs]
    for job, direction in zip(jobs, directions, strict=True) if operation is not Operation.SYNC else ():
        if job["error"].count() or direction["short_ios"].count() + direction["drop_ios"].count():
            continue
        done, ios, size = direction["io_bytes"].count(), completed(job, operation), min(parameters.block_sizes)
        if done < ios * size:
            raise OutputError(
                f"{direction.path}.io_bytes is {done}, but by lat_ns.N {ios} operations of {size} bytes completed"
            )
    merged = merge_latencies([read_latency(direction["lat_ns"]) for direction in directions])
    latency = LatencySample(
        kind=merged.kind,
        count=merged.count,
        mean_nanoseconds=merged.mean_nanoseconds or 0.0,
        standard_deviation_nanoseconds=merged.standard_deviation_nanoseconds,
        min_nanoseconds=merged.min_nanoseconds or 0,
        max_nanoseconds=merged.max_nanoseconds or 0,
        histogram=merged.histogram,
    )
    if operation is Operation.SYNC:
        return OperationSample(operation=operation, ios=latency.count, bytes=0, latency=latency)
    # Up to the depth, issued operations may still be in flight at the end. Those in flight at the end of the ramp are
    # timed but not issued, so they can hide as many more. A job that timed none is an error.
    counts = ((_issued([job], operation), _timed([job], operation)) for job in jobs)
    moved = sum(direction["io_bytes"].count() for direction in directions)
    submissions = [] if parameters.is_synchronous else [read_latency(direction["slat_ns"]) for direction in directions]
    return OperationSample(
        operation=operation,
        ios=latency.count,
        bytes=min(moved, latency.count * max(parameters.block_sizes)),
        short_ios=sum(direction["short_ios"].count() for direction in directions),
        dropped_ios=sum(direction["drop_ios"].count() for direction in directions),
        lost_ios=sum(max(0, issued - timed - parameters.io_depth) for issued, timed in counts if timed),
        latency=latency,
        submission_nanoseconds=merge_latencies(submissions).mean_nanoseconds,
    )


def _values(text: str) -> dict[str, float]:
    """Return letter -> value for a list such as `r=96.1MiB/s,w=39.1MiB/s` or `r=24.6k,w=9997`."""
    values = {}
    for value in text.split(","):
        if match := _VALUE.fullmatch(value):
            power = _PREFIXES.index(match["prefix"].replace("K", "k"))
            values[match["letter"]] = float(match["number"]) * float((1024 if match["binary"] else 1000) ** power)
    return values
