"""The quantities that a tool can report: not every tool counts operations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from plimsoll.api.names import LatencyKind, Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """The quantities that a tool can report.

    Attributes:
        latency: of each operation, their mean, or none.
        operations: the number of completed operations.
        bytes: the number of transferred bytes.
        cells: rates between pairs of clients, the cells of a matrix.

    """

    latency: LatencyKind
    operations: bool = True
    bytes: bool = True
    cells: bool = False

    @property
    def unit(self) -> str:
        """The unit in which I/O is counted."""
        return "operations" if self.operations else "bytes"

    def amount(self, ios: float, volume: float) -> float:
        """Return operations, or bytes if the tool does not count operations."""
        return ios if self.operations else volume


ALL_QUANTITIES = Quantities(latency=LatencyKind.FULL)
"""For a tool that times and counts every operation."""


def counts_operations(iops: float, bytes_per_second: float) -> bool:
    """Whether a recorded rate counts operations: a tool that counts only bytes records bytes without operations."""
    return bool(iops) or not bytes_per_second


def by_operation(items: Iterable[T], operation_of: Callable[[T], Operation]) -> dict[Operation, list[T]]:
    """Group items by operation, in the order of `Operation`."""
    found: dict[Operation, list[T]] = {operation: [] for operation in Operation}
    for item in items:
        found[operation_of(item)].append(item)
    return {operation: group for operation, group in found.items() if group}
