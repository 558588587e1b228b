"""Rook: what a run makes of its kinds, and what the objects that are there say."""
