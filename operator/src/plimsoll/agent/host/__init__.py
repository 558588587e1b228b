"""The host's load while a client measures, and the files that its tool has open.

`HostObservation` looks every second. It reads counters (`readings`, and `cgroup` for the client's own group), from
which `use` computes rates afterwards. `open_files` looks at the tool's open files, `processes` at its I/O as the kernel
counts it, `facts` at properties that do not change during a run.
"""
