"""Reading a tool's output: lines of text, excerpts for messages, series of bytes and gaps."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import TypeVar

from plimsoll.api.json_reader import OutputError, printable
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import MAX_GAPS, Cells, Gaps, LatencySample, OperationSample
from plimsoll.tools.base import Output, Timing

SECOND = 10**9
MILLISECOND = 10**6
COUNT = r"\d{1,18}"
NUMBER = rf"{COUNT}(?:\.{COUNT})?(?:e[+-]\d\d)?"  # not negative
MAX_MESSAGES = 50  # of errors and of warnings each; a broken device repeats the same message many times
NOISE_CHARACTERS = 4000  # characters of a text that messages can quote
UNTIMED = LatencySample(kind=LatencyKind.NONE)  # the latency of operations that the tool does not time


def excerpt(text: str, *, without: re.Pattern[str] | None = None) -> list[str]:
    """Return the first 20 lines of a text that are not empty and do not match `without`."""
    lines = (printable(line.strip()) for line in text.splitlines())
    return [*islice((line for line in lines if line and not (without and without.fullmatch(line))), 20)]


def failure(output: Output, *remarks: str) -> str:
    """Return a command's exit code, the remarks and its standard error, for a message."""
    messages = dict.fromkeys([*remarks, *excerpt(output.stderr)])
    return f"exit code {output.exit_code}: {'; '.join(messages) or 'no message'}"


def ended_in_warm_up(what: str, seconds: float, timing: Timing, remedy: str = "") -> OutputError:
    """Return the error that a tool or a connection ended after so many seconds, before anything was measured."""
    ramp = f"the end of its warm-up of {timing.ramp_seconds} s"
    return OutputError(f"{what} ended after {seconds:.1f} s, before {ramp}{remedy}")


def estimated_start(output: Output, lasted: int) -> tuple[int, bool]:
    """Return when a tool that ran for `lasted` ns began, between its launch and its end, and if that is uncertain."""
    between = output.finished_at - output.launched_at - lasted
    return output.launched_at + max(0, between) // 2, not 0 <= between <= 250 * MILLISECOND


def nanoseconds_of(stamp: str) -> int:
    """Return the Unix nanoseconds of a time as Ceph prints it, `2026-11-21T17:04:36.017824+0000`."""
    try:
        return (datetime.fromisoformat(stamp) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    except (ValueError, OverflowError, TypeError) as error:
        raise OutputError(f"{printable(stamp)} is not a time") from error


def whole_lines(text: str) -> list[str]:
    """Return the lines of a text that are not empty, without trailing spaces; OutputError if the last has no end."""
    if text and not text.endswith("\n"):
        raise OutputError(f"the output breaks off in the line: {printable(text.splitlines()[-1])}")
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def sort_lines(text: str, *patterns: re.Pattern[str]) -> tuple[list[list[re.Match[str]]], list[str]]:
    """Return the matches of each pattern, by the first that matches a line, and warnings about all other lines."""
    matches: list[list[re.Match[str]]] = [[] for _ in patterns]
    unknown = []
    for line in whole_lines(text):
        for pattern, lines in zip(patterns, matches, strict=True):
            if match := pattern.fullmatch(line):
                lines.append(match)
                break
        else:
            unknown.append(f"unknown line: {printable(line)}")
    return matches, unknown


def bounded(messages: Iterable[str]) -> tuple[str, ...]:
    """Return the messages without duplicates, at most `MAX_MESSAGES` and the number of the others."""
    different = list(dict.fromkeys(message[:NOISE_CHARACTERS] for message in messages))
    more = len(different) - MAX_MESSAGES
    return (*different[:MAX_MESSAGES], f"and {more} more") if more > 0 else tuple(different)


def cells_of_operations(counts: Iterable[float], size: float, width_nanoseconds: int = SECOND) -> Cells:
    """Return a series of operations of `size` bytes each."""
    ios = tuple(counts)
    return Cells(width_nanoseconds=width_nanoseconds, ios=ios, bytes=tuple(count * size for count in ios))


def longest_gaps(gaps: Iterable[tuple[int, int]], width_nanoseconds: int) -> Gaps:
    """Return the longest `MAX_GAPS` gaps in their order; each is a start and a length in milliseconds."""
    by_length = sorted(gaps, key=lambda gap: (-gap[1], gap[0]))
    longest = sorted(by_length[:MAX_GAPS])
    return Gaps(
        width_nanoseconds=width_nanoseconds,
        starts=tuple(start for start, _ in longest),
        lengths=tuple(length for _, length in longest),
        omitted=len(by_length) - len(longest),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The bytes or operations done until a moment, in nanoseconds."""

    moment: int
    done: int


M = TypeVar("M", bound=Mark)


def closest(marks: Sequence[M], moment: int) -> M:
    """Return the mark that is closest to a moment."""
    return min(marks, key=lambda mark: abs(mark.moment - moment))


def done_until(marks: Sequence[Mark], moment: int, *, close: int = 0) -> float:
    """Return what was done until a moment, evenly between marks; one less than `close` ns away counts as at it."""
    index = bisect_right(marks, moment, key=lambda mark: mark.moment)
    if index in {0, len(marks)}:
        return marks[-1 if index else 0].done
    before, after = marks[index - 1], marks[index]
    # The last mark is the end of the series, which need not be the end of a second.
    near = closest((before, after) if index < len(marks) - 1 else (before,), moment)
    if abs(near.moment - moment) < close:
        return near.done
    part = (moment - before.moment) / (after.moment - before.moment)
    return before.done + part * (after.done - before.done)


def byte_sample(
    operation: Operation, connections: Sequence[tuple[Sequence[Mark], int]], start: int, end: int
) -> OperationSample:
    """Add up connections, each with its marks, about a second apart, and the bytes that arrived in all.

    `start` and `end` are two of the marks' moments. The cells add up to what arrived, even if marks count sent bytes.
    """
    series = []
    for marks, total in connections:
        # A mark close to the end of a second counts as its end, so that an interval without bytes remains one.
        moved = [done_until(marks, edge, close=SECOND // 10) for edge in (*range(start, end, SECOND), end)]
        whole = moved[-1] - moved[0]
        scaled = [total * (done - moved[0]) / whole if whole else 0.0 for done in moved]
        # If no mark moved, the total arrived at an unknown time: the series does not match, which is a finding.
        series.append([after - before for before, after in pairwise(scaled)])
    cells = tuple(sum(values) for values in zip(*series, strict=True))
    return OperationSample(
        operation=operation,
        ios=0,
        bytes=sum(total for _, total in connections),
        latency=UNTIMED,
        cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(cells), bytes=cells),
    )
