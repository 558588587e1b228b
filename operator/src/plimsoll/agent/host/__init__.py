"""The host's load while a client measures, and the files that its tool has open.

`observation` looks every second, at the tool's open files and at the host's properties. It reads counters (`readings`,
also of the client's own control group and of the tool's processes), from which `use` computes rates afterwards.
"""
