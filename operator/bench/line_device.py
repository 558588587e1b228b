"""Searches for the line of a real device of which theory knows it: `line_device.py [LINES]`; a table of
docs/explanation/line.md.

The device is a loop device that Linux limits to a number of reads per second (`support/disks.py`). It searches so
many times with `plimsoll run`. It needs root, and fio in PLIMSOLL_FIO.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from support.local_run import THROTTLE, found_line, line_of

_LINES = 2
_PRECISION_PERCENT = 10


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else _LINES
    fio = os.environ["PLIMSOLL_FIO"]
    expected = THROTTLE.line()
    print(f"line of {THROTTLE.permits_per_second} reads per second: expected {expected:.0f}\n")
    print("| search | ending | probes | line | 95 % interval | contains what is expected |\n|---|---|---|---|---|---|")
    for number in range(lines):
        print(f"| {number + 1} | {' | '.join(_searched(fio, expected, seed=number + 1))} |", flush=True)


def _searched(fio: str, expected: float, *, seed: int) -> Iterator[str]:
    with TemporaryDirectory() as directory:
        line = line_of(found_line(Path(directory), fio, _PRECISION_PERCENT, seed))
    yield str(line.ending)
    yield str(line.probes)
    yield "none" if line.estimate is None else f"{line.estimate:.0f}"
    yield f"{line.low or 0:.0f} to {line.high or math.inf:.0f}"
    yield "yes" if (line.low or 0) <= expected <= (line.high or math.inf) else "no"


if __name__ == "__main__":
    main()
