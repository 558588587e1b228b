"""The parameters of fio."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import shake_128
from itertools import count
from math import log
from struct import unpack
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator

from plimsoll.api.line import Vary
from plimsoll.api.model import Flag, Integer, Model, Rule
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import DataContent
from plimsoll.tools.base import BLOCK_DESCRIPTION, MAX_DEPTH, BlockBytes, Depth, Timing, ToolParameters
from plimsoll.tools.fio import rules as fio_rules
from plimsoll.tools.fio.distribution import UNIFORM, Distribution, Pareto, Zipf, scattering_step, skew_of


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
        return (Operation.READ, Operation.WRITE) if self.is_mixed else (Operation(self.value.removeprefix("rand")),)

    @property
    def writes(self) -> bool:
        return Operation.WRITE in self.operations


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


class BlockShare(Model):
    """A size of operations and its share."""

    size: BlockBytes
    """Bytes of an operation, as in blockSize."""
    percent: Annotated[Integer, Field(ge=1, le=99)]
    """Percent of the operations that have this size. All sizes together have 100."""


DEFAULT_BLOCK_BYTES = 4096
SPARE_SECONDS = 10  # a trace is longer than ramp and runtime: the end of a replay would end the measurement
_MICROSECONDS = 10**6
_RANGE = 2**64


def traced_seconds(timing: Timing) -> int:
    """Return the length of a trace for a measurement."""
    return timing.total_seconds + SPARE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The lines of a trace in fio's format (`iolog`, version 3); iterating again yields the same lines."""

    seed: int  # two traces with different seeds are independent of each other
    rate: float  # operations per second
    seconds: int  # length of the trace
    block_sizes: Mapping[int, int]  # bytes of an operation, multiples of the least -> percent of all operations
    offset: int  # byte at which the data set begins
    blocks: int  # number of blocks of the smallest size in it
    is_random: bool  # whether blocks are visited in random order; otherwise in order, by reads and writes apart
    skew: Zipf | Pareto | None = None  # of random blocks
    read_percent: int  # the operations that are reads, in percent
    # Microseconds by which each operation delays all that follow, because fio counts a gap from the end of the
    # submission before it: gaps are shorter by as much.
    delay: float = 0.0

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, each with its end of line. fio replaces `data` by the file that it is to use."""
        yield from ("fio version 3 iolog\n", "0 data add\n", "0 data open\n")
        end, due, unit = self.seconds * _MICROSECONDS, 0.0, min(self.block_sizes)
        # Time in the trace, and when fio has submitted the operation before. Operations that are due faster than they
        # can be submitted follow each other without gaps until that is made up for.
        written, ready = 0, 0.0
        hundred_sizes = [size for size, percent in self.block_sizes.items() for _ in range(percent)]
        following = {Operation.READ: 0, Operation.WRITE: 0}
        for gap, kind, place in self._numbers():
            due += -log((gap + 1) / _RANGE) * _MICROSECONDS / self.rate
            if due >= end:
                break
            wait = max(0, int(due - ready))
            written, ready = written + wait, ready + wait + self.delay
            operation = Operation.READ if kind * 100 < self.read_percent * _RANGE else Operation.WRITE
            # The lower bits are independent of the higher ones, which decide about the operation.
            size = hundred_sizes[kind % 2**32 * 100 // 2**32]
            last = self.blocks - size // unit
            if not self.is_random:
                block = following[operation] if following[operation] <= last else 0
            elif self.skew is None:
                block = min(place * self.blocks // _RANGE, last)
            else:
                rank = self.skew.rank(place / _RANGE, self.blocks)
                block = min((rank * scattering_step(self.blocks) + self.seed) % self.blocks, last)
            following[operation] = block + size // unit
            yield f"{written} data {operation} {self.offset + block * unit} {size}\n"
        yield f"{end} data close\n"

    def _numbers(self) -> Iterator[tuple[int, int, int]]:
        """Yield triples of uniformly distributed numbers below 2**64, which only the seed determines."""
        numbers_per_batch = 3 * 4096
        for batch in count():
            data = shake_128(f"{self.seed}/{batch}".encode()).digest(numbers_per_batch * 8)
            numbers = iter(unpack(f"<{numbers_per_batch}Q", data))
            yield from zip(numbers, numbers, numbers, strict=True)


_TRACED_PER_SECOND = 300_000  # arrivals of a trace that an agent writes per second


class FioParameters(ToolParameters):
    """fio on each client's volume, one process per client; through librbd with access LibRBD."""

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize", "ioDepth"})
    rules: ClassVar[tuple[Rule, ...]] = fio_rules.PARAMETER_RULES
    workload_rules: ClassVar[tuple[Rule, ...]] = fio_rules.WORKLOAD_RULES
    run_rules: ClassVar[tuple[Rule, ...]] = fio_rules.RUN_RULES
    reads_when: ClassVar[str] = fio_rules.READS_WHEN
    load_fields: ClassVar[Mapping[Vary, tuple[str, ...]]] = {
        Vary.RATE: ("rateIops", "arrivals"),
        Vary.DEPTH: ("ioDepth",),
    }
    depth_axis: ClassVar[str] = "ioDepth"
    size_axis: ClassVar[str] = "blockSize"

    # Each field is checked against those above it, so that a problem is reported at the field to change.
    pattern: Pattern = Pattern.RANDREAD
    """Direction and order of the I/O, by fio's own names."""
    block_size_mix: Annotated[tuple[BlockShare, ...], Field(min_length=2, max_length=32)] | None = None
    """Operations of several sizes at random, in place of blockSize (fio's bssplit). Every size is a multiple of the
    smallest, and operations begin at multiples of the smallest."""
    block_size: BlockBytes | None = Field(
        default_factory=lambda validated: None if validated.get("block_size_mix") else DEFAULT_BLOCK_BYTES,
        description=BLOCK_DESCRIPTION,
    )
    """Axis: bytes of every operation, from 512 to 64Mi, a multiple of 512. 4Ki if absent."""
    random_distribution: Distribution = UNIFORM
    """How the blocks of a random pattern are chosen: random for all alike; zipf:THETA, such as zipf:1.1, or pareto:H,
    such as pareto:0.2 for 80 % of the operations on 20 % of the blocks, for hot and cold ones. Hot blocks are scattered
    over the data set, and differ between clients, jobs and trials."""
    engine: Engine | None = None
    """How I/O is submitted. If absent, rbd with access LibRBD, where there is no other, and libaio otherwise. The
    default seccomp profile blocks io_uring."""
    io_depth: Depth = 1
    """Axis: operations that each job keeps in flight. More than 1 needs an asynchronous engine. Buffered I/O is
    submitted synchronously by libaio: there the depth has no effect although fio reports it."""
    jobs: Annotated[Integer, Field(ge=1, le=64)] = 1
    """Threads of each client. Jobs of a random pattern share the volume; jobs of a sequential pattern each have their
    own slice of it. With access LibRBD only 1 for patterns that write or trim: each job would take the image's lock
    from the others."""
    read_percent: Annotated[Integer, Field(ge=1, le=99)] | None = None
    """Share of reads in a mixed pattern, 50 if absent. Refused for other patterns; for reads or writes alone use
    theirs."""
    fsync_every: Annotated[Integer, Field(ge=0, le=2**31 - 1)] = 0
    """Writes after which each job calls fsync; 0 for never."""
    rate_iops: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = None
    """Maximum operations per second of each client, over all its jobs and directions together; no limit if absent. It
    is divided evenly over jobs, and by readPercent over directions, and rounded down. Waiting for the next permitted
    operation is not latency."""
    arrivals: Literal["Even", "Poisson"] | None = None
    """When operations at rateIops are due: Even after equal times, if absent; Poisson at random times, like requests of
    many independent users, whatever is in flight, up to ioDepth. With Poisson, a client has at most 50000 operations
    per second and one job, and takes a whole CPU, because it waits by polling. Poisson does not apply to trims, syncs,
    synchronous engines, buffered I/O and access LibRBD."""
    compress_percent: Annotated[Integer, Field(ge=1, le=99)] | None = None
    """Percentage of each 512 bytes that is constant and can be compressed, also in the prefill. Random data if absent.
    All workloads that use fio must agree, because they share the data sets."""
    dedupe_percent: Annotated[Integer, Field(ge=1, le=99)] | None = None
    """Percentage of the writes that repeat earlier data and can be deduplicated. Otherwise as compressPercent."""
    direct_io: Flag = True
    """Bypass the page cache. false measures the client's memory as much as its storage, and is refused with access
    LibRBD."""
    until: Literal["DataSetDone"] | None = None
    """DataSetDone ends the measurement when each client has read, written or trimmed its data set once, every block of
    a random pattern included. runtimeSeconds is then the limit, not far above the expected time. With less than all
    done, the result is Invalid. Requires rampSeconds 0, one job and directIo."""
    files: Literal["FilePerClient", "SharedFile"] | None = None
    """FilePerClient, if absent, for a separate file for each client; SharedFile for one file in which each client has
    its own region. It requires volume.sharing Shared, and applies to all workloads that use fio."""
    read_back: Literal["NextClient"] | None = None
    """NextClient makes each client read the data that the next participating client prefilled. Requires volume.sharing
    Shared, two clients or more, and the pattern read or randread."""

    @field_validator("block_size_mix")
    @classmethod
    def _check_multiples(cls, mix: tuple[BlockShare, ...] | None) -> tuple[BlockShare, ...] | None:
        sizes = [part.size for part in mix or ()]
        for number, size in enumerate(sizes):
            if size in sizes[:number]:
                raise ValueError(f"must name each size once, but has {format_quantity(size)} twice; add up its percent")
            # fio would round it down.
            if size % min(sizes):
                raise ValueError(
                    f"must have multiples of its smallest size, but {format_quantity(size)} is no multiple of "
                    f"{format_quantity(min(sizes))}; change one of them"
                )
        return mix

    @property
    def block_sizes(self) -> Mapping[int, int]:
        """Bytes of an operation -> percent of all operations."""
        if self.block_size_mix is None:
            return {DEFAULT_BLOCK_BYTES if self.block_size is None else self.block_size: 100}
        return {part.size: part.percent for part in self.block_size_mix}

    @property
    def skew(self) -> Zipf | Pareto | None:
        return skew_of(self.random_distribution, min(self.block_sizes))

    @property
    def content(self) -> DataContent:
        return DataContent(compress_percent=self.compress_percent or 0, dedupe_percent=self.dedupe_percent or 0)

    @property
    def shares_file(self) -> bool:
        return self.files == "SharedFile"

    @property
    def reads_next_client(self) -> bool:
        return self.read_back == "NextClient"

    @property
    def reads_data(self) -> bool:
        return Operation.READ in self.pattern.operations

    def writing_seconds(self, timing: Timing) -> int:
        return timing.total_seconds if self.pattern.writes else 0

    @property
    def most_written_per_second(self) -> float | None:
        due = self.offered_rates.get(Operation.WRITE)
        return None if due is None else due * sum(size * percent for size, percent in self.block_sizes.items()) / 100

    @property
    def at_random(self) -> bool:
        """Whether the pattern is random; with an end, fio visits each block once."""
        return self.pattern.is_random and self.until is None

    @property
    def removes_data(self) -> bool:
        return Operation.TRIM in self.pattern.operations

    @property
    def is_synchronous(self) -> bool:
        return self.engine is not None and self.engine.is_synchronous

    @property
    def shares(self) -> Mapping[Operation, int]:
        if not self.pattern.is_mixed:
            return dict.fromkeys(self.pattern.operations, 100)
        percent = 50 if self.read_percent is None else self.read_percent
        return {Operation.READ: percent, Operation.WRITE: 100 - percent}

    @property
    def is_open_loop(self) -> bool:
        return self.arrivals == "Poisson"

    @property
    def rate_per_job(self) -> Mapping[Operation, int]:
        """Operation -> maximum operations per second of one job; empty without a limit."""
        if self.rate_iops is None:
            return {}
        return {operation: self.rate_iops * share // (100 * self.jobs) for operation, share in self.shares.items()}

    @property
    def offered_rates(self) -> Mapping[Operation, float]:
        if self.is_open_loop and self.rate_iops is not None:
            return {operation: self.rate_iops * share / 100 for operation, share in self.shares.items()}
        return {operation: self.jobs * rate for operation, rate in self.rate_per_job.items()}

    @property
    def in_flight(self) -> int | None:
        """Operations that all jobs together always keep in flight; None if a rate, syncs or trims make them wait."""
        waits = self.rate_iops or self.fsync_every or Operation.TRIM in self.pattern.operations
        return None if waits else self.io_depth * self.jobs

    @property
    def most_in_flight(self) -> int:
        return self.io_depth * self.jobs

    def load_step(self, vary: Vary) -> int:
        """Return the least depth that jobs share evenly, or the lowest rate that `rateIops` can have."""
        if vary is Vary.DEPTH:
            return self.jobs
        # fio takes a rate of 0 for no limit, so each job and direction needs an operation per second.
        return max(-(-100 * self.jobs // share) for share in self.shares.values())

    def at_load(self, vary: Vary, load: int) -> Self:
        """Return the parameters with that rate in an open loop, or with that depth over all jobs."""
        rate: dict[str, object] = {"rate_iops": load, "arrivals": "Poisson"}
        changed = {"io_depth": load // self.jobs} if vary is Vary.DEPTH else rate
        return type(self).model_validate({**self.model_dump(by_alias=False), **changed})

    def most_load(self, vary: Vary, timing: Timing) -> int:
        """Return the greatest depth of all jobs, or the highest rate of arrivals in one measurement."""
        if vary is Vary.DEPTH:
            return MAX_DEPTH * self.jobs
        return min(fio_rules.MAX_OFFERED, fio_rules.MAX_ARRIVALS // traced_seconds(timing))

    def preparation_seconds(self, timing: Timing) -> int:
        return -(-(self.rate_iops or 0) * traced_seconds(timing) // _TRACED_PER_SECOND) if self.is_open_loop else 0

    def search_label(self, vary: Vary) -> str:
        """Return the label without a varied depth, or with the depth as a limit: `randread 4Ki up to qd64`."""
        return self._label(f"up to qd{self.io_depth}" if vary is Vary.RATE else "")

    def label(self) -> str:
        return self._label(f"qd{self.io_depth}")

    def _label(self, depth: str) -> str:
        shares = "/".join(str(share) for share in self.shares.values())
        sizes = [f"{format_quantity(size)}/{percent}" for size, percent in self.block_sizes.items()]
        least, most = (format_quantity(bound(self.block_sizes)) for bound in (min, max))
        parts = (
            (self.pattern.value, True),
            (shares, self.pattern.is_mixed),
            (least, len(sizes) == 1),
            # Three are short enough for a label.
            ("+".join(sizes), 1 < len(sizes) <= 3),  # noqa: PLR2004
            (f"{least} to {most}", len(sizes) > 3),  # noqa: PLR2004
            (depth, depth != ""),
            (self.random_distribution.replace(":", " "), self.random_distribution != UNIFORM),
            (f"x{self.jobs} jobs", self.jobs > 1),
            (self.engine or "", self.engine is not None),
            (f"fsync/{self.fsync_every}", self.fsync_every > 0),
            (f"max {self.rate_iops} IOPS", self.rate_iops is not None and not self.is_open_loop),
            (f"offers {self.rate_iops} IOPS", self.is_open_loop),
            (f"compress/{self.compress_percent}", self.compress_percent is not None),
            (f"dedupe/{self.dedupe_percent}", self.dedupe_percent is not None),
            ("buffered", not self.direct_io),
            ("until done", self.until is not None),
            ("shared file", self.shares_file),
            ("of the next client", self.reads_next_client),
        )
        return " ".join(part for part, is_shown in parts if is_shown)
