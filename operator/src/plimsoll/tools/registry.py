"""The list of all tools."""

from collections.abc import Mapping

from plimsoll.api.names import Layer
from plimsoll.tools.base import AnyTool
from plimsoll.tools.bonnie import BONNIE
from plimsoll.tools.dd import DD
from plimsoll.tools.fio.tool import FIO
from plimsoll.tools.ioping import IOPING
from plimsoll.tools.iperf3 import IPERF3
from plimsoll.tools.kube_burner import KUBE_BURNER
from plimsoll.tools.netcat import NETCAT
from plimsoll.tools.osd_bench import OSD_BENCH
from plimsoll.tools.ping import PING
from plimsoll.tools.rados_bench import RADOS_BENCH
from plimsoll.tools.rbd_bench import RBD_BENCH

_ALL: tuple[AnyTool, ...] = (
    FIO,
    RADOS_BENCH,
    RBD_BENCH,
    OSD_BENCH,
    DD,
    IOPING,
    BONNIE,
    IPERF3,
    NETCAT,
    PING,
    KUBE_BURNER,
)

TOOLS: Mapping[str, AnyTool] = {tool.key: tool for tool in _ALL}  # key of a tool -> the tool
LAYERS: Mapping[str, Layer] = {
    tool.key: tool.layer for layer in Layer for tool in reversed(_ALL) if tool.layer is layer
}
"""Key of a tool -> the layer that it loads, from the bottom up."""

DEPTH_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.depth_axis for tool in _ALL))))
SIZE_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.size_axis for tool in _ALL))))
"""The tools' axes for operations in flight, and for the size of an operation."""

DATA_SET_TOOL = FIO.key  # the tool whose program writes the data sets
