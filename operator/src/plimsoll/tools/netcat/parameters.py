"""The parameters of netcat."""

from typing import ClassVar

from plimsoll.tools.base import ToolParameters
from plimsoll.tools.pairing import Pairing


class NetcatParameters(ToolParameters):
    """netcat between clients: one plain TCP stream for each pair, for comparison with published numbers.

    The serving client sends zeros, and the loading client receives and counts them. netcat copies 8 KiB at a time in
    one thread, so on a fast network it measures itself: use iperf3.

    Attributes:
        pairing: EachPair loads one pair at a time, until every client has loaded every server; OneToAll lets one client
            at a time load all servers; AllAtOnce lets all clients load one server each at the same time.

    """

    axes: ClassVar[frozenset[str]] = frozenset()

    pairing: Pairing = Pairing.EACH_PAIR

    def label(self) -> str:
        """Return a short description: `netcat receive`."""
        return "netcat receive"
