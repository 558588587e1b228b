"""`rados bench`: whole objects of a pool, without a block device or a file system."""

from plimsoll.tools.rados_bench.parameters import RadosBenchParameters
from plimsoll.tools.rados_bench.tool import RADOS_BENCH

__all__ = ["RADOS_BENCH", "RadosBenchParameters"]
