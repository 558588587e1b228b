"""ping between two clients: the distribution of round-trip times."""

from plimsoll.tools.ping.parameters import PingParameters
from plimsoll.tools.ping.tool import PING

__all__ = ["PING", "PingParameters"]
