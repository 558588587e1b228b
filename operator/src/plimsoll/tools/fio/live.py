"""The status lines that fio prints while it runs, one over the other (fio: `eta.c`; seen with 3.33 and 3.39).

`Jobs: 2 (f=2), 0-800 IOPS: [m(2)][66.7%][r=2404KiB/s,w=808KiB/s][r=601,w=202 IOPS][eta 00m:03s]` and a carriage return.
Of a large number three digits are left, so it may be wrong by half a percent. Rates are those since the line before.
What is not done at all is not named, and during the ramp nothing is.
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
"""Jobs that run, and jobs that have run. Any other has not begun to measure: `/` is the ramp."""

_LETTERS = {Operation.READ: "r", Operation.WRITE: "w", Operation.TRIM: "t"}
_PREFIXES = ("", "k", "M", "G", "T", "P")


def live_rates(operations: Iterable[Operation], said: str) -> tuple[LiveRate, ...]:
    """Return the rates in the last status line; empty if there is none, or it is not all of the measurement.

    The line before has to be of the measurement too: else what the last one counts began before it.
    """
    *ended, _ = re.split(r"[\r\n]+", said)
    lines = [_STATUS.fullmatch(line) for line in ended[-2:]]
    if len(lines) < 2 or not all(line and _measures(line["jobs"]) for line in lines):  # noqa: PLR2004 - as said above
        return ()
    last = lines[-1]
    # Without rates nothing was done.
    bytes_per_second, iops = (_values((last and last[name]) or "") for name in ("bytes", "iops"))
    return tuple(
        LiveRate(
            operation=operation,
            iops=iops.get(_LETTERS[operation], 0.0),
            bytes_per_second=round(bytes_per_second.get(_LETTERS[operation], 0.0)),
        )
        for operation in operations
    )


def _measures(jobs: str) -> bool:
    """Tell whether jobs, by their states as in `m(2),f(1)`, have all begun to measure, and one still does."""
    states = set(re.sub(r"\(\d+\)|,", "", jobs))
    return bool(states & _RUNNING) and states <= _RUNNING | _OVER


def _values(text: str) -> dict[str, float]:
    """Return letter -> value of a list such as `r=96.1MiB/s,w=39.1MiB/s` or `r=24.6k,w=9997`."""
    found = (_VALUE.fullmatch(value) for value in text.split(","))
    return {match["letter"]: _value(match) for match in found if match}


def _value(match: re.Match[str]) -> float:
    power = _PREFIXES.index(match["prefix"].replace("K", "k"))
    return float(match["number"]) * float((1024 if match["binary"] else 1000) ** power)
