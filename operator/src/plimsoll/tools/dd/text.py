"""What GNU dd prints on standard error in the C locale (coreutils: `dd.c`, `print_xfer_stats`; observed with 9.1).

    131072+0 records in
    131072+0 records out
    536870912 bytes (537 MB, 512 MiB) copied, 1.23456 s, 435 MB/s

`N+M` are whole and partial records. SIGINT makes it print this and end, SIGUSR1 print it and continue. With
`status=progress` it also prints the last line once for each second, beginning with a carriage return, with the time
rounded to whole seconds. It does so before it reads a block, so after a block of 9 s it prints nine lines at once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.reading import MAX_COUNT, complete_lines, failure, printable

_COUNT = r"\d{1,18}"
_NUMBER = rf"{_COUNT}(?:\.\d{{1,18}})?(?:e[+-]\d\d)?"
_RECORDS = rf"(?P<whole>{_COUNT})\+(?P<partial>{_COUNT}) records"
_IN, _OUT = re.compile(rf"{_RECORDS} in", re.ASCII), re.compile(rf"{_RECORDS} out", re.ASCII)
_COPIED = re.compile(
    rf"(?P<bytes>{_COUNT}) bytes?(?: \([^()]{{1,80}}\))? copied, (?P<seconds>{_NUMBER}) s, "
    rf"(?P<rate>{_NUMBER}) (?P<prefix>[kMGTPE]?)B/s",
    re.ASCII,
)
_KINDS = (("i", _IN), ("o", _OUT), ("c", _COPIED))
# A summary, perhaps after lines of progress; several if SIGUSR1 came.
_ORDER = re.compile(r"(?:c*ioc)+")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_RATE_ROUNDING = 0.1
_LEAST_ROUNDING = 100
"""dd prints rates below 10 with two digits, in kB/s or larger units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DdReport:
    """The last summary of a dd.

    Attributes:
        records: whole and partial ones that were written.
        progress: the seconds in the lines of progress; line k was due after k seconds.
        remarks: all other lines.

    """

    records: int
    partial: int
    bytes: int
    seconds: float
    progress: tuple[float, ...]
    remarks: tuple[str, ...]


def read_report(block_size: int, output: Output) -> DdReport:
    """Read the output of a dd with that block size.

    Raises:
        OutputError: it copied nothing, or a line is missing or contradicts the others.

    """
    lines = complete_lines(output.stderr)
    known = [(kind, match) for line in lines for kind, pattern in _KINDS if (match := pattern.fullmatch(line))]
    remarks = [printable(line) for line in lines if not any(pattern.fullmatch(line) for _, pattern in _KINDS)]
    problem = failure(replace(output, stderr="\n".join(remarks)))
    if not _ORDER.fullmatch("".join(kind for kind, _ in known)):
        raise OutputError(f"dd printed no complete summary, {problem}")
    (_, read), (_, written), (_, copied) = known[-3:]
    if output.exit_code == 0 and read[0].split(" ", 1)[0] != written[0].split(" ", 1)[0]:
        raise OutputError(f"dd read {printable(read[0])}, but wrote {printable(written[0])}")
    whole, partial, size = int(written["whole"]), int(written["partial"]), int(copied["bytes"])
    if not size:
        raise OutputError(f"dd copied nothing, {problem}")
    if not whole * block_size + partial <= size <= whole * block_size + partial * (block_size - 1):
        raise OutputError(f"{size} bytes are not {whole} blocks of {block_size} bytes and {partial} smaller ones")
    return DdReport(
        records=whole + partial,
        partial=partial,
        bytes=size,
        seconds=_seconds(copied, size),
        progress=tuple(_progress(known)),
        remarks=tuple(remarks),
    )


def progress_of(printed: str) -> list[tuple[float, int]]:
    """Return (seconds, bytes until then) of the lines of progress in a text that may be cut at both ends."""
    matches = (_COPIED.fullmatch(line.rstrip()) for line in re.split(r"[\r\n]", printed)[1:-1])
    return [(float(match["seconds"]), int(match["bytes"])) for match in matches if match]


def _progress(known: Sequence[tuple[str, re.Match[str]]]) -> Iterator[float]:
    """Yield the seconds of the lines of progress, which follow no numbers of records."""
    before = ""
    for kind, match in known:
        if kind == "c" and before != "o":
            yield float(match["seconds"])
        before = kind


def _seconds(copied: re.Match[str], size: int) -> float:
    seconds = float(copied["seconds"])
    rate = float(copied["rate"]) * 1000.0 ** _PREFIXES.index(copied["prefix"])
    if not 0 < seconds < MAX_COUNT / 10**9 or abs(rate - size / seconds) > max(
        _LEAST_ROUNDING, _RATE_ROUNDING * size / seconds
    ):
        raise OutputError(f"the rate contradicts bytes and seconds: {printable(copied[0])}")
    return seconds
