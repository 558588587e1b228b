"""fio's histogram log -> latency per slice of time, from which the steady state is judged.

A log line is `milliseconds, direction, block size, bin 0, ..., bin 1855`. The first operation that completes after the
end of a slice writes it. It contains the completion latencies, without submission, since the previous line (fio:
`add_clat_sample`, `flush_hist_samples`; observed with 3.33 and 3.39). Therefore:

1. The k-th line of a direction is slice k, whenever it was written: all operations in it except the last completed
   before the end of the slice. After a stall, each operation writes a line until the lines have caught up.
2. The first slice begins with the first completion, a little late, and so do all others.
3. The ramp is not logged. The operation whose completion ended it is in the first line and in the totals.
4. What completed after the last line is not logged. It is the difference between totals and lines, and belongs to the
   slice after the last line: any later completion would have written that line.

fio up to 3.16 wrote empty or impossible lines (with deep queues and with synchronous engines), unlike 3.33 and 3.39.
Such a log would be noticed: every line is compared with the totals, bin by bin, and with the series.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from plimsoll.api.names import Operation
from plimsoll.measure.histogram import BIN_COUNT, Histogram, bin_midpoint
from plimsoll.measure.sample import Cells, LatencySlices
from plimsoll.tools.fio.command import LOG_MILLISECONDS
from plimsoll.tools.fio.series import DIRECTIONS, MAX_JITTER, SeriesError

MAX_DEVIATION = 0.01
"""Maximum relative difference between lines and series, apart from a late beginning."""

# Parts of a slice. No slice begins before the first completion.
_MAX_LATE = 0.25
_MAX_SHORT = 0.05
_LINE = re.compile(r"(\d{1,15}), (\d), \d{1,15}, ((?:\d{1,15}, )*\d{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """One job's log, and the completion latencies of the job's whole measurement."""

    text: str
    total: Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    milliseconds: int
    histogram: Histogram


def slices_of(
    logs: Sequence[JobLog], operation: Operation, seconds: int, *, milliseconds: int, cells: Cells, in_flight: int
) -> LatencySlices:
    """Return the complete slices of one operation over all jobs; the last may be short by a twentieth.

    Args:
        logs: one for each job.
        operation: lines of others are skipped.
        seconds: width of a slice.
        milliseconds: measured time.
        cells: the series of the operation.
        in_flight: operations that can complete at the same time.

    Raises:
        SeriesError: a log is damaged, or disagrees with the totals or the series.

    """
    width = seconds * 1000
    number = int(milliseconds / width + _MAX_SHORT)
    jobs = [_slices(log, operation, width, number) for log in logs]
    merged = [Histogram.merge(parts) for parts in zip(*jobs, strict=True)]
    _check(merged, cells, seconds, in_flight)
    return LatencySlices(width_nanoseconds=width * 10**6, histograms=tuple(histogram.encode() for histogram in merged))


def _slices(log: JobLog, operation: Operation, width: int, number: int) -> list[Histogram]:
    lines = _lines(log.text, operation)
    _check_times(lines, width)
    if len(lines) > number + 1:
        raise SeriesError(f"the log has a line at {lines[-1].milliseconds} ms, after the end of the measurement")
    logged = [line.histogram for line in lines]
    return [*logged, _rest(log.total, Histogram.merge(logged)), *[Histogram(counts={})] * number][:number]


def _lines(log: str, operation: Operation) -> list[_Line]:
    found = []
    for number, text in enumerate(log.splitlines(), start=1):
        match = _LINE.fullmatch(text)
        if match is None:
            raise SeriesError(f"line {number} of the log is damaged")
        if int(match[2]) == DIRECTIONS[operation]:
            found.append(_Line(milliseconds=int(match[1]), histogram=_histogram(match[3], number)))
    return found


def _histogram(text: str, number: int) -> Histogram:
    bins = text.split(", ")
    if len(bins) != BIN_COUNT:
        raise SeriesError(f"line {number} of the log has {len(bins)} bins instead of {BIN_COUNT}")
    # Most of the 1856 bins are empty.
    histogram = Histogram(counts={index: int(count) for index, count in enumerate(bins) if count != "0"})
    if not histogram.total:
        raise SeriesError(f"line {number} of the log is empty, although an operation completed with it")
    return histogram


def _check_times(lines: Sequence[_Line], width: int) -> None:
    for before, after in pairwise(lines):
        if after.milliseconds < before.milliseconds:
            raise SeriesError(f"the log goes back from {before.milliseconds} ms to {after.milliseconds} ms")
    for index, line in enumerate(lines, start=1):
        if line.milliseconds < index * width:
            raise SeriesError(f"the log has {index} lines at {line.milliseconds} ms, but one is for {width} ms")


def _rest(total: Histogram, logged: Histogram) -> Histogram:
    """Return what completed after the last line."""
    for index, count in logged.counts.items():
        if count > (completed := total.counts.get(index, 0)):
            raise SeriesError(
                f"the log has {count} operations of about {bin_midpoint(index)} ns, but only {completed} completed"
            )
    return Histogram(counts={index: count - logged.counts.get(index, 0) for index, count in total.counts.items()})


def _check(slices: Sequence[Histogram], cells: Cells, seconds: int, in_flight: int) -> None:
    """Refuse slices whose operations completed at notably other times than those of the series."""
    shift = _MAX_LATE * seconds + MAX_JITTER / LOG_MILLISECONDS
    margin = shift * max(cells.ios, default=0.0) + in_flight
    for number, logged in enumerate(accumulate(histogram.total for histogram in slices), start=1):
        counted = math.fsum(cells.ios[: number * seconds])
        if abs(logged - counted) > margin + MAX_DEVIATION * counted:
            raise SeriesError(
                f"the log has {logged} operations in the first {number * seconds} s, but the series has {counted:.0f}"
            )
