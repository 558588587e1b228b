"""ioping on each client's volume: the latency of one request at a time."""

from plimsoll.tools.ioping.parameters import IopingParameters
from plimsoll.tools.ioping.tool import IOPING

__all__ = ["IOPING", "IopingParameters"]
