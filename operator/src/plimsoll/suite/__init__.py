"""Suites: from the variants of a run to the runs of a round, in their order."""
