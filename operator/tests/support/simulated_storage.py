"""Simulated storage under a load that is offered to it, where theory knows its latency, and its line."""

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate, repeat, takewhile
from statistics import NormalDist

from plimsoll.api.line import Line, Objective, ProbeOutcome, Vary
from plimsoll.measure.line.observe import Observation, PartialLoad, outcome_of
from plimsoll.measure.line.search import Settings, TriedLoad, progress_of


class Queue:
    """A queue M/D/1.

    Attributes:
        load: operations per second that arrive.
        capacity: operations per second that can be served.

    """

    def __init__(self, load: float, capacity: float) -> None:
        """Raise ValueError if the queue has no stationary state."""
        if not 0 < load < capacity:
            raise ValueError(f"a queue of {capacity:g} operations per second grows without end under {load:g}")
        self.load = load
        self.capacity = capacity
        self._arrivals: list[float] = []
        self._states = [1 - self.utilisation]

    @property
    def utilisation(self) -> float:
        return self.load / self.capacity

    @property
    def mean_latency(self) -> float:
        """The mean time from arrival to completion, in seconds (Pollaczek and Khinchine)."""
        return (1 + self.utilisation / (2 * (1 - self.utilisation))) / self.capacity

    def share_within(self, latency: float) -> float:
        waited = latency * self.capacity - 1
        if waited < 0:
            return 0.0
        services = math.floor(waited) + 1
        expected = self.utilisation * (services - waited)
        below = list(accumulate(self._state(number) for number in range(services + 1)))
        term, share = math.exp(-expected), 0.0
        for number in range(services):
            share += term * below[services - number]
            term *= expected / (number + 1)
        return min(share, 1.0)

    def percentile(self, percent: float) -> float:
        low = high = 1 / self.capacity
        while self.share_within(high) < percent / 100:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            if self.share_within(middle) < percent / 100:
                low = middle
            else:
                high = middle
        return high

    def _state(self, number: int) -> float:
        """Return the probability of that many operations in the system."""
        for state in range(len(self._states), number + 1):
            flow = self._states[0] * self._more(state - 1)
            flow += math.fsum(self._states[below] * self._more(state - below) for below in range(1, state))
            self._states.append(flow / math.exp(-self.utilisation))
        return self._states[number]

    def _more(self, number: int) -> float:
        """Return the probability that more than that many operations arrive during one service."""
        while len(self._arrivals) <= number:
            first = len(self._arrivals) + 1
            # From the first term on, which is the largest: 1 minus a sum would lose small probabilities.
            term = math.exp(-self.utilisation + first * math.log(self.utilisation) - math.lgamma(first + 1))
            tail = 0.0
            while term > tail * 1e-17:
                tail += term
                first += 1
                term *= self.utilisation / first
            self._arrivals.append(tail)
        return self._arrivals[number]


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
        return round(self.permits_per_second * SLICE_SECONDS)

    def meets(self, load: float, chance: random.Random) -> bool:
        arrivals = poisson(load, self.ramp + self.runtime, chance)
        first = bisect_right(arrivals, self.ramp)
        waits = self.waits(arrivals)
        measured = waits[first:]
        late = sum(wait > self.latency for wait in measured)
        full = sum(flight >= self.depth for flight in in_flight(arrivals, waits)[first:])
        return late <= len(measured) * (1 - self.percent / 100) and full < len(measured) / 100

    def share_met(self, load: float, trials: int) -> float:
        chances = (random.Random(f"throttle {number}") for number in range(trials))  # noqa: S311 - numbers, not secrets
        return sum(self.meets(load, chance) for chance in chances) / trials

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
    return list(takewhile(lambda time: time < seconds, accumulate(chance.expovariate(load) for _ in repeat(None))))


def in_flight(arrivals: Sequence[float], waits: Sequence[float]) -> list[int]:
    """Return of each operation how many are in flight once it has arrived; they leave in the order of arrival."""
    leaving = [arrival + wait for arrival, wait in zip(arrivals, waits, strict=True)]
    return [number + 1 - bisect_right(leaving, arrival, hi=number) for number, arrival in enumerate(arrivals)]


SECONDS = 60
OBJECTIVE = Objective(percentile="99", latency="5ms")
SECOND = 10**9
IDLE = OBJECTIVE.latency_nanoseconds / SECOND / 8
"""Latency of a storage without load, seconds, where it is not that of a queue."""

FULL = 0.9
"""Share of submissions that find the depth full where more arrive than the storage completes, be it little more."""

Storage = Callable[[float, int, random.Random], Observation]
"""The load, the number of the probe and a source of noise -> what is measured."""


def observation(load: float, latency: float, achieved: float | None = None, full: float = 0.0) -> Observation:
    """Return what a trial measures; latency is the percentile in seconds."""
    rate = load if achieved is None else achieved
    return Observation(
        vary=Vary.RATE,
        whole=PartialLoad(offered=load, achieved=rate, operations=load * SECONDS),
        depth_full_share=full,
        latencies=(latency * SECOND,),
    )


def overloaded(load: float, capacity: float) -> Observation:
    """Return what a trial measures if a bounded depth is full nearly all the time: a latency that hides the backlog."""
    return observation(load, IDLE, achieved=min(load, capacity), full=FULL)


@lru_cache(maxsize=64)
def linear(line: float, noise: float) -> Storage:
    """Return storage whose latency is proportional to the load, and scatters by `noise`; equal ones are one object."""
    limit = OBJECTIVE.latency_nanoseconds / SECOND
    return lambda load, _, chance: observation(load, limit * load / line * scatter_factor(chance, noise))


def cliff(line: float, noise: float) -> Storage:
    """Return storage whose latency does not depend on the load until that exceeds its speed, which scatters."""

    def measure(load: float, _: int, chance: random.Random) -> Observation:
        capacity = line * scatter_factor(chance, noise)
        return observation(load, IDLE) if load <= capacity else overloaded(load, capacity)

    return measure


@dataclass(frozen=True)
class HockeyStick:
    """A queue M/D/1 whose 99th percentile is the objective at the line.

    Attributes:
        speed_noise: scatter of its speed from trial to trial.
        latency_noise: scatter of the percentile.

    """

    line: float
    speed_noise: float = 0.0
    latency_noise: float = 0.0

    def __call__(self, load: float, _: int, chance: random.Random) -> Observation:
        speed = self.line / _utilisation_at_line(self.line) * scatter_factor(chance, self.speed_noise)
        if load >= speed:
            return overloaded(load, speed)
        latency = services(round(load / speed, 3)) / speed
        return observation(load, latency * scatter_factor(chance, self.latency_noise))


@cache
def services(utilisation: float) -> float:
    """Return the 99th percentile of M/D/1 in units of the time of one service."""
    if utilisation <= 0:
        return 1.0
    return Queue(min(utilisation, 0.99), 1.0).percentile(99)


@cache
def _utilisation_at_line(line: float) -> float:
    """Return the utilisation at which this load has the percentile of the objective."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if services(round(middle, 3)) * middle / line * SECOND < OBJECTIVE.latency_nanoseconds:
            low = middle
        else:
            high = middle
    return low


def bimodal(line: float, noise: float, slow: float) -> Storage:
    """Return linear storage that is in a mode four times slower in this part of trials, less than half of them."""
    # Half of all trials meet the objective where more than half of those of the fast mode do.
    shift = math.exp(noise * NormalDist().inv_cdf(0.5 / (1 - slow)))
    fast, crawling = linear(line * shift, noise), linear(line / 4, noise)
    return lambda load, number, chance: (crawling if chance.random() < slow else fast)(load, number, chance)


def drifting(line: float, noise: float, loss: float) -> Storage:
    """Return linear storage that loses this part of its speed after each probe."""
    return lambda load, number, chance: linear(line * (1 - loss) ** number, noise)(load, number, chance)


def notched(line: float, noise: float) -> Storage:
    """Return linear storage that breaks between an eighth and a quarter of its line too."""
    below = linear(line, noise)

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        scattered = load * scatter_factor(chance, noise)
        return overloaded(load, load / 2) if line / 8 <= scattered <= line / 4 else below(load, number, chance)

    return measure


def sparse(storage: Storage, known_from: float) -> Storage:
    """Return storage of which the percentile is known where this many operations per second complete."""

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        measured = storage(load, number, chance)
        expected = measured.whole.achieved * SECONDS
        operations = round(expected + math.sqrt(expected) * chance.gauss(0, 1))
        return replace(measured, latencies=(measured.latencies if operations >= known_from * SECONDS else (None,)))

    return measure


def drawn(seed: object, between: tuple[float, float]) -> float:
    chance = random.Random(str(seed))  # noqa: S311 - numbers, not secrets
    return math.exp(chance.uniform(*map(math.log, between)))


def scatter_factor(chance: random.Random, noise: float) -> float:
    return math.exp(noise * chance.gauss(0, 1))


def search(storage: Storage, settings: Settings, seed: object) -> tuple[Line, Sequence[TriedLoad]]:
    """Search for the line of a storage; return it with the probes."""
    chance = random.Random(str(seed))  # noqa: S311 - numbers, not secrets
    probes: list[TriedLoad] = []
    while (load := (progress := progress_of(probes, settings)).next_load) is not None:
        measured = storage(load, len(probes), chance)
        outcome = outcome_of(measured, [OBJECTIVE])
        is_full = outcome is ProbeOutcome.DEPTH_FULL
        arrived = load if is_full else min(load, measured.whole.achieved)
        probes.append(TriedLoad(offered=load, load=arrived, outcome=outcome))
    return progress.line, probes
