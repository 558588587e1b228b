"""Owns one run's measurement: waits for the agents, has them prefill, opens the barrier, merges, judges, records.

`session` decides and is pure; `server`, `sink` and `conduct` do what it decides.
"""
