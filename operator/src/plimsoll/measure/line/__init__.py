"""The line: how much load a storage carries before latency breaks. Pure.

`observe` turns a trial into the outcome of a probe, `search` the probes of a point into the next load and an estimate
of the line (`curve`), and `summary` judges the search, and puts it into words.
"""
