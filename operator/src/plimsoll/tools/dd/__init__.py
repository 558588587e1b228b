"""GNU dd on each client's volume: a sequential rate without latency, for comparison with published numbers."""

from plimsoll.tools.dd.parameters import DdParameters
from plimsoll.tools.dd.tool import DD

__all__ = ["DD", "DdParameters"]
