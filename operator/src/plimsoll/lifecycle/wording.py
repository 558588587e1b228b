"""Counts and lists in messages."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number of things: `1 PVC`, `2 PVCs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def are(number: int) -> str:
    """Return the verb for that many things."""
    return "is" if number == 1 else "are"


def listed(items: Sequence[str], *, most: int = 3, separator: str = ", ") -> str:
    """Return the first items and how many more there are: `a, b, c and 2 more`."""
    shown = separator.join(items[:most])
    if len(items) <= most:
        return shown
    return f"{shown}{separator.rstrip(', ')} and {len(items) - most} more"
