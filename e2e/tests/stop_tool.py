"""Stops each measuring fio of this pod some time after it appears, for a while. Runs inside a client's pod.

Its pauses are the fault itself: how long after its start a tool stops, and for how long. No test waits for them.
"""

import os
import signal
import sys
import time
from pathlib import Path

AFTER_SECONDS, FOR_SECONDS = map(float, sys.argv[1:])


def measuring() -> set[int]:
    """Return the processes that measure; not those that prefill or tell their version."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"fio") and b"--name=measure" in words:
            found.add(int(directory.name))
    return found


stopped: set[int] = set()
while True:
    for process in measuring() - stopped:
        stopped.add(process)
        time.sleep(AFTER_SECONDS)
        os.kill(process, signal.SIGSTOP)
        time.sleep(FOR_SECONDS)
        os.kill(process, signal.SIGCONT)
    time.sleep(0.02)
