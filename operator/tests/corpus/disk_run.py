"""Recorded output of dd, ioping and bonnie++, which contains no times of day."""

from dataclasses import replace

from plimsoll.tools.base import Output
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind
from support.goldens import recorded

ON_VOLUMES = frozenset(key for key, tool in TOOLS.items() if tool.target is TargetKind.VOLUME and key != "fio")
RECORDED_BYTES = 128 * 2**20
"""Size of the data set of the longest recorded dd."""

_STARTING = 4 * 10**6
"""Nanoseconds from the launch of ioping to its first request, and from its last line to its end, together."""


def recorded_on_volume(stem: str, started_at: int) -> Output:
    """Return a golden case as if it had been launched at that time, Unix nanoseconds."""
    output = recorded(stem)
    last = output.stdout.rstrip().rpartition("\n")[2].split()
    lasted = output.finished_at or _STARTING + (int(last[-1]) if last else 0)
    return replace(output, launched_at=started_at, finished_at=started_at + lasted)
