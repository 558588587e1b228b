"""The list of all tools."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.names import Layer
from plimsoll.tools.base import AnyTool
from plimsoll.tools.fio import FIO
from plimsoll.tools.kube_burner import KUBE_BURNER
from plimsoll.tools.osd_bench import OSD_BENCH
from plimsoll.tools.rados_bench import RADOS_BENCH
from plimsoll.tools.rbd_bench import RBD_BENCH

_ALL: tuple[AnyTool, ...] = (FIO, RADOS_BENCH, RBD_BENCH, OSD_BENCH, KUBE_BURNER)

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
    """A client on a node of its own."""

    number: int
    node: str
    serves: bool = False


def loading_clients(key: str, parameters: Mapping[str, JsonValue], clients: int) -> int:
    """Return how many clients generate load at the same time, at most, in a trial with that number of clients.

    Raises:
        ValidationError: the parameters are not those of this version of the tool.

    """
    tool = TOOLS[key]
    roster = tuple(_Client(number=number, node=str(number)) for number in range(clients))
    cast = tool.cast(tool.parameters.model_validate(parameters), roster, clients)
    return max((len(one.loading) for one in cast.rounds), default=1)
