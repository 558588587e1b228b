"""netcat between two clients: one plain TCP stream, counted by the receiver."""

from plimsoll.tools.netcat.parameters import NetcatParameters
from plimsoll.tools.netcat.tool import NETCAT

__all__ = ["NETCAT", "NetcatParameters"]
