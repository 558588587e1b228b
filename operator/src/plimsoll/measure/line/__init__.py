"""The line: how much load a storage carries before latency breaks. Pure.

`observation` turns a trial into the outcome of a probe; `search` turns the probes of a point into what is known of the
line and into the next load, which `plimsoll.conductor.searching` offers; `summary` judges the search, `bracket` says
whether trials show the line, and `wording` and `uncounted` put it into words for everything that shows it.
"""
