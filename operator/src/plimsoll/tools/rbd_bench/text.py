"""The lines that `rbd bench` prints (Ceph: `tools/rbd/action/Bench.cc`; seen with 18.2)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.tools.base import Output, OutputError
from plimsoll.tools.live import ended_lines
from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters, RbdOrder
from plimsoll.tools.reading import MAX_COUNT, lines, shown, whole_lines

_COUNT = r"\d{1,18}"
_NUMBER = rf"{_COUNT}(?:\.{_COUNT})?(?:e[+-]\d\d)?"
_BYTES = r"\d+(?:\.\d+)? (?:[KMGTPE]i)?B/s"
_HEADER = re.compile(
    r"bench  type (?P<type>\S+) io_size (?P<size>\d+) io_threads (?P<threads>\d+) bytes \d+ pattern (?P<pattern>.+)",
    re.ASCII,
)
_COLUMNS = re.compile(r"\s+SEC\s+OPS\s+OPS/SEC\s+BYTES/SEC")
_ROW = re.compile(rf"\s*(?P<second>{_COUNT})\s+(?P<done>{_COUNT})\s+{_NUMBER}\s+{_BYTES}", re.ASCII)
_TOTAL = re.compile(
    rf"elapsed: (?P<seconds>{_COUNT})\s+ops: (?P<done>{_COUNT})\s+ops/sec: (?P<rate>{_NUMBER}|-?nan)"
    rf"\s+bytes/sec: {_BYTES}",
    re.ASCII,
)
_PATTERNS: Mapping[RbdOrder, str] = {RbdOrder.RAND: "random", RbdOrder.SEQ: "sequential"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was printed.

    Attributes:
        done: seconds since the start -> operations. A second in which nothing was submitted is not there.
        total: operations, those in flight at the end included.
        seconds: from the start until they had completed.
        warnings: lines that are not known, and seconds that are not there.

    """

    done: Mapping[int, int]
    total: int
    seconds: float
    warnings: tuple[str, ...]

    def until(self, second: int) -> int:
        """Return the operations until then.

        A line is printed by the first operation that is submitted in a second. Where there is none, all that the next
        line has more was done before that second began.
        """
        return next((done for at, done in self.done.items() if at >= second), self.total) if second else 0


def read_report(parameters: RbdBenchParameters, output: Output) -> Report:
    """Read what was printed.

    Raises:
        OutputError: it failed, did nothing, or a line is missing or contradicts the others.

    """
    report: dict[str, re.Match[str]] = {}
    done: dict[int, int] = {}
    unknown: list[str] = []
    for line in whole_lines(output.stdout):
        if row := _ROW.fullmatch(line):
            _add(done, int(row["second"]), int(row["done"]))
        elif header := _HEADER.fullmatch(line):
            report["header"] = header
        elif total := _TOTAL.fullmatch(line):
            report["total"] = total
        elif not _COLUMNS.fullmatch(line):
            unknown.append(f"unknown line: {shown(line)}")
    if not report.keys() >= {"header", "total"}:
        said = "; ".join([*unknown, *lines(output.stderr)]) or "no message"
        raise OutputError(f"rbd bench ended with exit code {output.exit_code} without its totals: {said}")
    _check_header(parameters, report["header"])
    count, seconds = _totals(report["total"])
    if done and (max(done) > seconds or max(done.values()) > count):
        raise OutputError(f"the line of second {max(done)} is beyond the totals")
    return Report(done=done, total=count, seconds=seconds, warnings=(*unknown, *_gaps(done, seconds)))


def live_counts(said: str) -> list[tuple[float, int]]:
    """Return (second, operations until then) of the lines in a text that may begin anywhere."""
    matches = (_ROW.fullmatch(line) for line in ended_lines(said))
    return [(float(match["second"]), int(match["done"])) for match in matches if match]


def _add(done: dict[int, int], second: int, count: int) -> None:
    if done and (second <= max(done) or count < max(done.values())):
        raise OutputError(f"the line of second {second} goes back in time or operations")
    done[second] = count


def _check_header(parameters: RbdBenchParameters, header: re.Match[str]) -> None:
    """Refuse the output of another measurement than was asked for."""
    expected = {
        "type": parameters.operation.value,
        "size": str(parameters.block_size),
        "threads": str(parameters.concurrency),
        "pattern": _PATTERNS[parameters.order],
    }
    for name, value in expected.items():
        if header[name] != value:
            raise OutputError(f"{name} is {shown(header[name])}, but {value} was asked for")


def _totals(match: re.Match[str]) -> tuple[int, float]:
    """Return operations and seconds, which are printed whole: the rate tells them better."""
    total = int(match["done"])
    if not total or "nan" in match["rate"] or not float(match["rate"]):
        raise OutputError("nothing was done before the time was up: is the image locked by another client?")
    seconds = total / float(match["rate"])
    if seconds > MAX_COUNT or abs(seconds - int(match["seconds"])) > 1 + seconds / 1000:
        raise OutputError("the totals contradict each other: ops, ops/sec and elapsed")
    return total, seconds


def _gaps(done: Mapping[int, int], seconds: float) -> Iterator[str]:
    # The first and the last second need not be over.
    for before, after in pairwise([0, *done, int(seconds + 1)]):
        if after > before + 1:
            yield f"no line from second {before + 1} to {after - 1}: nothing was submitted in that time"
