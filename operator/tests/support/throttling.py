"""How long operations wait for blk-throttle, Linux's limit of a cgroup's operations per second.

The limit is not a server that takes equally long for each operation (M/D/1). Time is divided into slices of 100 ms.
Each slice has the permits for its time, B = N/10, and may also use those that the slice before left. What finds a
permit passes at once. The rest waits for the start of a slice that has one for it, in the order of arrival. So with W
the permits that are used or claimed when a slice begins, of the 2 B of this slice and the one before, and A arrivals
in it, that of the next slice is max(0, W + A - B). Under Poisson arrivals this is the recursion of Crommelin's queue
M/D/c (1932) with c = B servers, each of which takes one slice.

Source: Linux 6.18, block/blk-throttle.c (`tg_within_iops_limit`; `throtl_trim_slice`, which keeps one slice since a
change of February 2025). Kernels without that change keep nothing, and some have slices of 20 ms for SSDs.
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile

SLICE_SECONDS = 0.1

_KEPT = 2
"""Slices whose permits may be used in one slice: its own, and what the one before left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """A limit of operations per second, a multiple of 10, and what is asked of it in a trial.

    Attributes:
        permits_per_second: the limit.
        depth: operations that are in flight at most; a trial breaks if 1 % of its operations find it full.
        percent: the percentile of the objective.
        latency: the highest latency that meets the objective, in seconds.
        ramp: seconds before the measured ones.
        runtime: measured seconds.

    """

    permits_per_second: int
    depth: int
    percent: float
    latency: float
    ramp: float
    runtime: float

    @property
    def permits(self) -> int:
        """Permits of one slice."""
        return round(self.permits_per_second * SLICE_SECONDS)

    def meets(self, load: float, chance: random.Random) -> bool:
        """Whether a simulated trial at a load meets the objective."""
        arrivals = poisson(load, self.ramp + self.runtime, chance)
        first = bisect_right(arrivals, self.ramp)
        waits = self.waits(arrivals)
        measured = waits[first:]
        late = sum(wait > self.latency for wait in measured)
        full = sum(flight >= self.depth for flight in in_flight(arrivals, waits)[first:])
        return late <= len(measured) * (1 - self.percent / 100) and full < len(measured) / 100

    def share_met(self, load: float, trials: int) -> float:
        """Return the share of simulated trials at a load that meet the objective."""
        return sum(self.meets(load, _chance(number)) for number in range(trials)) / trials

    def line(self, trials: int = 200) -> float:
        """Return the load at which half of the trials meet the objective, to about 0.5 %."""
        low, high = 0.5 * self.permits_per_second, 1.5 * self.permits_per_second
        while high / low > 1.002:
            middle = (low + high) / 2
            low, high = (middle, high) if self.share_met(middle, trials) > 1 / 2 else (low, middle)
        return middle

    def waits(self, arrivals: Sequence[float]) -> list[float]:
        """Return how many seconds each operation waits; arrivals are seconds after the first slice began."""
        found, used, current = [], 0, 0
        for arrival in arrivals:
            number = int(arrival / SLICE_SECONDS)
            used = max(0, used - self.permits * (number - current))
            current = number
            # Nothing was left before the first slice.
            most = self.permits * (_KEPT if number else 1)
            slices = max(1, (used - _KEPT * self.permits) // self.permits + 1) if used >= most else 0
            found.append((number + slices) * SLICE_SECONDS - arrival if slices else 0.0)
            used += 1
        return found


def poisson(load: float, seconds: float, chance: random.Random) -> list[float]:
    """Return the times at which operations arrive."""
    return list(takewhile(lambda time: time < seconds, accumulate(chance.expovariate(load) for _ in repeat(None))))


def in_flight(arrivals: Sequence[float], waits: Sequence[float]) -> list[int]:
    """Return of each operation how many are in flight once it has arrived; they leave in the order of arrival."""
    leaving = [arrival + wait for arrival, wait in zip(arrivals, waits, strict=True)]
    return [number + 1 - bisect_right(leaving, arrival, hi=number) for number, arrival in enumerate(arrivals)]


def _chance(number: int) -> random.Random:
    return random.Random(f"throttle {number}")  # noqa: S311 - numbers, not secrets
