"""A tool's processes and their I/O on storage as the kernel counts it (`proc_pid_io(5)`, `getrusage(2)`).

Reads from a cache or from a hole in a file are not counted, so these counters reveal them where the block device of the
data set is not visible.
"""

import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCounters:
    """Bytes that a tool has read from and written to storage."""

    read: int = 0
    written: int = 0


class ToolAccount:
    """Counts one tool's I/O from before its start until after its end.

    Attributes:
        is_visible: whether `look` has seen its counters.

    """

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._before = _ended_children_counters()
        self.is_visible = False

    def look(self, pid: int) -> ToolCounters | None:
        """Return the I/O of a process and its descendants so far; None if it is not visible."""
        counters = [found for process in with_descendants(self._proc, pid) if (found := self._read(process))]
        self.is_visible = self.is_visible or bool(counters)
        if not counters:
            return None
        return ToolCounters(read=sum(item.read for item in counters), written=sum(item.written for item in counters))

    def end(self) -> ToolCounters | None:
        """Return the tool's total I/O, after its end; no other child may have ended since the constructor.

        None if `look` never saw any: a kernel without accounting shows zeros here.
        """
        after = _ended_children_counters()
        if not self.is_visible:
            return None
        return ToolCounters(read=after.read - self._before.read, written=after.written - self._before.written)

    def _read(self, pid: int) -> ToolCounters | None:
        """Return the I/O of one process, including children that have ended."""
        with suppress(OSError, ValueError, KeyError):
            lines = (self._proc / str(pid) / "io").read_text().splitlines()
            counters = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
            return ToolCounters(read=counters["read_bytes"], written=counters["write_bytes"])
        return None


def with_descendants(proc: Path, pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    for child in _children(proc, pid):
        yield from with_descendants(proc, child)


def _children(proc: Path, pid: int) -> list[int]:
    with suppress(OSError, ValueError):
        lists = (proc / str(pid) / "task").glob("*/children")
        return [int(child) for path in lists for child in path.read_text().split()]
    return []


def _ended_children_counters() -> ToolCounters:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ToolCounters(read=use.ru_inblock * _BLOCK_BYTES, written=use.ru_oublock * _BLOCK_BYTES)
