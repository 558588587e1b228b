"""The random arrivals of a client, as a trace that fio replays.

With `rate_process=poisson`, fio waits for everything that it has in flight before it sleeps until the next arrival, so
that a slow storage delays what is due meanwhile. A replay submits each operation on time, whatever is in flight, until
the depth is full. While it waits, it polls for completions, which takes a whole CPU.

fio counts the microseconds of each gap from the end of the submission before it, so that the replay is slower than its
trace by the time of a submission for each operation (observed with 3.39: 9 to 12 us on a loop device).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import shake_128
from itertools import count
from math import log
from struct import unpack

from plimsoll.api.names import Operation
from plimsoll.tools.base import Timing

SPARE_SECONDS = 10
"""The trace is longer than ramp and runtime: a replay that ends before them would end the measurement."""

_FILE = "data"
"""What the trace calls the file; fio replaces it by the one that it is to use."""
_HEADER = ("fio version 3 iolog\n", f"0 {_FILE} add\n", f"0 {_FILE} open\n")
_MICROSECONDS = 10**6
_WORDS = 3
_BATCH = 4096
_RANGE = 2**64


def traced_seconds(timing: Timing) -> int:
    """Return the length of a trace for a measurement."""
    return timing.ramp_seconds + timing.runtime_seconds + SPARE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The lines of a trace in fio's format (`iolog`, version 3); iterating again yields the same lines.

    Attributes:
        seed: two traces with different seeds are independent of each other.
        rate: operations per second.
        seconds: length of the trace.
        block_size: bytes of each operation.
        offset: byte at which the data set begins.
        blocks: number of blocks in it.
        is_random: whether blocks are visited in random order; otherwise reads and writes each visit them one after the
            other, and begin again at the end.
        read_percent: the operations that are reads, in percent.

    """

    seed: int
    rate: float
    seconds: int
    block_size: int
    offset: int
    blocks: int
    is_random: bool
    read_percent: int

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, each with its end of line."""
        yield from _HEADER
        end, now = self.seconds * _MICROSECONDS, 0.0
        done = {Operation.READ: 0, Operation.WRITE: 0}
        for gap, direction, place in self._numbers():
            now += -log((gap + 1) / _RANGE) * _MICROSECONDS / self.rate
            if now >= end:
                break
            operation = Operation.READ if direction * 100 < self.read_percent * _RANGE else Operation.WRITE
            block = place * self.blocks // _RANGE if self.is_random else done[operation] % self.blocks
            done[operation] += 1
            yield f"{int(now)} {_FILE} {operation} {self.offset + block * self.block_size} {self.block_size}\n"
        yield f"{end} {_FILE} close\n"

    def _numbers(self) -> Iterator[tuple[int, int, int]]:
        """Yield triples of uniformly distributed numbers below 2**64, which only the seed determines."""
        for batch in count():
            data = shake_128(f"{self.seed}/{batch}".encode()).digest(_BATCH * _WORDS * 8)
            numbers = iter(unpack(f"<{_BATCH * _WORDS}Q", data))
            yield from zip(numbers, numbers, numbers, strict=True)
