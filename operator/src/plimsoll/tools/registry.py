"""The list of all tools."""

from collections.abc import Mapping

from plimsoll.api.names import Layer
from plimsoll.tools.base import AnyTool
from plimsoll.tools.bonnie import Bonnie
from plimsoll.tools.dd import Dd
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.ioping import Ioping
from plimsoll.tools.iperf3 import Iperf3
from plimsoll.tools.kube_burner import KubeBurner
from plimsoll.tools.netcat import Netcat
from plimsoll.tools.osd_bench import OsdBench
from plimsoll.tools.ping import Ping
from plimsoll.tools.rados_bench import RadosBench
from plimsoll.tools.rbd_bench import RbdBench

_ALL: tuple[AnyTool, ...] = (
    Fio(),
    RadosBench(),
    RbdBench(),
    OsdBench(),
    Dd(),
    Ioping(),
    Bonnie(),
    Iperf3(),
    Netcat(),
    Ping(),
    KubeBurner(),
)

TOOLS: Mapping[str, AnyTool] = {tool.key: tool for tool in _ALL}  # key of a tool -> the tool
# Key of a tool -> the layer that it loads, from the bottom up
LAYERS: Mapping[str, Layer] = {
    tool.key: tool.layer for layer in Layer for tool in reversed(_ALL) if tool.layer is layer
}
# The tools' axes for operations in flight, and for the size of an operation
DEPTH_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.depth_axis for tool in _ALL))))
SIZE_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.size_axis for tool in _ALL))))
DATA_SET_TOOL = Fio.key  # the tool whose program writes the data sets
