"""fio's averaged logs -> operations per second-long cell.

A log line is `milliseconds, rate, direction, ...`; time counts from the end of the ramp, and nothing is logged during
it (seen with 3.33 and 3.39). Three things have to be put right:

1. A line at t stands for (t - D, t], where D is the averaging interval, not for the time since the line before: an
   interval without I/O has no line at all. Lines lie on multiples of D but for a few milliseconds.
2. The last interval, partial or whole, is often missing. What it held is what is missing from the exact total.
3. A rate is rounded down, to one operation per second in one log and to 1 KiB/s in the other. All operations are of
   one size, so the log with the finer unit tells their number best.

What was put right must then agree with the total; a log that does not is not used.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.sample import Cells
from plimsoll.tools.fio.command import LOG_MILLISECONDS as WIDTH

MAX_DEVIATION = 0.005
"""Part of the total by which the lines may be wrong before they are scaled to it."""

_MAX_CELLS = 200_000
_MAX_JITTER = WIDTH // 4
# A line is written when the helper thread wakes up; an interval that ended so shortly before fio did may lack one.
_LATE = WIDTH // 10
_MAX_TAIL_RATE = 1.5
_LINE = re.compile(r"(\d{1,15}), (\d{1,15}), (\d)(?:,.*)?", re.ASCII)
_DIRECTIONS = {Operation.READ: 0, Operation.WRITE: 1, Operation.TRIM: 2}


class SeriesError(ValueError):
    """The logs cannot be reconciled with the totals; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What is known exactly of one operation, over all jobs.

    Attributes:
        ios: completed operations.
        bytes: all of the same size.
        milliseconds: measured time.
        in_flight: operations that can complete at once.

    """

    ios: int
    bytes: int
    milliseconds: int
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    milliseconds: int
    rate: int


def finest_log(block_size: int) -> tuple[str, float]:
    """Return the log to read, `bw` or `iops`, and the operations per second that its unit stands for."""
    kibibyte = 2**10
    return ("bw", kibibyte / block_size) if block_size >= kibibyte else ("iops", 1.0)


def cells_of(logs: Iterable[str], operation: Operation, unit: float, totals: Totals) -> Cells:
    """Return the series of one operation over all jobs.

    Args:
        logs: one for each job.
        operation: lines of others are skipped.
        unit: operations per second that a rate of 1 stands for.
        totals: of all the jobs.

    Raises:
        SeriesError: a log is damaged, or disagrees with the totals.

    """
    number = -(-totals.milliseconds // WIDTH)
    if number > _MAX_CELLS:
        raise SeriesError(f"a runtime of {totals.milliseconds} ms is too long for a series")
    jobs = [_counts(_lines(log, operation), unit) for log in logs]
    ios = _reconciled(
        _gridded(jobs, number),
        logged=min(max(counts, default=0) for counts in jobs),
        totals=totals,
        # Rounding cost up to one unit a line; the operation whose completion ended the ramp is logged, but not timed.
        allowed=sum(len(counts) * unit + 1 for counts in jobs),
    )
    size = totals.bytes / totals.ios if totals.ios else 0.0
    return Cells(width_nanoseconds=WIDTH * 10**6, ios=tuple(ios), bytes=tuple(count * size for count in ios))


def _lines(log: str, operation: Operation) -> list[_Line]:
    found = []
    for number, text in enumerate(log.splitlines(), start=1):
        match = _LINE.fullmatch(text.strip())
        if match is None:
            raise SeriesError(f"line {number} of the log is damaged")
        if int(match[3]) == _DIRECTIONS[operation]:
            found.append(_Line(milliseconds=int(match[1]), rate=int(match[2])))
    return found


def _counts(lines: Sequence[_Line], unit: float) -> Mapping[int, int]:
    """Return interval -> operations; interval k ends at k * WIDTH."""
    counts: dict[int, int] = {}
    before = _Line(milliseconds=0, rate=0)
    for line in lines:
        slot = _slot(line)
        if slot in counts or line.milliseconds <= before.milliseconds:
            raise SeriesError(f"two lines of the log are for the interval that ends at {slot * WIDTH} ms")
        # Between neighbours the real distance is known; after a gap only the nominal one is.
        adjacent = slot == _slot(before) + 1
        milliseconds = line.milliseconds - before.milliseconds if adjacent else WIDTH
        # Half a unit undoes, on average, that the rate was rounded down.
        counts[slot] = round((line.rate + 0.5) * unit * milliseconds / 1000)
        before = line
    return counts


def _slot(line: _Line) -> int:
    slot = (line.milliseconds + WIDTH // 2) // WIDTH
    if abs(line.milliseconds - slot * WIDTH) > _MAX_JITTER:
        raise SeriesError(f"the line of the log at {line.milliseconds} ms does not lie on an interval of {WIDTH} ms")
    return slot


def _gridded(jobs: Iterable[Mapping[int, int]], number: int) -> list[float]:
    """Return one cell for each interval, zero where there is no line."""
    cells = [0.0] * number
    for counts in jobs:
        for slot, count in counts.items():
            if not 1 <= slot <= number:
                raise SeriesError(f"the log has a line at {slot * WIDTH} ms, when measuring had ended")
            cells[slot - 1] += count
    return cells


def _reconciled(cells: Sequence[float], *, logged: int, totals: Totals, allowed: float) -> list[float]:
    """Add what was not logged to the last cells, and scale what was, so that all add up to the total.

    `logged` is the number of the last cell for which every job has a line. The lines may be wrong by `MAX_DEVIATION`,
    or by `allowed` operations if that is more.
    """
    # Whatever ended well before fio did would have a line, had it held any I/O: there zero is zero.
    closed = max(logged, (totals.milliseconds - _LATE) // WIDTH)
    lengths = [min(WIDTH, totals.milliseconds - index * WIDTH) / WIDTH for index in range(closed, len(cells))]
    length = math.fsum(lengths)
    counted = math.fsum(cells)
    tail = min(max(totals.ios - counted, 0.0), _most(cells, closed, length, totals)) if length else 0.0
    rest = totals.ios - tail
    if abs(rest - counted) > max(MAX_DEVIATION * totals.ios, allowed) or (rest > 0 and not counted):
        raise SeriesError(f"the log accounts for {counted + tail:.0f} of {totals.ios} operations")
    scale = rest / counted if counted else 0.0
    added = [*[0.0] * closed, *(tail * part / length for part in lengths)]
    return [cell * scale + more for cell, more in zip(cells, added, strict=True)]


def _most(cells: Sequence[float], closed: int, length: float, totals: Totals) -> float:
    """Return how many operations without a line the last cells may hold together, to be believed."""
    if not closed:
        return totals.ios
    return max(0.0, _MAX_TAIL_RATE * max(cells) * length - math.fsum(cells[closed:])) + totals.in_flight
