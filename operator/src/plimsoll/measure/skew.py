"""Which part of a data set operations visit: memory answers more of them if they prefer some blocks."""

import math
from itertools import pairwise
from typing import Protocol

_STEPS = 200
"""Steps in which the popularity of blocks is integrated, from the hottest to the coldest."""
_HOTTEST = 1e-12
"""The first of these steps, as a part of the data set."""


class Skew(Protocol):
    """How operations at random places prefer some blocks, which are scattered over the data set."""

    def share(self, part: float, size: int) -> float:
        """Return the share of the operations, 0 to 1, on the hottest part, 0 to 1, of a data set of `size` bytes."""


def bytes_visited(moved: float, size: int, *, at_random: bool, skew: Skew | None = None) -> float:
    """Return the bytes, of a data set of `size`, that are read or written at least once in `moved` bytes of I/O.

    Of D bytes, those are min(x, D) after x bytes in order, and D (1 - exp(-x/D)) at random places, which is the
    occupancy problem (Feller, An Introduction to Probability Theory, volume 1, IV.2). With a skew, the latter holds for
    each group of equally popular blocks.
    """
    if not at_random or not size:
        return min(moved, size)
    if skew is None:
        return size * -math.expm1(-moved / size)
    parts = [_HOTTEST ** (1 - step / _STEPS) for step in range(_STEPS + 1)]
    shares = [skew.share(part, size) for part in parts]
    groups = zip(pairwise([0.0, *parts]), pairwise([0.0, *shares]), strict=True)
    widths = [(size * (end - start), more - less) for (start, end), (less, more) in groups]
    return math.fsum(width * -math.expm1(-moved * share / width) for width, share in widths)
