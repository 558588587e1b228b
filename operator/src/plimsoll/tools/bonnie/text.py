"""The line of comma-separated values that `bonnie++ -q` prints, in its format 1.98 of 50 columns.

Source: bonnie++ 2.00a (`bon_time.cpp`), and its output. Rates are KiB, seeks or files per second, rounded down. `+++++`
is the rate of a phase of less than half a second, which bonnie++ does not compute, and an empty column that of a phase
that was not requested. Columns 25 and 26 are in another order than the program's own header says: a number of
directories is in column 26. The size of a chunk never appears.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import complete_lines, failure, printable

FORMAT = "1.98"
_COLUMNS = 50

PHASES: dict[Operation, tuple[str, int, int]] = {
    Operation.WRITE_CHARACTERS: ("putc", 10, 39),
    Operation.WRITE: ("put_block", 12, 40),
    Operation.REWRITE: ("rewrite", 14, 41),
    Operation.READ_CHARACTERS: ("getc", 16, 42),
    Operation.READ: ("get_block", 18, 43),
    Operation.SEEK: ("seeks", 20, 44),
    Operation.CREATE_SEQUENTIAL: ("seq_create", 27, 45),
    Operation.STAT_SEQUENTIAL: ("seq_stat", 29, 46),
    Operation.DELETE_SEQUENTIAL: ("seq_del", 31, 47),
    Operation.CREATE_RANDOM: ("ran_create", 33, 48),
    Operation.STAT_RANDOM: ("ran_stat", 35, 49),
    Operation.DELETE_RANDOM: ("ran_del", 37, 50),
}
"""Operation -> bonnie++'s name of the phase, the column of its rate, which that of its CPU time follows, and the column
of its longest operation, counted from 1."""

_TOO_FAST = "+++++"
_TOO_FAST_CPU = "+++"
_LINE = re.compile(r"\d+\.\d+,.*", re.ASCII)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.]{0,15}", re.ASCII)
_RATE = re.compile(r"\d{1,15}(?:\.\d)?", re.ASCII)
_PERCENT = re.compile(r"\d{1,6}", re.ASCII)
_LATENCY = re.compile(r"(?P<number>\d{1,9})(?P<unit>us|ms|s)", re.ASCII)
_NANOSECONDS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_SIZE = re.compile(r"(?P<number>\d{1,9})(?P<unit>[MG])", re.ASCII)
_MEBIBYTES = {"M": 1, "G": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The result of one phase.

    Attributes:
        rate: per second, in KiB, seeks or files; None if the phase was too fast to be timed.
        percent: CPU time in percent of one CPU; None without a rate.
        longest: nanoseconds of the longest operation.

    """

    rate: float | None
    percent: int | None
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BonnieReport:
    """The result of a run.

    Attributes:
        settings: the columns that repeat what was requested, by name; empty text for defaults.
        mebibytes: size of the large file; 0 without one.
        phases: only those that were done.
        warnings: lines that are not the result.

    """

    version: str
    settings: dict[str, str]
    mebibytes: int
    phases: dict[Operation, Phase]
    warnings: tuple[str, ...]


_SETTINGS = {
    3: "name", 4: "concurrency", 5: "seed", 7: "chunk_size", 8: "seeks", 9: "seek_processes",
    22: "num_files", 23: "max_size", 24: "min_size", 25: "file_chunk_size", 26: "num_dirs",
}  # fmt: skip


def read_report(output: Output) -> BonnieReport:
    """Read the output of a run.

    Raises:
        OutputError: it failed, its format is another, or a column is missing or malformed.

    """
    if output.exit_code:
        raise OutputError(f"bonnie++ failed with {failure(output)}")
    lines = complete_lines(output.stdout)
    results = [line for line in lines if _LINE.fullmatch(line)]
    if len(results) != 1:
        raise OutputError(f"the output has {len(results)} lines of results instead of one")
    columns = results[0].split(",")
    if columns[0] != FORMAT:
        raise OutputError(f"the format is {printable(columns[0])}, but only {FORMAT} of bonnie++ 2.00 is supported")
    if len(columns) != _COLUMNS:
        raise OutputError(f"the line has {len(columns)} columns instead of {_COLUMNS}")
    return BonnieReport(
        version=_version(columns[1]),
        settings={name: columns[number - 1] for number, name in _SETTINGS.items()},
        mebibytes=_mebibytes(columns[5]),
        phases=dict(_phases(columns)),
        warnings=tuple(f"unknown line: {printable(line)}" for line in lines if line not in results),
    )


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise OutputError(f"bonnie_version is not a version: {printable(text)}")
    return text


def _mebibytes(text: str) -> int:
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise OutputError(f"file_size is not a size in M or G: {printable(text)}")
    return int(match["number"]) * _MEBIBYTES[match["unit"]]


def _phases(columns: Sequence[str]) -> Iterator[tuple[Operation, Phase]]:
    for operation, (name, column, latency) in PHASES.items():
        rate, percent, longest = columns[column - 1], columns[column], columns[latency - 1]
        if rate:
            yield operation, _phase(name, rate, percent, longest)
        elif percent or longest:
            raise OutputError(f"{name} has no rate, but other columns")


def _phase(name: str, rate: str, percent: str, longest: str) -> Phase:
    nanoseconds = _longest(name, longest)
    if rate == _TOO_FAST:
        if percent != _TOO_FAST_CPU:
            raise OutputError(f"{name} was too fast to be timed, but not its CPU time: {printable(percent)}")
        return Phase(rate=None, percent=None, longest=nanoseconds)
    if not _RATE.fullmatch(rate):
        raise OutputError(f"{name} is not a rate: {printable(rate)}")
    if not float(rate):
        raise OutputError(f"{name} is 0: bonnie++ rounds rates below 1 per second down")
    if not _PERCENT.fullmatch(percent):
        raise OutputError(f"{name}_cpu is not a whole number: {printable(percent)}")
    return Phase(rate=float(rate), percent=int(percent), longest=nanoseconds)


def _longest(name: str, text: str) -> int:
    match = _LATENCY.fullmatch(text)
    if match is None:
        raise OutputError(f"{name}_latency is not a time in us, ms or s: {printable(text)}")
    return int(match["number"]) * _NANOSECONDS[match["unit"]]
