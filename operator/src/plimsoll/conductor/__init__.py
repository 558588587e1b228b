"""Controls the measurement of one run: waits for agents, has them prefill, starts trials, judges and records them.

`session` decides and is pure; `main`, `server` and the sinks perform its decisions.
"""
