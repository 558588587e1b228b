"""Simulated storage under a load that is offered to it: what a trial would measure, and where its line is.

A trial of a storage draws how fast it is this time, and how its latency scatters; everything else is fixed.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from statistics import NormalDist

from plimsoll.api.line import Line, Objective, ProbeOutcome, Vary
from plimsoll.measure.line.model import Settings, TriedLoad
from plimsoll.measure.line.observe import Observation, PartialLoad, outcome_of
from plimsoll.measure.line.search import progress_of
from support.queueing import Queue

SECONDS = 60
OBJECTIVE = Objective(percentile="99", latency_microseconds=5_000)
SECOND = 10**9
IDLE = OBJECTIVE.latency_nanoseconds / SECOND / 8
"""Latency of a storage without load, seconds, where it is not that of a queue."""

_FULL = 0.9
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
    return observation(load, IDLE, achieved=min(load, capacity), full=_FULL)


@lru_cache(maxsize=64)
def linear(line: float, noise: float) -> Storage:
    """Return storage whose latency is proportional to the load, and scatters by `noise`; equal ones are one object."""
    limit = OBJECTIVE.latency_nanoseconds / SECOND
    return lambda load, _, chance: observation(load, limit * load / line * _factor(chance, noise))


def cliff(line: float, noise: float) -> Storage:
    """Return storage whose latency does not depend on the load until that exceeds its speed, which scatters."""

    def measure(load: float, _: int, chance: random.Random) -> Observation:
        capacity = line * _factor(chance, noise)
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
        speed = self.line / _utilisation_at_line(self.line) * _factor(chance, self.speed_noise)
        if load >= speed:
            return overloaded(load, speed)
        latency = services(round(load / speed, 3)) / speed
        return observation(load, latency * _factor(chance, self.latency_noise))


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


def collapsing(line: float, noise: float) -> Storage:
    """Return storage that completes a third of what it carries, late, where more arrives."""

    def measure(load: float, _: int, chance: random.Random) -> Observation:
        capacity = line * _factor(chance, noise)
        if load <= capacity:
            return observation(load, IDLE)
        return observation(load, 9 * IDLE, achieved=capacity / 3, full=_FULL)

    return measure


def starved(line: float, noise: float, least: float, most: float = 1.0) -> Storage:
    """Return linear storage whose clients offer only a part of the load, evenly drawn from `least` to `most`."""

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        found = linear(line, noise)(load * chance.uniform(least, most), number, chance)
        return replace(found, whole=replace(found.whole, offered=load))

    return measure


def notched(line: float, noise: float) -> Storage:
    """Return linear storage that breaks between an eighth and a quarter of its line too."""
    below = linear(line, noise)

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        scattered = load * _factor(chance, noise)
        return overloaded(load, load / 2) if line / 8 <= scattered <= line / 4 else below(load, number, chance)

    return measure


def sparse(storage: Storage, known_from: float) -> Storage:
    """Return storage of which the percentile is known where this many operations per second complete."""

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        measured = storage(load, number, chance)
        expected = measured.whole.achieved * SECONDS
        operations = round(expected + math.sqrt(expected) * chance.gauss(0, 1))
        known = measured.latencies if operations >= known_from * SECONDS else (None,)
        return replace(measured, latencies=known)

    return measure


def drawn(seed: object, between: tuple[float, float]) -> float:
    """Return a load between two loads; its logarithm is distributed evenly."""
    chance = random.Random(str(seed))  # noqa: S311 - numbers, not secrets
    return math.exp(chance.uniform(*map(math.log, between)))


def _factor(chance: random.Random, noise: float) -> float:
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
