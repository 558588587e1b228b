"""`rbd bench`: an image through librbd; a rate and nothing of latency, for comparing with other people's numbers.

`parameters` says what can be asked for, `tool` turns it into a command, `text` reads the lines that are printed and
`output` makes a measurement of them.
"""

from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters
from plimsoll.tools.rbd_bench.tool import RBD_BENCH

__all__ = ["RBD_BENCH", "RbdBenchParameters"]
