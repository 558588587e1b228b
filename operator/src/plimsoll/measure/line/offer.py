"""The load that a trial of a search offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.line import LineSearch
from plimsoll.api.names import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The load that a trial of a search offers.

    Attributes:
        load: operations per second or in flight of all clients together.
        depth: operations that one client can have in flight; None if that is unknown.
        shares: operation -> its part of all operations, 0 to 1; empty if the tool does not set them.

    """

    search: LineSearch
    load: float
    depth: int | None = None
    shares: Mapping[Operation, float] = field(default_factory=dict)
