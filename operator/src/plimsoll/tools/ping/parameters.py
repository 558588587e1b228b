"""The parameters of ping."""

from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.model import Integer
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.pairing import Pairing

TAIL_SECONDS = 1
"""Additional time, so that the last measured requests can be answered."""

LEAST_TIMED_BYTES = 16
"""ping stores the time of a request in its data, in this many bytes."""


class PingParameters(ToolParameters):
    """ping between clients: the distribution of round-trip times of ICMP echo requests.

    The kernel of the serving client answers, so the time of no other program is included.

    Attributes:
        size: Axis: bytes of data in each request, without 28 bytes of headers. More than 1472 are sent in several
            packets where the MTU is 1500.
        interval_milliseconds: Least time between two requests of a pair; the kernel may round it up to its timer.
        pairing: EachPair measures one pair at a time, until every client has measured every server; OneToAll lets one
            client at a time measure all servers; AllAtOnce lets all clients measure one server each at the same time.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"size"})
    size_axis: ClassVar[str] = "size"

    size: Annotated[Integer, Field(ge=LEAST_TIMED_BYTES, le=65_507, description="Bytes of data in a request.")] = 56
    interval_milliseconds: Annotated[Integer, Field(ge=10, le=1000)] = 10
    pairing: Pairing = Pairing.EACH_PAIR

    def label(self) -> str:
        """Return a short description: `ping 56 bytes every 10 ms`."""
        return f"ping {self.size} bytes every {self.interval_milliseconds} ms"
