"""The lines that `rbd bench` prints (Ceph: `tools/rbd/action/Bench.cc`; observed with 18.2)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters, RbdOrder
from plimsoll.tools.reading import MAX_COUNT, complete_lines, failure, lines_so_far, printable

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
class RbdReport:
    """The output of a measurement.

    Attributes:
        done: seconds since the start -> operations; without seconds in which nothing was submitted.
        total: operations, including those in flight at the end.
        seconds: from the start until they had completed.
        warnings: unknown lines and missing seconds.

    """

    done: Mapping[int, int]
    total: int
    seconds: float
    warnings: tuple[str, ...]

    def until(self, second: int) -> int:
        """Return the operations until a second.

        The first operation submitted in a second prints a line. Without one, the additional operations of the next line
        completed before that second began.
        """
        return next((done for at, done in self.done.items() if at >= second), self.total) if second else 0


def read_report(parameters: RbdBenchParameters, output: Output) -> RbdReport:
    """Read the output of a measurement.

    Raises:
        OutputError: it failed, did nothing, or a line is missing or contradicts the others.

    """
    header: re.Match[str] | None = None
    total: re.Match[str] | None = None
    done: dict[int, int] = {}
    unknown: list[str] = []
    for line in complete_lines(output.stdout):
        if row := _ROW.fullmatch(line):
            _add(done, int(row["second"]), int(row["done"]))
        elif match := _HEADER.fullmatch(line):
            header = match
        elif match := _TOTAL.fullmatch(line):
            total = match
        elif not _COLUMNS.fullmatch(line):
            unknown.append(f"unknown line: {printable(line)}")
    if header is None or total is None:
        raise OutputError(f"rbd bench printed no header or no totals, {failure(output, *unknown)}")
    _check_header(parameters, header)
    count, seconds = _totals(total)
    if done and (max(done) > seconds or max(done.values()) > count):
        raise OutputError(f"the line of second {max(done)} exceeds the totals")
    return RbdReport(done=done, total=count, seconds=seconds, warnings=(*unknown, *_gaps(done, seconds)))


def live_counts(printed: str) -> list[tuple[float, int]]:
    """Return (second, operations until then) of the lines in a text that may begin anywhere."""
    matches = (_ROW.fullmatch(line) for line in lines_so_far(printed))
    return [(float(match["second"]), int(match["done"])) for match in matches if match]


def _add(done: dict[int, int], second: int, count: int) -> None:
    if done and (second <= max(done) or count < max(done.values())):
        raise OutputError(f"the line of second {second} goes back in time or operations")
    done[second] = count


def _check_header(parameters: RbdBenchParameters, header: re.Match[str]) -> None:
    """Refuse the output of a measurement with other parameters."""
    expected = {
        "type": parameters.operation.value,
        "size": str(parameters.block_size),
        "threads": str(parameters.concurrency),
        "pattern": _PATTERNS[parameters.order],
    }
    for name, value in expected.items():
        if header[name] != value:
            raise OutputError(f"{name} is {printable(header[name])} instead of {value}")


def _totals(match: re.Match[str]) -> tuple[int, float]:
    """Return operations and seconds; the rate yields the seconds more exactly than the printed whole number."""
    total = int(match["done"])
    if not total or "nan" in match["rate"] or not float(match["rate"]):
        raise OutputError("no operation completed in time: is the image locked by another client?")
    seconds = total / float(match["rate"])
    if seconds > MAX_COUNT or abs(seconds - int(match["seconds"])) > 1 + seconds / 1000:
        raise OutputError("the totals contradict each other: ops, ops/sec and elapsed")
    return total, seconds


def _gaps(done: Mapping[int, int], seconds: float) -> Iterator[str]:
    # The first and the last second may be incomplete.
    for before, after in pairwise([0, *done, int(seconds + 1)]):
        if after > before + 1:
            yield f"no line from second {before + 1} to {after - 1}: no operation was submitted"
