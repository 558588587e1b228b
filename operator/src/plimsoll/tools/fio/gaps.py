"""fio's averaged log of latency -> when nothing completed.

A log line is `milliseconds, latency, direction, ...`. It is written with the first operation of its direction that
completes after an interval of width W is over; intervals lie on multiples of W after the end of the ramp, and the next
one to be written begins with the line (fio: `add_log_sample`; so seen with 3.39). Therefore:

1. Between the first multiple of W after a line and the next line nothing completed: it would have written that line.
2. fio writes one more line at its end, for what completed since the last one. That lies in the last one's interval, so
   the same holds before this line.
3. A line has the time of a completion, not of a helper's waking up: it can be trusted however busy the machine is, and
   also if fio itself was stopped.

Nothing is logged during the ramp, nor of syncs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from plimsoll.api.names import Operation
from plimsoll.measure.sample import MAX_GAPS, Gaps, OperationSample
from plimsoll.measure.stretches import both, joined
from plimsoll.measure.window import Interval
from plimsoll.tools.fio.command import LOG_MILLISECONDS
from plimsoll.tools.fio.series import DIRECTIONS, MAX_JITTER, SeriesError

LEAST_MILLISECONDS = 40
"""Of a gap. Freezes are looked for from 100 ms on, and a gap is shorter than its freeze by up to two intervals."""
_LATE = 1000
"""Milliseconds by which fio's own end may lie after that of the last operation."""
_LINE = re.compile(r"(\d{1,13}), \d{1,20}, (\d)(?:,.*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompletions:
    """What one job left.

    Attributes:
        text: of its log.
        offset: milliseconds from when all jobs measured to when this one began; not above 0.
        ios: operations that it completed.

    """

    text: str
    offset: int
    ios: Mapping[Operation, int]


def gaps_of(jobs: Iterable[JobCompletions], milliseconds: int, width: int) -> Gaps:
    """Return when no job completed anything.

    Args:
        jobs: all of a client.
        milliseconds: time that all jobs measured.
        width: milliseconds of an interval of the log.

    Raises:
        SeriesError: a log is damaged, or disagrees with its job's totals.

    """
    whole = [Interval(start=0, end=milliseconds)]
    idle = reduce(both, (_idle(job, milliseconds, width) for job in jobs), whole)
    told = (stretch for stretch in idle if stretch.length >= max(LEAST_MILLISECONDS, width))
    longest = sorted(told, key=lambda stretch: (-stretch.length, stretch.start))[:MAX_GAPS]
    kept = sorted(longest, key=lambda stretch: stretch.start)
    return Gaps(
        width_nanoseconds=width * 10**6,
        starts=tuple(stretch.start for stretch in kept),
        lengths=tuple(stretch.length for stretch in kept),
    )


def check_gaps(gaps: Gaps, samples: Sequence[OperationSample]) -> None:
    """Compare gaps with the series: a log that breaks off between two lines looks like a stall.

    Raises:
        SeriesError: the series has operations there.

    """
    for stretch in stretches_of(gaps):
        _check(stretch, samples)


def stretches_of(gaps: Gaps) -> list[Interval]:
    """Return the gaps, in milliseconds after the start."""
    pairs = zip(gaps.starts, gaps.lengths, strict=True)
    return [Interval(start=start, end=start + length) for start, length in pairs]


def _idle(job: JobCompletions, milliseconds: int, width: int) -> list[Interval]:
    """Return when one job completed nothing, on the clock of all."""
    end = milliseconds - job.offset
    times = _times(job.text)
    whole = [Interval(start=0, end=end)]
    idle = reduce(both, (_between(times[way], job.ios[way], end, width) for way in DIRECTIONS), whole)
    moved = [Interval(start=part.start + job.offset, end=part.end + job.offset) for part in idle]
    return both(joined(moved), [Interval(start=0, end=milliseconds)])


def _times(text: str) -> Mapping[Operation, list[int]]:
    """Return the times of the lines of each direction."""
    by_number: dict[str, list[int]] = {str(number): [] for number in DIRECTIONS.values()}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in by_number:
            raise SeriesError(f"line {number} of the log is damaged")
        by_number[match[2]].append(int(match[1]))
    return {operation: by_number[str(number)] for operation, number in DIRECTIONS.items()}


def _between(times: Sequence[int], ios: int, end: int, width: int) -> list[Interval]:
    """Return when no operation of one direction completed."""
    # The operation whose completion ended the ramp is logged, but not timed: a line alone is nothing done.
    if not ios:
        return [Interval(start=0, end=end)]
    if not times:
        raise SeriesError(f"the log is empty, but {ios} operations were done")
    if any(after < before for before, after in pairwise(times)):
        raise SeriesError("the log goes back in time")
    if times[-1] > end + _LATE:
        raise SeriesError(f"the log has a line at {times[-1]} ms, when measuring had ended")
    edges = ((time // width + 1) * width for time in (0, *times))
    stretches = zip(edges, (min(time, end) for time in (*times, end)), strict=True)
    return [Interval(start=start, end=stop) for start, stop in stretches if stop > start]


def _check(stretch: Interval, samples: Iterable[OperationSample]) -> None:
    """Refuse a gap in which the series has operations, but for what its lines may be beside their intervals."""
    for sample in samples:
        if sample.cells is None:
            continue
        first = -(-(stretch.start + MAX_JITTER) // LOG_MILLISECONDS)
        last = (stretch.end - MAX_JITTER) // LOG_MILLISECONDS
        for second in range(first, min(last, len(sample.cells.ios))):
            if (ios := sample.cells.ios[second]) >= 1:
                raise SeriesError(
                    f"the log has nothing from {stretch.start} to {stretch.end} ms, but the series {ios:.0f} "
                    f"{sample.operation} operations in second {second}"
                )
