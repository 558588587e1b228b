"""What ioping prints with `-q -B -p1 -a1`: numbers, times in nanoseconds (source: ioping(1); observed with 1.3).

    1 70465 14191 58128149 70465 70465 70465 0 2 271735
    1 59839 16712 68450342 59839 59839 59839 0 1 98376
    2 130304 15349 62868369 59839 65152 70465 5313 3 374097

Columns: completed requests, their time, requests and bytes per second, minimum, mean, maximum and deviation; then all
requests since the line before, and the time since then. Each request has a line, except the first, which is a warm-up
and part of the next line's last two columns. The last line is about all requests.

The line of a single request repeats its time, so a damaged one is noticed; the last line confirms the sums.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import failure, printable

_TIME = r"(\d{1,15})"
_FIRST = re.compile(rf"1 {_TIME} \d+ \d+ \1 \1 \1 0 2 {_TIME}", re.ASCII)
_REQUEST = re.compile(rf"1 {_TIME} \d+ \d+ \1 \1 \1 0 1 {_TIME}", re.ASCII)
_TOTAL = re.compile(
    rf"(?P<count>\d{{1,15}}) (?P<sum>\d{{1,18}}) \d+ \d+ (?P<least>\d{{1,15}}) {_TIME} (?P<greatest>\d{{1,15}}) "
    rf"{_TIME} (?P<all>\d{{1,15}}) (?P<time>\d{{1,15}})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IopingReport:
    """The requests after the warm-up, in their order.

    Attributes:
        times: nanoseconds of each.
        ends: nanoseconds from the start of the warm-up to the end of each.
        total: nanoseconds from the same start to the end of ioping.

    """

    times: Sequence[int]
    ends: Sequence[int]
    total: int


def read_report(output: Output) -> IopingReport:
    """Read the output of an ioping.

    Raises:
        OutputError: a request failed, ioping was killed, or lines are missing or contradict each other.

    """
    *lines, last = output.stdout.split("\n")
    total = _TOTAL.fullmatch(lines[-1]) if lines else None
    if last or total is None or output.exit_code:
        raise OutputError(f"ioping printed no complete statistics, {failure(output)}")
    times, since = array("q"), array("q")
    for number, line in enumerate(lines[:-1], start=1):
        match = (_REQUEST if times else _FIRST).fullmatch(line)
        if match is None:
            raise OutputError(f"line {number} is not that of one request: {printable(line)}")
        times.append(int(match[1]))
        since.append(int(match[2]))
    _check(times, sum(since), total)
    return IopingReport(times=times, ends=array("q", accumulate(since)), total=int(total["time"]))


def recent_requests(printed: str) -> list[int]:
    """Return the nanoseconds from one completion to the next in a text that may be cut at both ends."""
    matches = (_REQUEST.fullmatch(line) for line in printed.split("\n")[1:-1])
    return [int(match[2]) for match in matches if match]


def _check(times: Sequence[int], until_last: int, total: re.Match[str]) -> None:
    """Refuse lines that do not add up to the last one."""
    if not times:
        raise OutputError("no request was timed: ioping ended after its warm-up, or all its lines are missing")
    expected = {
        "count": len(times),
        "sum": sum(times),
        "least": min(times),
        "greatest": max(times),
        "all": len(times) + 1,
    }
    for name, value in expected.items():
        if int(total[name]) != value:
            raise OutputError(f"the lines of the requests give {value} as {name}, but the last line {total[name]}")
    if not sum(times) <= until_last <= int(total["time"]):
        raise OutputError(f"the requests ended after {until_last} ns, but the last line has {total['time']} ns")
