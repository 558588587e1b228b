"""fio's averaged latency log -> the times without completions.

A log line is `milliseconds, latency, direction, ...`. The first operation of its direction that completes after an
interval of width W writes it. Intervals lie on multiples of W after the end of the ramp, and the next interval begins
with the line (fio: `add_log_sample`; observed with 3.39). Therefore:

1. Nothing completed between the first multiple of W after a line and the next line: it would have written that line.
2. At its end, fio writes one more line for what completed since the last one. Those completions lie in the last line's
   interval, so the same holds before this line.
3. A line has the time of a completion, not of a helper thread's wake-up, so it is reliable on a busy machine, and also
   if fio itself was stopped.

fio logs neither the ramp nor syncs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product

from plimsoll.api.names import Operation
from plimsoll.measure.sample import MAX_GAPS, Gaps, OperationSample
from plimsoll.measure.timeline import Interval, both, joined
from plimsoll.tools.fio.command import LOG_MILLISECONDS
from plimsoll.tools.fio.series import DIRECTIONS, MAX_JITTER, SeriesError

LEAST_MILLISECONDS = 40
"""Minimum length of a gap. Freezes count from 100 ms, and a gap is up to two intervals shorter than its freeze."""
_LATE = 1000
"""Milliseconds by which fio may end after its last operation."""
_LINE = re.compile(r"(\d{1,13}), \d{1,20}, (\d)(?:,.*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompletions:
    """The completions of one job.

    Attributes:
        text: its log.
        offset: start of the job in milliseconds after the common start of all jobs; never positive.
        ios: completed operations.

    """

    text: str
    offset: int
    ios: Mapping[Operation, int]


def gaps_of(jobs: Iterable[JobCompletions], milliseconds: int, width: int) -> Gaps:
    """Return the times in which no job completed anything.

    Args:
        jobs: all jobs of a client.
        milliseconds: length of the time in which all jobs measured.
        width: interval of the log in milliseconds.

    Raises:
        SeriesError: a log is damaged, or disagrees with its job's totals.

    """
    whole = [Interval(start=0, end=milliseconds)]
    idle = reduce(both, (_idle(job, milliseconds, width) for job in jobs), whole)
    gaps = (stretch for stretch in idle if stretch.length >= max(LEAST_MILLISECONDS, width))
    longest = sorted(gaps, key=lambda stretch: (-stretch.length, stretch.start))[:MAX_GAPS]
    kept = sorted(longest, key=lambda stretch: stretch.start)
    return Gaps(
        width_nanoseconds=width * 10**6,
        starts=tuple(stretch.start for stretch in kept),
        lengths=tuple(stretch.length for stretch in kept),
    )


def check_gaps(gaps: Gaps, samples: Sequence[OperationSample]) -> None:
    """Compare the gaps with the series: a log that breaks off between two lines looks like a stall.

    Raises:
        SeriesError: the series has operations in a gap.

    """
    for gap, sample in product(stretches_of(gaps), samples):
        _check_gap(gap, sample)


def stretches_of(gaps: Gaps) -> list[Interval]:
    """Return the gaps in milliseconds after the start."""
    pairs = zip(gaps.starts, gaps.lengths, strict=True)
    return [Interval(start=start, end=start + length) for start, length in pairs]


def _idle(job: JobCompletions, milliseconds: int, width: int) -> list[Interval]:
    """Return the times in which one job completed nothing, relative to the common start."""
    end = milliseconds - job.offset
    times = _times(job.text)
    whole = [Interval(start=0, end=end)]
    idle = reduce(both, (_between(times[each], job.ios[each], end, width) for each in DIRECTIONS), whole)
    moved = [Interval(start=part.start + job.offset, end=part.end + job.offset) for part in idle]
    return both(joined(moved), [Interval(start=0, end=milliseconds)])


def _times(text: str) -> Mapping[Operation, list[int]]:
    """Return the times of each direction's lines."""
    by_number: dict[str, list[int]] = {str(number): [] for number in DIRECTIONS.values()}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] not in by_number:
            raise SeriesError(f"line {number} of the log is damaged")
        by_number[match[2]].append(int(match[1]))
    return {operation: by_number[str(number)] for operation, number in DIRECTIONS.items()}


def _between(times: Sequence[int], ios: int, end: int, width: int) -> list[Interval]:
    """Return the times in which no operation of one direction completed."""
    # The operation whose completion ended the ramp is logged, but not timed: a line does not prove an operation.
    if not ios:
        return [Interval(start=0, end=end)]
    if not times:
        raise SeriesError(f"the log is empty, but {ios} operations completed")
    if any(after < before for before, after in pairwise(times)):
        raise SeriesError("the log goes back in time")
    if times[-1] > end + _LATE:
        raise SeriesError(f"the log has a line at {times[-1]} ms, after the end of the measurement")
    edges = ((time // width + 1) * width for time in (0, *times))
    stretches = zip(edges, (min(time, end) for time in (*times, end)), strict=True)
    return [Interval(start=start, end=stop) for start, stop in stretches if stop > start]


def _check_gap(gap: Interval, sample: OperationSample) -> None:
    """Refuse operations in a gap, except where the jitter of the series' lines explains them."""
    if sample.cells is None:
        return
    first = -(-(gap.start + MAX_JITTER) // LOG_MILLISECONDS)
    last = max(0, (gap.end - MAX_JITTER) // LOG_MILLISECONDS)
    for second, ios in enumerate(sample.cells.ios[first:last], start=first):
        if ios >= 1:
            raise SeriesError(
                f"the log has nothing from {gap.start} to {gap.end} ms, but the series has {ios:.0f} "
                f"{sample.operation} operations in second {second}"
            )
