"""`ceph tell osd.* bench`: the speed of each OSD's store alone, without network, replication or clients."""

from plimsoll.tools.osd_bench.parameters import OsdBenchParameters
from plimsoll.tools.osd_bench.tool import OSD_BENCH

__all__ = ["OSD_BENCH", "OsdBenchParameters"]
