"""One module per tool, or a package for fio and kube-burner: parameters -> command, output -> measurement. Pure.

`registry.TOOLS` lists them all. See `plimsoll.tools.base` for what a tool declares.
"""
