"""A tool's processes, and what the kernel counted as their I/O on storage (`proc_pid_io(5)`, `getrusage(2)`).

A read that a cache or a hole in a file answers reaches no storage and is not counted: for data sets whose block device
cannot be seen, this is the witness.
"""

import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCounters:
    """Bytes that a tool has read from storage and written to it."""

    read: int = 0
    written: int = 0


class ToolAccount:
    """Counts the I/O of one tool, from before it starts until after it has ended."""

    def __init__(self, proc: Path) -> None:
        """Begin before the tool starts."""
        self._proc = proc
        self._before = _of_ended_children()
        self._shown = False

    def look(self, pid: int) -> ToolCounters | None:
        """Return what the process and all below it have done; None if that is not shown."""
        counters = [found for process in with_descendants(self._proc, pid) if (found := self._read(process))]
        self._shown = self._shown or bool(counters)
        if not counters:
            return None
        return ToolCounters(read=sum(item.read for item in counters), written=sum(item.written for item in counters))

    def end(self) -> ToolCounters | None:
        """Return what it has done in all. It must have ended, and be the only child that has since the beginning.

        None if it never could be looked at: a kernel that does not count shows zeros here.
        """
        after = _of_ended_children()
        if not self._shown:
            return None
        return ToolCounters(read=after.read - self._before.read, written=after.written - self._before.written)

    def _read(self, pid: int) -> ToolCounters | None:
        """Return what one process has done, with its children that have ended."""
        with suppress(OSError, ValueError, KeyError):
            lines = (self._proc / str(pid) / "io").read_text().splitlines()
            counters = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
            return ToolCounters(read=counters["read_bytes"], written=counters["write_bytes"])
        return None


def with_descendants(proc: Path, pid: int) -> Iterator[int]:
    """Yield a process and all below it."""
    yield pid
    for child in _children(proc, pid):
        yield from with_descendants(proc, child)


def _children(proc: Path, pid: int) -> list[int]:
    with suppress(OSError, ValueError):
        lists = (proc / str(pid) / "task").glob("*/children")
        return [int(child) for path in lists for child in path.read_text().split()]
    return []


def _of_ended_children() -> ToolCounters:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ToolCounters(read=use.ru_inblock * _BLOCK_BYTES, written=use.ru_oublock * _BLOCK_BYTES)
