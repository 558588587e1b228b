"""One HTML file of one or several runs: verdicts first, every number with its doubt, no network needed to read it.

What is shown is made of plain values: the blocks of `view`, with figures as the JSON that plotly draws. Only `render`
knows templates and plotly.
"""
