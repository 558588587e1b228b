"""The one list of tools."""

from collections.abc import Mapping

from plimsoll.tools.base import Tool
from plimsoll.tools.fio import FIO
from plimsoll.tools.osd_bench import OSD_BENCH
from plimsoll.tools.rados_bench import RADOS_BENCH
from plimsoll.tools.rbd_bench import RBD_BENCH

TOOLS: Mapping[str, Tool] = {tool.key: tool for tool in (FIO, RADOS_BENCH, RBD_BENCH, OSD_BENCH)}
"""Key of the tool in a workload -> tool."""
