"""Whether a load was achieved: all of it, or the part of one client or operation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from plimsoll.api.line import Vary
from plimsoll.measure.checking import checks
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.window import NANOSECONDS

LEAST_SHORTFALL = 0.01
"""Smallest shortfall of the achieved load, as a part of the offered load, that matters."""

MOST_UNAVOIDABLE = checks.EDGE_SHARE
"""Of a depth, whatever may explain that less is in flight: one slow operation does not excuse an empty queue."""

MOST_BLOCKED = 0.1
"""From this share of a client's time on, submissions that block may be why less arrived than was offered."""

_EXPLAINED = 0.6
"""Of what is missing, the least part that blocked submissions explain if the storage is the cause. A client that does
not get a processor in time loses it in submissions too, but not mainly there (observed: up to half)."""

_CHANCE = NormalDist().cdf(-3)
"""Of a trial: chance alone makes it fall short in 1 of 741."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLoad:
    """A load, or a part of one.

    Attributes:
        offered: in operations per second or in flight.
        achieved: likewise.
        operations: number of operations that the load consists of: of a rate as many as were offered, so that a storage
            that completes few of them is not excused by their small number.
        unavoidable: part of an offered depth that a tool cannot keep in flight.

    """

    offered: float
    achieved: float
    operations: float
    unavoidable: float | None = None

    def is_achieved(self, among: int = 1) -> bool:
        """Whether it was achieved, except for what the tool and chance explain in one of so many parts."""
        tolerated = tolerated_shortfall(self.operations, among)
        if self.unavoidable is not None:
            tolerated = min(tolerated + self.unavoidable, MOST_UNAVOIDABLE)
        return self.achieved >= self.offered * (1 - tolerated)

    def is_mostly_achieved(self, among: int = 1) -> bool:
        """Whether at least half of it was achieved, or less only by chance in one of so many parts."""
        tolerated = max(1 / 2, tolerated_shortfall(self.operations, among))
        return self.achieved >= self.offered * (1 - tolerated)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLoad:
    """What a client, or all of them, did in the window.

    Attributes:
        rate: operations completed per second, without syncs.
        in_flight: mean number of operations in flight; None if a mean latency is unknown.
        longest: latency of the longest operation, in seconds.
        depth_full_share: share of submissions, 0 to 1, that filled the depth; None if the tool does not know it.
        blocked: share of the time, 0 to 1, in which submissions blocked: the part of them beyond 10 us each.

    """

    rate: float
    in_flight: float | None
    longest: float
    depth_full_share: float | None = None
    blocked: float = 0.0

    def is_blocked(self, offered: float) -> bool:
        """Whether submissions that blocked are why it did less than it was offered, in operations per second."""
        missing = 1 - self.rate / offered - self.rate * checks.THINKING_SECONDS
        return self.blocked >= max(MOST_BLOCKED, _EXPLAINED * missing)

    def part_of(self, offer: Offer, offered: float, seconds: float) -> PartialLoad:
        """Return what it achieved of the load that it was offered."""
        if offer.search.vary is Vary.RATE:
            return PartialLoad(offered=offered, achieved=self.rate, operations=offered * seconds)
        return PartialLoad(
            offered=offered,
            achieved=self.in_flight or 0.0,
            operations=self.rate * seconds,
            unavoidable=self._unavoidable(offered, seconds),
        )

    def _unavoidable(self, depth: float, seconds: float) -> float:
        """Return the part of a depth that is not in flight although the client is not at fault, as LittlesLaw does."""
        between = min(self.rate * checks.THINKING_SECONDS / depth, checks.THINKING_SHARE)
        return between + self.longest / seconds


def tolerated_shortfall(operations: float, among: int = 1) -> float:
    """Return by how large a part of itself a load may fall short in one of so many parts, 0 to 1.

    The square root of a Poisson number scatters by 1/2 around that of the expected one, however large that is.
    """
    deviations = -NormalDist().inv_cdf(_CHANCE / max(1, among))
    least = max(0.0, 1 - deviations / 2 / math.sqrt(operations)) if operations else 0.0
    return max(LEAST_SHORTFALL, 1 - least**2)


def mean_in_flight(loads: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the mean number of operations in flight by Little's law; None if a mean latency is unknown.

    `loads` are the operations per second of each kind, with their mean latency in nanoseconds.
    """
    found = 0.0
    for rate, mean in loads:
        if rate and mean is None:
            return None
        found += rate * (mean or 0.0)
    return found / NANOSECONDS
