"""A measurement's logs -> series, slices and gaps, if they agree with the totals."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise, product

from plimsoll.api.json_reader import JsonNode
from plimsoll.api.names import Operation
from plimsoll.measure.histogram import BIN_COUNT, Histogram, bin_midpoint
from plimsoll.measure.sample import Cells, Gaps, LatencySlices, OperationSample
from plimsoll.measure.timeline import Interval, both, joined, length_of, without
from plimsoll.tools.base import Timing
from plimsoll.tools.fio.command import LOG_MILLISECONDS as WIDTH
from plimsoll.tools.fio.command import gap_milliseconds, log_name
from plimsoll.tools.fio.document import read_histogram
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.reading import MILLISECOND, cells_of_operations, longest_gaps

DIRECTIONS = {Operation.READ: 0, Operation.WRITE: 1, Operation.TRIM: 2}  # operation -> its number in a log
_MAX_RATE_DEVIATION = 0.005  # maximum relative error of the lines, which are then scaled to the total
_MAX_JITTER = WIDTH // 4  # maximum milliseconds between a line and the end of its interval
_RATE_LINE = re.compile(r"(\d{1,15}), (\d{1,15}), (\d)(?:,.*)?", re.ASCII)

_GAP_LINE = re.compile(r"(\d{1,13}), \d{1,20}, ([012])(?:,.*)?", re.ASCII)
_SLICE_LINE = re.compile(r"(\d{1,15}), (\d), \d{1,15}, ((?:\d{1,15}, )*\d{1,15})", re.ASCII)


class SeriesError(ValueError):
    """The logs cannot be reconciled with the totals; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The exact totals of one operation of one job."""

    ios: int  # completed operations
    milliseconds: int  # measured time
    in_flight: int  # operations that can complete at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompletions:
    """The completions of one job."""

    text: str  # its log
    offset: int  # start of the job in milliseconds after the common start of all jobs; never positive
    ios: Mapping[Operation, int]  # completed operations


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """Adds the content of the logs to samples."""

    parameters: FioParameters
    timing: Timing
    files: Mapping[str, str]  # name -> text
    jobs: Sequence[JsonNode]  # the document's jobs, in the order of their logs
    milliseconds: int  # length of the time in which all jobs measured
    offsets: Sequence[int]  # start of each job in milliseconds after the common start; never positive

    def read(self, samples: Sequence[OperationSample]) -> tuple[list[OperationSample], Gaps | None, list[str]]:
        """Return the samples with series and slices, except of syncs, the gaps, and warnings about what is missing."""
        gaps, idle, warnings = None, list[Interval](), list[str]()
        try:
            # Output that is older than this log has no gaps.
            if all(log_name("lat", job) in self.files for job in range(1, self.parameters.jobs + 1)):
                completions = [
                    JobCompletions(text=text, offset=offset, ios={name: completed(job, name) for name in DIRECTIONS})
                    for job, text, offset in zip(self.jobs, self._logs("lat"), self.offsets, strict=True)
                ]
                gaps = gaps_of(completions, self.milliseconds, gap_milliseconds(self.parameters, self.timing))
                pairs = zip(gaps.starts, gaps.lengths, strict=True)
                idle = [Interval(start=start, end=start + length) for start, length in pairs]
        except SeriesError as error:
            warnings.append(f"no gaps between operations: {error}")
        logged = [
            sample if sample.operation is Operation.SYNC else self._with_series(sample, idle, warnings)
            for sample in samples
        ]
        try:
            check_gaps(idle, logged)
        except SeriesError as error:
            return logged, None, [*warnings, f"no gaps between operations: {error}"]
        return logged, gaps, warnings

    def _with_series(self, sample: OperationSample, idle: Sequence[Interval], warnings: list[str]) -> OperationSample:
        operation, cells = sample.operation, None
        try:
            cells = self._cells(sample, idle)
            totals = [read_histogram(job[operation]["clat_ns"]) for job in self.jobs]
            slices = slices_of(
                zip(self._logs("clat_hist"), totals, strict=True),
                operation,
                self.timing.slice_seconds,
                milliseconds=self.milliseconds,
                cells=cells,
                in_flight=self.parameters.most_in_flight,
            )
        except SeriesError as error:
            what = "no latency over time" if cells else "no series, and so no latency over time,"
            warnings.append(f"{what} of {operation} operations: {error}")
            return sample.model_copy(update={"cells": cells})
        return sample.model_copy(update={"cells": cells, "slices": slices})

    def _cells(self, sample: OperationSample, idle: Sequence[Interval]) -> Cells:
        if (spread := -min(self.offsets)) > _MAX_JITTER:
            raise SeriesError(f"the jobs began to measure {spread} ms apart")
        sizes, depth = [*self.parameters.block_sizes], self.parameters.io_depth

        def read(kind: str, unit: float, size: float, done: Iterable[int], in_flight: int) -> Cells:
            totals = (Totals(ios=ios, milliseconds=self.milliseconds, in_flight=in_flight) for ios in done)
            logs = zip(self._logs(kind), totals, strict=True)
            return cells_of(logs, sample.operation, unit=unit, size=size, idle=idle)

        size = sample.bytes / sample.ios if sample.ios else 0.0
        cells = read(*finest_log(sizes), size, (completed(job, sample.operation) for job in self.jobs), depth)
        if len(sizes) == 1:
            return cells
        moved = (job[sample.operation]["io_bytes"].count() for job in self.jobs)
        return cells.model_copy(update={"bytes": read("bw", 1024, 1, moved, depth * max(sizes)).bytes})

    def _logs(self, kind: str) -> list[str]:
        names = [log_name(kind, job) for job in range(1, self.parameters.jobs + 1)]
        for name in names:
            if name not in self.files:
                raise SeriesError(f"{name} is missing")
        return [self.files[name] for name in names]


def completed(job: JsonNode, operation: Operation) -> int:
    """Return how many operations of one kind a job timed: those that completed during the measurement."""
    return job[operation]["lat_ns"]["N"].count()


def _matches(pattern: re.Pattern[str], lines: Iterable[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number and the fields of each line of a log."""
    for number, line in enumerate(lines, start=1):
        match = pattern.fullmatch(line)
        if match is None:
            raise SeriesError(f"line {number} of the log is damaged")
        yield number, match


def finest_log(block_sizes: Sequence[int]) -> tuple[str, float]:
    """Return the log to read, `bw` or `iops`, and the operations per second that one of its units represents."""
    size, *others = block_sizes
    is_exact = size >= 1024 and not others  # noqa: PLR2004 - `bw` is in KiB
    return ("bw", 1024 / size) if is_exact else ("iops", 1.0)


def cells_of(
    jobs: Iterable[tuple[str, Totals]], operation: Operation, *, unit: float, size: float, idle: Sequence[Interval] = ()
) -> Cells:
    """Return the series of one operation over all jobs; SeriesError if a log is damaged, or disagrees with its totals.

    A rate of 1 represents `unit` operations per second of `size` bytes. Nothing completed in the milliseconds `idle`.
    """
    series = []
    for log, totals in jobs:
        lines = [
            (int(match[1]), int(match[2]))
            for _, match in _matches(_RATE_LINE, map(str.strip, log.splitlines()))
            if int(match[3]) == DIRECTIONS[operation]
        ]
        series.append(_cells(lines, unit, totals, idle))
    ios = [math.fsum(counts) for counts in zip(*series, strict=True)]
    return cells_of_operations(ios, size, WIDTH * MILLISECOND)


def _cells(lines: Sequence[tuple[int, int]], unit: float, totals: Totals, idle: Sequence[Interval]) -> list[float]:
    """Return the cells of one job from its lines, each with its milliseconds and its rate."""
    number = -(-totals.milliseconds // WIDTH)
    if number > 200_000:  # noqa: PLR2004 - of a second each
        raise SeriesError(f"a runtime of {totals.milliseconds} ms is too long for a series")
    # Rounding costs up to one unit per line.
    allowed = len(lines) * unit
    try:
        cells, last = _counts(lines, unit, number)
        # An interval that ended well before fio's helper thread has a line if it had any I/O.
        closed = max(last, (totals.milliseconds - WIDTH // 10) // WIDTH)
        return _reconciled(cells, closed=closed, totals=totals, allowed=allowed)
    except SeriesError:
        for skips in (True, False):
            if (spread := _spread(lines, unit, totals, idle, skips=skips)) is not None:
                # fio may write the last line after the end.
                closed = min(lines[-1][0] // WIDTH, number)
                with suppress(SeriesError):
                    return _reconciled(spread, closed=closed, totals=totals, allowed=allowed)
        raise


def _spread(
    lines: Sequence[tuple[int, int]], unit: float, totals: Totals, idle: Sequence[Interval], *, skips: bool
) -> list[float] | None:
    """Spread lines evenly over their times, after idle intervals if fio `skips` these; None if that is impossible."""
    cells = [0.0] * -(-totals.milliseconds // WIDTH)
    before = 0
    for end, rate in lines:
        # No thread is early, and only the last line may come after the end.
        if end - before < WIDTH - _MAX_JITTER or before >= totals.milliseconds:
            return None
        while skips and end - before >= 2 * WIDTH - _MAX_JITTER:
            interval = Interval(start=before, end=before + WIDTH)
            # A gap may be a little shorter than it was.
            if sum(gap.clipped(interval) for gap in idle) < WIDTH - _MAX_JITTER:
                break
            before += WIDTH
        parts = without([Interval(start=before, end=min(end, totals.milliseconds))], idle)
        if not (time := length_of(parts)):
            return None
        count = (rate + 0.5) * unit * (end - before) / 1000
        before = end
        for part in parts:
            for cell in range(part.start // WIDTH, -(-part.end // WIDTH)):
                inside = part.clipped(Interval(start=cell * WIDTH, end=(cell + 1) * WIDTH))
                cells[cell] += count * inside / time
    # When fio ended, at most the next line was due.
    rest = without([Interval(start=min(before, totals.milliseconds), end=totals.milliseconds)], idle)
    return cells if lines and length_of(rest) <= WIDTH + _MAX_JITTER else None


def _counts(lines: Sequence[tuple[int, int]], unit: float, number: int) -> tuple[list[float], int]:
    """Return the operations of each interval, zero without a line, and the number of the last one with a line."""
    cells, before, last = [0.0] * number, 0, 0
    for time, rate in lines:
        slot = (time + WIDTH // 2) // WIDTH
        if abs(time - slot * WIDTH) > _MAX_JITTER:
            raise SeriesError(f"the line of the log at {time} ms does not lie on an interval of {WIDTH} ms")
        if slot == last or time <= before:
            raise SeriesError(f"the log has two lines for the interval that ends at {slot * WIDTH} ms")
        if slot > number:
            raise SeriesError(f"the log has a line at {slot * WIDTH} ms, after the end of the measurement")
        # Between neighbours the real distance is known; after a gap only the nominal one.
        milliseconds = time - before if slot == last + 1 else WIDTH
        # Half a unit compensates, on average, for rounding down.
        cells[slot - 1] = round((rate + 0.5) * unit * milliseconds / 1000)
        before, last = time, slot
    return cells, last


def _reconciled(cells: Sequence[float], *, closed: int, totals: Totals, allowed: float) -> list[float]:
    """Add unlogged operations after the `closed` cells, and scale the logged ones so that the sum is the total.

    The error of the lines may be up to `_MAX_RATE_DEVIATION`, or `allowed` operations if that is more.
    """
    if cells:
        # Those that completed in the ramp but were logged after it.
        first, *others = cells
        surplus = math.fsum(cells) - totals.ios - allowed
        cells = [first - min(max(0.0, surplus), totals.in_flight, first), *others]
    lengths = [min(WIDTH, totals.milliseconds - index * WIDTH) / WIDTH for index in range(closed, len(cells))]
    length, counted = math.fsum(lengths), math.fsum(cells)
    # The maximum plausible number of unlogged operations in the last cells together, at 1.5 times the highest rate.
    most: float = totals.ios
    if closed and length:
        most = max(0.0, 1.5 * max(cells) * length - math.fsum(cells[closed:])) + totals.in_flight
    tail = min(max(totals.ios - counted, 0.0), most) if length else 0.0
    rest = totals.ios - tail
    if abs(rest - counted) > max(_MAX_RATE_DEVIATION * totals.ios, allowed) or (rest > 0 and not counted):
        raise SeriesError(f"the log accounts for {counted + tail:.0f} of {totals.ios} operations")
    scale = rest / counted if counted else 0.0
    added = [*[0.0] * closed, *(tail * part / length for part in lengths)]
    return [cell * scale + more for cell, more in zip(cells, added, strict=True)]


def gaps_of(jobs: Iterable[JobCompletions], milliseconds: int, width: int) -> Gaps:
    """Return the times without completions of all jobs of a client; `width` is the log's interval in milliseconds."""
    idle = [Interval(start=0, end=milliseconds)]
    for job in jobs:
        end = milliseconds - job.offset
        times: dict[int, list[int]] = {number: [] for number in DIRECTIONS.values()}
        for _, match in _matches(_GAP_LINE, job.text.splitlines()):
            times[int(match[2])].append(int(match[1]))
        directions = (_between(times[number], job.ios[each], end, width) for each, number in DIRECTIONS.items())
        parts = reduce(both, directions, [Interval(start=0, end=end)])
        moved = [Interval(start=part.start + job.offset, end=part.end + job.offset) for part in parts]
        idle = both(idle, joined(moved))
    # Freezes count from 100 ms, and a gap is up to two intervals shorter than its freeze.
    least = max(40, width)
    gaps = [(stretch.start, stretch.length) for stretch in idle if stretch.length >= least]
    return longest_gaps(gaps, width * MILLISECOND)


def check_gaps(gaps: Sequence[Interval], samples: Sequence[OperationSample]) -> None:
    """Raise SeriesError if a series has operations in a gap (ms): a log that breaks off looks like a stall."""
    for gap, sample in product(gaps, samples):
        first = -(-(gap.start + _MAX_JITTER) // WIDTH)
        last = max(0, (gap.end - _MAX_JITTER) // WIDTH)
        for second, ios in enumerate(sample.cells.ios[first:last] if sample.cells else (), start=first):
            if ios >= 1:
                raise SeriesError(
                    f"the log has nothing from {gap.start} to {gap.end} ms, but the series has {ios:.0f} "
                    f"{sample.operation} operations in second {second}"
                )


def _between(times: Sequence[int], ios: int, end: int, width: int) -> list[Interval]:
    """Return the times in which no operation of one direction completed."""
    # The operation whose completion ended the ramp is logged, but not timed: a line does not prove an operation.
    if not ios:
        return [Interval(start=0, end=end)]
    if not times:
        raise SeriesError(f"the log is empty, but {ios} operations completed")
    if any(after < before for before, after in pairwise(times)):
        raise SeriesError("the log goes back in time")
    # fio may end a second after its last operation.
    if times[-1] > end + 1000:
        raise SeriesError(f"the log has a line at {times[-1]} ms, after the end of the measurement")
    edges = ((time // width + 1) * width for time in (0, *times))
    stretches = zip(edges, (min(time, end) for time in (*times, end)), strict=True)
    return [Interval(start=start, end=stop) for start, stop in stretches if stop > start]


def slices_of(
    logs: Iterable[tuple[str, Histogram]],
    operation: Operation,
    seconds: int,
    *,
    milliseconds: int,
    cells: Cells,
    in_flight: int,
) -> LatencySlices:
    """Return the complete slices of one operation over all jobs, of `seconds` each; the last may lack a twentieth.

    `logs` has each job's log and completion latencies, of `milliseconds`. SeriesError if they do not fit `cells`.
    """
    width = seconds * 1000
    number = int(milliseconds / width + 0.05)
    jobs = [_slices(log, total, operation, width, number) for log, total in logs]
    merged = [Histogram.merge(parts) for parts in zip(*jobs, strict=True)]
    # No slice begins before the first completion: it may be late by a quarter.
    shift = seconds / 4 + _MAX_JITTER / WIDTH
    margin = shift * max(cells.ios, default=0.0) + in_flight
    for count, logged in enumerate(accumulate(histogram.total for histogram in merged), start=1):
        counted = math.fsum(cells.ios[: count * seconds])
        if abs(logged - counted) > margin + counted / 100:
            raise SeriesError(
                f"the log has {logged} operations in the first {count * seconds} s, but the series has {counted:.0f}"
            )
    return LatencySlices(
        width_nanoseconds=width * MILLISECOND, histograms=tuple(histogram.encode() for histogram in merged)
    )


def _slices(log: str, total: Histogram, operation: Operation, width: int, number: int) -> list[Histogram]:
    times, logged = list[int](), list[Histogram]()
    for line, match in _matches(_SLICE_LINE, log.splitlines()):
        if int(match[2]) == DIRECTIONS[operation]:
            times.append(int(match[1]))
            logged.append(_histogram(match[3].split(", "), line))
    for before, after in pairwise(times):
        if after < before:
            raise SeriesError(f"the log goes back from {before} ms to {after} ms")
    for index, milliseconds in enumerate(times, start=1):
        if milliseconds < index * width:
            raise SeriesError(f"the log has {index} lines at {milliseconds} ms, but one is for {width} ms")
    if len(times) > number + 1:
        raise SeriesError(f"the log has a line at {times[-1]} ms, after the end of the measurement")
    merged = Histogram.merge(logged).counts
    for index, count in merged.items():
        if count > (completed := total.counts.get(index, 0)):
            raise SeriesError(
                f"the log has {count} operations of about {bin_midpoint(index)} ns, but only {completed} completed"
            )
    # What completed after the last line.
    rest = Histogram(counts={index: count - merged.get(index, 0) for index, count in total.counts.items()})
    return [*logged, rest, *[Histogram(counts={})] * number][:number]


def _histogram(bins: Sequence[str], line: int) -> Histogram:
    if len(bins) != BIN_COUNT:
        raise SeriesError(f"line {line} of the log has {len(bins)} bins instead of {BIN_COUNT}")
    # Most of the 1856 bins are empty.
    histogram = Histogram(counts={index: int(count) for index, count in enumerate(bins) if count != "0"})
    if not histogram.total:
        raise SeriesError(f"line {line} of the log is empty, although an operation completed with it")
    return histogram
