"""The bound of a line that is above all loads."""


def lower_bound(low: float, limit: float) -> float:
    """Return the lower bound of a line: at most the limit, since no higher load was tried."""
    return min(low, limit)
