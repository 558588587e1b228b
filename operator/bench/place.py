"""Where the measurements work, and what they are measured with."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

BENCH = Path(__file__).resolve().parent
WORK = BENCH.parents[1] / "build" / "bench"

_TERM_SECONDS = 10


def fio() -> str:
    """Return the fio to measure with."""
    return os.environ.get("PLIMSOLL_FIO") or "fio"


def fresh(name: str) -> Path:
    """Return an empty directory below `build/bench`."""
    directory = WORK / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


@contextmanager
def running(argv: Sequence[str], log: Path, *, pipes: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Run a Python program until the block ends; its complaints go to a log."""
    with log.open("a") as output:
        process = subprocess.Popen(
            [sys.executable, *argv],
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else output,
            stderr=output,
            text=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """End a process, also one that is stopped; one that has ended is left alone."""
    if process.poll() is not None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
        process.terminate()
    try:
        process.wait(_TERM_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def memory_bytes(process: int | str = "self", field: str = "VmHWM") -> int:
    """Return the most memory that a process has held so far; `getrusage(2)` would count its parent before `exec`."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Return the CPU time that a process has used, without its children."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
