"""Decides the next actions for a run from observations. Pure."""
