"""The rounds of a suite over time: what was measured, what counts as the baseline, and whether a round is worse."""
