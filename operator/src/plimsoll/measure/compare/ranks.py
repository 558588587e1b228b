"""Statistics of trials that do not assume a normal distribution."""

import math
from collections import Counter
from collections.abc import Sequence

EXACT_UP_TO = 20
"""The largest sample for which every arrangement is counted."""

_CLUSTER = 2
_GAP = 1.5


def mann_whitney(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the exact two-sided p-value of the Mann-Whitney test, by midranks, with the given ties.

    It is the share of all choices of as many ranks as `one` has whose sum is at least as far from its expectation.
    From 6 and 6 values on it can be as small as 0.002; with 3 and 3 it is never below 0.1.

    Raises:
        ValueError: a sample is empty, or has more than `EXACT_UP_TO` values.

    """
    if not (0 < len(one) <= EXACT_UP_TO and 0 < len(other) <= EXACT_UP_TO):
        raise ValueError(f"each side needs 1 to {EXACT_UP_TO} values, not {len(one)} and {len(other)}")
    ranks = _doubled_midranks([*one, *other])
    sums = _sums_of_subsets(ranks, len(one))
    # Ranks and expectation are doubled, so that all numbers are whole.
    centre = len(one) * (len(ranks) + 1)
    distance = abs(sum(ranks[: len(one)]) - centre)
    extreme = sum(count for total, count in sums.items() if abs(total - centre) >= distance)
    return extreme / math.comb(len(ranks), len(one))


def falls_into_two(values: Sequence[float]) -> bool:
    """Whether values look like those of two different states of a system.

    They do if a gap, with at least two values on either side, is more than 1.5 times as wide as either group. Of 8
    normally distributed values 3 % do, of 10 less than 1 %; of two states ten deviations apart 9 in 10 do.
    """
    ordered = sorted(values)
    return any(
        upper[0] - lower[-1] > _GAP * max(lower[-1] - lower[0], upper[-1] - upper[0])
        for lower, upper in ((ordered[:cut], ordered[cut:]) for cut in range(_CLUSTER, len(ordered) - _CLUSTER + 1))
    )


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value; equal values have the mean of their ranks."""
    ordered = sorted(values)
    first = {value: index for index, value in reversed(list(enumerate(ordered)))}
    ties = Counter(ordered)
    return [2 * first[value] + ties[value] + 1 for value in values]


def _sums_of_subsets(numbers: Sequence[int], size: int) -> Counter[int]:
    """Return sum -> number of subsets of that size with this sum."""
    by_size: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for number in numbers:
        for chosen in range(size, 0, -1):
            for total, count in by_size[chosen - 1].items():
                by_size[chosen][total + number] += count
    return by_size[size]
