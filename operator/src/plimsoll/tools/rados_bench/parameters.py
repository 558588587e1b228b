"""The parameters of `rados bench`."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.model import Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import BlockSize, format_quantity
from plimsoll.api.schema import Rule
from plimsoll.tools.axes import Depth
from plimsoll.tools.base import Timing, ToolParameters

MIN_OBJECT_BYTES = 512
MAX_OBJECT_BYTES = 64 * 2**20
"""An OSD refuses single writes beyond 90 MiB (`osd_max_write_size`)."""

_SEQUENTIAL_READS = 3


class RadosOperation(StrEnum):
    """Operation on whole objects, by the names of `rados bench`."""

    WRITE = "write"
    SEQ = "seq"
    RAND = "rand"

    @property
    def operation(self) -> Operation:
        """The operation in results."""
        return Operation.WRITE if self is RadosOperation.WRITE else Operation.READ


class RadosBenchParameters(ToolParameters):
    """rados bench of each client against its own objects in the pool, which are removed afterwards.

    It reports only the mean latency.

    Attributes:
        operation: write creates objects. seq and rand read objects that were written before the measurement, all once
            in the order in which they were written, or in random order.
        object_size: Axis: bytes of every object, from 512 to 64Mi; each is written and read in one operation. Write a
            number of bytes, or whole Ki (at most 9999Ki) or Mi.
        concurrency: Axis: operations that each client keeps in flight.
        write_seconds: How long objects are written before seq or rand reads them. If absent, the warm-up and the
            runtime for rand, and three times as long for seq, which ends when all objects were read. Raise it if reads
            are much faster than writes.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"objectSize", "concurrency"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.writeSeconds) || self.operation != 'write'",
            message="does not apply to operation write; remove it, or use seq or rand",
            field_path=".writeSeconds",
        ),
    )
    depth_axis: ClassVar[str] = "concurrency"
    size_axis: ClassVar[str] = "objectSize"

    operation: RadosOperation = RadosOperation.WRITE
    object_size: Annotated[
        BlockSize,
        Field(
            ge=MIN_OBJECT_BYTES,
            le=MAX_OBJECT_BYTES,
            description="A number of bytes such as 4096, or a quantity such as 64Ki or 4Mi.",
        ),
    ] = 4 * 2**20
    concurrency: Depth = 16
    write_seconds: Annotated[Integer, Field(ge=1, le=86_400)] | None = None

    @field_validator("write_seconds")
    @classmethod
    def _check_operation_reads(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("operation") is RadosOperation.WRITE:
            raise ValueError("does not apply to operation write; remove it, or use seq or rand")
        return value

    @property
    def reads_data(self) -> bool:
        """Whether the operation reads what the `prepare` step wrote."""
        return self.operation is not RadosOperation.WRITE

    def preparation_seconds(self, timing: Timing) -> int:
        """Return how long objects are written before they are read."""
        if self.write_seconds is not None:
            return self.write_seconds
        times = _SEQUENTIAL_READS if self.operation is RadosOperation.SEQ else 1
        return times * (timing.ramp_seconds + timing.runtime_seconds)

    def label(self) -> str:
        """Return a short description: `rados write 4Mi t16`."""
        return f"rados {self.operation} {format_quantity(self.object_size)} t{self.concurrency}"
