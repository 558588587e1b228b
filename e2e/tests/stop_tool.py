"""Stops each measuring fio of this pod for a time, some time after its start. Runs inside a client's pod.

The sleeps are the fault itself: when a tool stops, and for how long. No test waits for them.
"""

import os
import signal
import sys
import time
from pathlib import Path

AFTER_SECONDS, FOR_SECONDS = map(float, sys.argv[1:])


def measuring() -> set[int]:
    """Return the measuring processes, without those that prefill or print their version.

    A fio that waits for T0 has one thread: it starts others when it may begin.
    """
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
            threads = len(list((directory / "task").iterdir()))
        except OSError:
            continue
        if words[0].endswith(b"fio") and b"--name=measure" in words and threads > 1:
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
