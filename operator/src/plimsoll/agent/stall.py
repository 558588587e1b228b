"""Detects that a command that writes to Ceph is stuck: librados waits forever for an unreachable cluster."""

import time
from collections.abc import Callable
from pathlib import Path

STALL_SECONDS = 300.0
"""A command that sends nothing for this long is stuck; Ceph replaces a dead OSD much sooner."""

_STALL_BYTES = 2**20
"""Far above the traffic that keeps connections to a cluster alive in that time."""

_SENT_COLUMN = 8


class StalledError(Exception):
    """A command has sent nothing for too long."""


class StallWatch:
    """Watches that a command that writes through librbd sends data.

    The kernel does not count these writes for a process, so the traffic of its network namespace is watched. Other
    processes in the namespace can hide a stall, but cannot cause a false alarm.
    """

    def __init__(self, proc: Path = Path("/proc"), *, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._sent = 0
        self._sent_at = clock()

    def look(self, pid: int) -> None:
        """Raise StalledError if the process has sent too little for too long. Call it about every second."""
        now = self._clock()
        sent = self._read(pid)
        if sent is None or abs(sent - self._sent) >= _STALL_BYTES:
            self._sent, self._sent_at = sent or 0, now
        if now - self._sent_at >= STALL_SECONDS:
            raise StalledError(f"has sent nothing for {STALL_SECONDS:.0f} s, and was killed")

    def _read(self, pid: int) -> int | None:
        """Return the bytes sent by all interfaces; None if unreadable."""
        try:
            lines = (self._proc / str(pid) / "net/dev").read_text().splitlines()
            return sum(int(line.partition(":")[2].split()[_SENT_COLUMN]) for line in lines if ":" in line)
        except (OSError, ValueError, IndexError):
            return None
