"""The one list of tools."""

from collections.abc import Mapping

from plimsoll.tools.base import Tool
from plimsoll.tools.fio import FIO

TOOLS: Mapping[str, Tool] = {tool.key: tool for tool in (FIO,)}
"""Key of the tool in a workload -> tool."""
