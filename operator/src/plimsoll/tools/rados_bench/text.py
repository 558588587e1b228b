"""The lines that `rados bench --show-time` prints (Ceph: `obj_bencher.cc`; observed with 18.2)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import MAX_COUNT, complete_lines, failure, lines_so_far, nanoseconds_of, printable

_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d{4})"
_COUNT = r"\d{1,18}"
_NUMBER = rf"{_COUNT}(?:\.{_COUNT})?(?:e[+-]\d\d)?"
_ROW = re.compile(
    rf"{_STAMP}\s+(?P<second>{_COUNT})\s+\d+\s+\d+\s+(?P<finished>{_COUNT})\s+(?P<rate>{_NUMBER})\s+(?:-1|{_NUMBER})"
    rf"\s+(?:-|{_NUMBER})\s+(?P<mean>{_NUMBER})",
    re.ASCII,
)
_TOTAL = re.compile(rf"(?:{_STAMP} )?(?P<name>[A-Z][A-Za-z ]+(?:\([A-Za-z/]+\))?):\s+(?P<value>\S+)", re.ASCII)
_OTHER = re.compile(
    rf"hints = \d|{_STAMP} (?:Maintaining \d+ concurrent writes of .*|Object prefix: \S+|\s*sec Cur ops .*"
    r"|min lat: \S+ max lat: \S+ avg lat: \S+)",
    re.ASCII,
)
_TIME, _LEAST, _MEAN, _GREATEST = "Total time run", "Min latency(s)", "Average Latency(s)", "Max latency(s)"
_BANDWIDTH = "Bandwidth (MB/sec)"
_KNOWN = frozenset(
    {
        _TIME, _LEAST, _MEAN, _GREATEST, _BANDWIDTH, "Object size", "Total reads made", "Total writes made",
        "Read size", "Write size", "Stddev Bandwidth", "Max bandwidth (MB/sec)", "Min bandwidth (MB/sec)",
        "Average IOPS", "Stddev IOPS", "Max IOPS", "Min IOPS", "Stddev Latency(s)",
    }
)  # fmt: skip
_SECOND = 10**9
_MEBIBYTE = 2**20
# Maximum time from the last line to the end: a line is printed every second, however long the last operations take.
_LATE = 3 * _SECOND // 2
# Six digits are printed.
_ROUNDING = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress at one moment, as nanoseconds since the start; `mean` is the mean latency in nanoseconds."""

    nanoseconds: int
    finished: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RadosReport:
    """The output of a measurement.

    Attributes:
        reads: whether objects were read.
        started_at: Unix nanoseconds.
        progress: in chronological order; the last one is the end, when no operation was in flight.
        warnings: unknown lines and fields.

    """

    reads: bool
    started_at: int
    object_size: int
    progress: tuple[Progress, ...]
    min_nanoseconds: int
    max_nanoseconds: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    moment: int
    second: int
    finished: int
    rate: float
    mean: float


class _Totals(dict[str, str]):
    """Name -> value of the totals; its methods raise OutputError if a value is missing or malformed."""

    def number(self, name: str) -> float:
        """Return a number."""
        text = self.get(name)
        if text is None:
            raise OutputError(f"{name} is missing")
        if not re.fullmatch(_NUMBER, text, re.ASCII) or float(text) > MAX_COUNT:
            raise OutputError(f"{name} is not a number: {printable(text)}")
        return float(text)

    def count(self, name: str) -> int:
        """Return a whole number."""
        number = self.number(name)
        if number != int(number):
            raise OutputError(f"{name} is not a whole number: {printable(self[name])}")
        return int(number)


def read_report(output: Output, *, reads: bool) -> RadosReport:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed before it began, or a line or number is missing or malformed.

    """
    rows, totals, warnings = _parse_lines(output.stdout)
    if _TIME not in totals and output.exit_code:
        raise OutputError(f"rados bench failed with {failure(output)}")
    if not rows:
        raise OutputError("the output has no line of a second")
    operation = "read" if reads else "write"
    size = totals.count(f"{operation.capitalize()} size")
    end = Progress(
        nanoseconds=round(totals.number(_TIME) * _SECOND),
        finished=totals.count(f"Total {operation}s made"),
        mean=totals.number(_MEAN) * _SECOND,
    )
    _check(rows, end, totals.number(_BANDWIDTH), size)
    started_at = _start(rows, size)
    return RadosReport(
        reads=reads,
        started_at=started_at,
        object_size=totals.count("Object size"),
        progress=(*_progress(rows, started_at, end), end),
        min_nanoseconds=round(totals.number(_LEAST) * _SECOND),
        max_nanoseconds=round(totals.number(_GREATEST) * _SECOND),
        warnings=tuple(warnings),
    )


def live_counts(printed: str) -> list[tuple[float, int]]:
    """Return (Unix seconds, operations until then) of the lines in a text that may begin anywhere."""
    matches = (_ROW.fullmatch(line) for line in lines_so_far(printed))
    return [(nanoseconds_of(match["stamp"]) / _SECOND, int(match["finished"])) for match in matches if match]


def _parse_lines(text: str) -> tuple[list[_Row], _Totals, list[str]]:
    """Return the lines of seconds, the totals, and warnings about unknown lines and fields."""
    rows, totals, unknown = [], _Totals(), []
    for line in complete_lines(text):
        if row := _ROW.fullmatch(line):
            rows.append(_row(row))
        elif _OTHER.fullmatch(line):
            continue
        elif total := _TOTAL.fullmatch(line):
            if total["name"] in totals:
                raise OutputError(f"{total['name']} occurs twice")
            totals[total["name"]] = total["value"]
        else:
            unknown.append(f"unknown line: {printable(line)}")
    unknown += [f"unknown field: {name}" for name in totals if name not in _KNOWN]
    return rows, totals, unknown


def _row(match: re.Match[str]) -> _Row:
    return _Row(
        moment=nanoseconds_of(match["stamp"]),
        second=int(match["second"]),
        finished=int(match["finished"]),
        rate=float(match["rate"]),
        mean=float(match["mean"]) * _SECOND,
    )


def _check(rows: Sequence[_Row], end: Progress, bandwidth: float, size: int) -> None:
    """Refuse missing lines, and numbers that contradict each other."""
    if rows[0].second:
        raise OutputError("the line of second 0 is missing")
    for before, after in pairwise(rows):
        if after.second != before.second + 1:
            raise OutputError(f"the line of second {before.second + 1} is missing")
        if after.finished < before.finished or after.moment <= before.moment:
            raise OutputError(f"the line of second {after.second} goes back in time or operations")
    late = end.nanoseconds - (rows[-1].moment - rows[0].moment)
    if late > _LATE:
        raise OutputError(f"the line of second {rows[-1].second + 1} is missing")
    if late < -_LATE:
        raise OutputError(f"the line of second {rows[-1].second} comes after the end: was the clock set?")
    if rows[-1].finished > end.finished:
        raise OutputError(f"the line of second {rows[-1].second} has more operations than the total")
    moved = end.finished * size / _MEBIBYTE
    if abs(bandwidth * end.nanoseconds / _SECOND - moved) > max(_ROUNDING * moved, _ROUNDING):
        raise OutputError(f"{_BANDWIDTH} contradicts {_TIME} and the operations")


def _start(rows: Sequence[_Row], size: int) -> int:
    """Return the start in Unix nanoseconds, which may be some milliseconds after the line of second 0.

    The rate of a line is that since the start.
    """
    first = next((row for row in rows if row.finished and row.rate), None)
    if first is None:
        return rows[0].moment
    started_at = first.moment - round(first.finished * size / (first.rate * _MEBIBYTE) * _SECOND)
    if abs(started_at - rows[0].moment) > _SECOND:
        raise OutputError(f"the line of second {first.second} contradicts that of second 0: was the clock set?")
    return started_at


def _progress(rows: Sequence[_Row], started_at: int, end: Progress) -> Iterator[Progress]:
    yield Progress(nanoseconds=0, finished=0, mean=0.0)
    for row in rows:
        nanoseconds = row.moment - started_at
        if 0 < nanoseconds < end.nanoseconds:
            yield Progress(nanoseconds=nanoseconds, finished=row.finished, mean=row.mean)
