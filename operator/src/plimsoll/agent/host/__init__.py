"""What the host did while a client measured, and what the client's tool had open.

`Observation` looks every second. What it reads are counters (`readings`, and `cgroup` for the client's own group), and
`use` makes rates of them afterwards. `open_files` looks at what the tool has open, `processes` at the I/O that the
kernel counts of it, `facts` at what does not change during a run.
"""
