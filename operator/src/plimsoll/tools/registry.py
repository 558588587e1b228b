"""The list of all tools."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.names import Layer
from plimsoll.tools.base import AnyTool, ToolParameters
from plimsoll.tools.bonnie import BONNIE
from plimsoll.tools.cast import Cast
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

TOOLS: Mapping[str, AnyTool] = {tool.key: tool for tool in _ALL}
"""Key of a tool -> the tool."""

LAYERS: Mapping[str, Layer] = {
    tool.key: tool.layer for layer in Layer for tool in reversed(_ALL) if tool.layer is layer
}
"""Key of a tool -> the layer that it loads, from the bottom up."""

DEPTH_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.depth_axis for tool in _ALL))))
SIZE_AXES: tuple[str, ...] = tuple(dict.fromkeys(filter(None, (tool.parameters.size_axis for tool in _ALL))))
"""The tools' axes for operations in flight, and for the size of an operation."""

DATA_SET_TOOL = FIO.key
"""The tool whose program writes the data sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    number: int
    node: str
    serves: bool = False


def loading_clients(key: str, parameters: Mapping[str, JsonValue], clients: int) -> int:
    """Return how many clients generate load at the same time, at most, in a trial with that number of clients.

    ValidationError if this version of the tool has other parameters.
    """
    tool = TOOLS[key]
    cast = _cast(tool, tool.parameters.model_validate(parameters), clients, 0)
    return max((len(active.loading) for active in cast.rounds), default=1)


def cell_count(tool: AnyTool, parameters: ToolParameters, clients: int, servers: int) -> int:
    """Return the number of pairs of a client and one that serves it, over all rounds of a trial."""
    rounds = _cast(tool, parameters, clients, servers).rounds
    return sum(len(serving) for active in rounds for serving in active.servers.values())


def _cast(tool: AnyTool, parameters: ToolParameters, clients: int, servers: int) -> Cast:
    """Return the cast of clients and servers that are each on a node of their own."""
    members = range(clients + servers)
    roster = tuple(_Client(number=number, node=str(number), serves=number >= clients) for number in members)
    return tool.cast(parameters, roster, clients)
