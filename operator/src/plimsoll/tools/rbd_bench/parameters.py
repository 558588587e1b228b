"""What can be asked of `rbd bench`."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.model import Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import Size, format_quantity
from plimsoll.tools.base import ToolParameters

MIN_BLOCK_BYTES = 512
MAX_BLOCK_BYTES = 64 * 2**20


class RbdOperation(StrEnum):
    """What is done. Mixtures are left to fio: `rbd bench` does not tell their rates apart over time."""

    READ = "read"
    WRITE = "write"

    @property
    def operation(self) -> Operation:
        """What it counts as."""
        return Operation(self.value)


class RbdOrder(StrEnum):
    """In which order blocks are visited, by the names of `rbd bench`."""

    RAND = "rand"
    SEQ = "seq"


class RbdBenchParameters(ToolParameters):
    """One point of an `rbd bench` workload.

    Attributes:
        operation: read or write.
        order: random, or each of the operations in flight in order through a part of the image of its own.
        block_size: bytes of every operation.
        concurrency: operations that each client keeps in flight.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize", "concurrency"})

    operation: RbdOperation = RbdOperation.WRITE
    order: RbdOrder = RbdOrder.RAND
    block_size: Annotated[Size, Field(ge=MIN_BLOCK_BYTES, le=MAX_BLOCK_BYTES, multiple_of=MIN_BLOCK_BYTES)] = 4096
    concurrency: Annotated[Integer, Field(ge=1, le=1024)] = 16

    @property
    def reads_data(self) -> bool:
        """Whether it reads the image."""
        return self.operation is RbdOperation.READ

    def label(self) -> str:
        """Return the parameters as people say them: `rbd rand write 4Ki t16`."""
        return f"rbd {self.order} {self.operation} {format_quantity(self.block_size)} t{self.concurrency}"
