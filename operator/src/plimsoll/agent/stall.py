"""Noticing that a command which writes to Ceph is stuck: librados waits without end for what is out of reach."""

import time
from collections.abc import Callable
from pathlib import Path

STALL_SECONDS = 300.0
"""So long nothing may leave the host before writing is taken for stuck; an OSD that dies is replaced much sooner."""

_STALL_BYTES = 2**20
"""What keeps connections to a cluster alive is far less in that time."""

_SENT_COLUMN = 8


class StalledError(Exception):
    """A command has sent nothing for too long."""


class StallWatch:
    """Watches that a command which writes through librbd has something to send.

    What it has written, the kernel does not count for a process; what left its network namespace, it does. Others in
    there can hide a stall, and never make one up.
    """

    def __init__(self, proc: Path = Path("/proc"), *, clock: Callable[[], float] = time.monotonic) -> None:
        """Read counters below `proc`."""
        self._proc = proc
        self._clock = clock
        self._sent = 0
        self._moved_at = clock()

    def look(self, pid: int) -> None:
        """Look at the process. To be called about every second.

        Raises:
            StalledError: nothing worth mentioning was sent for too long.

        """
        now = self._clock()
        sent = self._read(pid)
        if sent is None or abs(sent - self._sent) >= _STALL_BYTES:
            self._sent, self._moved_at = sent or 0, now
        if now - self._moved_at >= STALL_SECONDS:
            message = f"has sent nothing for {STALL_SECONDS:.0f} s, and was killed"
            raise StalledError(message)

    def _read(self, pid: int) -> int | None:
        """Return the bytes that all interfaces have sent; None if that cannot be read."""
        try:
            lines = (self._proc / str(pid) / "net/dev").read_text().splitlines()
            return sum(int(line.partition(":")[2].split()[_SENT_COLUMN]) for line in lines if ":" in line)
        except (OSError, ValueError, IndexError):
            return None
