"""What can be asked of `rados bench`."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.model import Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import Size, format_quantity
from plimsoll.tools.base import Timing, ToolParameters

MIN_OBJECT_BYTES = 512
MAX_OBJECT_BYTES = 64 * 2**20
"""An OSD refuses single writes beyond 90 MiB (`osd_max_write_size`)."""

_SEQUENTIAL_READS = 3


class RadosOperation(StrEnum):
    """What is done with whole objects, by the names of `rados bench`."""

    WRITE = "write"
    SEQ = "seq"
    RAND = "rand"

    @property
    def operation(self) -> Operation:
        """What it counts as."""
        return Operation.WRITE if self is RadosOperation.WRITE else Operation.READ


class RadosBenchParameters(ToolParameters):
    """One point of a `rados bench` workload.

    Attributes:
        operation: write new objects, or read them: all once in the order in which they were written, or any in random
            order.
        object_size: bytes of every object; each is written and read in one operation.
        concurrency: operations that each client keeps in flight.
        write_seconds: how long objects are written before they are read. `seq` ends when all were read once, which
            spoils the measurement; so it is three times the time of measuring if absent, warm-up included, and once for
            `rand`. More is needed where reads are much faster than writes.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"objectSize", "concurrency"})

    operation: RadosOperation = RadosOperation.WRITE
    object_size: Annotated[Size, Field(ge=MIN_OBJECT_BYTES, le=MAX_OBJECT_BYTES)] = 4 * 2**20
    concurrency: Annotated[Integer, Field(ge=1, le=1024)] = 16
    write_seconds: Annotated[Integer, Field(ge=1, le=86_400)] | None = None

    @field_validator("write_seconds")
    @classmethod
    def _only_reads_need_objects(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("operation") is RadosOperation.WRITE:
            raise ValueError("has no meaning for operation write; remove it, or use seq or rand")
        return value

    @property
    def reads_data(self) -> bool:
        """Whether it reads what the preparation wrote."""
        return self.operation is not RadosOperation.WRITE

    def preparation_seconds(self, timing: Timing) -> int:
        """Return how long objects are to be written before they are read."""
        if self.write_seconds is not None:
            return self.write_seconds
        times = _SEQUENTIAL_READS if self.operation is RadosOperation.SEQ else 1
        return times * (timing.ramp_seconds + timing.runtime_seconds)

    def label(self) -> str:
        """Return the parameters as people say them: `rados write 4Mi t16`."""
        return f"rados {self.operation} {format_quantity(self.object_size)} t{self.concurrency}"
