"""The parameters of dd."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.model import Flag, Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.schema import Rule
from plimsoll.tools.axes import BlockBytes
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.volumes import needs_kernel_volume

_NOT_WRITTEN = "applies only to Write and Copy, because Read writes nothing; remove it, or Read from operation"


class DdOperation(StrEnum):
    """What dd does with the data set: `Copy` reads its first half and writes its second half."""

    READ = "Read"
    WRITE = "Write"
    COPY = "Copy"

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in results."""
        if self is DdOperation.COPY:
            return (Operation.READ, Operation.WRITE)
        return (Operation.READ if self is DdOperation.READ else Operation.WRITE,)


class DdParameters(ToolParameters):
    """dd on each client's volume, once from its beginning, one block at a time.

    For a first impression, or for comparison with published numbers: it reports only a mean rate, so measure with fio.
    The measurement ends when the blocks are done. rampSeconds and runtimeSeconds together limit its time; with less
    than all blocks done, the result is Invalid. Not with access LibRBD.

    Attributes:
        operation: Axis: Read; Write, which writes zeros; or Copy, which reads the first half of the data set and
            writes it to the second half. Storage that compresses or deduplicates hardly stores zeros; Copy writes what
            the prefill wrote, which does not compress, unless a Write came before it.
        block_size: Axis: bytes of every read and write, from 512 to 64Mi, a multiple of 512. Write a number of bytes,
            or whole Ki (at most 9999Ki) or Mi.
        count: Number of blocks. If absent, all that fit into the data set, or for Copy into half of it.
        direct: Bypass the page cache. false measures the client's memory as much as its storage.
        fdatasync: Make the written data durable once at the end, as a part of the measured time. Refused for Read.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"operation", "blockSize"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(rule="!self.fdatasync || !('Read' in self.operation)", message=_NOT_WRITTEN, field_path=".fdatasync"),
    )
    run_rules: ClassVar[tuple[Rule, ...]] = (needs_kernel_volume("dd"),)
    reads_when: ClassVar[str] = "w.dd.operation != ['Write']"
    size_axis: ClassVar[str] = "blockSize"

    operation: Annotated[DdOperation, Field(description="Read, Write or Copy.")] = DdOperation.READ
    block_size: BlockBytes = 2**20
    count: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = None
    direct: Flag = True
    fdatasync: Flag = False

    @field_validator("fdatasync")
    @classmethod
    def _check_writes(cls, value: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - as pydantic calls it
        if value and info.data.get("operation") is DdOperation.READ:
            raise ValueError(_NOT_WRITTEN)
        return value

    @property
    def reads_data(self) -> bool:
        """Whether the operation reads."""
        return Operation.READ in self.operation.operations

    def label(self) -> str:
        """Return a short description: `dd write 1Mi x1000 buffered fdatasync`."""
        parts = (
            (f"dd {self.operation.lower()} {format_quantity(self.block_size)}", True),
            (f"x{self.count}", self.count is not None),
            ("buffered", not self.direct),
            ("fdatasync", self.fdatasync),
        )
        return " ".join(part for part, is_shown in parts if is_shown)
