"""fio's status lines, which overwrite each other on a terminal (fio: `eta.c`; observed with 3.33 and 3.39).

`Jobs: 2 (f=2), 0-800 IOPS: [m(2)][66.7%][r=2404KiB/s,w=808KiB/s][r=601,w=202 IOPS][eta 00m:03s]` and a carriage return.
Large numbers have three digits, so they may be off by half a percent. Rates are those since the previous line. A line
names no operation without I/O, and no operation at all during the ramp.
"""

import re
from collections.abc import Iterable

from plimsoll.api.names import Operation
from plimsoll.api.state import LiveRate

_STATUS = re.compile(
    r"Jobs: \d+ \(f=\d+\)[^\[\]]*: \[(?P<jobs>[^\[\]]*)\]\[[^\[\]]*\]"
    r"(?:\[(?P<bytes>[^\[\]]*)\]\[(?P<iops>[^\[\]]*) IOPS\])?\[eta [^\[\]]*\] *",
    re.ASCII,
)
_VALUE = re.compile(
    r"(?P<letter>[rwt])=(?P<number>\d{1,9}(?:\.\d{1,9})?)(?P<prefix>[kKMGTP]?)(?P<binary>i?)(?:B/s)?", re.ASCII
)
_RUNNING = frozenset("RrWwMmDd")
_OVER = frozenset("FfE_X")
"""States of jobs that measure or have measured. Any other state precedes the measurement: `/` is the ramp."""

_LETTERS = {Operation.READ: "r", Operation.WRITE: "w", Operation.TRIM: "t"}
_PREFIXES = ("", "k", "M", "G", "T", "P")


def live_rates(operations: Iterable[Operation], printed: str) -> tuple[LiveRate, ...]:
    """Return the rates in the last status line; empty unless this and the previous line belong to the measurement.

    After a line of the ramp, the rates would include I/O of the ramp.
    """
    *ended, _ = re.split(r"[\r\n]+", printed)
    matches = [match for match in map(_STATUS.fullmatch, ended[-2:]) if match and _is_measuring(match["jobs"])]
    if len(matches) < 2:  # noqa: PLR2004 - as documented above
        return ()
    # A line without rates means no I/O.
    bytes_per_second, iops = (_values(matches[-1][name] or "") for name in ("bytes", "iops"))
    return tuple(
        LiveRate(
            operation=operation,
            iops=iops.get(_LETTERS[operation], 0.0),
            bytes_per_second=round(bytes_per_second.get(_LETTERS[operation], 0.0)),
        )
        for operation in operations
    )


def _is_measuring(jobs: str) -> bool:
    """Whether jobs with states such as `m(2),f(1)` have all begun to measure, and one still does."""
    states = set(re.sub(r"\(\d+\)|,", "", jobs))
    return bool(states & _RUNNING) and states <= _RUNNING | _OVER


def _values(text: str) -> dict[str, float]:
    """Return letter -> value for a list such as `r=96.1MiB/s,w=39.1MiB/s` or `r=24.6k,w=9997`."""
    found = (_VALUE.fullmatch(value) for value in text.split(","))
    return {match["letter"]: _value(match) for match in found if match}


def _value(match: re.Match[str]) -> float:
    power = _PREFIXES.index(match["prefix"].replace("K", "k"))
    return float(match["number"]) * float((1024 if match["binary"] else 1000) ** power)
