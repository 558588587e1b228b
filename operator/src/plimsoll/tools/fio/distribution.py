"""fio's distributions of random blocks: `random`, and the skewed `zipf:THETA` and `pareto:H`.

Blocks have ranks, 0 for the hottest, which are scattered over the data set. The formulae are from fio's `lib/zipf.c`.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Annotated

from pydantic import AfterValidator, Field

from plimsoll.api.model import Rule

UNIFORM = "random"

_PATTERN = r"^(random|zipf:[0-9](\.[0-9]{1,3})?|pareto:0\.[0-9]{1,3})$"
_RANGE = (
    "must be random, zipf:THETA with a theta above 0 other than 1, such as zipf:1.1, or pareto:H with an h above 0 and "
    "below 0.5, such as pareto:0.2"
)
_OUTSIDE = r"^zipf:[01](\.0+)?$|^pareto:0\.(0+|[5-9][0-9]*)$"
_MOST_TERMS = 10**7  # terms of the zeta function that fio adds up; it ignores the rest
_EXACT_TERMS = 1000
_LEAST_REACHED = 0.95  # the part of the blocks that get a rank at least (`scattered_blocks`)
_WORD = 2**64
# fio's hash of a rank is this multiple of it, modulo 2**64; the block is the rest by the number of blocks.
_MULTIPLIER = 0x61C8864680B583EB
_GOLDEN = (math.sqrt(5) - 1) / 2


def _check_range(text: str) -> str:
    if re.match(_OUTSIDE, text):
        raise ValueError(_RANGE)
    return text


Distribution = Annotated[
    str,
    Field(pattern=_PATTERN, max_length=16),
    AfterValidator(_check_range),
    Rule(rule=f"!self.matches(r'{_OUTSIDE}')", message=_RANGE),
]


@dataclass(frozen=True, slots=True)
class Zipf:
    """The block of rank k is drawn in proportion to (k + 1)**-theta."""

    theta: float
    block_size: int

    def share(self, part: float, size: int) -> float:
        """Return the largest possible share of the operations on the hottest part of a data set."""
        blocks = max(1, size // self.block_size)
        part = _ranks_on(part)
        hottest, zeta = part * blocks, _zeta(min(blocks, _MOST_TERMS), self.theta)
        first_two = (min(hottest, 1.0) + min(max(0.0, hottest - 1), 1.0) * 0.5**self.theta) / zeta
        if hottest <= 2 or part >= 1:  # noqa: PLR2004 - fio draws the first two ranks apart
            return 1.0 if part >= 1 else first_two
        # The inverse of `rank`.
        share = 1 - (1 - ((hottest - 1) / blocks) ** (1 - self.theta)) / self._eta(blocks)
        return float(min(1.0, max(first_two, share)))

    def rank(self, number: float, blocks: int) -> int:
        """Return the rank for a uniform number, 0 to 1."""
        drawn = number * _zeta(min(blocks, _MOST_TERMS), self.theta)
        if drawn < 1:
            return 0
        if drawn < 1 + 0.5**self.theta:
            return 1
        eta = self._eta(blocks)
        return min(blocks - 1, int(blocks * (eta * number - eta + 1) ** (1 / (1 - self.theta))))

    def _eta(self, blocks: int) -> float:
        zeta = _zeta(min(blocks, _MOST_TERMS), self.theta)
        return float((1 - (2 / blocks) ** (1 - self.theta)) / (1 - (1 + 0.5**self.theta) / zeta))


@dataclass(frozen=True, slots=True)
class Pareto:
    """The hottest part h of the blocks gets the share 1 - h of the operations, and so does the hottest h of these."""

    h: float
    block_size: int

    def share(self, part: float, size: int) -> float:
        """Return the largest possible share of the operations on the hottest part of a data set."""
        return float(_ranks_on(part) ** (math.log(1 - self.h) / math.log(self.h)))

    def rank(self, number: float, blocks: int) -> int:
        """Return the rank for a uniform number, 0 to 1."""
        return int((blocks - 1) * number ** (math.log(self.h) / math.log(1 - self.h)))


def _ranks_on(part: float) -> float:
    """Return the part of all ranks that a part of the blocks can have: at most two share a block (`_reached`)."""
    return min(1.0, 2 * part, part + 1 - _LEAST_REACHED)


def skew_of(distribution: str, block_size: int) -> Zipf | Pareto | None:
    """Return the skew of a distribution over blocks of that size; None if all blocks are equally likely."""
    if distribution == UNIFORM:
        return None
    name, _, value = distribution.partition(":")
    return Zipf(float(value), block_size) if name == "zipf" else Pareto(float(value), block_size)


def scattered_blocks(blocks: int) -> int:
    """Return the largest number of blocks, up to that number, over which fio scatters its ranks well."""
    # Its hash gives several ranks to some blocks, and none to the others: 0.7 of them get one on average.
    return next((number for number in range(blocks, 0, -1) if _reached(number) >= _LEAST_REACHED), 0)


def _reached(blocks: int) -> float:
    """Return the part of the blocks that get a rank.

    Two ranks share a block if their hashes differ by a multiple of the number of blocks. Such pairs of differences, of
    ranks and of these multiples, form a lattice, whose shortest vectors Gauss's reduction finds. A vector that covers
    the parts x and y of all ranks and hashes gives the part (1 - x)(1 - y) of the ranks a predecessor. No block has
    three ranks unless a quarter of the ranks have a predecessor.
    """
    # Both are scaled so that all ranks are as long as all hashes.
    scale = (_WORD, blocks * blocks)
    long, short = (_WORD, 0), (blocks * pow(_MULTIPLIER, -1, _WORD) % _WORD, 1)

    def product(one: tuple[int, int], other: tuple[int, int]) -> int:
        return sum(a * b * factor * factor for a, b, factor in zip(one, other, scale, strict=True))

    while True:
        if product(short, short) > product(long, long):
            long, short = short, long
        times = (2 * product(long, short) + product(short, short)) // (2 * product(short, short))
        if not times:
            break
        long = (long[0] - times * short[0], long[1] - times * short[1])
    sums = ((long[0] + sign * short[0], long[1] + sign * short[1]) for sign in (1, -1))
    parts = [(abs(ranks) / blocks, abs(multiple) * blocks / _WORD) for ranks, multiple in (short, long, *sums)]
    return 1 - sum((1 - x) * (1 - y) for x, y in parts if x < 1 and y < 1)


@cache
def scattering_step(blocks: int) -> int:
    """Return the distance between the blocks of neighbouring ranks; it gives every block exactly one rank."""
    return next(step for step in count(max(1, int(blocks * _GOLDEN))) if math.gcd(step, blocks) == 1)


@cache
def _zeta(terms: int, theta: float) -> float:
    """Return the sum of k**-theta for k from 1: the first terms, and the integral of the rest by the midpoint rule."""
    exact = min(terms, _EXACT_TERMS)
    rest: float = ((terms + 0.5) ** (1 - theta) - (exact + 0.5) ** (1 - theta)) / (1 - theta)
    return math.fsum(k**-theta for k in range(1, exact + 1)) + rest
