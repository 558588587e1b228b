"""Controls the measurement of one run: waits for agents, has them prefill, starts trials, judges and records them.

`session` decides and is pure; `server`, `sink` and `conduct` perform its decisions.
"""
