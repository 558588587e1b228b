"""What can be asked of fio."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.model import Flag, Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import Size, format_quantity
from plimsoll.tools.base import ToolParameters

MIN_BLOCK_BYTES = 512
MAX_BLOCK_BYTES = 64 * 2**20
DEFAULT_READ_PERCENT = 50


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
        """Whether blocks are visited in random order, so that jobs may share a range."""
        return self.value.startswith("rand")

    @property
    def is_mixed(self) -> bool:
        """Whether it both reads and writes."""
        return self in (Pattern.READWRITE, Pattern.RANDRW)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Operations it consists of."""
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
    """How fio submits I/O: to the kernel, or `rbd` to librbd."""

    LIBAIO = "libaio"
    IO_URING = "io_uring"
    PSYNC = "psync"
    SYNC = "sync"
    RBD = "rbd"

    @property
    def is_synchronous(self) -> bool:
        """Whether a job can have only one operation in flight."""
        return self in (Engine.PSYNC, Engine.SYNC)


class FioParameters(ToolParameters):
    """One point of an fio workload.

    The order of the fields matters: a field is checked against those above it, so that a problem is reported at the
    field that has to be changed.

    Attributes:
        pattern: direction and order.
        block_size: bytes of every operation.
        engine: if absent, `rbd` on an image that is reached through librbd, where there is no other, and `libaio` on a
            volume. `libaio` works under the default seccomp profile, which blocks `io_uring`.
        io_depth: operations each job keeps in flight. Buffered I/O is submitted synchronously by `libaio`: there the
            depth has no effect although fio reports it.
        jobs: threads of one client. Jobs of a random pattern share the target; jobs of a sequential pattern each have
            their own slice of it.
        read_percent: share of reads in a mixed pattern, 50 if absent. 0 and 100 are refused: an operation that is never
            done has no rate.
        fsync_every: writes after which each job calls fsync; 0 for never.
        rate_iops: at most so many operations per second per client, over all its jobs and directions together. It is
            divided evenly over jobs, and by `read_percent` over directions, and rounded down, because fio's own limit
            is a whole number for each job and direction. Waiting for the next permitted operation is not latency.
        direct_io: bypass the page cache. False measures the client's memory as much as its storage. It has no meaning
            for an image, whose cache is librbd's own.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize", "ioDepth"})

    pattern: Pattern = Pattern.RANDREAD
    block_size: Annotated[Size, Field(ge=MIN_BLOCK_BYTES, le=MAX_BLOCK_BYTES, multiple_of=MIN_BLOCK_BYTES)] = 4096
    engine: Engine | None = None
    io_depth: Annotated[Integer, Field(ge=1, le=1024)] = 1
    jobs: Annotated[Integer, Field(ge=1, le=64)] = 1
    read_percent: Annotated[Integer, Field(ge=1, le=99)] | None = None
    fsync_every: Annotated[Integer, Field(ge=0, le=2**31 - 1)] = 0
    rate_iops: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = None
    direct_io: Flag = True

    @field_validator("io_depth")
    @classmethod
    def _depth_needs_an_asynchronous_engine(cls, value: int, info: ValidationInfo) -> int:
        engine = info.data.get("engine")
        if engine is not None and engine.is_synchronous and value > 1:
            raise ValueError(
                f"has no effect with the synchronous engine {engine}; use 1 and raise jobs, or use libaio or io_uring"
            )
        return value

    @field_validator("read_percent", mode="before")
    @classmethod
    def _a_mixture_has_both(cls, value: object, info: ValidationInfo) -> object:
        pattern = info.data.get("pattern")
        if type(value) is int and value in {0, 100} and pattern is not None and pattern.is_mixed:
            alone = f"{'rand' if pattern.is_random else ''}{Operation.READ if value else Operation.WRITE}"
            raise ValueError(f"leaves only one operation; use 1 to 99, or pattern {alone} without readPercent")
        return value

    @field_validator("read_percent")
    @classmethod
    def _only_mixed_patterns_have_a_share(cls, value: int | None, info: ValidationInfo) -> int | None:
        pattern = info.data.get("pattern")
        if value is not None and pattern is not None and not pattern.is_mixed:
            raise ValueError(f"has no meaning for pattern {pattern}; remove it, or use readwrite or randrw")
        return value

    @field_validator("fsync_every")
    @classmethod
    def _only_writes_are_synced(cls, value: int, info: ValidationInfo) -> int:
        pattern = info.data.get("pattern")
        if value and pattern is not None and not pattern.writes:
            raise ValueError(f"has no meaning for pattern {pattern}, which does not write; remove it")
        return value

    @field_validator("rate_iops")
    @classmethod
    def _every_job_gets_a_rate(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None or not {"pattern", "jobs", "read_percent"} <= info.data.keys():
            return value
        jobs, shares = info.data["jobs"], _shares(info.data["pattern"], info.data["read_percent"])
        # fio takes a rate of 0 for no limit at all.
        needed = max(-(-100 * jobs // share) for share in shares.values())
        if value < needed:
            raise ValueError(f"is less than one operation per second for a job and direction; use at least {needed}")
        return value

    @property
    def reads_data(self) -> bool:
        """Whether it reads the target."""
        return Operation.READ in self.pattern.operations

    @property
    def removes_data(self) -> bool:
        """Whether it trims."""
        return Operation.TRIM in self.pattern.operations

    @property
    def is_synchronous(self) -> bool:
        """Whether a job can have only one operation in flight."""
        return self.engine is not None and self.engine.is_synchronous

    @property
    def shares(self) -> Mapping[Operation, int]:
        """Operation -> percent of all operations."""
        return _shares(self.pattern, self.read_percent)

    @property
    def rate_per_job(self) -> Mapping[Operation, int]:
        """Operation -> operations per second that one job may do; empty without a limit."""
        if self.rate_iops is None:
            return {}
        return {operation: self.rate_iops * share // (100 * self.jobs) for operation, share in self.shares.items()}

    @property
    def in_flight(self) -> int | None:
        """Operations that all jobs together keep in flight all the time, None if they wait for something besides.

        Also None for trims: fio does them one by one inside the submission, whatever the engine and the depth.
        """
        waits = self.rate_iops or self.fsync_every or Operation.TRIM in self.pattern.operations
        return None if waits else self.io_depth * self.jobs

    def label(self) -> str:
        """Return the parameters as people say them: `randrw 70/30 8Ki qd4 x2 jobs`."""
        shares = "/".join(str(share) for share in self.shares.values())
        words = (
            (self.pattern.value, True),
            (shares, self.pattern.is_mixed),
            (format_quantity(self.block_size), True),
            (f"qd{self.io_depth}", True),
            (f"x{self.jobs} jobs", self.jobs > 1),
            (self.engine or "", self.engine is not None),
            (f"fsync/{self.fsync_every}", self.fsync_every > 0),
            (f"max {self.rate_iops} IOPS", self.rate_iops is not None),
            ("buffered", not self.direct_io),
        )
        return " ".join(word for word, said in words if said)


def _shares(pattern: Pattern, read_percent: int | None) -> Mapping[Operation, int]:
    if not pattern.is_mixed:
        return dict.fromkeys(pattern.operations, 100)
    percent = DEFAULT_READ_PERCENT if read_percent is None else read_percent
    return {Operation.READ: percent, Operation.WRITE: 100 - percent}
