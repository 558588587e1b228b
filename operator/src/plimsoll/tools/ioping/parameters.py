"""The parameters of ioping."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.model import Flag, Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.schema import Rule
from plimsoll.tools.axes import BlockBytes
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.volumes import needs_kernel_volume


class IopingOperation(StrEnum):
    """Direction of the requests."""

    READ = "Read"
    WRITE = "Write"

    @property
    def operation(self) -> Operation:
        """The operation in results."""
        return Operation.READ if self is IopingOperation.READ else Operation.WRITE


class IopingParameters(ToolParameters):
    """ioping on each client's volume: requests at random places, one at a time.

    It measures what fio measures at a depth of 1, to compare both. Each client makes at most 900 000 requests in a
    trial; a trial that needs more is Invalid. Not with access LibRBD.

    Attributes:
        operation: Axis: Read or Write. A written block is not synced, as with fio.
        size: Axis: bytes of every request, from 512 to 64Mi, a multiple of 512. Write a number of bytes, or whole Ki
            (at most 9999Ki) or Mi.
        interval_milliseconds: Time from the start of one request to that of the next, 0 for the next at once. With an
            interval the storage may be idle in between, so the rate says nothing about it.
        direct: Bypass the page cache. false measures the client's memory as much as its storage.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"operation", "size"})
    run_rules: ClassVar[tuple[Rule, ...]] = (needs_kernel_volume("ioping"),)
    reads_when: ClassVar[str] = "'Read' in w.ioping.operation"
    size_axis: ClassVar[str] = "size"

    operation: Annotated[IopingOperation, Field(description="Read or Write.")] = IopingOperation.READ
    size: BlockBytes = 4096
    interval_milliseconds: Annotated[Integer, Field(ge=0, le=1000)] = 0
    direct: Flag = True

    @property
    def reads_data(self) -> bool:
        """Whether the operation is a read."""
        return self.operation is IopingOperation.READ

    @property
    def serial_size(self) -> int | None:
        """Bytes of each request; None if the page cache answers."""
        return self.size if self.direct else None

    def label(self) -> str:
        """Return a short description: `ioping read 4Ki every 10 ms buffered`."""
        parts = (
            (f"ioping {self.operation.lower()} {format_quantity(self.size)}", True),
            (f"every {self.interval_milliseconds} ms", self.interval_milliseconds > 0),
            ("buffered", not self.direct),
        )
        return " ".join(part for part, is_shown in parts if is_shown)
