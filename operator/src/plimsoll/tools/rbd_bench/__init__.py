"""`rbd bench` on an image through librbd: a rate without latency, for comparison with published numbers."""

from plimsoll.tools.rbd_bench.parameters import RbdBenchParameters
from plimsoll.tools.rbd_bench.tool import RBD_BENCH

__all__ = ["RBD_BENCH", "RbdBenchParameters"]
