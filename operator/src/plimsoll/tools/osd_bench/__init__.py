"""`ceph tell osd.* bench`: what every OSD's store does alone, without network, replication or clients.

`parameters` says what can be asked for, `tool` turns it into a command, `output` reads what is printed.
"""

from plimsoll.tools.osd_bench.parameters import OsdBenchParameters
from plimsoll.tools.osd_bench.tool import OSD_BENCH

__all__ = ["OSD_BENCH", "OsdBenchParameters"]
