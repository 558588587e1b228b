"""The report of one or several runs as one HTML file: verdicts first, every number with its uncertainty, no network.

Its content consists of plain values: the blocks of `view`, with figures as plotly's JSON. Only `render` depends on the
templates and plotly.
"""
