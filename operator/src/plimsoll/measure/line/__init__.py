"""The line: how much load a storage carries before latency breaks. Pure.

`observe` turns a trial into the outcome of a probe; `search` turns the probes of a point into an estimate of the line
and the next load, which `plimsoll.conductor.ledger` offers; `curve` estimates the line; `summary` judges the search,
and puts it into words for everything that shows it.
"""
