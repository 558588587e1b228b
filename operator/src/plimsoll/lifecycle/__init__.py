"""Decides what to do next for a run from what was observed. Pure."""
