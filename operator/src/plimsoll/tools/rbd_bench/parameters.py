"""The parameters of `rbd bench`."""

from enum import StrEnum
from typing import ClassVar

from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.schema import Rule
from plimsoll.tools.axes import BlockBytes, Depth
from plimsoll.tools.base import ToolParameters


class RbdOperation(StrEnum):
    """Direction of the I/O. Mixtures need fio: `rbd bench` does not print separate rates over time."""

    READ = "read"
    WRITE = "write"

    @property
    def operation(self) -> Operation:
        """The operation in results."""
        return Operation(self.value)


class RbdOrder(StrEnum):
    """Order of the blocks, by the names of `rbd bench`."""

    RAND = "rand"
    SEQ = "seq"


class RbdBenchParameters(ToolParameters):
    """rbd bench on each client's RBD image, with access LibRBD only.

    For a first impression, or for comparison with published numbers: it reports no latency, so measure with fio.

    Attributes:
        operation: Direction of the I/O.
        order: rand for random order; seq if each of the operations in flight goes through its own part of the image in
            order.
        block_size: Axis: bytes of every operation, from 512 to 64Mi, a multiple of 512. Write a number of bytes, or
            whole Ki (at most 9999Ki) or Mi.
        concurrency: Axis: operations that each client keeps in flight.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize", "concurrency"})
    run_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=(
                "!has(self.storage) || !has(self.storage.volume) || self.storage.volume.access == 'LibRBD' || "
                "!self.workloads.exists(w, has(w.rbdBench))"
            ),
            message="must be LibRBD, because rbdBench runs on an RBD image; set it to LibRBD",
            field_path=".storage.volume.access",
        ),
    )
    reads_when: ClassVar[str] = "w.rbdBench.operation == 'read'"
    depth_axis: ClassVar[str] = "concurrency"
    size_axis: ClassVar[str] = "blockSize"

    operation: RbdOperation = RbdOperation.WRITE
    order: RbdOrder = RbdOrder.RAND
    block_size: BlockBytes = 4096
    concurrency: Depth = 16

    @property
    def reads_data(self) -> bool:
        """Whether the operation is a read."""
        return self.operation is RbdOperation.READ

    def label(self) -> str:
        """Return a short description: `rbd rand write 4Ki t16`."""
        return f"rbd {self.order} {self.operation} {format_quantity(self.block_size)} t{self.concurrency}"
