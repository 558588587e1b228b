"""One module per tool: parameters -> command, output -> measurement. Pure.

`registry.TOOLS` lists them all. See `plimsoll.tools.base` for what a tool declares.
"""
