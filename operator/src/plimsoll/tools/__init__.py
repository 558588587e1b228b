"""One module per tool: parameters -> command, output -> measurement. Pure.

`TOOLS` is the one list of them. See `plimsoll.tools.base` for what a tool says of itself.
"""
