"""The values of fio's parameters that are names."""

from collections.abc import Mapping
from enum import StrEnum

from plimsoll.api.names import Operation


class Pattern(StrEnum):
    """Direction and order of the I/O, by fio's own names."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    READWRITE = "readwrite"
    RANDRW = "randrw"
    TRIM = "trim"
    RANDTRIM = "randtrim"

    @property
    def is_random(self) -> bool:
        """Whether blocks are visited in random order, so that jobs can share a range."""
        return self.value.startswith("rand")

    @property
    def is_mixed(self) -> bool:
        """Whether it both reads and writes."""
        return self in (Pattern.READWRITE, Pattern.RANDRW)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Operations of the pattern."""
        return _OPERATIONS[self]

    @property
    def writes(self) -> bool:
        """Whether it writes data."""
        return Operation.WRITE in self.operations


_OPERATIONS: Mapping[Pattern, tuple[Operation, ...]] = {
    Pattern.READ: (Operation.READ,),
    Pattern.WRITE: (Operation.WRITE,),
    Pattern.RANDREAD: (Operation.READ,),
    Pattern.RANDWRITE: (Operation.WRITE,),
    Pattern.READWRITE: (Operation.READ, Operation.WRITE),
    Pattern.RANDRW: (Operation.READ, Operation.WRITE),
    Pattern.TRIM: (Operation.TRIM,),
    Pattern.RANDTRIM: (Operation.TRIM,),
}


class Engine(StrEnum):
    """How fio submits I/O: to librbd (`rbd`), or to the kernel."""

    LIBAIO = "libaio"
    IO_URING = "io_uring"
    PSYNC = "psync"
    SYNC = "sync"
    RBD = "rbd"

    @property
    def is_synchronous(self) -> bool:
        """Whether a job has only one operation in flight."""
        return self in (Engine.PSYNC, Engine.SYNC)


class Until(StrEnum):
    """What ends a measurement before its time is over."""

    DATA_SET_DONE = "DataSetDone"


class Arrivals(StrEnum):
    """When the operations of a limited rate are due."""

    EVEN = "Even"
    POISSON = "Poisson"


class Files(StrEnum):
    """Which files of a shared volume the clients work on."""

    FILE_PER_CLIENT = "FilePerClient"
    SHARED_FILE = "SharedFile"


class ReadBack(StrEnum):
    """Whose data a client reads instead of its own."""

    NEXT_CLIENT = "NextClient"
