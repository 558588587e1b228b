"""ioping's output -> a measurement.

The requests follow one another, so the times since the line before add up to the time at which each ended. The measured
part begins with the end of the ramp, or with that of the warm-up request if that is later, and lasts for the requested
runtime; it contains the requests that ended in it.

ioping does not print when it started. It did so after its launch, and early enough for its whole time to pass before
its end, which usually leaves a few milliseconds.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.measure.histogram import Histogram, bin_index, sample_of
from plimsoll.measure.sample import MAX_GAPS, Cells, Gaps, LatencySlices, Measurement, OperationSample
from plimsoll.tools.base import Timing
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.ioping.command import MAX_REQUESTS
from plimsoll.tools.ioping.parameters import IopingParameters
from plimsoll.tools.ioping.text import IopingReport, read_report
from plimsoll.tools.reading import bounded, excerpt

LEAST_GAP_MILLISECONDS = 40
"""Freezes count from 100 ms; their beginning and end are in shorter gaps."""

_SECOND = 10**9
_MILLISECOND = 10**6
_UNSURE = 250 * _MILLISECOND
"""Unknown time between launch and end in which the start need not be called an estimate."""
_PER_CELL = 10
"""Requests in a cell of a series at the least, where an interval is requested."""
_SLICES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The measured part: its edges in nanoseconds after ioping's start, and the requests that ended in it."""

    start: int
    end: int
    times: Sequence[int]
    ends: Sequence[int]

    @property
    def length(self) -> int:
        return self.end - self.start


def parse_measurement(parameters: IopingParameters, timing: Timing, output: Output) -> Measurement:
    """Read the output of a measurement.

    Raises:
        OutputError: a request failed, ioping was killed, lines are missing or contradict each other, or it ended before
            the end of its warm-up.

    """
    report = read_report(output)
    part = _measured(report, timing)
    between = output.finished_at - output.launched_at - report.total
    return Measurement(
        tool="ioping",
        tool_version="",
        started_at=output.launched_at + max(0, between) // 2 + part.start,
        start_is_estimated=not 0 <= between <= _UNSURE,
        runtime=part.length,
        operations=(_sample(parameters, part, timing),),
        in_flight=None if parameters.interval_milliseconds else 1,
        bypasses_cache=parameters.direct,
        gaps=_gaps(report, part, parameters.interval_milliseconds * _MILLISECOND),
        errors=bounded([*_errors(report, timing)]),
        warnings=bounded(excerpt(output.stderr)),
    )


def _measured(report: IopingReport, timing: Timing) -> _Part:
    warm = report.ends[0] - report.times[0]
    start = max(timing.ramp_seconds * _SECOND, warm)
    end = min(start + timing.runtime_seconds * _SECOND, report.total)
    if end <= start:
        raise OutputError(
            f"ioping ended after {report.total / _SECOND:.1f} s, before the end of its warm-up of "
            f"{start / _SECOND:.1f} s"
        )
    # A request that ends with the ramp is part of it.
    first, last = bisect_right(report.ends, start), bisect_right(report.ends, end)
    return _Part(start=start, end=end, times=report.times[first:last], ends=report.ends[first:last])


def _sample(parameters: IopingParameters, part: _Part, timing: Timing) -> OperationSample:
    return OperationSample(
        operation=parameters.operation.operation,
        ios=len(part.times),
        bytes=len(part.times) * parameters.size,
        latency=sample_of(part.times),
        cells=_cells(parameters, part),
        slices=_slices(part, max(1, timing.runtime_seconds // _SLICES) * _SECOND),
    )


def _histogram(times: Sequence[int]) -> Histogram:
    return Histogram(counts=Counter(map(bin_index, times)))


def _cells(parameters: IopingParameters, part: _Part) -> Cells:
    """Count the requests of each second, or of more seconds where only few requests are made."""
    width = max(1, -(-_PER_CELL * parameters.interval_milliseconds // 1000)) * _SECOND
    counts = Counter((end - part.start - 1) // width for end in part.ends)
    ios = [counts[index] for index in range(-(-part.length // width))]
    return Cells(width_nanoseconds=width, ios=tuple(ios), bytes=tuple(count * parameters.size for count in ios))


def _slices(part: _Part, width: int) -> LatencySlices:
    edges = [bisect_right(part.ends, part.start + index * width) for index in range(part.length // width + 1)]
    slices = (_histogram(part.times[first:last]).encode() for first, last in pairwise(edges))
    return LatencySlices(width_nanoseconds=width, histograms=tuple(slices))


def _gaps(report: IopingReport, part: _Part, interval: int) -> Gaps:
    """Return the longest waits for a request that was due, each between two completions."""
    found = ((-(-start // _MILLISECOND), end // _MILLISECOND) for start, end in _waits(report, part, interval))
    gaps = [(start, end - start) for start, end in found if end - start >= LEAST_GAP_MILLISECONDS]
    kept = sorted(sorted(gaps, key=lambda gap: (-gap[1], gap[0]))[:MAX_GAPS])
    return Gaps(
        width_nanoseconds=_MILLISECOND,
        starts=tuple(start for start, _ in kept),
        lengths=tuple(length for _, length in kept),
    )


def _waits(report: IopingReport, part: _Part, interval: int) -> Iterator[tuple[int, int]]:
    """Yield when each request was due, and when it ended, in nanoseconds after the start of the measured part.

    A request is due when the one before has ended, and not before the interval since that one's start is over. After
    the last request, another one was due until ioping ended.
    """
    due = report.ends[0] - report.times[0]
    for time, end in zip((*report.times, 0), (*report.ends, report.total), strict=True):
        start, stop = max(due, part.start), min(end, part.end)
        if stop > start:
            yield start - part.start, stop - part.start
        due = max(end, end - time + interval)


def _errors(report: IopingReport, timing: Timing) -> Iterator[str]:
    if len(report.times) >= MAX_REQUESTS:
        yield (
            f"ioping made the {MAX_REQUESTS} requests that it may make in {report.total / _SECOND:.1f} s; shorten "
            f"rampSeconds and runtimeSeconds, {timing.ramp_seconds + timing.runtime_seconds} s, or set "
            "intervalMilliseconds"
        )
