"""iperf3 between two clients: what TCP or UDP carries, counted by the receiver."""

from plimsoll.tools.iperf3.parameters import Iperf3Parameters
from plimsoll.tools.iperf3.tool import IPERF3

__all__ = ["IPERF3", "Iperf3Parameters"]
