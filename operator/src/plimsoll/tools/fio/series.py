"""fio's averaged rate logs -> operations per one-second cell.

A log line is `milliseconds, rate, direction, ...`; time starts at the end of the ramp, which is not logged (observed
with 3.33 and 3.39). Four corrections are needed:

1. A line at t covers (t - D, t], where D is the averaging interval, and not the time since the previous line: an
   interval without I/O has no line. Lines lie within a few milliseconds of multiples of D.
2. The last interval, partial or whole, is often missing. Its operations are the rest of the exact total.
3. A rate is rounded down: to one operation per second in one log, to 1 KiB/s in the other. All operations have the
   same size, so the log with the finer unit is more exact.
4. Operations that fio noticed at once with the one that ended the ramp are logged, but not timed. There may be as many
   as were in flight (26 of 64 on a device that completes them in bursts), all of them in the first interval.

The corrected series must agree with the total. If it does not, the thread that writes the lines may have been late or
stopped, as on a busy machine: from then on, its lines are off the multiples of D. Then each line covers the time since
the previous one, without the gaps in which nothing completed (see `gaps`). If that does not agree with the total
either, the log is not used.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.measure.sample import Cells
from plimsoll.measure.timeline import Interval, length_of, without
from plimsoll.tools.fio.command import LOG_MILLISECONDS as WIDTH

MAX_DEVIATION = 0.005
"""Maximum relative error of the lines, which are then scaled to the total."""

MAX_JITTER = WIDTH // 4
"""Maximum milliseconds between a line and the end of its interval."""
DIRECTIONS = {Operation.READ: 0, Operation.WRITE: 1, Operation.TRIM: 2}
"""Operation -> its number in a log."""

_MAX_CELLS = 200_000
# The helper thread writes a line when it wakes up; an interval that ends this shortly before fio does may have none.
_LATE = WIDTH // 10
_MAX_TAIL_RATE = 1.5
_LINE = re.compile(r"(\d{1,15}), (\d{1,15}), (\d)(?:,.*)?", re.ASCII)


class SeriesError(ValueError):
    """The logs cannot be reconciled with the totals; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The exact totals of one operation of one job.

    Attributes:
        ios: completed operations.
        milliseconds: measured time.
        in_flight: operations that can complete at the same time.

    """

    ios: int
    milliseconds: int
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    milliseconds: int
    rate: int


def finest_log(block_size: int) -> tuple[str, float]:
    """Return the log to read, `bw` or `iops`, and the operations per second that one of its units represents."""
    kibibyte = 2**10
    return ("bw", kibibyte / block_size) if block_size >= kibibyte else ("iops", 1.0)


def cells_of(
    jobs: Iterable[tuple[str, Totals]],
    operation: Operation,
    *,
    unit: float,
    size: float,
    idle: Sequence[Interval] = (),
) -> Cells:
    """Return the series of one operation over all jobs, which measured at the same time.

    Args:
        jobs: the log and the totals of each job.
        operation: lines of others are skipped.
        unit: operations per second that a rate of 1 represents.
        size: bytes of an operation.
        idle: known times without completions, in milliseconds.

    Raises:
        SeriesError: a log is damaged, or disagrees with its job's totals.

    """
    each = [_cells(_lines(log, operation), unit, totals, idle) for log, totals in jobs]
    ios = [math.fsum(counts) for counts in zip(*each, strict=True)]
    return Cells(width_nanoseconds=WIDTH * 10**6, ios=tuple(ios), bytes=tuple(count * size for count in ios))


def _cells(lines: Sequence[_Line], unit: float, totals: Totals, idle: Sequence[Interval]) -> list[float]:
    number = -(-totals.milliseconds // WIDTH)
    if number > _MAX_CELLS:
        raise SeriesError(f"a runtime of {totals.milliseconds} ms is too long for a series")
    # Rounding costs up to one unit per line.
    allowed = len(lines) * unit
    try:
        counts = _counts(lines, unit)
        # An interval that ended well before fio did has a line if it had any I/O, so no line means zero.
        closed = max(max(counts, default=0), (totals.milliseconds - _LATE) // WIDTH)
        return _reconciled(_gridded(counts, number), closed=closed, totals=totals, allowed=allowed)
    except SeriesError:
        if (spread := _spread(lines, unit, totals, idle)) is None:
            raise
        try:
            # fio may write the last line after the end.
            closed = min(lines[-1].milliseconds // WIDTH, number)
            return _reconciled(spread, closed=closed, totals=totals, allowed=allowed)
        except SeriesError:
            pass
        raise


def _spread(lines: Sequence[_Line], unit: float, totals: Totals, idle: Sequence[Interval]) -> list[float] | None:
    """Spread each line evenly over the time since the previous line, without gaps; None if that is impossible."""
    cells = [0.0] * -(-totals.milliseconds // WIDTH)
    before = 0
    for line in lines:
        milliseconds = line.milliseconds - before
        # No thread is early, and only the last line may come after the end.
        if milliseconds < WIDTH - MAX_JITTER or before >= totals.milliseconds:
            return None
        parts = without([Interval(start=before, end=min(line.milliseconds, totals.milliseconds))], idle)
        if not (time := length_of(parts)):
            return None
        before = line.milliseconds
        count = (line.rate + 0.5) * unit * milliseconds / 1000
        for part in parts:
            for cell in range(part.start // WIDTH, -(-part.end // WIDTH)):
                inside = part.clipped(Interval(start=cell * WIDTH, end=(cell + 1) * WIDTH))
                cells[cell] += count * inside / time
    # When fio ended, at most the next line was due.
    rest = without([Interval(start=min(before, totals.milliseconds), end=totals.milliseconds)], idle)
    return cells if lines and length_of(rest) <= WIDTH + MAX_JITTER else None


def _lines(log: str, operation: Operation) -> list[_Line]:
    found = []
    for number, text in enumerate(log.splitlines(), start=1):
        match = _LINE.fullmatch(text.strip())
        if match is None:
            raise SeriesError(f"line {number} of the log is damaged")
        if int(match[3]) == DIRECTIONS[operation]:
            found.append(_Line(milliseconds=int(match[1]), rate=int(match[2])))
    return found


def _counts(lines: Sequence[_Line], unit: float) -> Mapping[int, int]:
    """Return interval -> operations; interval k ends at k * WIDTH."""
    counts: dict[int, int] = {}
    before = _Line(milliseconds=0, rate=0)
    for line in lines:
        slot = _slot(line)
        if slot in counts or line.milliseconds <= before.milliseconds:
            raise SeriesError(f"the log has two lines for the interval that ends at {slot * WIDTH} ms")
        # Between neighbours the real distance is known; after a gap only the nominal one.
        adjacent = slot == _slot(before) + 1
        milliseconds = line.milliseconds - before.milliseconds if adjacent else WIDTH
        # Half a unit compensates, on average, for rounding down.
        counts[slot] = round((line.rate + 0.5) * unit * milliseconds / 1000)
        before = line
    return counts


def _slot(line: _Line) -> int:
    slot = (line.milliseconds + WIDTH // 2) // WIDTH
    if abs(line.milliseconds - slot * WIDTH) > MAX_JITTER:
        raise SeriesError(f"the line of the log at {line.milliseconds} ms does not lie on an interval of {WIDTH} ms")
    return slot


def _gridded(counts: Mapping[int, int], number: int) -> list[float]:
    """Return one cell per interval, zero for those without a line."""
    cells = [0.0] * number
    for slot, count in counts.items():
        if not 1 <= slot <= number:
            raise SeriesError(f"the log has a line at {slot * WIDTH} ms, after the end of the measurement")
        cells[slot - 1] = count
    return cells


def _reconciled(cells: Sequence[float], *, closed: int, totals: Totals, allowed: float) -> list[float]:
    """Add unlogged operations to the last cells, and scale the logged ones so that the sum is the total.

    `closed` is the number of complete cells. The error of the lines may be up to `MAX_DEVIATION`, or `allowed`
    operations if that is more.
    """
    cells = _without_ramp(cells, totals, allowed)
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


def _without_ramp(cells: Sequence[float], totals: Totals, allowed: float) -> list[float]:
    if not cells:
        return []
    first, *others = cells
    surplus = math.fsum(cells) - totals.ios - allowed
    return [first - min(max(0.0, surplus), totals.in_flight, first), *others]


def _most(cells: Sequence[float], closed: int, length: float, totals: Totals) -> float:
    """Return the maximum plausible number of unlogged operations in the last cells together."""
    if not closed:
        return totals.ios
    return max(0.0, _MAX_TAIL_RATE * max(cells) * length - math.fsum(cells[closed:])) + totals.in_flight
